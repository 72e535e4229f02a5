//! The model of the instruction set: the content of the rows, as plain data.
//!
//! Invariants (checked by [`crate`]'s reader): every name that is referred to exists once; fixed bits, opcode
//! bits and fields of a layout do not overlap; an opcode fits its bits.

/// The whole instruction set.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Model {
    /// Conditions under which an encoding exists, by name.
    pub predicates: Vec<Predicate>,
    /// Processors and their features.
    pub targets: Vec<TargetRow>,
    /// The order in which the tables of encodings are tried; the first that accepts a word wins.
    pub steps: Vec<TableStep>,
    pub kinds: Vec<OperandKind>,
    /// Positions of the fields of an encoding.
    pub layouts: Vec<EncodingLayout>,
    /// Operand lists with their assembly templates.
    pub shapes: Vec<OperandShape>,
    pub rows: Vec<EncodingRow>,
    /// Image instructions: the arguments of the base operation.
    pub image_bases: Vec<ImageBase>,
}

/// A condition over features of a processor. Features are named as LLVM's `-mattr` names them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// The processor has the feature.
    Has(String),
    /// The condition does not hold.
    Not(Box<Condition>),
    /// All hold; an empty list holds.
    All(Vec<Condition>),
    /// At least one holds.
    Any(Vec<Condition>),
}

/// A named condition (LLVM: an assembler predicate).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Predicate {
    /// Its name, for example `isGFX11Only`.
    pub name: String,
    pub condition: Condition,
}

/// A processor or generic target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TargetRow {
    /// The name that `--offload-arch` takes, for example `gfx90a`.
    pub name: String,
    /// All features, including implied ones, that a predicate, a step or the decoder's code queries; sorted.
    /// `wavefrontsize32`, `wavefrontsize64` and `real-true16` are the defaults of the assembler; a decoder may
    /// request the other setting.
    pub features: Vec<String>,
}

/// One table of encodings to try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableStep {
    /// Size in bits of the words in it: 32, 64, 96 or 128.
    pub bits: u8,
    /// Name of the table, see [`EncodingColumn::table`].
    pub table: String,
    /// The targets on which it is tried.
    pub condition: Condition,
}

/// A kind of operand: the decoding of its field and its form in assembly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperandKind {
    /// Its name, for example `VSrc_f32`.
    pub name: String,
    /// The decoding of the field: LLVM's decoder method without the prefix "decode" (`SrcRegOrImm9<32>`), or the
    /// register class for operands that are one (`VReg_64_AlignTarget`), or `imm`.
    pub decode: String,
    /// LLVM's operand type without `OPERAND_`: the meaning of inline constants and literals (`REG_IMM_FP32`).
    pub operand_type: String,
    /// The print method: LLVM's name without the prefix "print" (`Operand`, `CPol`), for named bits and integers
    /// `NamedBit(clamp)` or `NamedInt(offset,prefix,skip zero,hexadecimal…)` as found.
    pub print: String,
    /// Register class of the operand, empty where it lacks one. Registers outside it decode but are not valid.
    pub class: String,
}

/// Neighbouring bits of an instruction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct BitRun {
    /// The lowest of the bits.
    pub at: u8,
    /// The number of bits.
    pub width: u8,
}

/// Some bits of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldPiece {
    /// Lowest bit in the instruction.
    pub at: u8,
    /// Lowest bit in the field's value.
    pub from: u8,
    /// The number of its bits.
    pub width: u8,
}

impl FieldPiece {
    /// Whether it holds the bit of the field's value.
    pub fn has_value_bit(&self, bit: u8) -> bool {
        (self.from..self.from + self.width).contains(&bit)
    }
}

/// A field of an encoding.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EncodingField {
    /// Name of the operand whose value it holds (`vdst`, `src0_modifiers`).
    pub name: String,
    /// Its bits, lowest value bit first.
    pub pieces: Vec<FieldPiece>,
}

/// The positions of everything in the words of an encoding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodingLayout {
    /// Its name: the class and a number (`VOP3.7`).
    pub name: String,
    /// Encoding class: `SOP1`, `VOP2`, `VOP3`, `VOP3_DPP16`, `VOP2_SDWA`, `VOPD3`, `SMEM`, `DS`, `FLAT`, `MIMG`, …
    pub class: String,
    /// Size in bits without literals: 32, 64, 96 or 128.
    pub bits: u8,
    /// Position of the opcode of [`EncodingColumn::opcode`].
    pub opcode: Vec<FieldPiece>,
    /// Bits with a fixed value, without those of the opcode. Bits that are neither here nor in the opcode nor in a
    /// field do not matter.
    pub fixed_mask: u128,
    pub fixed_value: u128,
    pub fields: Vec<EncodingField>,
}

/// An operand list with its assembly template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperandShape {
    /// Its name, unique, made from its content.
    pub name: String,
    /// The template after the mnemonic, with `$name` for operands, as LLVM writes it.
    pub template: String,
    /// Operands in LLVM's order: written ones first.
    pub operands: Vec<ShapeOperand>,
}

/// One operand of a shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShapeOperand {
    /// Its name; a field of the same name holds its value unless it is tied or implied.
    pub name: String,
    /// Name of its kind.
    pub kind: String,
    /// Written (a definition) rather than read.
    pub written: bool,
    /// Name of the written operand that this read one must equal, if any.
    pub tied: Option<String>,
}

/// An instruction in one encoding form, for all generations that have it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodingRow {
    /// Mnemonic without encoding suffix.
    pub mnemonic: String,
    /// Name of its shape.
    pub shape: String,
    /// Registers that it reads implicitly (`EXEC`, `VCC`, `SCC`, `M0`, `MODE`, `FLAT_SCR`, …).
    pub reads: Vec<String>,
    /// Registers that it writes implicitly.
    pub writes: Vec<String>,
    /// Its flags: LLVM's instruction flags in lower case (`valu`, `trans`, `vop3`, `dpp`, `branch`, `terminator`,
    /// `load`, `store`, `vm_cnt`, `wmma`, …); sorted. The list of known flags is the generator's.
    pub flags: Vec<String>,
    /// For image instructions: name of the base operation, encoding, dwords of data, dwords of address.
    pub image: Option<ImageVariant>,
    /// One for each encoding of it.
    pub columns: Vec<EncodingColumn>,
}

/// One encoding of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodingColumn {
    /// Table that it is in (LLVM's decoder namespace in lower case: `gfx8` serves GFX8 and GFX9, `gfx9`, `gfx90a`,
    /// `gfx940`, `gfx950`, `gfx10`, `gfx11`, `gfx11_fake16`, `gfx12`, `gfx1250`, …).
    pub table: String,
    /// Names of the predicates that must all hold; sorted.
    pub predicates: Vec<String>,
    /// Name of its layout.
    pub layout: String,
    /// Value of the opcode bits.
    pub opcode: u32,
}

/// The variant that an image instruction is.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImageVariant {
    /// Name of the base, see [`ImageBase`].
    pub base: String,
    /// Encoding variant, for example `Gfx10NSA`.
    pub encoding: String,
    /// Dwords of data of this variant.
    pub data: u8,
    /// Dwords of address of this variant.
    pub address: u8,
}

/// The base operation of image instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImageBase {
    pub name: String,
    /// LLVM's properties that hold (`gather4`, `gradients`, `g16`, `coordinates`, `lod_or_clamp_or_mip`, `d16`,
    /// `msaa`, `bvh`, `a16`, `store`, `atomic`, `atomic_x2`, `sampler`, …); sorted.
    pub properties: Vec<String>,
    /// Arguments before the coordinates.
    pub extra_arguments: u8,
    /// The forms of its variants that exist; sorted.
    pub variants: Vec<ImageForm>,
}

/// The form of a variant of an image operation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ImageForm {
    /// Encoding variant, for example `Gfx10NSA`.
    pub encoding: String,
    /// Dwords of data of this variant.
    pub data: u8,
    /// Dwords of address of this variant.
    pub address: u8,
}
