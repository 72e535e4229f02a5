//! Instructions by kernel, printed when the process ends.
//!
//! The table goes to standard error, after everything that HIP does at exit: this library is below HIP, so its destructor
//! comes last.
#![allow(unsafe_code)] // the entry of the destructor

use crate::abi::AgentHandle;
use crate::devices::{emulated_system, gpu_of};
use crate::loader::LoadedKernel;
use crate::message::report_message;
use hotswap_emulator::DispatchCounts;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

/// Counts of the dispatches of one kernel on one GPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct KernelCounts {
    dispatches: u64,
    counts: DispatchCounts,
}

/// GPU and kernel.
type CounterKey = (usize, String);

static COUNTS: Mutex<BTreeMap<CounterKey, KernelCounts>> = Mutex::new(BTreeMap::new());

pub(crate) fn count_dispatch(agent: AgentHandle, kernel: Option<&LoadedKernel>, counts: &DispatchCounts) {
    let is_wanted = emulated_system().is_ok_and(|system| system.settings.counters);
    let Ok(gpu) = gpu_of(agent) else { return };
    let name = kernel.map_or_else(|| "?".to_owned(), |kernel| kernel.name.clone());
    if counts.undetermined > 0 {
        // Once for each kernel: how many they are differs between dispatches.
        report_message(&format!(
            "kernel {name} on {}: elements of products of matrices depend on the order of additions, which is not known; \
             see `hotswap run --matrix`",
            gpu.target
        ));
    }
    if !is_wanted {
        return;
    }
    let mut all = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
    let known = all.entry((gpu.number, name)).or_default();
    known.dispatches += 1;
    known.counts.add(counts);
}

fn format_table(all: &BTreeMap<CounterKey, KernelCounts>, target: impl Fn(usize) -> String) -> String {
    let mut text = String::from("  dispatches        waves  instructions  GPU        kernel\n");
    for ((gpu, name), KernelCounts { dispatches, counts }) in all {
        let (waves, instructions) = (counts.waves, counts.instructions);
        let _ = writeln!(text, "{dispatches:>12} {waves:>12} {instructions:>13}  {:<10} {name}", target(*gpu));
        for (mnemonic, count) in &counts.by_mnemonic {
            let _ = writeln!(text, "{count:>39}    {mnemonic}");
        }
    }
    text
}

extern "C" fn print_at_end() {
    let _ = std::panic::catch_unwind(|| {
        let all = COUNTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let (false, Ok(system)) = (all.is_empty(), emulated_system()) {
            let target = |gpu: usize| system.gpus.get(gpu).map_or_else(String::new, |gpu| gpu.target.to_string());
            let _ = std::io::stderr()
                .write_all(format!("hotswap-emulated: counters\n{}", format_table(&all, target)).as_bytes());
        }
    });
}

/// The destructor of the library.
#[used]
#[unsafe(link_section = ".fini_array")]
static AT_END: extern "C" fn() = print_at_end;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_rows_by_gpu_and_kernel() {
        let counts = DispatchCounts { instructions: 70, waves: 2, workgroups: 1, ..DispatchCounts::default() };
        let all = BTreeMap::from([((0, "k".to_owned()), KernelCounts { dispatches: 3, counts })]);
        let text = format_table(&all, |_| "gfx1031".to_owned());
        assert_eq!(
            text.lines().nth(1).unwrap().split_whitespace().collect::<Vec<_>>(),
            ["3", "2", "70", "gfx1031", "k"]
        );
    }
}
