//! A small AMDGPU ELF file with any content, made here so that tests need no compiler.
//!
//! Layout: ELF header, one program header if linked, the sections with content, `.symtab`, `.strtab`,
//! relocations, `.shstrtab`, section headers. In a linked file addresses equal file offsets.

/// The file to build; [`Default`] is an empty relocatable object for gfx1100.
#[derive(Clone)]
pub struct DeviceElf {
    pub linked: bool,
    pub flags: u32,
    pub os_abi: u8,
    pub sections: Vec<Section>,
    pub symbols: Vec<Symbol>,
    pub relocations: Vec<Relocation>,
}

/// A section with content; its number is its position in the list, from 1.
#[derive(Clone)]
pub struct Section {
    pub name: String,
    pub flags: u64,
    pub bytes: Vec<u8>,
}

/// A symbol; its number is its position in the list, from 1.
#[derive(Clone)]
pub struct Symbol {
    pub name: String,
    /// `STT_…`: 0 label, 1 data, 2 function.
    pub kind: u8,
    pub global: bool,
    pub section: u16,
    /// Offset in the section; becomes an address in linked files.
    pub offset: u64,
    pub size: u64,
}

#[derive(Clone)]
pub struct Relocation {
    pub section: usize,
    pub offset: u64,
    pub kind: u32,
    pub symbol: u32,
    pub addend: i64,
}

impl Default for DeviceElf {
    fn default() -> Self {
        let (sections, symbols, relocations) = (Vec::new(), Vec::new(), Vec::new());
        Self { linked: false, flags: 0x41, os_abi: 64, sections, symbols, relocations }
    }
}

/// Flags of a section with instructions.
pub const CODE: u64 = 6;

fn words(out: &mut Vec<u8>, words: &[u64]) {
    words.iter().for_each(|word| out.extend(word.to_le_bytes()));
}

fn name(strings: &mut Vec<u8>, text: &str) -> u32 {
    let at = strings.len() as u32;
    strings.extend(text.bytes());
    strings.push(0);
    at
}

/// Name, type, flags, place, size, link, info, size of an entry.
struct Row(String, u32, u64, usize, usize, usize, usize, u64);

impl DeviceElf {
    /// With one section of instructions.
    pub fn with_text(bytes: Vec<u8>) -> Self {
        Self { sections: vec![Section { name: ".text".into(), flags: CODE, bytes }], ..Self::default() }
    }

    /// Adds a global symbol of the first section.
    pub fn symbol(mut self, name: &str, kind: u8, offset: u64, size: u64) -> Self {
        self.symbols.push(Symbol { name: name.into(), kind, global: true, section: 1, offset, size });
        self
    }

    /// Offset of the header of section `number` in a file that was built here.
    pub fn header_of(file: &[u8], number: usize) -> usize {
        u64::from_le_bytes(file[40..48].try_into().unwrap()) as usize + 64 * number
    }

    /// The file.
    pub fn build(&self) -> Vec<u8> {
        let mut file = vec![0; 64 + 56];
        let mut rows = vec![Row(String::new(), 0, 0, 0, 0, 0, 0, 0)];
        for section in &self.sections {
            file.resize(file.len().next_multiple_of(64), 0);
            rows.push(Row(section.name.clone(), 1, section.flags, file.len(), section.bytes.len(), 0, 0, 0));
            file.extend(&section.bytes);
        }
        let mut strings = vec![0];
        let symtab = rows.len();
        file.resize(file.len().next_multiple_of(8), 0);
        let start = file.len();
        file.resize(start + 24, 0);
        for symbol in &self.symbols {
            file.extend(name(&mut strings, &symbol.name).to_le_bytes());
            file.extend([u8::from(symbol.global) << 4 | symbol.kind, 0]);
            file.extend(symbol.section.to_le_bytes());
            let base = rows.get(usize::from(symbol.section)).filter(|_| self.linked).map_or(0, |row| row.3 as u64);
            words(&mut file, &[base.wrapping_add(symbol.offset), symbol.size]);
        }
        rows.push(Row(".symtab".into(), 2, 0, start, file.len() - start, symtab + 1, 1, 24));
        rows.push(Row(".strtab".into(), 3, 0, file.len(), strings.len(), 0, 0, 0));
        file.extend(&strings);
        file.resize(file.len().next_multiple_of(8), 0);
        for number in 1..symtab {
            let start = file.len();
            for row in self.relocations.iter().filter(|row| row.section == number) {
                words(&mut file, &[row.offset, u64::from(row.symbol) << 32 | u64::from(row.kind), row.addend as u64]);
            }
            if file.len() > start {
                let name = format!(".rela{}", rows[number].0);
                rows.push(Row(name, 4, 0, start, file.len() - start, symtab, number, 24));
            }
        }
        self.finish(file, rows)
    }

    fn finish(&self, mut file: Vec<u8>, mut rows: Vec<Row>) -> Vec<u8> {
        let mut names = vec![0];
        let mut offsets: Vec<u32> = rows.iter().map(|row| name(&mut names, &row.0)).collect();
        offsets.push(name(&mut names, ".shstrtab"));
        rows.push(Row(".shstrtab".into(), 3, 0, file.len(), names.len(), 0, 0, 0));
        file.extend(&names);
        file.resize(file.len().next_multiple_of(8), 0);
        let table = file.len();
        for (row, name) in rows.iter().zip(offsets) {
            let address = if self.linked { row.3 as u64 } else { 0 };
            file.extend([name, row.1].iter().flat_map(|word| word.to_le_bytes()));
            words(&mut file, &[row.2, address, row.3 as u64, row.4 as u64]);
            file.extend([row.5 as u32, row.6 as u32].iter().flat_map(|word| word.to_le_bytes()));
            words(&mut file, &[4, row.7]);
        }
        let mut header = b"\x7fELF\x02\x01\x01".to_vec();
        header.extend([self.os_abi, if self.os_abi == 64 { 4 } else { 0 }, 0, 0, 0, 0, 0, 0, 0]);
        header.extend([if self.linked { 3 } else { 1 }, 0, 224, 0, 1, 0, 0, 0]);
        words(&mut header, &[0, if self.linked { 64 } else { 0 }, table as u64]);
        header.extend(self.flags.to_le_bytes());
        let counts = [64, if self.linked { 56 } else { 0 }, u16::from(self.linked), 64, rows.len() as u16];
        header.extend(counts.iter().chain([&(rows.len() as u16 - 1)]).flat_map(|half| half.to_le_bytes()));
        if self.linked {
            header.extend([1u32, 5].iter().flat_map(|word| word.to_le_bytes()));
            words(&mut header, &[0, 0, 0, table as u64, table as u64, 4096]);
        }
        file[..header.len()].copy_from_slice(&header);
        file
    }
}
