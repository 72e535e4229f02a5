//! The committed rows read and write back the same; broken rows are rejected at the broken line.

use super::*;
use crate::model::FieldPiece;

/// The smallest rows that read.
const SMALL: &[(&str, &str)] = &[
    ("predicates.isa", "isNew all(gfx9,not(any(old,older)))\n"),
    ("targets.isa", "gfx900 gfx9 old\n"),
    ("steps.isa", "32 gfx9 gfx9\n"),
    ("kinds.isa", "Sreg decode=Sreg_32 type=REGISTER print=Operand class=Sreg_32\nImm decode=imm\n"),
    ("layouts.isa", "SOP1.1 SOP1 32 op=8..15 23..31=101111101 sdst=16..22 ssrc0=1:0..3,6\n"),
    ("shapes.isa", "sop1_a \" $sdst, $ssrc0\" sdst>Sreg ssrc0:Sreg old:Imm=sdst\n"),
    ("images.isa", "LOAD 0 -\nSAMPLE 2 a,b Gfx10/1/4\n"),
    ("sop.isa", "s_mov_b32 sop1_a f=salu r=M0 w=SCC gfx9:SOP1.1/3?isNew\n"),
    ("mimg.isa", "image_x sop1_a image=SAMPLE/Gfx10/1/4\n    gfx9:SOP1.1/ff\n"),
];

fn with(file: &str, text: &str) -> Vec<(String, String)> {
    let replaced = |(name, old): &(&str, &str)| {
        let text = if *name == file { text } else { *old };
        ((*name).to_owned(), text.to_owned())
    };
    SMALL.iter().map(replaced).collect()
}

fn error(file: &str, text: &str) -> String {
    parse(&with(file, text)).expect_err("broken rows").to_string()
}

#[test]
fn the_small_rows_say_what_they_say() {
    let model = parse(&with("", "")).unwrap();
    let layout = &model.layouts[0];
    assert_eq!(layout.fixed_mask, 0x1ff << 23);
    assert_eq!(layout.fixed_value, 0b1_0111_1101 << 23);
    let pieces = [FieldPiece { at: 0, from: 1, width: 4 }, FieldPiece { at: 6, from: 5, width: 1 }];
    assert_eq!(layout.fields[1].pieces, pieces);
    assert_eq!(model.predicates[0].condition.to_string(), "all(gfx9,not(any(old,older)))");
    assert_eq!(model.shapes[0].operands[2].tied.as_deref(), Some("sdst"));
    assert_eq!(model.rows.len(), 2);
    assert_eq!(model.rows[1].columns[0].opcode, 0xff);
}

#[test]
fn what_was_written_reads_the_same() {
    let model = parse(&with("", "")).unwrap();
    let mut small = texts(&model);
    // Rows are in the file of their class, so the second one moves; the rest is unchanged.
    assert_eq!(parse(&small).unwrap().layouts, model.layouts);
    small.retain(|(name, _)| name == "sop.isa");
    assert!(small[0].1.ends_with("f=salu r=M0 w=SCC gfx9:SOP1.1/3?isNew\nimage_x                      sop1_a       image=SAMPLE/Gfx10/1/4 gfx9:SOP1.1/ff\n"));
}

#[test]
fn the_committed_rows_are_what_the_writer_writes() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../isa-tables/rows");
    let committed = load(&directory).unwrap();
    let model = parse(&committed).unwrap();
    assert!(model.rows.len() > 10_000, "{} rows", model.rows.len());
    let mut written = texts(&model);
    written.sort();
    for ((name, old), (_, new)) in committed.iter().zip(&written) {
        assert!(old == new, "{name} is not as the writer writes it");
    }
    assert_eq!(committed.len(), written.len());
    assert!(parse(&written).unwrap() == model);
}

#[test]
fn broken_rows_are_refused_with_their_place() {
    #[rustfmt::skip]
    let cases: &[(&str, &str, &str)] = &[
        ("predicates.isa", "a gfx9\na gfx9\n", "predicates.isa:2: predicate a exists twice"),
        ("predicates.isa", "a\n", "predicates.isa:1: the condition is missing"),
        ("predicates.isa", "a all(x\n", "predicates.isa:1: not a condition: all(x"),
        ("predicates.isa", "a not(x,y)\n", "predicates.isa:1: not a condition: not(x,y)"),
        ("predicates.isa", "a x) y\n", "predicates.isa:1: not a condition: x)"),
        ("predicates.isa", "a x y\n", "predicates.isa:1: unexpected word: y"),
        ("targets.isa", "gfx900 b a\n", "targets.isa:1: features are not sorted at a"),
        ("targets.isa", "gfx900 a a\n", "targets.isa:1: features are not sorted at a"),
        ("targets.isa", "gfx900\ngfx900\n", "targets.isa:2: target gfx900 exists twice"),
        ("steps.isa", "48 gfx9 gfx9\n", "steps.isa:1: no encoding has 48 bits"),
        ("steps.isa", "x gfx9 gfx9\n", "steps.isa:1: the size is not a number: x"),
        ("kinds.isa", "A decode=imm\nA decode=imm\n", "kinds.isa:2: kind A exists twice"),
        ("kinds.isa", "A print=Operand\n", "kinds.isa:1: a kind without decode"),
        ("kinds.isa", "A decode=imm colour=red\n", "kinds.isa:1: not a property of a kind: colour=red"),
        ("layouts.isa", "    A\n", "layouts.isa:1: a continuation without a line before it"),
        ("layouts.isa", "A SOP1 32 0..1=101\n", "layouts.isa:1: not a field, fixed bits or opcode: 0..1=101"),
        ("layouts.isa", "A SOP1 32 0..1=12\n", "layouts.isa:1: not a field, fixed bits or opcode: 0..1=12"),
        ("layouts.isa", "A SOP1 32 0..3=1010 2..5=1111\n", "layouts.isa:1: not a field, fixed bits or opcode: 2..5=1111"),
        ("layouts.isa", "A SOP1 32 op=1 op=2\n", "layouts.isa:1: not a field, fixed bits or opcode: op=2"),
        ("layouts.isa", "A SOP1 32 x=200\n", "layouts.isa:1: not a field, fixed bits or opcode: x=200"),
        ("layouts.isa", "A SOP1 32 x=7..3\n", "layouts.isa:1: not a field, fixed bits or opcode: x=7..3"),
        ("layouts.isa", "A SOP1 32 op=0..7 x=7..8\n", "layouts.isa:1: bits of x are used twice"),
        ("layouts.isa", "A SOP1 32 3=1 x=3\n", "layouts.isa:1: bits of x are used twice"),
        ("layouts.isa", "A SOP1 32 x=1,1\n", "layouts.isa:1: bits of x overlap"),
        ("layouts.isa", "A SOP1 32 x=30..32\n", "layouts.isa:1: bits beyond 32"),
        ("layouts.isa", "A SOP1 32 x=1 x=2\n", "layouts.isa:1: field x exists twice"),
        ("layouts.isa", "A SOP1 32\n# c\n\nA SOP1 32\n", "layouts.isa:4: layout A exists twice"),
        ("shapes.isa", "s \"$a\n", "shapes.isa:1: a quote without an end"),
        ("shapes.isa", "s \"\" a:None\n", "shapes.isa:1: there is no kind None"),
        ("shapes.isa", "s \"\" a\n", "shapes.isa:1: not an operand: a"),
        ("shapes.isa", "s \"\" a:Imm a:Imm\n", "shapes.isa:1: operand a exists twice"),
        ("shapes.isa", "s \"\" a:Imm b:Imm=a\n", "shapes.isa:1: b is tied to a, which is not written"),
        ("images.isa", "A x -\n", "images.isa:1: the number of extra arguments is not a number: x"),
        ("images.isa", "A 300 -\n", "images.isa:1: the number of extra arguments is not a number: 300"),
        ("images.isa", "A 0 - B/1\n", "images.isa:1: not a variant: B/1"),
        ("sop.isa", "s_x sop1_b gfx9:SOP1.1/3\n", "sop.isa:1: there is no shape sop1_b"),
        ("sop.isa", "s_x sop1_a\n", "sop.isa:1: a row without an encoding"),
        ("sop.isa", "s_x sop1_a gfx8:SOP1.1/3\n", "sop.isa:1: no step tries the table gfx8"),
        ("sop.isa", "s_x sop1_a gfx9:SOP1.2/3\n", "sop.isa:1: there is no layout SOP1.2"),
        ("sop.isa", "s_x sop1_a gfx9:SOP1.1/3?isNew+isOld\n", "sop.isa:1: there is no predicate isOld"),
        ("sop.isa", "s_x sop1_a gfx9:SOP1.1/100\n", "sop.isa:1: opcode 100 has more than the 8 bits of SOP1.1"),
        ("sop.isa", "s_x sop1_a image=NONE/A/1/1 gfx9:SOP1.1/3\n", "sop.isa:1: there is no image base NONE"),
        ("sop.isa", "s_x sop1_a gfx9:SOP1.1/3\ns_y sop1_a\n    gfx9:SOP1.1\n", "sop.isa:2: not a property or an encoding: gfx9:SOP1.1"),
    ];
    for (file, text, expected) in cases {
        assert_eq!(error(file, text), *expected, "{text}");
    }
}

#[test]
fn missing_and_unknown_files_are_refused() {
    let mut few = with("", "");
    few.retain(|(name, _)| name != "steps.isa");
    assert_eq!(parse(&few).unwrap_err().to_string(), "steps.isa: the file is missing");
    let mut many = with("", "");
    many.push(("x.isa".to_owned(), String::new()));
    assert_eq!(parse(&many).unwrap_err().to_string(), "x.isa: no part of the model has this file");
}

#[test]
fn deep_conditions_are_refused_not_followed() {
    let deep = "not(".repeat(100_000) + "a" + &")".repeat(100_000);
    assert!(condition::parse(&deep).is_none());
    assert!(condition::parse("all()").is_some());
}

#[test]
fn long_lines_are_broken_at_blanks() {
    let words: Vec<String> = (0..100).map(|n| format!("word{n}")).collect();
    let text = line::join(&words);
    assert!(text.lines().all(|line| line.len() <= 160), "{text}");
    let mut lines = Lines::new("x", &text);
    let mut line = lines.next().unwrap().unwrap();
    assert!(words.iter().all(|word| line.next() == Some(word.as_str())));
    assert!(lines.next().unwrap().is_none());
}
