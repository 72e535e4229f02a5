//! The importer on small records, and on records that it must reject.

use super::overlay::apply_overlay;
use crate::model::Model;
use crate::rows;
use serde_json::{Value, json};
use std::path::Path;

/// A reference to a record.
fn def(name: &str) -> Value {
    json!({ "kind": "def", "def": name, "printable": name })
}

fn dag(operator: &str, args: &[Value]) -> Value {
    json!({ "kind": "dag", "operator": def(operator), "args": args.iter().map(|arg| json!([arg, null])).collect::<Vec<_>>() })
}

fn operands(list: &[(&str, &str)]) -> Value {
    json!({ "kind": "dag", "operator": def("ins"), "args": list.iter().map(|(kind, name)| json!([def(kind), name])).collect::<Vec<_>>() })
}

/// Bits of an encoding, highest first: fixed digits, `?`, and letters for fields, whose bits count down.
fn bits(text: &str, names: &[(char, &str)]) -> Value {
    let mut counts = std::collections::HashMap::new();
    let bit = |c: char| match names.iter().find(|(letter, _)| *letter == c) {
        _ if c == '0' || c == '1' => json!(c.to_digit(2)),
        Some((_, name)) => {
            let index = counts.entry(c).or_insert(0);
            *index += 1;
            json!({ "kind": "varbit", "var": name, "index": *index - 1 })
        }
        None => Value::Null,
    };
    Value::Array(text.chars().rev().filter(|c| *c != ' ').map(bit).collect())
}

/// Records with everything that an import needs, and one scalar instruction.
fn records() -> Value {
    let features: Vec<&str> = super::targets::ASKED.to_vec();
    let mut records = json!({
        "!instanceof": { "Instruction": ["S_MOV_gfx9"] },
        "!tablegen_json_version": 1,
        "isGFX9": {
            "!name": "isGFX9", "!superclasses": ["Predicate"], "AssemblerMatcherPredicate": 1,
            "AssemblerCondDag": dag("all_of", &[def("F_gfx9"), dag("not", &[def("F_gfx12")])]),
        },
        "isAlways": { "!name": "isAlways", "!superclasses": ["Predicate"], "AssemblerMatcherPredicate": 0 },
        "P900": { "!name": "P900", "!superclasses": ["Processor"], "Name": "gfx900", "Features": [def("F_gfx9")] },
        "P800": { "!name": "P800", "!superclasses": ["Processor"], "Name": "gfx803", "Features": [] },
        "SReg_32": { "!name": "SReg_32", "!superclasses": ["DAGOperand", "RegisterClassLike"], "DecoderMethod": "" },
        "SSrc": {
            "!name": "SSrc", "!superclasses": ["DAGOperand"], "DecoderMethod": "decodeSrcRegOrImm9<32>",
            "OperandType": "OPERAND_REG_IMM_INT32", "PrintMethod": "printOperand", "RegClass": def("SReg_32"),
        },
        "S_MOV_gfx9": {
            "!name": "S_MOV_gfx9", "!superclasses": ["Instruction"], "isPseudo": 0, "isCodeGenOnly": 0, "isAsmParserOnly": 0,
            "AsmString": "s_mov_b32 $sdst, $ssrc0", "DecoderNamespace": "GFX9", "Size": 4, "Constraints": "",
            "OutOperandList": operands(&[("SReg_32", "sdst")]), "InOperandList": operands(&[("SSrc", "ssrc0")]),
            "Inst": bits("101111101 ddddddd 00000011 ssssssss", &[('d', "sdst"), ('s', "ssrc0")]),
            "TSFlags": [1, 0, 1], "Predicates": [def("isGFX9"), def("isAlways")], "Uses": [def("M0")], "Defs": [],
            "mayLoad": 1, "Pattern": ["never", "read"],
        },
    });
    for feature in features {
        let name = format!("F_{feature}");
        records[&name] =
            json!({ "!name": name, "!superclasses": ["SubtargetFeature"], "Name": feature, "Implies": [] });
    }
    records["F_gfx9"]["Implies"] = json!([def("F_gfx9-insts"), def("F_wavefrontsize64")]);
    records
}

fn import(records: &Value, overlay: &str) -> Result<Model, String> {
    super::import(records.to_string().as_bytes(), overlay).map_err(|error| error.to_string())
}

/// Imports with one field of the instruction changed.
fn changed(field: &str, value: Value) -> Result<Model, String> {
    let mut records = records();
    records["S_MOV_gfx9"][field] = value;
    import(&records, "")
}

#[test]
fn an_instruction_becomes_a_row() {
    let model = import(&records(), "").unwrap();
    let row = &model.rows[0];
    assert_eq!((row.mnemonic.as_str(), row.flags.join(" ")), ("s_mov_b32", "load salu sop1".to_owned()));
    assert_eq!((row.reads.join(" "), row.writes.len()), ("M0".to_owned(), 0));
    let column = &row.columns[0];
    assert_eq!((column.table.as_str(), column.opcode, column.predicates.join(" ")), ("gfx9", 3, "isGFX9".to_owned()));
    let layout = &model.layouts[0];
    assert_eq!((layout.class.as_str(), layout.fixed_value), ("SOP1", 0b1_0111_1101 << 23));
    let kinds: Vec<&str> = model.kinds.iter().map(|kind| kind.decode.as_str()).collect();
    assert_eq!(kinds, ["SReg_32", "SrcRegOrImm9<32>"]);
    let targets: Vec<String> = model.targets.iter().map(|t| format!("{} {}", t.name, t.features.join(" "))).collect();
    assert_eq!(targets, ["gfx900 gfx9 gfx9-insts wavefrontsize64"]);
    let texts = rows::texts(&model);
    assert!(rows::parse(&texts).unwrap() == model);
}

#[test]
fn what_the_decoder_does_not_know_is_left_out() {
    for (field, value) in [
        ("isPseudo", json!(1)),
        ("isCodeGenOnly", json!(1)),
        ("isAsmParserOnly", json!(1)),
        ("DecoderNamespace", json!("GFX13")),
        ("DecoderNamespace", json!("GFX12")),
    ] {
        assert_eq!(changed(field, value).unwrap().rows.len(), 0, "{field}");
    }
}

#[test]
fn a_tied_pair_has_one_field_with_the_name_of_the_written_operand() {
    let mut records = records();
    let record = &mut records["S_MOV_gfx9"];
    record["Inst"] = bits("101111101 ddddddd 00000011 ssssssss", &[('d', "old"), ('s', "ssrc0")]);
    record["InOperandList"] = operands(&[("SSrc", "ssrc0"), ("SReg_32", "old")]);
    record["Constraints"] = json!("@earlyclobber $sdst,$sdst = $old");
    let model = import(&records, "").unwrap();
    let names: Vec<&str> = model.layouts[0].fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["sdst", "ssrc0"]);
    assert_eq!(model.shapes[0].operands[2].tied.as_deref(), Some("sdst"));
}

#[test]
fn an_old_value_without_constraint_and_field_is_tied_by_its_name() {
    let mut records = records();
    let inputs = [("SSrc", "ssrc0"), ("SReg_32", "sdst_in"), ("SReg_32", "other_in")];
    records["S_MOV_gfx9"]["InOperandList"] = operands(&inputs);
    let model = import(&records, "").unwrap();
    let tied: Vec<Option<&str>> = model.shapes[0].operands.iter().map(|operand| operand.tied.as_deref()).collect();
    assert_eq!(tied, [None, None, Some("sdst"), None]);
}

#[test]
fn records_that_are_not_understood_are_errors() {
    let complex = |text: &str| {
        let mut bits = bits("101111101 ddddddd 00000011 ssssssss", &[('d', "sdst"), ('s', "ssrc0")]);
        bits[0] = json!({ "kind": "complex", "printable": text });
        bits
    };
    let stranger = bits("101111101 ddddddd 00000011 xsssssss", &[('d', "sdst"), ('s', "ssrc0"), ('x', "glc")]);
    let open_opcode = bits("101111101 ddddddd 000000?1 ssssssss", &[('d', "sdst"), ('s', "ssrc0")]);
    #[rustfmt::skip]
    let cases = [
        ("Inst", complex("!foo(a)"), "record S_MOV_gfx9: unknown expression for a bit: !foo(a)"),
        ("Inst", stranger, "record S_MOV_gfx9: a bit of glc, which is neither an operand nor open"),
        ("Inst", open_opcode, "record S_MOV_gfx9: the opcode bits of SOP1 are not all fixed"),
        ("Inst", json!([1, 0]), "record S_MOV_gfx9: 2 bits and a size of 4 bytes"),
        ("TSFlags", json!([1]), "record S_MOV_gfx9: no encoding class has these first bits"),
        ("AsmString", json!("$sdst"), "record S_MOV_gfx9: assembly string: $sdst"),
        ("Constraints", json!("$a = $b"), "record S_MOV_gfx9: constraint on unknown operands: $a = $b"),
        ("Constraints", json!("what"), "record S_MOV_gfx9: unknown constraint: what"),
        ("Predicates", json!([def("isLost")]), "record isLost: there is no record isLost"),
        ("InOperandList", operands(&[("Lost", "a")]), "record S_MOV_gfx9: there is no record Lost"),
    ];
    for (field, value, expected) in cases {
        assert_eq!(changed(field, value).unwrap_err(), expected);
    }
    let mut damaged = records().to_string();
    damaged.truncate(damaged.len() / 2);
    assert!(super::import(damaged.as_bytes(), "").unwrap_err().to_string().starts_with("the JSON: "));
}

#[test]
fn corrections_change_the_model() {
    let overlay = "\
target gfx900-odd gfx900 +odd -gfx9-insts \"a test says so\"
predicate isOdd any(odd,gfx9) \"a test says so\"
require s_mov_b32@gfx9 SOP1 isOdd \"a test says so\"
replace s_mov_b32@gfx9 * isGFX9 isOdd \"a test says so\"
flag s_mov* clause other \"a test says so\"
";
    let model = import(&records(), overlay).unwrap();
    assert_eq!(model.targets[1].features, ["gfx9", "odd", "wavefrontsize64"]);
    assert_eq!(model.rows[0].columns[0].predicates, ["isOdd"]);
    assert_eq!(model.rows[0].flags, ["clause", "load", "other", "salu", "sop1"]);
}

#[test]
fn a_correction_can_add_an_instruction() {
    let plain = import(&records(), "").unwrap();
    let (shape, layout) = (&plain.shapes[0].name, &plain.layouts[0].name);
    let added = format!("row \"s_made_up_b32 {shape} f=salu gfx9:{layout}/55?isGFX9\" \"a test says so\"\n");
    let model = import(&records(), &added).unwrap();
    let rows: Vec<(&str, u32)> = model.rows.iter().map(|row| (row.mnemonic.as_str(), row.columns[0].opcode)).collect();
    assert_eq!(rows, [("s_made_up_b32", 0x55), ("s_mov_b32", 3)]);
    assert!(rows::parse(&rows::texts(&model)).unwrap() == model);
    for (row, expected) in [
        (format!("s_mov_b32 {shape} gfx9:{layout}/3?isGFX9"), "LLVM knows s_mov_b32 in the table gfx9"),
        (format!("s_odd no_shape gfx9:{layout}/3"), "there is no shape no_shape"),
        (format!("s_odd {shape} gfx9:none/3"), "the row has no encoding with a known layout"),
        (format!("s_odd {shape} gfx9"), "not a property or an encoding: gfx9"),
    ] {
        let error = import(&records(), &format!("row \"{row}\" \"it is so\"")).unwrap_err();
        assert!(error.ends_with(expected), "{error}");
    }
}

#[test]
fn corrections_that_correct_nothing_are_errors() {
    let model = import(&records(), "").unwrap();
    #[rustfmt::skip]
    let cases = [
        ("flag s_mov_b32 trap", "a correction needs its reason, in quotes, at its end"),
        ("flag s_mov_b32 trap \"because\"", "a correction needs its reason, in quotes, at its end"),
        ("change s_mov_b32 \"it is so\"", "not a correction"),
        ("flag s_mov_b32 salu \"it is so\"", "s_mov_b32 has the flag salu, or does not exist"),
        ("flag s_mov_b32 trap,call \"it is so\"", "not the name of a flag: trap,call"),
        ("flag s_lost trap \"it is so\"", "s_lost has the flag trap, or does not exist"),
        ("flag s_mov_b32,s_lost trap \"it is so\"", "s_lost has the flag trap, or does not exist"),
        ("target gfx900 gfx900 \"it is so\"", "LLVM knows the target gfx900"),
        ("target gfx901 gfx899 \"it is so\"", "there is no target gfx899"),
        ("target gfx901 gfx900 +gfx9 \"it is so\"", "+gfx9 changes nothing"),
        ("target gfx901 gfx900 -odd \"it is so\"", "-odd changes nothing"),
        ("target gfx901 gfx900 odd \"it is so\"", "neither +feature nor -feature: odd"),
        ("predicate isGFX9 gfx9 \"it is so\"", "predicate isGFX9 exists"),
        ("predicate isOdd all( \"it is so\"", "not a condition: all("),
        ("require s_mov_b32@gfx9 * isLost \"it is so\"", "there is no predicate isLost"),
        ("require s_mov_b32@gfx9 * isGFX9 \"it is so\"", "s_mov_b32@gfx9 *: the correction changes nothing"),
        ("require s_mov_b32@gfx10 * isGFX9 \"it is so\"", "s_mov_b32@gfx10 *: the correction changes nothing"),
        ("require s_mov_b32@gfx9 VOP1 isGFX9 \"it is so\"", "s_mov_b32@gfx9 VOP1: the correction changes nothing"),
        ("require s_mov_b32 * isGFX9 \"it is so\"", "not MNEMONIC@TABLE: s_mov_b32"),
        ("replace s_mov_b32@gfx9 * isOdd isGFX9 \"it is so\"", "s_mov_b32@gfx9 *: the correction changes nothing"),
    ];
    for (line, expected) in cases {
        let error = apply_overlay(&mut model.clone(), &format!("# comment\n{line}\n")).unwrap_err();
        assert_eq!(error.to_string(), format!("overlay.isa:2: {expected}"));
    }
}

/// An independent check of facts of the committed rows that many users rely on, by other means than the importer's.
#[test]
fn the_committed_rows_have_the_known_shape() {
    let model = rows::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../isa-tables/rows")).unwrap();
    let names: Vec<&str> = model.targets.iter().map(|target| target.name.as_str()).collect();
    for name in
        ["gfx900", "gfx90a", "gfx950", "gfx1036", "gfx11-generic", "gfx1201", "gfx1250", "gfx1250-strict", "gfx1251"]
    {
        assert!(names.contains(&name), "{name}");
    }
    let find = |mnemonic: &str, table: &str, class: &str| {
        let of = |row: &&crate::model::EncodingRow| row.mnemonic == mnemonic;
        let columns = model.rows.iter().filter(of).flat_map(|row| &row.columns).filter(|column| column.table == table);
        let layout = |name: &str| model.layouts.iter().find(|layout| layout.name == name);
        columns.filter(|column| layout(&column.layout).is_some_and(|l| l.class == class)).map(|c| c.opcode).next()
    };
    // Opcodes as in AMD's manuals.
    #[rustfmt::skip]
    let opcodes = [
        ("v_add_f32", "gfx8", "VOP2", 1), ("v_add_f32", "gfx10", "VOP2", 3), ("v_add_f32", "gfx8", "VOP3", 257),
        ("s_endpgm", "gfx8", "SOPP", 1), ("s_endpgm", "gfx11", "SOPP", 48), ("s_mov_b32", "gfx8", "SOP1", 0),
        ("s_mov_b32", "gfx10", "SOP1", 3), ("ds_add_u32", "gfx10", "DS", 0), ("v_pk_fma_f16", "gfx8", "VOP3P", 14),
        ("s_load_dword", "gfx8", "SMEM", 0), ("global_load_dword", "gfx10", "FLAT", 12), ("v_mov_b32", "gfx12", "VOP1", 1),
        ("buffer_load_dword", "gfx10", "MUBUF", 12), ("image_sample", "gfx10", "MIMG", 32),
    ];
    for (mnemonic, table, class, opcode) in opcodes {
        assert_eq!(find(mnemonic, table, class), Some(opcode), "{mnemonic} {table} {class}");
    }
}
