//! Stubs for functions of other code objects.
//!
//! Callers are compiled for a function of their own link, whose distance is a constant. A stub is that function: it loads the
//! address from a word of the global offset table, which the loader fills, and jumps there. The word's symbol is undefined and
//! lacks a type, which is the one form that every loader resolves by name.
//!
//! Invariant: only VCC is written, which no caller keeps over a call. The instructions are those of LLVM's assembler: a test
//! compares them.
//!
//! Absent on purpose: bitcode. Flags of the code that a link compiles are not known before it.

use hotswap_device_symbols::IMPORT_PREFIX;
use hotswap_targets::{EFlags, IsaFamily};
use object::write::elf::{FileHeader, Rel, SectionHeader, Sym, Writer};
use object::{Endianness, elf};

/// The value `ELFOSABI_AMDGPU_HSA` of `EI_OSABI`.
const OS_ABI: u8 = 64;
const TEXT_ALIGN: u64 = 64;

const GOTPCREL: u32 = 7;
const GOTPCREL_LO: u32 = 8;
const GOTPCREL_HI: u32 = 9;

/// A place in the code that the linker fills in.
#[derive(Clone, Copy)]
struct Fixup {
    offset: u64,
    kind: u32,
    addend: i64,
}

const fn fixup(offset: u64, kind: u32, addend: i64) -> Fixup {
    Fixup { offset, kind, addend }
}

/// The code of a stub.
struct StubCode {
    words: &'static [u32],
    /// The places that lead to the word.
    fixups: &'static [Fixup],
    /// Instructions behind the code, which a processor fetches and never executes.
    padding: (u32, usize),
}

const END_OF_CODE: u32 = 0xbf9f_0000;
const NOP: u32 = 0xbf80_0000;

const GFX9: StubCode = StubCode {
    words: &[0xbf8c_c07f, 0xbeea_1c00, 0x806a_ff6a, 0, 0x826b_ff6b, 0, 0xc006_1ab5, 0, 0xbf8c_c07f, 0xbe80_1d6a],
    fixups: &[fixup(12, GOTPCREL_LO, 4), fixup(20, GOTPCREL_HI, 12)],
    padding: (NOP, 16),
};
const GFX10: StubCode = StubCode {
    words: &[
        0xbf8c_c07f,
        0xbeea_1f00,
        0x806a_ff6a,
        0,
        0x826b_ff6b,
        0,
        0xf404_1ab5,
        0xfa00_0000,
        0xbf8c_c07f,
        0xbe80_206a,
    ],
    fixups: GFX9.fixups,
    padding: (END_OF_CODE, 48),
};
const GFX11: StubCode = StubCode {
    words: &[
        0xbf89_fc07,
        0xbeea_4700,
        0x806a_ff6a,
        0,
        0x826b_ff6b,
        0,
        0xf404_1ab5,
        0xf800_0000,
        0xbf89_fc07,
        0xbe80_486a,
    ],
    fixups: GFX9.fixups,
    padding: (END_OF_CODE, 48),
};
const GFX12: StubCode = StubCode {
    words: &[
        0xbfc7_0000,
        0xbeea_4700,
        0xbeeb_0f6b,
        0x806a_ff6a,
        0,
        0x826b_ff6b,
        0,
        0xf400_3ab5,
        0xf800_0000,
        0xbfc7_0000,
        0xbe80_486a,
    ],
    fixups: &[fixup(16, GOTPCREL_LO, 8), fixup(24, GOTPCREL_HI, 16)],
    padding: (END_OF_CODE, 48),
};
const GFX125: StubCode = StubCode {
    words: &[
        0xbfc7_0000,
        0xbfc5_0000,
        0xbeea_4700,
        0xa9ea_fe6a,
        0,
        0,
        0xf400_3ab5,
        0xf800_0000,
        0xbfc7_0000,
        0xbe80_486a,
    ],
    fixups: &[fixup(16, GOTPCREL, 4)],
    padding: (END_OF_CODE, 48),
};

fn stub_code(family: IsaFamily) -> Option<&'static StubCode> {
    Some(match family {
        IsaFamily::Vega | IsaFamily::Cdna1 | IsaFamily::Cdna2 | IsaFamily::Cdna3 | IsaFamily::Cdna4 => &GFX9,
        IsaFamily::Rdna1 | IsaFamily::Rdna2 => &GFX10,
        IsaFamily::Rdna3 | IsaFamily::Rdna35 | IsaFamily::Gfx117 => &GFX11,
        IsaFamily::Rdna4 => &GFX12,
        IsaFamily::Gfx125 => &GFX125,
        IsaFamily::Gfx6 | IsaFamily::Gfx7 | IsaFamily::Gfx8 | IsaFamily::Gfx13 => return None,
    })
}

/// A relocatable object with the stub of a function, for a link with an object like that one; `None` for other files, and for
/// processors without a stub.
#[must_use]
pub fn import_stub(function: &str, like: &[u8]) -> Option<Vec<u8>> {
    let flags = u32::from_le_bytes(*like.get(48..)?.first_chunk()?);
    let abi_version = *like.get(8)?;
    let family = EFlags::decode(flags, abi_version).ok()?.processor.family;
    Some(stub_object(function, stub_code(family)?, (flags, abi_version)))
}

/// The section table: `.text`, its relocations, symbols and names.
fn stub_object(function: &str, code: &StubCode, (flags, abi_version): (u32, u8)) -> Vec<u8> {
    let imported = format!("{IMPORT_PREFIX}{function}");
    let mut bytes = Vec::new();
    let mut file = Writer::new(Endianness::Little, true, &mut bytes);
    file.reserve_file_header();
    let text: Vec<u8> = code
        .words
        .iter()
        .chain(std::iter::repeat_n(&code.padding.0, code.padding.1))
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let text_name = file.add_section_name(b".text");
    let text_index = file.reserve_section_index();
    let text_offset = file.reserve(text.len(), TEXT_ALIGN as usize);
    let rela_name = file.add_section_name(b".rela.text");
    file.reserve_section_index();
    let rela_offset = file.reserve_relocations(code.fixups.len(), true);
    file.reserve_null_symbol_index();
    let names = [file.add_string(function.as_bytes()), file.add_string(imported.as_bytes())];
    let [_, word] = [file.reserve_symbol_index(Some(text_index)), file.reserve_symbol_index(None)];
    let symtab_index = file.reserve_symtab_section_index();
    file.reserve_symtab();
    file.reserve_strtab_section_index();
    file.reserve_strtab();
    file.reserve_shstrtab_section_index();
    file.reserve_shstrtab();
    file.reserve_section_headers();

    let header = FileHeader {
        os_abi: OS_ABI,
        abi_version,
        e_type: elf::ET_REL,
        e_machine: elf::EM_AMDGPU,
        e_entry: 0,
        e_flags: flags,
    };
    // The writer fails only where more is written than was reserved.
    let _ = file.write_file_header(&header);
    file.write_align(TEXT_ALIGN as usize);
    file.write(&text);
    file.write_align_relocation();
    for Fixup { offset, kind, addend } in code.fixups.iter().copied() {
        let place = Rel { r_offset: offset, r_sym: word.0, r_type: kind, r_addend: addend };
        file.write_relocation(true, &place);
    }
    file.write_null_symbol();
    let [stub_name, word_name] = names.map(Some);
    let code_size = code.words.len() as u64 * 4;
    let is_function = elf::STB_GLOBAL << 4 | elf::STT_FUNC;
    file.write_symbol(&make_stub_symbol(stub_name, is_function, elf::STV_HIDDEN, Some(text_index), code_size));
    file.write_symbol(&make_stub_symbol(word_name, elf::STB_GLOBAL << 4 | elf::STT_NOTYPE, elf::STV_DEFAULT, None, 0));
    file.write_strtab();
    file.write_shstrtab();
    file.write_null_section_header();
    file.write_section_header(&SectionHeader {
        name: Some(text_name),
        sh_type: elf::SHT_PROGBITS,
        sh_flags: u64::from(elf::SHF_ALLOC | elf::SHF_EXECINSTR),
        sh_addr: 0,
        sh_offset: text_offset as u64,
        sh_size: text.len() as u64,
        sh_link: 0,
        sh_info: 0,
        sh_addralign: TEXT_ALIGN,
        sh_entsize: 0,
    });
    file.write_relocation_section_header(rela_name, text_index, symtab_index, rela_offset, code.fixups.len(), true);
    file.write_symtab_section_header(1);
    file.write_strtab_section_header();
    file.write_shstrtab_section_header();
    bytes
}

fn make_stub_symbol(
    name: Option<object::write::StringId>,
    info: u8,
    other: u8,
    section: Option<object::write::elf::SectionIndex>,
    size: u64,
) -> Sym {
    Sym { name, section, st_info: info, st_other: other, st_shndx: 0, st_value: 0, st_size: size }
}
