//! The role of an instruction in control flow, addresses in scalar registers and EXEC: one look-up by its entry.
//!
//! Invariants: mnemonics are compared once, when the table is made; an instruction without a line in [`op`] is
//! [`AddressOp::Other`], which claims nothing.

use hotswap_isa::{Flag, Inst, TableEntry};
use std::sync::LazyLock;

/// Effect of an instruction on addresses, control flow or EXEC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum AddressOp {
    Other,
    /// Execution does not, or not only, continue after it: none of the following.
    Branch,
    /// It may set the bank mode or the index mode.
    Mode,
    GetPc,
    SetPc,
    SwapPc,
    Call,
    AddPc,
    Add,
    /// SCC is not the carry.
    AddSigned,
    AddWithCarry,
    Sub,
    SubWithBorrow,
    Add64,
    Sub64,
    Move,
    Move64,
    SignExtend16,
    Absolute,
    /// SCC is whether one number with a sign is greater, less, or the same.
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    Select,
    Load,
    /// A prefetch of data or instructions: a hint, which changes no result whatever its address.
    Fetch,
    WriteLane,
    ReadLane,
    /// The lanes after it are a subset of those before it, whatever its operands are.
    Shrinks,
    /// The lanes before it are a subset of those after it.
    Grows,
    /// One of both if EXEC is among its sources.
    AndExec,
    OrExec,
    AndNotExec,
}

/// The known properties of an instruction, by its entry.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpProperties {
    pub(crate) op: AddressOp,
    /// It may read vector registers in lanes that are not active.
    pub(crate) crosses: bool,
    /// Addresses in scalar registers may come from it or pass through it.
    pub(crate) moves: bool,
    /// It may load registers from scratch.
    pub(crate) reloads: bool,
    /// Whether M0 selects the registers.
    pub(crate) indexed: bool,
    pub(crate) valu: bool,
}

/// The table: of all instructions, so it is made once.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ops {
    table: &'static [OpProperties],
}

impl Ops {
    pub(crate) fn new() -> Self {
        static TABLE: LazyLock<Box<[OpProperties]>> = LazyLock::new(Ops::table);
        Self { table: &TABLE }
    }

    fn table() -> Box<[OpProperties]> {
        let last = TableEntry::all_entries().map(|entry| usize::from(entry.id())).max().unwrap_or(0);
        let mut table = vec![NOTHING; last + 1];
        // All entries of a row have its name and its flags, and most are adjacent.
        let mut known = (u16::MAX, NOTHING);
        for entry in TableEntry::all_entries() {
            if entry.row() != known.0 {
                known = (entry.row(), line(entry));
            }
            if let Some(slot) = table.get_mut(usize::from(entry.id())) {
                *slot = known.1;
            }
        }
        table.into()
    }

    #[inline]
    pub(crate) fn line(&self, inst: &Inst) -> OpProperties {
        self.line_of(inst.entry())
    }

    #[inline]
    pub(crate) fn line_of(&self, entry: TableEntry) -> OpProperties {
        self.table.get(usize::from(entry.id())).copied().unwrap_or(NOTHING)
    }

    #[inline]
    pub(crate) fn address_op(&self, inst: &Inst) -> AddressOp {
        self.line(inst).op
    }
}

impl OpProperties {
    /// Whether `DefUseList` has entries of it that do not come from scalar registers.
    pub(crate) const fn marks_scalars(self) -> bool {
        let marked = matches!(
            self.op,
            AddressOp::GetPc
                | AddressOp::SetPc
                | AddressOp::SwapPc
                | AddressOp::Call
                | AddressOp::ReadLane
                | AddressOp::WriteLane
        );
        marked || self.op.carries() || self.indexed
    }
}

/// Properties that claim nothing.
const NOTHING: OpProperties =
    OpProperties { op: AddressOp::Other, crosses: true, moves: false, reloads: false, indexed: false, valu: false };

fn line(entry: TableEntry) -> OpProperties {
    let op = op(entry);
    OpProperties {
        op,
        crosses: crosses(entry),
        moves: op.moves_addresses(),
        reloads: entry.is(Flag::FlatScratch) || entry.is(Flag::Mubuf),
        indexed: entry.is(Flag::Indexed),
        valu: entry.is(Flag::Valu),
    }
}

fn op(entry: TableEntry) -> AddressOp {
    let name = entry.mnemonic();
    match name {
        "s_getpc_b64" | "s_get_pc_i64" => AddressOp::GetPc,
        "s_setpc_b64" | "s_set_pc_i64" => AddressOp::SetPc,
        "s_swappc_b64" | "s_swap_pc_i64" => AddressOp::SwapPc,
        "s_call_b64" | "s_call_i64" => AddressOp::Call,
        "s_add_pc_i64" => AddressOp::AddPc,
        "s_add_u32" | "s_add_co_u32" => AddressOp::Add,
        "s_add_i32" | "s_add_co_i32" => AddressOp::AddSigned,
        "s_addc_u32" | "s_add_co_ci_u32" => AddressOp::AddWithCarry,
        "s_sub_u32" | "s_sub_co_u32" => AddressOp::Sub,
        "s_subb_u32" | "s_sub_co_ci_u32" => AddressOp::SubWithBorrow,
        "s_add_nc_u64" | "s_add_u64" => AddressOp::Add64,
        "s_sub_nc_u64" | "s_sub_u64" => AddressOp::Sub64,
        "s_mov_b32" | "s_movk_i32" => AddressOp::Move,
        "s_mov_b64" => AddressOp::Move64,
        "s_sext_i32_i16" => AddressOp::SignExtend16,
        "s_abs_i32" => AddressOp::Absolute,
        "s_cmp_gt_i32" => AddressOp::Greater,
        "s_cmp_ge_i32" => AddressOp::GreaterEqual,
        "s_cmp_lt_i32" => AddressOp::Less,
        "s_cmp_le_i32" => AddressOp::LessEqual,
        "s_set_vgpr_msb" | "s_setreg_b32" | "s_setreg_imm32_b32" | "s_set_gpr_idx_on" => AddressOp::Mode,
        "s_cselect_b32" => AddressOp::Select,
        "s_prefetch_inst" | "s_prefetch_data" | "s_buffer_prefetch_data" => AddressOp::Fetch,
        "v_writelane_b32" => AddressOp::WriteLane,
        "v_readlane_b32" => AddressOp::ReadLane,
        "s_and_b32" | "s_and_b64" => AddressOp::AndExec,
        "s_or_b32" | "s_or_b64" => AddressOp::OrExec,
        "s_andn2_b32" | "s_andn2_b64" | "s_and_not1_b32" | "s_and_not1_b64" => AddressOp::AndNotExec,
        "s_and_saveexec_b32"
        | "s_and_saveexec_b64"
        | "s_andn1_saveexec_b32"
        | "s_andn1_saveexec_b64"
        | "s_and_not0_saveexec_b32"
        | "s_and_not0_saveexec_b64" => AddressOp::Shrinks,
        "s_or_saveexec_b32" | "s_or_saveexec_b64" => AddressOp::Grows,
        _ if name.starts_with("v_cmpx_") => AddressOp::Shrinks,
        _ if entry.is(Flag::Smrd) && (name.starts_with("s_load_dword") || name.starts_with("s_load_b")) => {
            AddressOp::Load
        }
        _ if goes_elsewhere(entry) => AddressOp::Branch,
        _ => AddressOp::Other,
    }
}

/// Whether it is not known to keep to its own lanes.
fn crosses(entry: TableEntry) -> bool {
    let name = entry.mnemonic();
    if entry.is(Flag::Valu) {
        let moves = [Flag::Dpp, Flag::Convergent, Flag::Mai, Flag::Swmmac].into_iter().any(|flag| entry.is(flag));
        return moves || ["lane", "wmma", "mfma", "interp"].iter().any(|part| name.contains(part));
    }
    let plain = [Flag::Flat, Flag::FlatGlobal, Flag::FlatScratch, Flag::Mubuf, Flag::Mtbuf, Flag::Ds, Flag::Exp];
    !plain.into_iter().any(|flag| entry.is(flag))
        || ["permute", "swizzle", "_tr"].iter().any(|part| name.contains(part))
}

fn goes_elsewhere(entry: TableEntry) -> bool {
    [Flag::Branch, Flag::Call, Flag::Return, Flag::NoFallthrough, Flag::Trap].into_iter().any(|flag| entry.is(flag))
}

impl AddressOp {
    /// Whether the walk of a function passes over it: execution continues after it, and it sets no mode and lacks
    /// an address of code.
    pub(crate) const fn is_passed(self) -> bool {
        use AddressOp::{AddPc, Branch, Call, GetPc, Mode, SetPc, SwapPc};
        !matches!(self, Branch | Mode | GetPc | SetPc | SwapPc | Call | AddPc)
    }

    /// Whether SCC is its carry, or its result.
    pub(crate) const fn carries(self) -> bool {
        let adds = matches!(self, Self::Add | Self::AddSigned | Self::AddWithCarry | Self::Sub | Self::SubWithBorrow);
        adds || self.compares()
    }

    /// Whether it compares two signed numbers.
    pub(crate) const fn compares(self) -> bool {
        matches!(self, Self::Greater | Self::GreaterEqual | Self::Less | Self::LessEqual)
    }

    /// Whether it only computes numbers in scalar registers from its sources.
    pub(crate) const fn computes_scalars(self) -> bool {
        matches!(
            self,
            Self::Add
                | Self::AddSigned
                | Self::AddWithCarry
                | Self::Sub
                | Self::SubWithBorrow
                | Self::Add64
                | Self::Sub64
                | Self::Move
                | Self::Move64
                | Self::SignExtend16
                | Self::Absolute
                | Self::Select
                | Self::AndExec
                | Self::OrExec
                | Self::AndNotExec
        )
    }

    /// Whether addresses in scalar registers may come from it or pass through it.
    pub(crate) const fn moves_addresses(self) -> bool {
        let masks_lanes = matches!(self, Self::AndExec | Self::OrExec | Self::AndNotExec);
        let brings = matches!(
            self,
            Self::GetPc
                | Self::SetPc
                | Self::SwapPc
                | Self::Call
                | Self::AddPc
                | Self::Load
                | Self::WriteLane
                | Self::ReadLane
        );
        // The comparison of a distance decides which of two paths is impossible.
        brings || self.compares() || self.computes_scalars() && !masks_lanes
    }
}
