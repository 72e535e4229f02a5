//! The highest registers that the instructions of a function name, bank modes included.
//!
//! Invariant: where an instruction's registers are selected by M0, by the index mode of gfx9 or by a bank mode that is
//! not known, or where code was not decoded, the number is a lower bound and says so.

use crate::table::{Evidence, Number, Resources};
use hotswap_isa::reg::RegFile;
use hotswap_isa::{Flag, Inst};
use hotswap_program::{BankMap, Program};

/// The highest numbers so far, one more than the register's.
#[derive(Debug, Default)]
struct Highest {
    vgprs: u64,
    agprs: u64,
    sgprs: u64,
    /// Vector registers may be more.
    open_vectors: bool,
    /// Scalar registers may be more.
    open_scalars: bool,
}

/// The registers of one function.
pub(crate) fn named(program: &Program<'_>, banks: &BankMap, number: usize) -> Resources {
    let function = &program.functions[number];
    let isa = program.source.isa;
    let mut highest = Highest { open_vectors: function.uses_index_mode(), ..Highest::default() };
    let mut decoded = function.is_closed();
    for (block, line) in function.blocks().enumerate() {
        let (mut at, mut mode) = (line.start, banks.at_block(number, block));
        while at < line.end {
            let Some(inst) = program.decode(at) else {
                decoded = false;
                break;
            };
            highest.add(&inst, mode, isa);
            mode = mode.after(&inst, isa);
            at += u32::from(inst.len());
        }
    }
    let number =
        |value, open: bool| Number { value: Some(value), at_least: open || !decoded, evidence: Evidence::Disassembly };
    Resources {
        vgprs: number(highest.vgprs, highest.open_vectors),
        agprs: number(highest.agprs, false),
        sgprs: number(highest.sgprs, highest.open_scalars),
        ..Resources::UNKNOWN
    }
}

impl Highest {
    fn add(&mut self, inst: &Inst, banks: hotswap_isa::bank::VgprBanks, isa: hotswap_isa::Isa) {
        if inst.is(Flag::Indexed) {
            self.open_vectors |= inst.is(Flag::Valu);
            self.open_scalars |= !inst.is(Flag::Valu);
        }
        inst.visit(isa, |effect| {
            let Some(effect) = effect.effect() else { return };
            let reg = banks.resolve(effect.reg, effect.role);
            self.open_vectors |= reg.is_none();
            let reg = reg.unwrap_or(effect.reg);
            let slot = match reg.file {
                RegFile::Vgpr => &mut self.vgprs,
                RegFile::Agpr => &mut self.agprs,
                RegFile::Sgpr => &mut self.sgprs,
                RegFile::Ttmp | RegFile::Special => return,
            };
            *slot = (*slot).max(u64::from(reg.index) + u64::from(reg.count));
        });
    }
}
