//! The generator: the same rows give the same files, and an inconsistency is an error that states its position.

use hotswap_isa_meta::generate::expand::Expanded;
use hotswap_isa_meta::generate::generate;
use hotswap_isa_meta::generate::settings::TargetSettings;
use hotswap_isa_meta::model::{
    Condition, EncodingColumn, EncodingField, EncodingLayout, EncodingRow, FieldPiece, Model, OperandKind,
    OperandShape, Predicate, ShapeOperand, TableStep, TargetRow,
};
use hotswap_isa_meta::rows;
use std::path::Path;

fn piece(at: u8, width: u8) -> Vec<FieldPiece> {
    vec![FieldPiece { at, from: 0, width }]
}

fn field(name: &str, at: u8, width: u8) -> EncodingField {
    EncodingField { name: name.to_owned(), pieces: piece(at, width) }
}

fn kind(name: &str, decode: &str) -> OperandKind {
    let [name, decode] = [name, decode].map(str::to_owned);
    let [operand_type, print, class] = ["REG_IMM_FP32", "Operand", "VS_32"].map(str::to_owned);
    OperandKind { name, decode, operand_type, print, class }
}

fn layout(name: &str, bits: u8, value: u128, mask: u128, fields: Vec<EncodingField>) -> EncodingLayout {
    let (name, class) = (name.to_owned(), "VOP1".to_owned());
    EncodingLayout { name, class, bits, opcode: piece(9, 8), fixed_mask: mask, fixed_value: value, fields }
}

fn operand(name: &str, kind: &str, written: bool) -> ShapeOperand {
    ShapeOperand { name: name.to_owned(), kind: kind.to_owned(), written, tied: None }
}

fn row(mnemonic: &str, layout: &str, opcode: u32) -> EncodingRow {
    let predicates = vec!["always".to_owned()];
    EncodingRow {
        mnemonic: mnemonic.to_owned(),
        shape: "one source".to_owned(),
        reads: vec!["EXEC".to_owned()],
        writes: Vec::new(),
        flags: vec!["valu".to_owned(), "vop1".to_owned()],
        image: None,
        columns: vec![EncodingColumn { table: "gfx9".to_owned(), predicates, layout: layout.to_owned(), opcode }],
    }
}

/// Two instructions, one of them in two forms, and one target.
fn small() -> Model {
    let prefix = 0x7e00_0000;
    let step = |bits| TableStep { bits, table: "gfx9".to_owned(), condition: Condition::All(Vec::new()) };
    Model {
        predicates: vec![Predicate { name: "always".to_owned(), condition: Condition::All(Vec::new()) }],
        targets: vec![TargetRow { name: "gfx900".to_owned(), features: vec!["gfx9".to_owned()] }],
        steps: vec![step(64), step(32)],
        kinds: vec![kind("VGPR_32", "VGPR_32"), kind("VSrc_f32", "SrcRegOrImm9<32>")],
        layouts: vec![
            layout("plain", 32, prefix, 0xfe00_0000, vec![field("src0", 0, 9), field("vdst", 17, 8)]),
            layout("dpp", 64, prefix | 250, 0xfe00_01ff, vec![field("src0", 32, 8), field("vdst", 17, 8)]),
        ],
        shapes: vec![OperandShape {
            name: "one source".to_owned(),
            template: " $vdst, $src0".to_owned(),
            operands: vec![operand("vdst", "VGPR_32", true), operand("src0", "VSrc_f32", false)],
        }],
        rows: vec![row("v_one", "plain", 1), row("v_one", "dpp", 1), row("v_two", "plain", 2)],
        image_bases: Vec::new(),
    }
}

#[test]
fn fixed_bits_hold_prefix_and_opcode() {
    let expanded = Expanded::new(&small()).unwrap();
    let bits: Vec<(u128, u128)> = expanded.entries.iter().map(|entry| (entry.value, entry.mask)).collect();
    assert_eq!(bits, [(0x7e00_0200, 0xfe01_fe00), (0x7e00_02fa, 0xfe01_ffff), (0x7e00_0400, 0xfe01_fe00)]);
    assert_eq!(expanded.formats.iter().map(|format| format.bytes).collect::<Vec<_>>(), [4, 8]);
}

#[test]
fn entries_exist_where_their_table_is_tried() {
    let mut model = small();
    model.steps.remove(0);
    let expanded = Expanded::new(&model).unwrap();
    let settings = TargetSettings::new(&model, &expanded).unwrap();
    let available: Vec<bool> = settings.needs.iter().map(|&need| settings.settings[0].available[need]).collect();
    assert_eq!(available, [true, false, true]);
    assert_eq!(settings.settings[0].max_bytes, 8);
}

#[test]
fn the_same_rows_give_the_same_files() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../isa-tables/rows");
    let both = [(); 2].map(|()| generate(&rows::read(&directory).unwrap()).unwrap());
    assert!(both[0] == both[1]);
    assert!(both[0].files.iter().all(|file| !file.content.is_empty()));
}

#[test]
fn what_does_not_fit_is_an_error_that_says_where() {
    type Change = fn(&mut Model);
    let cases: [(Change, &str); 6] = [
        (|model| model.rows[0].shape = "none".to_owned(), "v_one: unknown name `none`"),
        (|model| model.rows[2].columns[0].opcode = 0x100, "v_two: opcode 0x100 does not fit layout plain"),
        (|model| model.rows[0].columns[0].predicates = vec!["maybe".to_owned()], "v_one: unknown predicate `maybe`"),
        (|model| model.shapes[0].operands[0].kind = "Odd".to_owned(), "one source: unknown name `Odd`"),
        (|model| model.kinds[0].decode = "Odd".to_owned(), "Odd: unknown decoder method"),
        (|model| model.shapes[0].operands[1].tied = Some("old".to_owned()), "one source: `src0` is tied to `old`"),
    ];
    for (change, wanted) in cases {
        let mut model = small();
        change(&mut model);
        let error = generate(&model).unwrap_err().to_string();
        assert!(error.starts_with(wanted), "{error} instead of {wanted}");
    }
}
