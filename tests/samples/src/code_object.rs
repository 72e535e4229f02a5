//! A small linked code object, made here so that tests need no compiler.
//!
//! Layout: ELF header, 2 or 3 program headers, note, `.dynsym`, `.dynstr`, `.rodata` with the descriptors,
//! `.text`, `.shstrtab`, section headers; addresses equal file offsets.

/// The file to build; [`Default`] is a valid `gfx1030` object with two kernels.
#[derive(Clone)]
pub struct Sample {
    /// `amdhsa.target`; none for an empty text.
    pub target: String,
    pub flags: u32,
    pub abi_version: u8,
    pub kernels: Vec<&'static str>,
    pub lanes: u64,
    /// Notes to write; the kernels are distributed over them.
    pub notes: usize,
    /// Whether code has a segment of its own; otherwise headers and data can be executed, too, and are read as code.
    pub apart: bool,
}

impl Default for Sample {
    fn default() -> Self {
        Self {
            target: "amdgcn-amd-amdhsa--gfx1030".into(),
            flags: 0x36,
            abi_version: 4,
            kernels: vec!["first", "second"],
            lanes: 32,
            notes: 1,
            apart: false,
        }
    }
}

fn pad(bytes: &mut Vec<u8>, align: usize) -> usize {
    bytes.resize(bytes.len().next_multiple_of(align), 0);
    bytes.len()
}

fn words(bytes: &mut Vec<u8>, words: &[u64]) {
    words.iter().for_each(|word| bytes.extend(word.to_le_bytes()));
}

fn text(out: &mut Vec<u8>, text: &str) {
    match text.len() {
        short @ 0..=31 => out.push(0xa0 | short as u8),
        long => out.extend([0xd9, u8::try_from(long).unwrap()]),
    }
    out.extend(text.bytes());
}

/// A section header: name, type, flags, address = offset, size, link, entry size.
struct Row(u32, u32, u64, usize, usize, u32, u64);

impl Row {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend([self.0, self.1].iter().flat_map(|word| word.to_le_bytes()));
        let align = if self.6 == 24 { 8 } else { 4 };
        words(out, &[self.2, self.3 as u64, self.3 as u64, self.4 as u64, u64::from(self.5), align, self.6]);
    }
}

impl Sample {
    fn metadata(&self, kernels: &[&str]) -> Vec<u8> {
        let mut out = vec![if self.target.is_empty() { 0x82 } else { 0x83 }];
        text(&mut out, "amdhsa.kernels");
        match kernels.len() {
            few @ 0..=15 => out.push(0x90 | few as u8),
            many => out.extend([0xdc, (many >> 8) as u8, many as u8]),
        }
        for kernel in kernels {
            out.push(0x85);
            for (key, value) in [(".name", (*kernel).to_owned()), (".symbol", format!("{kernel}.kd"))] {
                text(&mut out, key);
                text(&mut out, &value);
            }
            for (key, value) in [(".vgpr_count", 7), (".wavefront_size", self.lanes), (".max_flat_workgroup_size", 64)]
            {
                text(&mut out, key);
                out.push(value as u8);
            }
        }
        if !self.target.is_empty() {
            text(&mut out, "amdhsa.target");
            text(&mut out, &self.target);
        }
        text(&mut out, "amdhsa.version");
        out.extend([0x92, 1, 2]);
        out
    }

    fn notes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        for index in 0..self.notes {
            let kernels: Vec<_> = self.kernels.iter().skip(index).step_by(self.notes).copied().collect();
            let content = self.metadata(&kernels);
            out.extend([7, content.len() as u32, 32].iter().flat_map(|word| word.to_le_bytes()));
            out.extend(b"AMDGPU\0\0");
            out.extend(&content);
            pad(&mut out, 4);
        }
        out
    }

    fn segments(&self) -> usize {
        if self.apart { 3 } else { 2 }
    }

    /// The file.
    pub fn build(&self) -> Vec<u8> {
        let mut file = vec![0; 64 + self.segments() * 56];
        let notes = self.notes();
        let note_at = file.len();
        file.extend(&notes);
        let mut strings = vec![0];
        let names: Vec<u32> =
            self.kernels.iter().map(|kernel| add_name(&mut strings, &format!("{kernel}.kd"))).collect();
        let symbols_at = pad(&mut file, 8);
        let symbols_size = 24 * (1 + names.len());
        let strings_at = symbols_at + symbols_size;
        let data_at = (strings_at + strings.len()).next_multiple_of(64);
        let code_at = (data_at + 64 * names.len()).next_multiple_of(256);
        file.resize(symbols_at + 24, 0);
        for (index, name) in names.iter().enumerate() {
            file.extend(name.to_le_bytes());
            file.extend([0x11, 3, 4, 0]);
            words(&mut file, &[(data_at + 64 * index) as u64, 64]);
        }
        file.extend(&strings);
        for index in 0..names.len() {
            file.resize(data_at + 64 * index + 16, 0);
            words(&mut file, &[(code_at - data_at - 64 * index) as u64]);
            file.resize(data_at + 64 * index + 57, 0);
            file.extend([if self.lanes == 32 { 4 } else { 0 }, 0, 0, 0, 0, 0, 0]);
        }
        file.resize(code_at, 0);
        // `s_endpgm` of the generation.
        let end: u32 =
            if self.target.contains("gfx9") || self.target.contains("gfx10") { 0xbf81_0000 } else { 0xbfb0_0000 };
        file.extend(end.to_le_bytes().repeat(8));
        self.finish(file, [note_at, notes.len(), symbols_at, symbols_size, strings_at, strings.len(), data_at, code_at])
    }

    fn finish(&self, mut file: Vec<u8>, places: [usize; 8]) -> Vec<u8> {
        let [note, note_size, symbols, symbols_size, strings, strings_size, data, code] = places;
        let mut names = vec![0];
        let mut name = |text| add_name(&mut names, text);
        let end = file.len();
        let mut rows = vec![
            Row(0, 0, 0, 0, 0, 0, 0),
            Row(name(".note"), 7, 2, note, note_size, 0, 0),
            Row(name(".dynsym"), 11, 2, symbols, symbols_size, 3, 24),
            Row(name(".dynstr"), 3, 2, strings, strings_size, 0, 0),
            Row(name(".rodata"), 1, 2, data, 64 * self.kernels.len(), 0, 0),
            Row(name(".text"), 1, 6, code, end - code, 0, 0),
        ];
        let last = name(".shstrtab");
        rows.push(Row(last, 3, 0, end, names.len(), 0, 0));
        file.extend(&names);
        let table = pad(&mut file, 8);
        rows.iter().for_each(|row| row.write(&mut file));
        let mut header = b"\x7fELF\x02\x01\x01\x40".to_vec();
        header.extend([self.abi_version, 0, 0, 0, 0, 0, 0, 0, 3, 0, 224, 0, 1, 0, 0, 0]);
        words(&mut header, &[0, 64, table as u64]);
        header.extend(self.flags.to_le_bytes());
        header.extend(
            [64, 56, self.segments() as u16, 64, rows.len() as u16, 6].iter().flat_map(|half| half.to_le_bytes()),
        );
        let loads =
            if self.apart { vec![(1u32, 4u32, 0, code), (1, 5, code, end - code)] } else { vec![(1, 5, 0, end)] };
        for (kind, flags, at, size) in loads.into_iter().chain([(4, 4, note, note_size)]) {
            header.extend([kind, flags].iter().flat_map(|word| word.to_le_bytes()));
            words(&mut header, &[at as u64, at as u64, at as u64, size as u64, size as u64, 4]);
        }
        file[..header.len()].copy_from_slice(&header);
        file
    }
}

fn add_name(strings: &mut Vec<u8>, name: &str) -> u32 {
    let at = strings.len() as u32;
    strings.extend(name.bytes());
    strings.push(0);
    at
}
