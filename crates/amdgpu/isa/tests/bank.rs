//! The VGPR bank mode: how it is set, how it applies to operands, how paths are joined.

use hotswap_isa::bank::{BankRole, VgprBanks, previous_mode};
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::{Inst, Isa, OperandValue, Target, effects};

fn isa(target: &str) -> Isa {
    Isa::new(Target::find(target).expect("a target of the rows"))
}

fn decode(isa: Isa, words: &[u32]) -> Inst {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    isa.decode(&bytes).unwrap_or_else(|error| panic!("{words:08x?}: {error}"))
}

/// The mode after a run of instructions from the entry of a kernel.
fn after(target: &str, program: &[&[u32]]) -> VgprBanks {
    let isa = isa(target);
    program.iter().fold(VgprBanks::ENTRY, |banks, words| banks.mode_after(&decode(isa, words), isa))
}

const NOP: &[u32] = &[0xbf80_0000];
/// s_set_vgpr_msb 0x4181: mode 0x81, coming from 0x41.
const SET_81: &[u32] = &[0xbf86_4181];
/// s_set_vgpr_msb 0x8141.
const SET_41: &[u32] = &[0xbf86_8141];
/// s_setreg_imm32_b32 hwreg(HW_REG_WAVE_MODE, 12, 8), 0x41.
const SETREG: &[u32] = &[0xb980_3b01, 0x41];
/// The same with the banks where MODE has them: destination 1, source 2 1.
const SETREG_WHOLE: &[u32] = &[0xb980_f801, 0x4_1000];

#[test]
fn the_instruction_sets_every_role() {
    let banks = after("gfx1250", &[SET_81]);
    assert_eq!(banks.mode(), Some(0x81));
    let roles =
        [BankRole::Source0, BankRole::Source1, BankRole::Source2, BankRole::Destination].map(|role| banks.bank(role));
    assert_eq!(roles, [Some(1), Some(0), Some(0), Some(2)]);
    assert_eq!(after("gfx1250", &[SET_81, NOP, SET_41]).mode(), Some(0x41));
    assert_eq!(previous_mode(&decode(isa("gfx1250"), SET_41)), Some(0x81));
    assert_eq!(previous_mode(&decode(isa("gfx1250"), NOP)), None);
}

#[test]
fn targets_without_banks_have_no_mode() {
    assert_eq!(after("gfx1100", &[NOP]), VgprBanks::ENTRY);
    assert_eq!(after("gfx1200", &[&[0xb980_f801, 0x4_1000]]), VgprBanks::ENTRY);
}

#[test]
fn setreg_of_mode_sets_the_banks_rotated() {
    // Destination 1 and source 2 1, the others 0, by the field and by the bits of the immediate.
    assert_eq!(after("gfx1250", &[SET_81, SETREG_WHOLE]).mode(), Some(0x50));
    // By the field unchanged, by the bits of the immediate all 0: the differing roles are unknown.
    let banks = after("gfx1250", &[SET_81, SETREG]);
    assert_eq!(BankRole::ALL.map(|role| banks.bank(role)), [Some(0), Some(0), None, None]);
    // Rounding modes only, and the immediate repeats the banks, as LLVM 23 writes it.
    assert_eq!(after("gfx1250", &[SET_81, &[0xb980_1801, 0x0000_6003]]).mode(), Some(0x81));
    assert_eq!(after("gfx1250", &[SET_81, &[0xb980_1801, 3]]).bank(BankRole::Destination), None);
    // s_setreg_b32 from a register: nothing is known. Another register: nothing changes.
    assert_eq!(after("gfx1250", &[SET_81, &[0xb900_f801]]), {
        let unknown = after("gfx1250", &[SET_81, &[0xb900_f801]]);
        assert_eq!(BankRole::ALL.map(|role| unknown.bank(role)), [None; 4]);
        unknown
    });
    assert_eq!(after("gfx1250", &[SET_81, &[0xb980_f802, 0x4_1000]]).mode(), Some(0x81));
}

#[test]
fn a_set_directly_behind_a_setreg_may_be_dropped() {
    let banks = after("gfx1250", &[SETREG_WHOLE, SET_41]);
    // 0x50 or 0x41: source 0 and source 2 differ, the rest is the same.
    assert_eq!(BankRole::ALL.map(|role| banks.bank(role)), [None, Some(0), None, Some(1)]);
    assert_eq!(after("gfx1250", &[SETREG_WHOLE, NOP, SET_41]).mode(), Some(0x41));
}

#[test]
fn paths_that_disagree_leave_a_role_unknown() {
    let joined = VgprBanks::of_mode(0x81).join(VgprBanks::of_mode(0x41));
    assert_eq!(BankRole::ALL.map(|role| joined.bank(role)), [Some(1), Some(0), Some(0), None]);
    assert_eq!((joined.mode(), joined.join(joined)), (None, joined));
    assert_eq!(VgprBanks::UNKNOWN.join(VgprBanks::ENTRY), VgprBanks::UNKNOWN);
    let call: &[u32] = &[0xbe80_4904];
    assert_eq!(after("gfx1250", &[SET_81, call]), VgprBanks::UNKNOWN);
}

/// Registers of an instruction's operands with mode 0b11_10_01_00: source 0 in bank 0, and so on.
fn resolved(words: &[u32]) -> Vec<(String, u16)> {
    let isa = isa("gfx1250");
    let banks = VgprBanks::of_mode(0b11_10_01_00);
    let inst = decode(isa, words);
    let operands = inst.operands(isa).enumerate().filter_map(|(number, operand)| match operand.value {
        OperandValue::Reg(reg) if reg.file == RegFile::Vgpr => {
            let role = effects::bank_role(inst.entry(), number as u8);
            let reg = banks.resolve_register(reg, role).expect("every bank is known");
            Some((operand.name.as_str().to_owned(), reg.index / 256))
        }
        _ => None,
    });
    operands.collect()
}

#[test]
fn roles_by_encoding_class() {
    type Case<'a> = (&'a [u32], &'a [(&'a str, u16)]);
    let cases: [Case; 9] = [
        // v_add_f32_e32 v1, v2, v3
        (&[0x0602_0702], &[("vdst", 3), ("src0", 0), ("src1", 1)]),
        // v_fmac_f32_e32 v1, v2, v3: the tied source is the destination.
        (&[0x5602_0702], &[("vdst", 3), ("src0", 0), ("src1", 1), ("src2", 3)]),
        // v_fmamk_f32 v1, v2, 0x100, v3: the operand after the literal is the third source.
        (&[0x5802_0702, 0x100], &[("vdst", 3), ("src0", 0), ("src1", 2)]),
        // v_fmaak_f32 v1, v2, v3, 0x100
        (&[0x5a02_0702, 0x100], &[("vdst", 3), ("src0", 0), ("src1", 1)]),
        // v_fma_f32 v5, v1, v2, v3
        (&[0xd613_0005, 0x040e_0501], &[("vdst", 3), ("src0", 0), ("src1", 1), ("src2", 2)]),
        // ds_store_2addr_b32 v1, v2, v3 offset0:1 offset1:2
        (&[0xd838_0201, 0x0003_0201], &[("addr", 0), ("data0", 1), ("data1", 2)]),
        // global_load_b32 v1, v[2:3], off
        (&[0xee05_007c, 1, 2], &[("vdst", 3), ("vaddr", 0)]),
        // global_store_b32 v[2:3], v1, off
        (&[0xee06_807c, 0x0080_0000, 2], &[("vaddr", 0), ("vdata", 1)]),
        // v_wmma_ld_scale_paired_b32 v40, v41: bank 0 in every mode.
        (&[0xcc35_0000, 0x0202_5328], &[("src0", 0), ("src1", 0)]),
    ];
    for (words, wanted) in cases {
        let wanted: Vec<_> = wanted.iter().map(|(name, bank)| ((*name).to_owned(), *bank)).collect();
        assert_eq!(resolved(words), wanted, "{words:08x?}");
    }
}

#[test]
fn other_registers_are_as_they_are_named() {
    let scalar = Reg::new(RegFile::Sgpr, 7, 2);
    assert_eq!(VgprBanks::UNKNOWN.resolve_register(scalar, Some(BankRole::Source0)), Some(scalar));
    let vector = Reg::new(RegFile::Vgpr, 7, 2);
    assert_eq!(VgprBanks::UNKNOWN.resolve_register(vector, Some(BankRole::Source0)), None);
    assert_eq!(VgprBanks::UNKNOWN.resolve_register(vector, None), Some(vector));
    let third = Reg::new(RegFile::Vgpr, 775, 2);
    assert_eq!(VgprBanks::of_mode(0xff).resolve_register(vector, Some(BankRole::Destination)), Some(third));
}
