//! The text of instructions: assembly templates split into steps ahead of time.
//!
//! A step is a text and a [`part`](PARTS): the action after the text and its operand. Everything that depends only on
//! the instruction (suffix of the encoding, implied VCC, kind of cache policy) is decided here, so that the printer
//! neither searches names nor tests flags.
//!
//! Invariants: equal programs are stored once; every `$name` of a template is an operand of its shape.

use super::GenerateError;
use super::expand::{Expanded, PlacedShape};
use super::lines::{DecodeLines, LineStep, Shortcuts};
use super::step::{DecodeStep, NONE, SILENT_AT_ZERO};
use super::table::TableSet;
use crate::model::{BitRun, EncodingColumn, EncodingRow, FieldPiece, Model, OperandKind, OperandShape};

/// Writes the programs and the program of each entry, and the enums of their parts.
pub(super) fn write_templates(
    out: &mut TableSet,
    enums: &mut String,
    model: &Model,
    expanded: &Expanded,
) -> Result<(), GenerateError> {
    let mut lines = DecodeLines::default();
    for entry in &expanded.entries {
        let row = &model.rows[entry.row];
        let format = &expanded.formats[entry.format];
        let builder = TemplateBuilder { model, row, column: &row.columns[entry.column], format, steps: Vec::new() };
        let quirks = builder.operand_quirks()?;
        let returns = builder.find_operand("cpol").filter(|_| builder.has_flag("atomicret"));
        let shortcuts = Shortcuts { model, format, returns, adjusted: quirks & ADJUSTED != 0 };
        let steps = builder.build_steps()?.into_iter();
        let steps = steps
            .map(|step| shortcuts.short_form(&step).map(|short| LineStep { step, short }))
            .collect::<Result<_, _>>()?;
        lines.add_entry(&row.mnemonic, steps, quirks)?;
    }
    lines.write_lines(out, enums)
}

/// Quirks that change the meaning of a register's field: formats of matrices and images.
const ADJUSTED: u8 = 24;

/// Makes the program of one entry.
struct TemplateBuilder<'a> {
    model: &'a Model,
    row: &'a EncodingRow,
    column: &'a EncodingColumn,
    format: &'a PlacedShape,
    steps: Vec<DecodeStep>,
}

impl TemplateBuilder<'_> {
    fn build_steps(mut self) -> Result<Vec<DecodeStep>, GenerateError> {
        let shape = &self.model.shapes[self.format.shape];
        let template = first_variant(&shape.template);
        let mut rest = template.as_str();
        while let Some(at) = rest.find('$') {
            let (text, after) = rest.split_at(at);
            let name_length = name_length(&after[1..]);
            let name = &after[1..1 + name_length];
            let list = text.ends_with('[') && name == "vaddr0";
            let text = if list { &text[..text.len() - 1] } else { text };
            self.push_text(text);
            if list {
                let end = after.find(']').ok_or_else(|| self.template_error("address list without an end"))?;
                let count = after[..end].matches('$').count() as u8;
                let slot = self.slot_of_shape(shape, name)?;
                self.push("AddressList", slot, [count, 0, 0, 0]);
                rest = &after[end + 1..];
                continue;
            }
            let slot = self.slot_of_shape(shape, name)?;
            self.push_operand(slot, name)?;
            rest = &after[1 + name_length..];
        }
        self.push_text(rest);
        Ok(self.steps.into_iter().filter(|step| !step.is_empty()).collect())
    }

    /// Properties that the operand reader has to handle: 1 the policy's "returns" is fixed, 2 tied operands, 4 halves
    /// in modifiers, 8 formats of matrices, 16 an image.
    fn operand_quirks(&self) -> Result<u8, GenerateError> {
        let returns =
            self.has_flag("atomicret") && (self.has_flag("mubuf") || self.has_flag("flat") || self.has_flag("smrd"));
        let tied = self.format.slots.iter().any(|slot| slot.tied.is_some());
        let mut halves = false;
        for name in ["src0", "src1", "src2", "vdst"] {
            if let Some(slot) = self.find_operand(name) {
                let modifiers = if name == "vdst" { "src0_modifiers".to_string() } else { format!("{name}_modifiers") };
                halves |= self.operand_kind(slot)?.class.contains("_16") && self.find_operand(&modifiers).is_some();
            }
        }
        let formats = self.row.mnemonic.contains("f8f6f4");
        let bits = [returns, tied, halves, formats, self.row.image.is_some()];
        Ok(bits.iter().enumerate().fold(0, |all, (bit, set)| all | u8::from(*set) << bit))
    }

    fn template_error(&self, message: &str) -> GenerateError {
        GenerateError::new(format!("{} in shape {}", self.row.mnemonic, self.row.shape), message)
    }

    fn slot_of_shape(&self, shape: &OperandShape, name: &str) -> Result<u8, GenerateError> {
        let found = shape.operands.iter().position(|operand| operand.name == name);
        found
            .map(|slot| slot as u8)
            .ok_or_else(|| self.template_error(&format!("template names `{name}`, which is no operand")))
    }

    /// Number of the operand `name`.
    fn find_operand(&self, name: &str) -> Option<u8> {
        let shape = &self.model.shapes[self.format.shape];
        shape.operands.iter().position(|operand| operand.name == name).map(|slot| slot as u8)
    }

    /// Appends `text`, to the previous step if that is text only.
    fn push_text(&mut self, text: &str) {
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
        self.steps.push(DecodeStep { text, part, slot, place: self.field_position(slot), extra });
    }

    /// Appends a step whose text is only written under its condition.
    fn push_conditional(&mut self, text: &str, part: &'static str, slot: u8, extra: [u8; 4]) {
        if SILENT_AT_ZERO.contains(&part) && self.is_always_zero(slot) {
            return;
        }
        let place = if part == "Packed" { BitRun::default() } else { self.field_position(slot) };
        self.steps.push(DecodeStep { text: text.to_string(), part, slot, place, extra });
    }

    /// Whether the encoding lacks a field for the operand and nothing else gives it a value.
    fn is_always_zero(&self, number: u8) -> bool {
        let Some(slot) = self.format.slots.get(usize::from(number)) else { return false };
        let returns = self.has_flag("atomicret") && self.find_operand("cpol") == Some(number);
        slot.pieces.is_empty() && slot.tied.is_none() && !returns
    }

    /// The position of the operand's field.
    fn field_position(&self, number: u8) -> BitRun {
        let Some(slot) = self.format.slots.get(usize::from(number)) else { return BitRun::default() };
        // Operands whose value is not in their own field, or not all of it.
        if slot.tied.is_some() || self.find_operand("cpol") == Some(number) && self.has_flag("atomicret") {
            return BitRun::default();
        }
        match slot.pieces[..] {
            [FieldPiece { at, from: 0, width }] if at + width <= 128 && width < 64 => BitRun { at, width },
            _ => BitRun::default(),
        }
    }

    /// Whether the instruction has the flag, however it is spelled: `IsAtomicRet`, `atomic_ret`.
    fn has_flag(&self, wanted: &str) -> bool {
        self.row.flags.iter().any(|flag| {
            let flag = plain_name(flag);
            flag == wanted || flag.strip_prefix("is") == Some(wanted)
        })
    }

    /// Whether VCC is written implicitly.
    fn writes_vcc(&self) -> bool {
        self.row.writes.iter().any(|register| register == "VCC" || register == "VCC_LO")
    }

    fn is_in_table(&self, name: &str) -> bool {
        self.column.table == name || self.column.table.strip_suffix("_fake16") == Some(name)
    }

    fn operand_kind(&self, slot: u8) -> Result<&OperandKind, GenerateError> {
        let slot = self
            .format
            .slots
            .get(usize::from(slot))
            .ok_or_else(|| self.template_error("modifiers without a source"))?;
        Ok(&self.model.kinds[slot.kind])
    }

    /// Appends the steps of an operand.
    fn push_operand(&mut self, slot: u8, name: &str) -> Result<(), GenerateError> {
        let kind = self.operand_kind(slot)?.clone();
        let print = Print::parse(&kind.print);
        match print.method {
            "VOPDst" if slot == 0 => self.push_text(self.encoding_suffix()),
            "VINTRPDst" => self.push_text("_e32 "),
            _ => {}
        }
        if self.wants_vcc_before(slot, print.method) {
            self.push("Vcc", NONE, [0; 4]);
            self.push_text(", ");
        }
        match print.method {
            "" | "Operand" | "RegularOperand" | "VOPDst" | "VINTRPDst" => {
                self.push(if kind.decode.ends_with("BrTarget") { "Branch" } else { "Operand" }, slot, [0; 4])
            }
            "OperandAndFPInputMods" => self.push("FloatModifiers", slot, [0; 4]),
            "OperandAndIntInputMods" => self.push("IntegerModifiers", slot, [0; 4]),
            // Ray intersections with 16-bit addresses encode that in the opcode.
            "NamedBit" if name == "a16" && self.tests_rays_with_a16() => self.push_text(" a16"),
            "NamedBit" if name == "gds" => self.push_conditional(" gds", "GdsFlag", slot, [0; 4]),
            "NamedBit" => self.push_conditional(&format!(" {}", print.arguments[0]), "Flag", slot, [0; 4]),
            "NamedInt" => self.named_number(slot, &print)?,
            _ => self.push_special_operand(slot, print.method)?,
        }
        if self.wants_vcc_after(name, print.method) {
            self.push_text(", ");
            self.push("Vcc", NONE, [0; 4]);
        }
        if self.has_flag("mtbuf") && name == "soffset" {
            let format =
                self.find_operand("format").ok_or_else(|| self.template_error("typed buffer without a format"))?;
            self.push("TypedFormat", format, [0; 4]);
        }
        Ok(())
    }

    /// Whether this is a ray intersection with 16-bit addresses.
    fn tests_rays_with_a16(&self) -> bool {
        let base = self.row.image.as_ref().map(|image| image.base.as_str());
        let found = self.model.image_bases.iter().find(|other| Some(other.name.as_str()) == base);
        base_has_property("bvh", &found) && base_has_property("a16", &found)
    }

    fn named_number(&mut self, slot: u8, print: &Print) -> Result<(), GenerateError> {
        let [name, hexadecimal, always] = print.arguments[..] else {
            return Err(self.template_error("a named number needs name, hexadecimal, always"));
        };
        if self.operand_kind(slot)?.decode.ends_with("SMEMOffset") {
            self.push_conditional(&format!(" {name}:"), "ScalarOffset", slot, [0; 4]);
            return Ok(());
        }
        let part = match (hexadecimal, always) {
            ("true", "true") => "HexAlways",
            ("true", _) => "HexNonzero",
            (_, "true") => "DecimalAlways",
            _ => "DecimalNonzero",
        };
        self.push_conditional(&format!(" {name}:"), part, slot, [0; 4]);
        Ok(())
    }

    /// The suffix that names the encoding, with a space.
    fn encoding_suffix(&self) -> &'static str {
        let (vop3, dpp) = (self.has_flag("vop3"), self.has_flag("dpp"));
        let single = self.has_flag("single");
        match () {
            () if vop3 && dpp => "_e64_dpp ",
            () if vop3 && !single => "_e64 ",
            () if vop3 => " ",
            () if dpp => "_dpp ",
            () if self.has_flag("sdwa") => "_sdwa ",
            () if (self.has_flag("vop1") || self.has_flag("vop2")) && !single => "_e32 ",
            () => " ",
        }
    }

    /// Comparisons that write VCC without an operand for it.
    fn wants_vcc_before(&self, slot: u8, method: &str) -> bool {
        if !self.has_flag("vopc") || !self.writes_vcc() {
            return false;
        }
        let dpp = self.has_flag("dpp");
        match method {
            "Operand" => slot == 0 || slot == 1 && dpp && self.find_operand("src0_modifiers").is_some(),
            "OperandAndFPInputMods" | "OperandAndIntInputMods" => slot == 0 && dpp,
            _ => false,
        }
    }

    /// Carries and selections of gfx10 and later, and `v_cndmask_b32_e32`, whose VCC lacks an operand.
    fn wants_vcc_after(&self, name: &str, method: &str) -> bool {
        let template = &self.model.shapes[self.format.shape].template;
        if self.has_flag("vop3") || template.contains("vcc") {
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
    fn push_special_operand(&mut self, slot: u8, method: &str) -> Result<(), GenerateError> {
        let vector_buffer = self.has_flag("mubuf") || self.has_flag("mtbuf");
        let signed = self.has_flag("flatglobal") || self.has_flag("flatscratch");
        match method {
            "FORMAT" => {}
            "CPol" => self.push_conditional(
                "",
                "CachePolicy",
                slot,
                [self.temporal_hint(), u8::from(self.has_flag("smrd")), 0, 0],
            ),
            "Offset" => self.push_conditional(" offset:", "Offset", slot, [u8::from(vector_buffer), 0, 0, 0]),
            "FlatOffset" => self.push_conditional(" offset:", "FlatOffset", slot, [u8::from(signed), 0, 0, 0]),
            "DPPCtrl" => self.push("DppControl", slot, [self.double_rate(), 0, 0, 0]),
            "BLGP" => {
                let negate = self.is_in_table("gfx940") && self.row.mnemonic.starts_with("v_mfma_f64_");
                self.push_conditional("", "Blgp", slot, [u8::from(negate), 0, 0, 0]);
            }
            "OpSel" => self.op_sel(),
            "OpSelHi" => self.push_packed_modifiers(" op_sel_hi:[", 8),
            "NegLo" => self.push_packed_modifiers(" neg_lo:[", 1),
            "NegHi" => self.push_packed_modifiers(" neg_hi:[", 2),
            "ExpSrc0" | "ExpSrc1" | "ExpSrc2" | "ExpSrc3" => {
                let number = method.as_bytes()[method.len() - 1] - b'0';
                let enable = self.find_operand("en").ok_or_else(|| self.template_error("export without `en`"))?;
                self.push("ExportSource", slot, [number, enable, self.find_operand("compr").unwrap_or(NONE), 0]);
            }
            _ => {
                let found = PARTS.iter().find(|(name, ..)| *name == method);
                let (_, text, part) =
                    found.ok_or_else(|| self.template_error(&format!("unknown print method `{method}`")))?;
                match text.is_empty() {
                    true => self.push(part, slot, [0; 4]),
                    false => self.push_conditional(text, part, slot, [0; 4]),
                }
            }
        }
        Ok(())
    }

    /// The kind of access that the temporal hint is for: 0 load, 1 store, 2 atomic.
    fn temporal_hint(&self) -> u8 {
        if self.has_flag("atomicret") || self.has_flag("atomicnoret") {
            return 2;
        }
        let mnemonic = &self.row.mnemonic;
        let copies_out = mnemonic.contains("store_async_from_lds") || mnemonic.starts_with("tensor_store");
        u8::from(self.has_flag("store") && (copies_out || !self.has_flag("load")))
    }

    /// DPP of the double-rate unit, which supports only some controls: 1 operations of 32 bits, 2 operands of 64 bits.
    fn double_rate(&self) -> u8 {
        let mnemonic = self.row.mnemonic.as_str();
        if ["v_mul_lo_u32", "v_mul_hi_u32", "v_mul_hi_i32", "v_mad_u32"].contains(&mnemonic) {
            return 1;
        }
        let wide = ["vdst", "src0", "src1", "src2"].iter().filter_map(|name| self.find_operand(name)).any(|slot| {
            let class = self.operand_kind(slot).map(|kind| kind.class.as_str()).unwrap_or("");
            ["VReg_64", "VReg_64_AlignTarget", "VReg_64_Align2"].contains(&class)
        });
        if wide { 2 } else { 0 }
    }

    fn op_sel(&mut self) {
        let mnemonic = self.row.mnemonic.as_str();
        let source0 = self.find_operand("src0_modifiers").unwrap_or(NONE);
        let source1 = self.find_operand("src1_modifiers").unwrap_or(NONE);
        let from_bytes = ["v_cvt_f32_bf8", "v_cvt_f32_fp8", "v_cvt_pk_f32_bf8", "v_cvt_pk_f32_fp8"].contains(&mnemonic);
        if from_bytes && self.has_flag("vop3") && self.is_in_table("gfx12") {
            return self.push_conditional(" op_sel:[", "OpSelConvert", source0, [0; 4]);
        }
        let permutes = ["v_permlane16_b32", "v_permlanex16_b32", "v_permlane16_var_b32", "v_permlanex16_var_b32"]
            .contains(&mnemonic);
        if permutes && !self.has_flag("dpp") {
            return self.push_conditional(" op_sel:[", "OpSelPermute", source0, [source1, 0, 0, 0]);
        }
        self.push_packed_modifiers(" op_sel:[", 4);
    }

    /// A list of one modifier bit of each source. Extra: the three modifier operands, then the number that is written
    /// in bits 0 and 1, 4 for "the result's selection too", 8 for packed arithmetic.
    fn push_packed_modifiers(&mut self, text: &str, bit: u8) {
        let modifiers =
            ["src0_modifiers", "src1_modifiers", "src2_modifiers"].map(|name| self.find_operand(name).unwrap_or(NONE));
        let sources = ["src0", "src1", "src2"].map(|name| self.find_operand(name).is_some());
        let mut count = sources.iter().take_while(|present| **present).count() as u8;
        if sources == [true, false, true] || self.has_flag("wmma") || self.has_flag("swmmac") {
            count = 3;
        }
        let has_result = self.find_operand("vdst").is_some() || self.find_operand("sdst").is_some();
        let result = has_result && count > 0 && bit == 4 && self.has_flag("vop3opsel");
        let packed = self.has_flag("packed");
        let extra = [modifiers[0], modifiers[1], modifiers[2], count | u8::from(result) << 2 | u8::from(packed) << 3];
        self.push_conditional(text, "Packed", bit, extra);
    }
}

fn plain_name(text: &str) -> String {
    text.replace('_', "").to_ascii_lowercase()
}

fn base_has_property(property: &str, found: &Option<&crate::model::ImageBase>) -> bool {
    found.is_some_and(|base| base.properties.iter().any(|other| other == property))
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
fn first_variant(template: &str) -> String {
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
    use super::{Print, first_variant, name_length};

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
        assert_eq!(first_variant("{_e64} $src0"), "_e64 $src0");
        assert_eq!(first_variant(" $vdst{a|b}c"), " $vdstac");
        assert_eq!(name_length("vdst, $src0"), 4);
    }
}
