//! The table of expected results is what the emulator computes.

use hotswap_confirm::{
    CASES, EXPECTED_TEXT, ExpectedResults, ExpectedTable, Judgement, ProbeLaunch, ProbeObject, RESULT_WORDS,
    all_inputs, judged_processors, make_objects,
};
use hotswap_emulator::{
    DirectLaunch, EmulatedDevice, LoadedObject, PlantedFault, SparseMemory, launch_kernel, read_back,
};
use hotswap_targets::Processor;
use hotswap_userland::{blesses, one_of_each};

/// The results of a kernel on an emulated GPU.
fn emulate(device: &EmulatedDevice, object: &ProbeObject, launch: &ProbeLaunch) -> Vec<u32> {
    let mut memory = SparseMemory::new();
    let loaded = LoadedObject::load(&object.bytes, &mut memory).unwrap_or_else(|error| panic!("{error}"));
    let inputs: Vec<u8> = all_inputs(launch.probe.input).iter().flat_map(|word| word.to_le_bytes()).collect();
    let input = memory.allocate_copy(&inputs);
    let size = 4 * CASES * RESULT_WORDS;
    let output = memory.allocate(size as u64);
    let arguments = [input.to_le_bytes().to_vec(), output.to_le_bytes().to_vec()];
    let request = DirectLaunch {
        grid: [launch.groups * launch.group_size, 1, 1],
        workgroup: [launch.group_size as u16, 1, 1],
        arguments: &arguments,
        dynamic_lds: 0,
    };
    let kernel = loaded.find_kernel(&launch.name).unwrap_or_else(|| panic!("no kernel {}", launch.name));
    if let Err(error) = launch_kernel(device, &mut memory, kernel, &request) {
        panic!("{} {}: {error}", object.processor, launch.name);
    }
    let bytes = read_back(&memory, output, size);
    bytes.chunks(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

fn emulated_row(device: &EmulatedDevice, object: &ProbeObject, launch: &ProbeLaunch) -> ExpectedResults {
    let words = emulate(device, object, launch);
    ExpectedResults::from_words(&words, launch.probe.judgement == Judgement::Exact)
}

/// One processor of each family; all of them where the table is written, or by `--everything`.
fn examined_processors() -> Vec<&'static Processor> {
    let all = judged_processors().collect();
    one_of_each("expected results", all, |processor: &&Processor| processor.family, |_| blesses())
}

#[test]
fn expected_results_are_those_of_the_emulator() {
    let (mut table, mut differing) = (ExpectedTable::default(), Vec::new());
    // A table of another form is written anew.
    let written = if blesses() { ExpectedTable::default() } else { ExpectedTable::parse(EXPECTED_TEXT).unwrap() };
    for processor in examined_processors() {
        let device = EmulatedDevice::new(processor.name).unwrap();
        for object in make_objects(processor).unwrap() {
            for launch in &object.launches {
                let row = emulated_row(&device, &object, launch);
                if written.find(&launch.name, processor.name) != Some(&row) {
                    differing.push(format!("{processor} {}", launch.name));
                }
                table.insert(&launch.name, processor.name, row);
            }
        }
    }
    if blesses() {
        std::fs::write(concat!(env!("CARGO_MANIFEST_DIR"), "/expected.txt"), table.to_text()).unwrap();
        return;
    }
    assert!(differing.is_empty(), "the emulator computes something else: {differing:?}");
}

/// Each probe asks about its instruction: without it, the results differ.
#[test]
fn a_wrong_instruction_is_seen() {
    let table = ExpectedTable::parse(EXPECTED_TEXT).unwrap();
    let mut unseen = Vec::new();
    for gpu in ["gfx90a", "gfx1030", "gfx1201"] {
        let processor = hotswap_targets::find_processor(gpu).unwrap();
        for object in make_objects(processor).unwrap().iter().filter(|object| object.group != "programs") {
            for launch in &object.launches {
                let mut device = EmulatedDevice::new(gpu).unwrap();
                let name = launch.probe.names.split('|');
                let known: Vec<&str> = name.collect();
                let is_seen = known.iter().any(|name| {
                    device.planted = Some(PlantedFault::Skipped((*name).to_owned()));
                    Some(&emulated_row(&device, object, launch)) != table.find(&launch.name, gpu)
                });
                if !is_seen {
                    unseen.push(format!("{gpu} {}", launch.name));
                }
            }
        }
    }
    assert!(unseen.is_empty(), "{unseen:?}");
}
