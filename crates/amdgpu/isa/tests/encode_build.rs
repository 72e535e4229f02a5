//! Building instructions: the bytes that LLVM's assembler emits for the same operands, and each error.

use hotswap_isa::encode::{EncodeError, InstructionBuilder, OperandArg, reassemble};
use hotswap_isa::reg::{Reg, RegFile, Special, VgprHalf};
use hotswap_isa::{Class, Inst, Isa, Name, Target, Wave};

fn isa(target: &str) -> Isa {
    Isa::new(Target::find(target).expect("a target of the rows"))
}

fn v(index: u16, count: u8) -> OperandArg {
    Reg::new(RegFile::Vgpr, index, count).into()
}

fn a(index: u16, count: u8) -> OperandArg {
    Reg::new(RegFile::Agpr, index, count).into()
}

fn s(index: u16, count: u8) -> OperandArg {
    Reg::new(RegFile::Sgpr, index, count).into()
}

fn special(special: Special, count: u8) -> OperandArg {
    Reg::special(special, count).into()
}

fn half(index: u16, half: VgprHalf) -> OperandArg {
    Reg::half(index, half).into()
}

fn build(target: &str, mnemonic: &str, class: Class, operands: &[(Name, OperandArg)]) -> Result<Inst, EncodeError> {
    build_on(isa(target), mnemonic, class, operands)
}

fn build_on(isa: Isa, mnemonic: &str, class: Class, operands: &[(Name, OperandArg)]) -> Result<Inst, EncodeError> {
    let start = InstructionBuilder::new(isa, mnemonic, class);
    operands.iter().fold(start, |builder, (name, arg)| builder.set_operand(*name, *arg)).build()
}

fn hex(inst: &Inst) -> String {
    inst.bytes()[..usize::from(inst.len())].iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().join(" ")
}

#[test]
fn bytes_are_those_of_the_assembler() {
    use Name::*;
    use OperandArg::{Constant, Number};
    type Case<'a> = (&'a str, &'a str, Class, &'a [(Name, OperandArg)], &'a str);
    let v0 = v(0, 1);
    let cases: &[Case] = &[
        ("gfx1250", "s_nop", Class::Sopp, &[(Simm16, Number(0))], "00 00 80 bf"),
        ("gfx1250", "s_clause", Class::Sopp, &[(Simm16, Number(3))], "03 00 85 bf"),
        ("gfx1250", "s_branch", Class::Sopp, &[(Simm16, Number(-2))], "fe ff a0 bf"),
        ("gfx1250", "v_nop", Class::Vop1, &[], "00 00 00 7e"),
        ("gfx1250", "s_set_vgpr_msb", Class::Sopp, &[(Simm16, Number(0x4181))], "81 41 86 bf"),
        ("gfx1250", "s_mov_b32", Class::Sop1, &[(Sdst, s(20, 1)), (Src0, special(Special::M0, 1))], "7d 00 94 be"),
        ("gfx1250", "s_mov_b32", Class::Sop1, &[(Sdst, special(Special::M0, 1)), (Src0, Constant(0))], "80 00 fd be"),
        ("gfx1250", "s_get_pc_i64", Class::Sop1, &[(Sdst, s(20, 2))], "00 47 94 be"),
        (
            "gfx1250",
            "s_and_b32",
            Class::Sop2,
            &[(Sdst, s(4, 1)), (Src0, s(4, 1)), (Src1, Constant(0xffff_0000))],
            "04 ff 04 8b 00 00 ff ff",
        ),
        (
            "gfx1250",
            "s_add_nc_u64",
            Class::Sop2,
            &[(Sdst, s(20, 2)), (Src0, s(20, 2)), (Src1, Constant(1 << 40))],
            "14 fe 94 a9 00 00 00 00 00 01 00 00",
        ),
        (
            "gfx1250",
            "v_lshlrev_b32",
            Class::Vop2,
            &[(Vdst, v(2, 1)), (Src0, Constant(2)), (Src1, v(2, 1))],
            "82 04 04 30",
        ),
        (
            "gfx1250",
            "v_and_b32",
            Class::Vop2,
            &[(Vdst, v(2, 1)), (Src0, Constant(0xf_ffff)), (Src1, v(2, 1))],
            "ff 04 04 36 ff ff 0f 00",
        ),
        // Unused sources are the constant 0 from gfx10 on.
        (
            "gfx1250",
            "v_mbcnt_lo_u32_b32",
            Class::Vop3,
            &[(Vdst, v(2, 1)), (Src0, Constant(0xffff_ffff)), (Src1, Constant(0))],
            "02 00 1f d7 c1 00 01 02",
        ),
        (
            "gfx900",
            "v_mbcnt_lo_u32_b32",
            Class::Vop3,
            &[(Vdst, v(2, 1)), (Src0, Constant(0xffff_ffff)), (Src1, Constant(0))],
            "02 00 8c d2 c1 00 01 00",
        ),
        (
            "gfx1250",
            "v_bfe_u32",
            Class::Vop3,
            &[(Vdst, v(2, 1)), (Src0, v(2, 1)), (Src1, Constant(0)), (Src2, Constant(20))],
            "02 00 10 d6 02 01 51 02",
        ),
        (
            "gfx1250",
            "v_bfi_b32",
            Class::Vop3,
            &[(Vdst, v(5, 1)), (Src0, Constant(0xffff)), (Src1, v(7, 1)), (Src2, v(5, 1))],
            "05 00 12 d6 ff 0e 16 04 ff ff 00 00",
        ),
        (
            "gfx1250",
            "v_cmp_lt_u32",
            Class::Vop3,
            &[(Sdst, s(20, 1)), (Src0, Constant(0xf7)), (Src1, v(7, 1))],
            "14 00 49 d4 ff 0e 02 02 f7 00 00 00",
        ),
        // The unused result of v_cmpx is EXEC.
        ("gfx1100", "v_cmpx_lt_u32", Class::Vop3, &[(Src0, v(1, 1)), (Src1, v(2, 1))], "7e 00 c9 d4 01 05 02 02"),
        (
            "gfx1250",
            "v_max_num_f32",
            Class::Vop3,
            &[(Vdst, v(7, 1)), (Src0, Constant(0)), (Src1, v(1, 1))],
            "07 00 16 d5 80 02 02 02",
        ),
        (
            "gfx1100",
            "v_add_f32",
            Class::Vop3,
            &[(Vdst, v(1, 1)), (Src0Modifiers, Number(1)), (Src0, v(2, 1)), (Src1, v(3, 1)), (Clamp, Number(1))],
            "01 80 03 d5 02 07 02 22",
        ),
        ("gfx1100", "v_cvt_f16_f32", Class::Vop1, &[(Vdst, half(7, VgprHalf::High)), (Src0, v(7, 1))], "07 15 0e 7f"),
        (
            "gfx1100",
            "v_add_f16",
            Class::Vop3,
            &[(Vdst, half(200, VgprHalf::High)), (Src0, half(3, VgprHalf::High)), (Src1, half(4, VgprHalf::Low))],
            "c8 48 32 d5 03 09 02 02",
        ),
        (
            "gfx1100",
            "v_pk_add_f16",
            Class::Vop3p,
            &[(Vdst, v(1, 1)), (Src0, v(2, 1)), (Src1, v(3, 1))],
            "01 40 0f cc 02 07 02 1a",
        ),
        (
            "gfx1100",
            "v_pk_add_f16",
            Class::Vop3p,
            &[
                (Vdst, v(1, 1)),
                (Src0, v(2, 1)),
                (Src1, v(3, 1)),
                (OpSel, Number(1)),
                (OpSelHi, Number(2)),
                (NegLo, Number(3)),
            ],
            "01 48 0f cc 02 07 02 72",
        ),
        (
            "gfx1250",
            "ds_load_2addr_b32",
            Class::Ds,
            &[(Vdst, v(2, 2)), (Addr, v(1, 1)), (Offset0, Number(1)), (Offset1, Number(2))],
            "01 02 dc d8 01 00 00 02",
        ),
        (
            "gfx1250",
            "global_load_b32",
            Class::Flat,
            &[(Vdst, v(1, 1)), (Vaddr, v(2, 2))],
            "7c 00 05 ee 01 00 00 00 02 00 00 00",
        ),
        (
            "gfx1250",
            "global_load_b32",
            Class::Flat,
            &[(Vdst, v(1, 1)), (Vaddr, v(2, 2)), (Offset, Number(-8))],
            "7c 00 05 ee 01 00 00 00 02 f8 ff ff",
        ),
        (
            "gfx1250",
            "cluster_load_b32",
            Class::Flat,
            &[(Vdst, v(1, 1)), (Vaddr, v(2, 1)), (Saddr, s(4, 2)), (Offset, Number(8))],
            "04 c0 19 ee 01 00 00 00 02 08 00 00",
        ),
        (
            "gfx1250",
            "v_wmma_f32_16x16x64_fp8_fp8",
            Class::Vop3p,
            &[(Vdst, v(0, 8)), (Src0, v(8, 8)), (Src1, v(16, 8)), (Src2, v(0, 8))],
            "00 00 6a cc 08 21 02 1c",
        ),
        (
            "gfx1250",
            "v_wmma_ld_scale_paired_b32",
            Class::Vop3p,
            &[(Src0, v(40, 1)), (Src1, v(41, 1))],
            "00 00 35 cc 28 53 02 02",
        ),
        ("gfx90a", "v_accvgpr_read_b32", Class::Vop3p, &[(Vdst, v(2, 1)), (Src0, a(3, 1))], "02 40 d8 d3 03 01 00 18"),
        ("gfx90a", "global_load_dword", Class::Flat, &[(Vdst, a(1, 1)), (Vaddr, v(2, 2))], "00 80 50 dc 02 00 ff 01"),
        (
            "gfx900",
            "v_mov_b32",
            Class::Vop1Dpp16,
            &[(Vdst, v0), (Src0, v0), (DppCtrl, Number(0x101))],
            "fa 02 00 7e 00 01 01 ff",
        ),
        ("gfx900", "v_mov_b32", Class::Vop1Sdwa, &[(Vdst, v(1, 1)), (Src0, v(2, 1))], "f9 02 02 7e 02 16 06 00"),
        (
            "gfx900",
            "s_load_dword",
            Class::Smem,
            &[(Sdst, s(5, 1)), (Sbase, s(2, 2)), (Offset, Number(-1))],
            "41 01 02 c0 ff ff 1f 00",
        ),
    ];
    for (target, mnemonic, class, operands, bytes) in cases {
        let wave = if *target == "gfx1250" || *target == "gfx1100" { Wave::W32 } else { Wave::W64 };
        let isa = isa(target).with_wave(wave);
        match build_on(isa, mnemonic, *class, operands) {
            Ok(inst) => {
                assert_eq!(hex(&inst), *bytes, "{mnemonic} on {target}");
                assert_eq!(reassemble(&inst, isa), Ok(inst));
            }
            Err(error) => panic!("{mnemonic} on {target}: {error}"),
        }
    }
}

#[test]
fn every_refusal_has_its_reason() {
    use Name::*;
    use OperandArg::{Constant, Inline, Literal, Literal64, Number};
    let (one, two) = (v(1, 1), v(2, 1));
    let add = |target, operands: &[(Name, OperandArg)]| build(target, "v_add_f32", Class::Vop3, operands).unwrap_err();
    let refused = |result: Result<Inst, EncodeError>| result.unwrap_err();
    let reg = |index, count| Reg::new(RegFile::Vgpr, index, count);
    let scalar = |index, count| Reg::new(RegFile::Sgpr, index, count);
    assert_eq!(refused(build("gfx900", "v_no_such", Class::Vop2, &[])), EncodeError::UnknownInstruction);
    assert_eq!(refused(build("gfx900", "v_add_f32", Class::Sopp, &[])), EncodeError::UnknownInstruction);
    assert_eq!(refused(build("gfx900", "s_set_vgpr_msb", Class::Sopp, &[])), EncodeError::NotOnTarget);
    assert_eq!(add("gfx900", &[(Vdst, one), (Src0, one), (Src1, two), (Src2, two)]), EncodeError::NoSuchOperand(Src2));
    assert_eq!(add("gfx900", &[(Vdst, one), (Src0, one)]), EncodeError::Missing(Src1));
    assert_eq!(add("gfx900", &[(Vdst, Number(1)), (Src0, one), (Src1, two)]), EncodeError::WrongSort(Vdst));
    assert_eq!(add("gfx900", &[(Vdst, one), (Src0, one), (Src1, two), (Clamp, one)]), EncodeError::WrongSort(Clamp));
    assert_eq!(
        add("gfx900", &[(Vdst, s(1, 1)), (Src0, one), (Src1, two)]),
        EncodeError::NotInClass { name: Vdst, reg: scalar(1, 1) }
    );
    assert_eq!(
        add("gfx900", &[(Vdst, one), (Src0, v(1, 2)), (Src1, two)]),
        EncodeError::WrongSize { name: Src0, wanted: 1, found: 2 }
    );
    assert_eq!(
        add("gfx900", &[(Vdst, v(256, 1)), (Src0, one), (Src1, two)]),
        EncodeError::NotInClass { name: Vdst, reg: reg(256, 1) }
    );
    // Even tuples on gfx90a and gfx12.5, aligned scalar tuples everywhere.
    let load = |target, name, vdst| build(target, name, Class::Flat, &[(Vdst, vdst), (Vaddr, v(2, 2))]);
    let odd = |multiple, reg| EncodeError::Unaligned { name: Vdst, reg, multiple };
    assert_eq!(refused(load("gfx90a", "global_load_dwordx2", v(3, 2))), odd(2, reg(3, 2)));
    assert_eq!(refused(load("gfx1250", "global_load_b64", v(3, 2))), odd(2, reg(3, 2)));
    assert!(load("gfx1100", "global_load_b64", v(3, 2)).is_ok());
    let move64 = |sdst| build("gfx1100", "s_mov_b64", Class::Sop1, &[(Sdst, sdst), (Src0, s(2, 2))]);
    assert_eq!(refused(move64(s(3, 2))), EncodeError::Unaligned { name: Sdst, reg: scalar(3, 2), multiple: 2 });
    let load4 = build("gfx1100", "s_load_b128", Class::Smem, &[(Sdst, s(6, 4)), (Sbase, s(2, 2)), (Offset, Number(0))]);
    assert_eq!(refused(load4), EncodeError::Unaligned { name: Sdst, reg: scalar(6, 4), multiple: 4 });
    // Numbers that do not fit their field.
    let nop = |number| build("gfx1100", "s_nop", Class::Sopp, &[(Simm16, Number(number))]);
    assert_eq!(refused(nop(0x1_0000)), EncodeError::OutOfRange { name: Simm16, value: 0x1_0000, bits: 0xffff });
    assert!(nop(-0x8000).is_ok() && nop(-0x8001).is_err());
    // Constants and literals.
    assert_eq!(
        add("gfx900", &[(Vdst, one), (Src0, Constant(0x1234)), (Src1, two)]),
        EncodeError::LiteralNotAllowed(Src0)
    );
    assert_eq!(
        add("gfx900", &[(Vdst, one), (Src0, Inline(209)), (Src1, two)]),
        EncodeError::NotInline { name: Src0, value: 209 }
    );
    let dpp = [(Vdst, one), (Src0, one), (Src1, Constant(0x1234)), (DppCtrl, Number(0))];
    let dpp = build("gfx1200", "v_add_f32", Class::Vop3Dpp16, &dpp);
    assert_eq!(refused(dpp), EncodeError::NotInline { name: Src1, value: 0x1234 });
    let literals = [(Vdst, one), (Src0, Literal(0x1234)), (Src1, Literal(0x1235))];
    assert_eq!(add("gfx1100", &literals), EncodeError::TwoLiterals(Src1));
    assert!(build("gfx1100", "v_add_f32", Class::Vop3, &[literals[0], literals[1], (Src1, Literal(0x1234))]).is_ok());
    assert_eq!(
        add("gfx1250", &[(Vdst, one), (Src0, Literal64(1 << 40)), (Src1, two)]),
        EncodeError::LiteralNotAllowed(Src0)
    );
    // The constant bus.
    let scalars = [(Vdst, one), (Src0, s(1, 1)), (Src1, s(2, 1))];
    assert_eq!(add("gfx900", &scalars), EncodeError::ConstantBus { limit: 1, found: 2 });
    assert!(build("gfx1100", "v_add_f32", Class::Vop3, &scalars).is_ok());
    let three = [(Vdst, one), (Src0, s(1, 1)), (Src1, s(2, 1)), (Src2, Literal(0x1234))];
    let three = build("gfx1100", "v_fma_f32", Class::Vop3, &three);
    assert_eq!(refused(three), EncodeError::ConstantBus { limit: 2, found: 3 });
    let shift = [(Vdst, v(2, 2)), (Src0, s(1, 1)), (Src1, s(2, 2))];
    let shift = build("gfx1100", "v_lshlrev_b64", Class::Vop3, &shift);
    assert_eq!(refused(shift), EncodeError::ConstantBus { limit: 1, found: 2 });
    // Ties, implied operands, registers that the target does not have.
    let mac = build("gfx900", "v_mac_f32", Class::Vop2, &[(Vdst, one), (Src0, one), (Src1, two), (Src2, two)]);
    assert_eq!(refused(mac), EncodeError::Tied { name: Src2, partner: Vdst });
    let null =
        build("gfx900", "s_mov_b32", Class::Sop1, &[(Sdst, special(Special::FlatScratchLo, 1)), (Src0, s(1, 1))]);
    assert!(null.is_ok());
    let scratch = [(Sdst, special(Special::FlatScratchLo, 1)), (Src0, s(1, 1))];
    assert_eq!(refused(build("gfx1100", "s_mov_b32", Class::Sop1, &scratch)), EncodeError::NoEncoding(Sdst));
    let mut many = InstructionBuilder::new(isa("gfx900"), "v_add_f32", Class::Vop2);
    for name in Name::ALL {
        many = many.set_operand(name, Number(0));
    }
    assert_eq!(many.build(), Err(EncodeError::TooMany));
}

#[test]
fn changing_a_field_says_what_it_would_break() {
    let isa = isa("gfx1100");
    // v_add_f32_e32 v1, v2, v3
    let inst = isa.decode(&0x0602_0702u32.to_le_bytes()).expect("an instruction");
    assert_eq!(inst.with_field(isa, Name::Omod, 1), Err(EncodeError::NoSuchOperand(Name::Omod)));
    let wide = inst.with_field(isa, Name::Vdst, 256);
    assert_eq!(wide, Err(EncodeError::OutOfRange { name: Name::Vdst, value: 256, bits: 255 }));
    assert_eq!(inst.with_field(isa, Name::Src0, 255), Err(EncodeError::OtherLength { before: 4, after: 8 }));
    assert_eq!(inst.with_field(isa, Name::Src0, 209), Err(EncodeError::Undecodable));
    // 250 in the first source makes it a DPP instruction, of which the second word is missing.
    assert!(inst.with_field(isa, Name::Src0, 250).is_err());
    let changed = inst.with_field(isa, Name::Vdst, 77).expect("v77 fits");
    assert_eq!(changed.words()[0], 0x069a_0702);
    // s_barrier_signal m0 and s_barrier_signal -1 are two table entries.
    let isa = Isa::new(Target::find("gfx1200").expect("a target"));
    let signal = isa.decode(&0xbe80_4ec1u32.to_le_bytes()).expect("an instruction");
    assert!(matches!(signal.with_field(isa, Name::Src0, 125), Err(EncodeError::OtherInstruction { .. })));
}

#[test]
fn changing_an_operand_changes_its_bits() {
    let isa = isa("gfx1100");
    let decode = |words: &[u32]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        isa.decode(&bytes).expect("an instruction")
    };
    // v_add_f32_e32 v1, v2, v3
    let add = decode(&[0x0602_0702]);
    let word = |result: Result<Inst, EncodeError>| result.map(|inst| inst.words()[0]);
    assert_eq!(word(add.with_operand(isa, Name::Src0, s(7, 1))), Ok(0x0602_0607));
    assert_eq!(word(add.with_operand(isa, Name::Src0, OperandArg::Constant(0x3f80_0000))), Ok(0x0602_06f2));
    assert_eq!(word(add.with_operand(isa, Name::Vdst, v(9, 1))), Ok(0x0612_0702));
    let literal = add.with_operand(isa, Name::Src0, OperandArg::Constant(0x1234));
    assert_eq!(literal, Err(EncodeError::OtherLength { before: 4, after: 8 }));
    let scalar = Reg::new(RegFile::Sgpr, 7, 1);
    let refused = add.with_operand(isa, Name::Src1, scalar);
    assert_eq!(refused, Err(EncodeError::NotInClass { name: Name::Src1, reg: scalar }));
    assert_eq!(add.with_operand(isa, Name::Src2, scalar), Err(EncodeError::NoSuchOperand(Name::Src2)));
    // v_add_f32_e32 v1, 0x1234, v3: another literal in the same place; without one, the literal would be left over.
    let add = decode(&[0x0602_06ff, 0x1234]);
    let changed = add.with_operand(isa, Name::Src0, OperandArg::Literal(0x5678)).expect("another literal");
    assert_eq!(changed.words()[..2], [0x0602_06ff, 0x5678]);
    let shorter = add.with_operand(isa, Name::Src0, v(2, 1));
    assert_eq!(shorter, Err(EncodeError::OtherLength { before: 8, after: 4 }));
    // v_fma_f32 v1, 0x1234, v2, 0x1234: one literal, two readers.
    let fma = decode(&[0xd613_0001, 0x03fe_04ff, 0x1234]);
    assert_eq!(
        fma.with_operand(isa, Name::Src0, OperandArg::Literal(1 << 20)),
        Err(EncodeError::TwoLiterals(Name::Src0))
    );
    assert!(fma.with_operand(isa, Name::Src1, OperandArg::Literal(0x1234)).is_ok());
    // v_cvt_f16_f32 v7.l, v7 and its upper half; v_add_f16_e64 has the half among the modifiers.
    let convert = decode(&[0x7e0e_1507]);
    assert_eq!(word(convert.with_operand(isa, Name::Vdst, half(7, VgprHalf::High))), Ok(0x7f0e_1507));
    let add = decode(&[0xd532_00c8, 0x0202_0903]);
    assert_eq!(word(add.with_operand(isa, Name::Vdst, half(200, VgprHalf::High))), Ok(0xd532_40c8));
}

#[test]
fn bits_that_do_not_matter_survive_a_change() {
    // The WMMA scale of LLVM 22 and 23 differ in src2, which no text shows.
    let isa = isa("gfx1250");
    for src2 in [0x00, 0x80, 0x100u32] {
        let words = [0xcc35_0000u32, 0x0000_5328 | src2 << 18, 0xcc33_0000, 0x0402_3108];
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let inst = isa.decode(&bytes).expect("a scaled WMMA");
        let changed = inst.with_field(isa, Name::ScaleSrc0, 0x129).expect("v41");
        assert_eq!(changed.words()[..4], [words[0], words[1] & !0x1ff | 0x129, words[2], words[3]]);
    }
}
