//! Damaged code objects in the direct launcher: a diagnostic or a fault, never a crash and never without end.

use hotswap_emulator::{DirectLaunch, EmulatedDevice, LoadedObject, SparseMemory, launch_kernel};
use hotswap_emulator_exam::{TwinCase, TwinRun, random_words};
use hotswap_userland::{Workbench, say};

/// The fates of damaged objects.
#[derive(Debug, Default)]
struct DamageCounts {
    refused: u32,
    without_kernel: u32,
    faults: u32,
    ended: u32,
}

fn attempt(object: &[u8], device: &EmulatedDevice, counts: &mut DamageCounts) {
    let mut memory = SparseMemory::new();
    let Ok(loaded) = LoadedObject::load(object, &mut memory) else {
        counts.refused += 1;
        return;
    };
    let Some(kernel) = loaded.find_kernel("run") else {
        counts.without_kernel += 1;
        return;
    };
    let (input, output) = (memory.allocate(4096), memory.allocate(4096));
    let arguments = [input.to_le_bytes().to_vec(), output.to_le_bytes().to_vec(), 64_u32.to_le_bytes().to_vec()];
    let request = DirectLaunch { grid: [64, 1, 1], workgroup: [64, 1, 1], arguments: &arguments, dynamic_lds: 0 };
    match launch_kernel(device, &mut memory, kernel, &request) {
        Ok(_) => counts.ended += 1,
        Err(_) => counts.faults += 1,
    }
}

#[test]
fn damaged_objects_are_refused_or_fault() {
    let Some(bench) = Workbench::new("damaged") else { return };
    bench.write("twin.h", include_bytes!("../twins/twin.h"));
    let case = TwinCase::new("saxpy", include_str!("../twins/saxpy.cpp"));
    bench.write("saxpy.cpp", case.source().as_bytes());
    for gpu in ["gfx1030", "gfx90a"] {
        let object = case.compile(&bench, &TwinRun { clang: bench.versions[0], gpu, words: "-O3" });
        let mut device = EmulatedDevice::new(gpu).unwrap();
        (device.threads, device.instruction_budget) = (1, Some(20_000));
        let mut counts = DamageCounts::default();
        let random = random_words(9, 6000);
        for words in random.chunks_exact(3) {
            let mut damaged = object.clone();
            // Half of the changes are in the headers and tables at the start.
            let limit = if words[0] % 2 == 0 { damaged.len() } else { damaged.len().min(1536) };
            damaged[words[1] as usize % limit] ^= (words[2] >> 8) as u8 | 1;
            attempt(&damaged, &device, &mut counts);
        }
        for length in (0..object.len()).step_by(53) {
            attempt(&object[..length], &device, &mut counts);
        }
        say(&format!("damaged objects of {gpu}: {counts:?}"));
        let DamageCounts { refused, without_kernel, faults, ended } = counts;
        assert!(refused > 50 && without_kernel > 0 && faults > 5 && ended > 100, "{gpu}: damage is not varied");
    }
}
