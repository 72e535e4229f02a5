//! Wave-instructions in a second: `speed GPU OBJECT ITEMS GROUP INPUT OUTPUT` runs the kernel `run` of a twin on one thread
//! until two seconds of processor time have passed. The numbers are those of the first line of the twin's source.

use hotswap_emulator::{DirectLaunch, EmulatedDevice, LoadedObject, SparseMemory, launch_kernel};
use std::time::Duration;

/// Processor time of this thread so far. Other programs on the machine do not count.
fn processor_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanoseconds = text.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanoseconds.unwrap_or_else(|| panic!("the system has no /proc/thread-self/schedstat")))
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [gpu, object, items, group, input, output] = words.as_slice() else {
        panic!("GPU OBJECT ITEMS GROUP INPUT OUTPUT")
    };
    let mut device = EmulatedDevice::new(gpu).unwrap_or_else(|error| panic!("{error}"));
    device.threads = 1;
    let bytes = std::fs::read(object).unwrap_or_else(|error| panic!("{object}: {error}"));
    let mut memory = SparseMemory::new();
    let loaded = LoadedObject::load(&bytes, &mut memory).unwrap_or_else(|error| panic!("{error}"));
    let kernel = loaded.find_kernel("run").unwrap_or_else(|| panic!("no kernel `run`"));
    let from = hotswap_emulator_exam::random_words(7, parse_word_number(input) as usize);
    let from: Vec<u8> = from.into_iter().flat_map(u32::to_le_bytes).collect();
    let (input, output) = (memory.allocate_copy(&from), memory.allocate(4 * u64::from(parse_word_number(output))));
    let arguments =
        [input.to_le_bytes().to_vec(), output.to_le_bytes().to_vec(), parse_word_number(items).to_le_bytes().to_vec()];
    let size = parse_word_number(group);
    let grid = [parse_word_number(items).div_ceil(size) * size, 1, 1];
    let request = DirectLaunch { grid, workgroup: [size as u16, 1, 1], arguments: &arguments, dynamic_lds: 0 };
    let (mut instructions, mut time, mut runs) = (0, Duration::ZERO, 0);
    while time < Duration::from_secs(2) {
        let start = processor_time();
        let counts = launch_kernel(&device, &mut memory, kernel, &request).unwrap_or_else(|error| panic!("{error}"));
        time += processor_time() - start;
        instructions += counts.instructions;
        runs += 1;
    }
    let rate = instructions as f64 / time.as_secs_f64() / 1e6;
    println!("{rate:8.1} M/s {:8} instructions a run, {runs} runs: {object}", instructions / runs);
}

fn parse_word_number(word: &String) -> u32 {
    word.parse::<u32>().unwrap_or_else(|_| panic!("{word} is no number"))
}
