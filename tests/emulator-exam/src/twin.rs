//! A case: one source, two programs.

use hotswap_emulator::{
    DirectLaunch, DispatchCounts, EmulatedDevice, LoadedKernel, LoadedObject, SparseMemory, launch_kernel, read_back,
};
use hotswap_userland::Workbench;
use std::fmt;

/// A case: one source, two programs.
#[derive(Debug, Clone)]
pub struct TwinCase {
    /// Name of the file without its extension.
    pub name: String,
    source: String,
    items: u32,
    group: u16,
    input: usize,
    output: usize,
    /// `hipLimitStackSize` of the host, for recursions.
    stack: u64,
}

/// A run on an emulated GPU.
#[derive(Debug, Clone, Copy)]
pub struct TwinRun<'a> {
    /// Version of clang.
    pub clang: u32,
    pub gpu: &'a str,
    /// Further arguments of clang: `-O3`, `-mwavefrontsize64`.
    pub words: &'a str,
}

/// A run that did not give the host's memory.
#[derive(Debug)]
pub struct TwinFailure {
    what: String,
}

impl fmt::Display for TwinFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

/// `count` words that depend on `seed` only, some of them special.
pub fn random_words(seed: u64, count: usize) -> Vec<u32> {
    const SPECIAL: [u32; 16] = [
        0,
        1,
        0xffff_ffff,
        0x8000_0000,
        0x7fff_ffff,
        0x7f80_0000,
        0xff80_0000,
        0x7fc0_0000,
        0x0000_0001,
        0x8000_0001,
        0x0080_0000,
        0x007f_ffff,
        0x3f80_0000,
        0xbf80_0000,
        0x4b00_0000,
        0x0001_0000,
    ];
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as u32
    };
    (0..count).map(|_| if next() % 8 == 0 { SPECIAL[next() as usize % SPECIAL.len()] } else { next() }).collect()
}

fn stated_number(line: &str, key: &str) -> Option<u32> {
    line.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('=')?.parse().ok())
}

impl TwinCase {
    /// A case from its source, whose first line has the sizes.
    ///
    /// # Panics
    /// Without sizes.
    pub fn new(name: &str, source: &str) -> Self {
        let line = source.lines().next().unwrap_or_default();
        let size = |key: &str| -> u32 {
            stated_number(line, key).unwrap_or_else(|| panic!("{name}: the first line has no {key}=N"))
        };
        Self {
            name: name.to_owned(),
            source: source.to_owned(),
            items: size("items"),
            group: size("group") as u16,
            input: size("input") as usize,
            output: size("output") as usize,
            stack: stated_number(line, "stack").unwrap_or(0).into(),
        }
    }

    pub fn source(&self) -> &str {
        &self.source
    }

    fn input(&self) -> Vec<u8> {
        random_words(7, self.input).into_iter().flat_map(u32::to_le_bytes).collect()
    }

    /// The memory after the host's program.
    ///
    /// # Panics
    /// If it cannot be compiled or fails.
    pub fn host(&self, bench: &Workbench, header: &str) -> Vec<u8> {
        let Self { name, items, input, output, .. } = self;
        bench.write("twin.h", header.as_bytes());
        bench.write(&format!("{name}.cpp"), self.source.as_bytes());
        bench.write(&format!("{name}.in"), &self.input());
        let clang = bench.versions[0];
        let flags = "-O1 -ffp-contract=off -fwrapv -w -march=native";
        bench.run(&format!("clang++-{clang} {flags} {name}.cpp -o {name}.host && ./{name}.host {items} {input} {output} < {name}.in > {name}.out"));
        bench.read(&format!("{name}.out"))
    }

    /// Compiles for a GPU.
    ///
    /// # Panics
    /// If clang refuses it.
    pub fn compile(&self, bench: &Workbench, run: &TwinRun<'_>) -> Vec<u8> {
        let (name, TwinRun { clang, gpu, words }) = (&self.name, run);
        let flags =
            "-x hip --offload-device-only --no-gpu-bundle-output -nogpuinc -nogpulib -ffp-contract=off -fwrapv -w";
        // Runs of one case may compile at the same time.
        let object = format!("{name}.{}.co", format!("{gpu}{words}").replace(|c: char| !c.is_ascii_alphanumeric(), ""));
        bench.run(&format!("clang++-{clang} {flags} --offload-arch={gpu} {words} {name}.cpp -o {object}"));
        let bytes = bench.read(&object);
        bench.remove(&object);
        bytes
    }

    /// The memory after the emulated kernel, and counts.
    ///
    /// # Errors
    /// If the kernel does not end.
    pub fn emulate(&self, object: &[u8], device: &EmulatedDevice) -> Result<(Vec<u8>, DispatchCounts), TwinFailure> {
        let mut memory = SparseMemory::new();
        let loaded = LoadedObject::load(object, &mut memory).map_err(|error| new_twin_failure(error.to_string()))?;
        let kernel = loaded.find_kernel("run").ok_or_else(|| new_twin_failure("no kernel `run`".to_owned()))?;
        let input = memory.allocate_copy(&self.input());
        let output = memory.allocate(4 * self.output as u64);
        let arguments =
            [input.to_le_bytes().to_vec(), output.to_le_bytes().to_vec(), self.items.to_le_bytes().to_vec()];
        let groups = self.items.div_ceil(self.group.into());
        let request = DirectLaunch {
            grid: [groups * u32::from(self.group), 1, 1],
            workgroup: [self.group, 1, 1],
            arguments: &arguments,
            dynamic_lds: 0,
        };
        let kernel = LoadedKernel { scratch: kernel.scratch.max(self.stack), ..kernel.clone() };
        let counts = launch_kernel(device, &mut memory, &kernel, &request)
            .map_err(|error| new_twin_failure(error.to_string()))?;
        Ok((read_back(&memory, output, 4 * self.output), counts))
    }

    /// Compares a run with the host's memory.
    ///
    /// # Errors
    /// Names the run and the first difference.
    pub fn check(&self, bench: &Workbench, run: &TwinRun<'_>, expected: &[u8]) -> Result<DispatchCounts, TwinFailure> {
        let TwinRun { clang, gpu, words } = run;
        let label = format!("{} for {gpu} with clang {clang} {words}", self.name);
        let object = self.compile(bench, run);
        let mut device = EmulatedDevice::new(gpu).map_err(|error| labelled_twin_failure(error.to_string(), &label))?;
        device.instruction_budget = Some(20_000_000);
        let (memory, counts) =
            self.emulate(&object, &device).map_err(|failure| labelled_twin_failure(failure.what, &label))?;
        match first_difference(expected, &memory) {
            Some(what) => Err(labelled_twin_failure(what, &label)),
            None => Ok(counts),
        }
    }
}

fn new_twin_failure(what: String) -> TwinFailure {
    TwinFailure { what }
}

fn labelled_twin_failure(what: String, label: &str) -> TwinFailure {
    TwinFailure { what: format!("{label}: {what}") }
}

/// The first word that differs, and how many do.
fn first_difference(expected: &[u8], found: &[u8]) -> Option<String> {
    let (expected, found) = (little_endian_words(expected), little_endian_words(found));
    let differ = || expected.iter().zip(&found).enumerate().filter(|(_, (a, b))| a != b);
    let (number, (a, b)) = differ().next()?;
    Some(format!(
        "{} of {} words differ; word {number} is {b:#010x}, the host's {a:#010x}",
        differ().count(),
        expected.len()
    ))
}

fn little_endian_words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes(word.try_into().unwrap_or_default())).collect()
}
