//! The text of instructions: assembly templates split into steps ahead of time.
//!
//! A step is a text and a [`part`](PARTS): the action after the text and its operand. Everything that depends only on
//! the instruction (suffix of the encoding, implied VCC, kind of cache policy) is decided here, so that the printer
//! neither searches names nor tests flags.
//!
//! Invariants: equal programs are stored once; every `$name` of a template is an operand of its shape.

use super::GenerateError;
use super::expand::{Expanded, PlacedShape};
use super::lines::{Lines, Shortcuts};
use super::step::{BitRun, DecodeStep, NONE, SILENT_AT_ZERO};
use super::table::TableSet;
use crate::model::{Column, Model, OperandKind, OperandShape, Piece, Row};

/// Writes the programs and the program of each entry, and the enums of their parts.
pub(super) fn write(
    out: &mut TableSet,
    enums: &mut String,
    model: &Model,
    expanded: &Expanded,
) -> Result<(), GenerateError> {
    let mut lines = Lines::default();
    for entry in &expanded.entries {
        let row = &model.rows[entry.row];
        let format = &expanded.formats[entry.format];
        let builder = TemplateBuilder { model, row, column: &row.columns[entry.column], format, steps: Vec::new() };
        let quirks = builder.quirks()?;
        let returns = builder.find("cpol").filter(|_| builder.flag("atomicret"));
        let shortcuts = Shortcuts { model, format, returns, adjusted: quirks & ADJUSTED != 0 };
        let steps = builder.build()?.into_iter();
        let steps = steps.map(|step| shortcuts.of(&step).map(|short| (step, short))).collect::<Result<_, _>>()?;
        lines.add(&row.mnemonic, steps, quirks)?;
    }
    lines.write(out, enums)
}

/// Quirks that change the meaning of a register's field: formats of matrices and images.
const ADJUSTED: u8 = 24;

/// Makes the program of one entry.
struct TemplateBuilder<'a> {
    model: &'a Model,
    row: &'a Row,
    column: &'a Column,
    format: &'a PlacedShape,
    steps: Vec<DecodeStep>,
}

impl TemplateBuilder<'_> {
    fn build(mut self) -> Result<Vec<DecodeStep>, GenerateError> {
        let shape = &self.model.shapes[self.format.shape];
        let template = variant(&shape.template);
        let mut rest = template.as_str();
        while let Some(at) = rest.find('$') {
            let (text, after) = rest.split_at(at);
            let name_length = name_length(&after[1..]);
            let name = &after[1..1 + name_length];
            let list = text.ends_with('[') && name == "vaddr0";
            let text = if list { &text[..text.len() - 1] } else { text };
            self.text(text);
            if list {
                let end = after.find(']').ok_or_else(|| self.error("address list without an end"))?;
                let count = after[..end].matches('$').count() as u8;
                let slot = self.slot(shape, name)?;
                self.push("AddressList", slot, [count, 0, 0, 0]);
                rest = &after[end + 1..];
                continue;
            }
            let slot = self.slot(shape, name)?;
            self.operand(slot, name)?;
            rest = &after[1 + name_length..];
        }
        self.text(rest);
        Ok(self.steps.into_iter().filter(|step| !step.is_empty()).collect())
    }

    /// Properties that the operand reader has to handle: 1 the policy's "returns" is fixed, 2 tied operands, 4 halves
    /// in modifiers, 8 formats of matrices, 16 an image.
    fn quirks(&self) -> Result<u8, GenerateError> {
        let returns = self.flag("atomicret") && (self.flag("mubuf") || self.flag("flat") || self.flag("smrd"));
        let tied = self.format.slots.iter().any(|slot| slot.tied.is_some());
        let mut halves = false;
        for name in ["src0", "src1", "src2", "vdst"] {
            if let Some(slot) = self.find(name) {
                let modifiers = if name == "vdst" { "src0_modifiers".to_string() } else { format!("{name}_modifiers") };
                halves |= self.kind(slot)?.class.contains("_16") && self.find(&modifiers).is_some();
            }
        }
        let formats = self.row.mnemonic.contains("f8f6f4");
        let bits = [returns, tied, halves, formats, self.row.image.is_some()];
        Ok(bits.iter().enumerate().fold(0, |all, (bit, set)| all | u8::from(*set) << bit))
    }

    fn error(&self, message: &str) -> GenerateError {
        GenerateError::new(format!("{} in shape {}", self.row.mnemonic, self.row.shape), message)
    }

    fn slot(&self, shape: &OperandShape, name: &str) -> Result<u8, GenerateError> {
        let found = shape.operands.iter().position(|operand| operand.name == name);
        found.map(|slot| slot as u8).ok_or_else(|| self.error(&format!("template names `{name}`, which is no operand")))
    }

    /// Number of the operand `name`.
    fn find(&self, name: &str) -> Option<u8> {
        let shape = &self.model.shapes[self.format.shape];
        shape.operands.iter().position(|operand| operand.name == name).map(|slot| slot as u8)
    }

    /// Appends `text`, to the previous step if that is text only.
    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        match self.steps.last_mut() {
            Some(last) if last.part == "Text" => last.text.push_str(text),
            _ => self.steps.push(DecodeStep::text(text)),
        }
    }

    /// Appends a step; text that precedes it becomes a step of its own.
    fn push(&mut self, part: &'static str, slot: u8, extra: [u8; 4]) {
        let text = match self.steps.pop() {
            Some(last) if last.part == "Text" => last.text,
            Some(other) => {
                self.steps.push(other);
                String::new()
            }
            None => String::new(),
        };
        self.steps.push(DecodeStep { text, part, slot, place: self.place(slot), extra });
    }

    /// Appends a step whose text is only written under its condition.
    fn conditional(&mut self, text: &str, part: &'static str, slot: u8, extra: [u8; 4]) {
        if SILENT_AT_ZERO.contains(&part) && self.is_always_zero(slot) {
            return;
        }
        let place = if part == "Packed" { (0, 0) } else { self.place(slot) };
        self.steps.push(DecodeStep { text: text.to_string(), part, slot, place, extra });
    }

    /// Whether the encoding has no field for the operand and nothing else gives it a value.
    fn is_always_zero(&self, number: u8) -> bool {
        let Some(slot) = self.format.slots.get(usize::from(number)) else { return false };
        let returns = self.flag("atomicret") && self.find("cpol") == Some(number);
        slot.pieces.is_empty() && slot.tied.is_none() && !returns
    }

    /// The position of the operand's field.
    fn place(&self, number: u8) -> BitRun {
        let Some(slot) = self.format.slots.get(usize::from(number)) else { return (0, 0) };
        // Operands whose value is not in their own field, or not all of it.
        if slot.tied.is_some() || self.find("cpol") == Some(number) && self.flag("atomicret") {
            return (0, 0);
        }
        match slot.pieces[..] {
            [Piece { at, from: 0, width }] if at + width <= 128 && width < 64 => (at, width),
            _ => (0, 0),
        }
    }

    /// Whether the instruction has the flag, however it is spelled: `IsAtomicRet`, `atomic_ret`.
    fn flag(&self, wanted: &str) -> bool {
        let plain = |text: &str| text.replace('_', "").to_ascii_lowercase();
        self.row.flags.iter().any(|flag| {
            let flag = plain(flag);
            flag == wanted || flag.strip_prefix("is") == Some(wanted)
        })
    }

    /// Whether VCC is written implicitly.
    fn writes_vcc(&self) -> bool {
        self.row.writes.iter().any(|register| register == "VCC" || register == "VCC_LO")
    }

    fn table(&self, name: &str) -> bool {
        self.column.table == name || self.column.table.strip_suffix("_fake16") == Some(name)
    }

    fn kind(&self, slot: u8) -> Result<&OperandKind, GenerateError> {
        let slot = self.format.slots.get(usize::from(slot)).ok_or_else(|| self.error("modifiers without a source"))?;
        Ok(&self.model.kinds[slot.kind])
    }

    /// Appends the steps of an operand.
    fn operand(&mut self, slot: u8, name: &str) -> Result<(), GenerateError> {
        let kind = self.kind(slot)?.clone();
        let print = Print::parse(&kind.print);
        match print.method {
            "VOPDst" if slot == 0 => self.text(self.suffix()),
            "VINTRPDst" => self.text("_e32 "),
            _ => {}
        }
        if self.wants_vcc_before(slot, print.method) {
            self.push("Vcc", NONE, [0; 4]);
            self.text(", ");
        }
        match print.method {
            "" | "Operand" | "RegularOperand" | "VOPDst" | "VINTRPDst" => {
                self.push(if kind.decode.ends_with("BrTarget") { "Branch" } else { "Operand" }, slot, [0; 4])
            }
            "OperandAndFPInputMods" => self.push("FloatModifiers", slot, [0; 4]),
            "OperandAndIntInputMods" => self.push("IntegerModifiers", slot, [0; 4]),
            // Ray intersections with 16-bit addresses encode that in the opcode.
            "NamedBit" if name == "a16" && self.tests_rays_with_a16() => self.text(" a16"),
            "NamedBit" if name == "gds" => self.conditional(" gds", "GdsFlag", slot, [0; 4]),
            "NamedBit" => self.conditional(&format!(" {}", print.arguments[0]), "Flag", slot, [0; 4]),
            "NamedInt" => self.named_number(slot, &print)?,
            _ => self.special(slot, print.method)?,
        }
        if self.wants_vcc_after(name, print.method) {
            self.text(", ");
            self.push("Vcc", NONE, [0; 4]);
        }
        if self.flag("mtbuf") && name == "soffset" {
            let format = self.find("format").ok_or_else(|| self.error("typed buffer without a format"))?;
            self.push("TypedFormat", format, [0; 4]);
        }
        Ok(())
    }

    /// Whether this is a ray intersection with 16-bit addresses.
    fn tests_rays_with_a16(&self) -> bool {
        let base = self.row.image.as_ref().map(|image| image.base.as_str());
        let found = self.model.image_bases.iter().find(|other| Some(other.name.as_str()) == base);
        let has = |property: &str| found.is_some_and(|base| base.properties.iter().any(|other| other == property));
        has("bvh") && has("a16")
    }

    fn named_number(&mut self, slot: u8, print: &Print) -> Result<(), GenerateError> {
        let [name, hexadecimal, always] = print.arguments[..] else {
            return Err(self.error("a named number needs name, hexadecimal, always"));
        };
        if self.kind(slot)?.decode.ends_with("SMEMOffset") {
            self.conditional(&format!(" {name}:"), "ScalarOffset", slot, [0; 4]);
            return Ok(());
        }
        let part = match (hexadecimal, always) {
            ("true", "true") => "HexAlways",
            ("true", _) => "HexNonzero",
            (_, "true") => "DecimalAlways",
            _ => "DecimalNonzero",
        };
        self.conditional(&format!(" {name}:"), part, slot, [0; 4]);
        Ok(())
    }

    /// The suffix that names the encoding, with a space.
    fn suffix(&self) -> &'static str {
        let (vop3, dpp) = (self.flag("vop3"), self.flag("dpp"));
        let single = self.flag("single");
        match () {
            () if vop3 && dpp => "_e64_dpp ",
            () if vop3 && !single => "_e64 ",
            () if vop3 => " ",
            () if dpp => "_dpp ",
            () if self.flag("sdwa") => "_sdwa ",
            () if (self.flag("vop1") || self.flag("vop2")) && !single => "_e32 ",
            () => " ",
        }
    }

    /// Comparisons that write VCC without an operand for it.
    fn wants_vcc_before(&self, slot: u8, method: &str) -> bool {
        if !self.flag("vopc") || !self.writes_vcc() {
            return false;
        }
        let dpp = self.flag("dpp");
        match method {
            "Operand" => slot == 0 || slot == 1 && dpp && self.find("src0_modifiers").is_some(),
            "OperandAndFPInputMods" | "OperandAndIntInputMods" => slot == 0 && dpp,
            _ => false,
        }
    }

    /// Carries and selections of gfx10 and later, and `v_cndmask_b32_e32`, whose VCC has no operand.
    fn wants_vcc_after(&self, name: &str, method: &str) -> bool {
        let template = &self.model.shapes[self.format.shape].template;
        if self.flag("vop3") || template.contains("vcc") {
            return false;
        }
        let carry = ["v_add_co_ci_u32", "v_sub_co_ci_u32", "v_subrev_co_ci_u32"].contains(&self.row.mnemonic.as_str());
        let select = self.row.mnemonic == "v_cndmask_b32";
        match name {
            "src1" | "src1_modifiers" => carry || select,
            _ => carry && method == "VOPDst",
        }
    }

    /// Print methods with a form of their own.
    fn special(&mut self, slot: u8, method: &str) -> Result<(), GenerateError> {
        let vector_buffer = self.flag("mubuf") || self.flag("mtbuf");
        let signed = self.flag("flatglobal") || self.flag("flatscratch");
        match method {
            "FORMAT" => {}
            "CPol" => {
                self.conditional("", "CachePolicy", slot, [self.temporal_hint(), u8::from(self.flag("smrd")), 0, 0])
            }
            "Offset" => self.conditional(" offset:", "Offset", slot, [u8::from(vector_buffer), 0, 0, 0]),
            "FlatOffset" => self.conditional(" offset:", "FlatOffset", slot, [u8::from(signed), 0, 0, 0]),
            "DPPCtrl" => self.push("DppControl", slot, [self.double_rate(), 0, 0, 0]),
            "BLGP" => {
                let negate = self.table("gfx940") && self.row.mnemonic.starts_with("v_mfma_f64_");
                self.conditional("", "Blgp", slot, [u8::from(negate), 0, 0, 0]);
            }
            "OpSel" => self.op_sel(),
            "OpSelHi" => self.packed(" op_sel_hi:[", 8),
            "NegLo" => self.packed(" neg_lo:[", 1),
            "NegHi" => self.packed(" neg_hi:[", 2),
            "ExpSrc0" | "ExpSrc1" | "ExpSrc2" | "ExpSrc3" => {
                let number = method.as_bytes()[method.len() - 1] - b'0';
                let enable = self.find("en").ok_or_else(|| self.error("export without `en`"))?;
                self.push("ExportSource", slot, [number, enable, self.find("compr").unwrap_or(NONE), 0]);
            }
            _ => {
                let found = PARTS.iter().find(|(name, ..)| *name == method);
                let (_, text, part) = found.ok_or_else(|| self.error(&format!("unknown print method `{method}`")))?;
                match text.is_empty() {
                    true => self.push(part, slot, [0; 4]),
                    false => self.conditional(text, part, slot, [0; 4]),
                }
            }
        }
        Ok(())
    }

    /// The kind of access that the temporal hint is for: 0 load, 1 store, 2 atomic.
    fn temporal_hint(&self) -> u8 {
        if self.flag("atomicret") || self.flag("atomicnoret") {
            return 2;
        }
        let mnemonic = &self.row.mnemonic;
        let copies_out = mnemonic.contains("store_async_from_lds") || mnemonic.starts_with("tensor_store");
        u8::from(self.flag("store") && (copies_out || !self.flag("load")))
    }

    /// DPP of the double-rate unit, which supports only some controls: 1 operations of 32 bits, 2 operands of 64 bits.
    fn double_rate(&self) -> u8 {
        let mnemonic = self.row.mnemonic.as_str();
        if ["v_mul_lo_u32", "v_mul_hi_u32", "v_mul_hi_i32", "v_mad_u32"].contains(&mnemonic) {
            return 1;
        }
        let wide = ["vdst", "src0", "src1", "src2"].iter().filter_map(|name| self.find(name)).any(|slot| {
            let class = self.kind(slot).map(|kind| kind.class.as_str()).unwrap_or("");
            ["VReg_64", "VReg_64_AlignTarget", "VReg_64_Align2"].contains(&class)
        });
        if wide { 2 } else { 0 }
    }

    fn op_sel(&mut self) {
        let mnemonic = self.row.mnemonic.as_str();
        let source0 = self.find("src0_modifiers").unwrap_or(NONE);
        let source1 = self.find("src1_modifiers").unwrap_or(NONE);
        let from_bytes = ["v_cvt_f32_bf8", "v_cvt_f32_fp8", "v_cvt_pk_f32_bf8", "v_cvt_pk_f32_fp8"].contains(&mnemonic);
        if from_bytes && self.flag("vop3") && self.table("gfx12") {
            return self.conditional(" op_sel:[", "OpSelConvert", source0, [0; 4]);
        }
        let permutes = ["v_permlane16_b32", "v_permlanex16_b32", "v_permlane16_var_b32", "v_permlanex16_var_b32"]
            .contains(&mnemonic);
        if permutes && !self.flag("dpp") {
            return self.conditional(" op_sel:[", "OpSelPermute", source0, [source1, 0, 0, 0]);
        }
        self.packed(" op_sel:[", 4);
    }

    /// A list of one modifier bit of each source. Extra: the three modifier operands, then the number that is written
    /// in bits 0 and 1, 4 for "the result's selection too", 8 for packed arithmetic.
    fn packed(&mut self, text: &str, bit: u8) {
        let modifiers =
            ["src0_modifiers", "src1_modifiers", "src2_modifiers"].map(|name| self.find(name).unwrap_or(NONE));
        let sources = ["src0", "src1", "src2"].map(|name| self.find(name).is_some());
        let mut count = sources.iter().take_while(|present| **present).count() as u8;
        if sources == [true, false, true] || self.flag("wmma") || self.flag("swmmac") {
            count = 3;
        }
        let has_result = self.find("vdst").is_some() || self.find("sdst").is_some();
        let result = has_result && count > 0 && bit == 4 && self.flag("vop3opsel");
        let packed = self.flag("packed");
        let extra = [modifiers[0], modifiers[1], modifiers[2], count | u8::from(result) << 2 | u8::from(packed) << 3];
        self.conditional(text, "Packed", bit, extra);
    }
}

/// Print methods: name, text that depends on the operand, part.
const PARTS: &[(&str, &str, &str)] = &[
    ("AVLdSt32Align2RegOp", "", "Register"),
    ("U16ImmOperand", "", "U16"),
    ("U32ImmOperand", "", "U32"),
    ("FP64ImmOperand", "", "Fp64"),
    ("SMEMOffset", "", "ScalarOffset"),
    ("DPP8", "", "Dpp8"),
    ("DppBoundCtrl", " bound_ctrl:1", "Flag"),
    ("DppFI", " fi:1", "DppFetchInvalid"),
    ("SDWADstSel", "dst_sel:", "SdwaSelect"),
    ("SDWASrc0Sel", "src0_sel:", "SdwaSelect"),
    ("SDWASrc1Sel", "src1_sel:", "SdwaSelect"),
    ("SDWADstUnused", "dst_unused:", "SdwaUnused"),
    ("OModSI", "", "OutputModifier"),
    ("R128A16", "", "R128A16"),
    ("Dim", " dim:SQ_RSRC_IMG_", "Dim"),
    ("BitOp3", " bitop3:", "BitOp3"),
    ("IndexKey8bit", " index_key:", "IndexKey"),
    ("IndexKey16bit", " index_key:", "IndexKey"),
    ("IndexKey32bit", " index_key:", "IndexKey"),
    ("MatrixAFMT", " matrix_a", "MatrixFormat"),
    ("MatrixBFMT", " matrix_b", "MatrixFormat"),
    ("MatrixAScale", " matrix_a", "MatrixScale"),
    ("MatrixBScale", " matrix_b", "MatrixScale"),
    ("MatrixAScaleFmt", " matrix_a", "MatrixScaleFormat"),
    ("MatrixBScaleFmt", " matrix_b", "MatrixScaleFormat"),
    ("InterpAttr", "attr", "Attribute"),
    ("InterpAttrChan", "", "AttributeComponent"),
    ("InterpSlot", "", "AttributeParameter"),
    ("ExpTgt", "", "ExportTarget"),
    ("Hwreg", "", "HardwareRegister"),
    ("SendMsg", "", "Message"),
    ("Swizzle", " offset:", "Swizzle"),
    ("Endpgm", " ", "EndProgram"),
    ("SWaitCnt", "", "WaitCounters"),
    ("DepCtr", "", "DependencyCounters"),
    ("SDelayALU", "", "DelayAlu"),
    ("GPRIdxMode", "", "IndexMode"),
    ("WaitEvent", "", "WaitEvent"),
];

/// A print method with its arguments.
struct Print<'a> {
    method: &'a str,
    arguments: Vec<&'a str>,
}

impl<'a> Print<'a> {
    fn parse(text: &'a str) -> Self {
        let text = text.strip_prefix("print").unwrap_or(text);
        let (method, arguments) = text.split_once('(').unwrap_or((text, ""));
        let arguments = arguments.trim_end_matches(')').split(',').map(|word| word.trim().trim_matches('"')).collect();
        Self { method, arguments }
    }
}

/// Takes the first of alternatives in braces, as the printer of disassembled code does.
fn variant(template: &str) -> String {
    let mut result = String::new();
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        result.push_str(before);
        let (alternatives, after) = after.split_once('}').unwrap_or((after, ""));
        result.push_str(alternatives.split('|').next().unwrap_or(""));
        rest = after;
    }
    result + rest
}

/// Bytes of the name at the start of `text`.
fn name_length(text: &str) -> usize {
    text.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_').unwrap_or(text.len())
}

#[cfg(test)]
mod tests {
    use super::{Print, name_length, variant};

    #[test]
    fn print_methods_are_read_with_or_without_their_verb() {
        for text in ["NamedInt(row_mask,true,true)", "printNamedInt(\"row_mask\", true, true)"] {
            let print = Print::parse(text);
            assert_eq!((print.method, print.arguments), ("NamedInt", vec!["row_mask", "true", "true"]));
        }
        assert_eq!(Print::parse("printOperand").method, "Operand");
    }

    #[test]
    fn templates_take_the_first_alternative() {
        assert_eq!(variant("{_e64} $src0"), "_e64 $src0");
        assert_eq!(variant(" $vdst{a|b}c"), " $vdstac");
        assert_eq!(name_length("vdst, $src0"), 4);
    }
}
