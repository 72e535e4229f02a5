//! The cost of tables of device functions, and the share of unknown facts in them: `symbols-bench LIBRARY…` prints rows of Markdown.
//!
//! Every code object of a library is analysed on one thread, whose time of the processor is taken. Opening and look-ups go through the functions of `hotswap.h`, as a
//! program in C calls them.
//!
//! Invariant: an object that cannot be analysed, or whose analysis panics, is counted; the exit code is 1 then.
#![allow(unsafe_code)] // calls of the C interface, with the proof at each

use hotswap_c::abi::{
    ChoiceInfo, EntryInfo, ImageInfo, hotswap_file_best_entry, hotswap_file_entry, hotswap_file_entry_count,
    hotswap_file_free, hotswap_file_image, hotswap_file_open, hotswap_image_bytes, hotswap_image_free,
    hotswap_image_function, hotswap_image_function_at, hotswap_image_function_named, hotswap_image_info_get,
};
use hotswap_c::{CallStatus, DeviceFile, DeviceImage};
use hotswap_code_object::{CodeMap, is_code_object};
use hotswap_device_symbols::{SymbolTable, analyse_file, note};
use hotswap_report::codes;
use std::ffi::{CString, c_void};
use std::mem::zeroed;
use std::panic::catch_unwind;
use std::process::ExitCode;
use std::ptr::{null, null_mut};
use std::slice;
use std::time::{Duration, Instant};

/// The agent for which a file is opened: the first of these that it serves.
const AGENTS: [&str; 3] = ["gfx90a:sramecc+:xnack-", "gfx1100", "gfx1030"];
const LOOK_UPS: usize = 200_000;

/// Time of the processor that this program has taken: other programs do not count.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Sums over the code objects of a library.
#[derive(Default)]
struct Sums {
    objects: usize,
    failed: usize,
    /// Objects for processors whose instructions are not known.
    not_known: usize,
    bytes: usize,
    text: usize,
    note: usize,
    time: Duration,
    functions: usize,
    kernels: usize,
    complete: usize,
    calls: usize,
    unknown_calls: usize,
    unknown_registers: usize,
    unknown_scratch: usize,
    /// Text and time of the largest object.
    largest: (usize, Duration),
}

fn main() -> ExitCode {
    // This thread alone: another pool does not exist yet.
    let _ = rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global();
    println!(
        "| library | objects | text, MB | functions | kernels | complete | calls unknown | registers unknown | scratch unknown | failed | other GPUs | time, s | MB/s | largest: text, MB; ms | table, % of the object | open for an agent, ms | look-up by address, ns | by name, ns |"
    );
    println!("|{}", " --- |".repeat(18));
    let mut failed = false;
    for path in std::env::args().skip(1) {
        let Some(library) = Library::open(&path) else {
            println!("| {path} cannot be read |");
            failed = true;
            continue;
        };
        let sums = library.sums();
        failed |= sums.failed > 0;
        let name = path.rsplit('/').next().unwrap_or_default();
        println!("| {name} {} {} |", sums.row(), library.access());
    }
    ExitCode::from(u8::from(failed))
}

impl Sums {
    fn add(&mut self, bytes: &[u8]) {
        self.objects += 1;
        self.bytes += bytes.len();
        let text = CodeMap::read(bytes).map_or(0, |map| map.sections.iter().map(|one| one.bytes.len()).sum());
        self.text += text;
        let start = processor_time();
        let table = catch_unwind(|| analyse_file(bytes));
        let time = processor_time() - start;
        self.time += time;
        match table {
            Ok(Ok((table, _))) => {
                self.largest = self.largest.max((text, time));
                self.add_table(bytes, &table);
            }
            // Processors before GFX9 lack rows of instructions.
            Ok(Err(error)) if error.code == codes::UNKNOWN_FORMAT || error.code == codes::NO_INSTRUCTIONS => {
                self.objects -= 1;
                self.bytes -= bytes.len();
                self.text -= text;
                self.time -= time;
                self.not_known += 1;
            }
            Ok(Err(error)) => {
                eprintln!("{error}");
                self.failed += 1;
            }
            Err(_) => self.failed += 1,
        }
    }

    fn add_table(&mut self, bytes: &[u8], table: &SymbolTable) {
        match note::with_made_table(bytes, table) {
            Ok(made) => self.note += made.len() - bytes.len(),
            Err(error) => {
                eprintln!("{error}");
                self.failed += 1;
            }
        }
        self.functions += table.functions.len();
        self.kernels += table.kernels.len();
        self.complete += table.kernels.iter().filter(|kernel| kernel.complete).count();
        for function in &table.functions {
            let unknown = function.indirect_calls.unresolved.len();
            self.calls += function.callees.len() + function.imports.len() + unknown;
            self.unknown_calls += unknown;
            self.unknown_registers +=
                usize::from(function.total.vgprs.value.is_none() || function.total.vgprs.at_least);
            self.unknown_scratch += usize::from(function.total.scratch.value.is_none());
        }
    }

    fn row(&self) -> String {
        let seconds = self.time.as_secs_f64();
        format!(
            "| {} | {:.1} | {} | {} | {} | {} | {} | {} | {} | {} | {seconds:.2} | {:.0} | {:.1}; {:.0} | {}",
            self.objects,
            bytes_to_megabytes(self.text),
            self.functions,
            self.kernels,
            percentage_share_text(self.complete, self.kernels),
            percentage_share_text(self.unknown_calls, self.calls),
            percentage_share_text(self.unknown_registers, self.functions),
            percentage_share_text(self.unknown_scratch, self.functions),
            self.failed,
            self.not_known,
            bytes_to_megabytes(self.text) / seconds,
            bytes_to_megabytes(self.largest.0),
            self.largest.1.as_secs_f64() * 1e3,
            percentage_share_text(self.note, self.bytes),
        )
    }
}

fn percentage_share_text(part: usize, all: usize) -> String {
    if all == 0 { "-".to_owned() } else { format!("{:.2} %", part as f64 * 100.0 / all as f64) }
}

fn bytes_to_megabytes(bytes: usize) -> f64 {
    bytes as f64 / 1e6
}

/// A library that is opened through the C interface.
struct Library {
    path: CString,
    file: *mut DeviceFile,
}

impl Drop for Library {
    fn drop(&mut self) {
        // SAFETY: the handle is that of `open`.
        unsafe { hotswap_file_free(self.file) }
    }
}

impl Library {
    fn open(path: &str) -> Option<Self> {
        let (path, mut file) = (CString::new(path).ok()?, null_mut());
        // SAFETY: the path ends with NUL, the handle has room.
        let status = unsafe { hotswap_file_open(path.as_ptr(), &mut file, null_mut()) };
        (status == CallStatus::Ok).then_some(Self { path, file })
    }

    fn sums(&self) -> Sums {
        let mut sums = Sums::default();
        let mut count = 0;
        // SAFETY: the handle lives; the structure has its size; the image is freed after its bytes are used.
        unsafe {
            hotswap_file_entry_count(self.file, &mut count, null_mut());
            for number in 0..count {
                let mut entry: EntryInfo = zeroed();
                entry.struct_size = size_of::<EntryInfo>();
                let mut image = null_mut();
                if hotswap_file_entry(self.file, number, &mut entry, null_mut()) != CallStatus::Ok
                    || hotswap_file_image(self.file, number, &mut image, null_mut()) != CallStatus::Ok
                {
                    continue;
                }
                let bytes = bytes_of(image);
                if is_code_object(bytes) {
                    sums.add(bytes);
                }
                hotswap_image_free(image);
            }
        }
        sums
    }

    /// Times of opening and of look-ups.
    fn access(&self) -> String {
        for agent in AGENTS {
            let (start, wall) = (processor_time(), Instant::now());
            if let Some((file, image)) = self.image_for(agent) {
                let open = (processor_time() - start).min(wall.elapsed());
                let (by_address, by_name) = look_ups(image);
                // SAFETY: both are of `image_for`, and not used again.
                unsafe {
                    hotswap_image_free(image);
                    hotswap_file_free(file);
                }
                return format!("| {:.1} ({agent}) | {by_address} | {by_name}", open.as_secs_f64() * 1e3);
            }
        }
        "| - | - | -".to_owned()
    }

    /// The file, opened anew, and its entry for an agent.
    fn image_for(&self, agent: &str) -> Option<(*mut DeviceFile, *mut DeviceImage)> {
        let agent = CString::new(agent).ok()?;
        let (mut file, mut image) = (null_mut(), null_mut());
        // SAFETY: texts end with NUL, the structure has its size, handles have room.
        unsafe {
            let mut choice: ChoiceInfo = zeroed();
            choice.struct_size = size_of::<ChoiceInfo>();
            if hotswap_file_open(self.path.as_ptr(), &mut file, null_mut()) == CallStatus::Ok
                && hotswap_file_best_entry(file, agent.as_ptr(), usize::MAX, 0, &mut choice, null_mut())
                    == CallStatus::Ok
                && hotswap_file_image(file, choice.entry, &mut image, null_mut()) == CallStatus::Ok
            {
                return Some((file, image));
            }
            hotswap_file_free(file);
        }
        None
    }
}

/// # Safety
/// The image lives as long as the bytes are used.
unsafe fn bytes_of<'a>(image: *const DeviceImage) -> &'a [u8] {
    let (mut start, mut size): (*const c_void, usize) = (null(), 0);
    // SAFETY: the promise of the caller; the bytes are those of the image.
    unsafe {
        hotswap_image_bytes(image, &mut start, &mut size, null_mut());
        if start.is_null() { &[] } else { slice::from_raw_parts(start.cast(), size) }
    }
}

/// Nanoseconds of a look-up by address, and by name.
fn look_ups(image: *const DeviceImage) -> (u128, u128) {
    // SAFETY: the image lives; structures have their size; names are those of the image.
    unsafe {
        let mut info: ImageInfo = zeroed();
        info.struct_size = size_of::<ImageInfo>();
        if hotswap_image_info_get(image, &mut info, null_mut()) != CallStatus::Ok || info.functions == 0 {
            return (0, 0);
        }
        let rows: Vec<_> = (0..info.functions)
            .map(|number| {
                let mut row: hotswap_c::abi::FunctionInfo = zeroed();
                row.struct_size = size_of::<hotswap_c::abi::FunctionInfo>();
                hotswap_image_function(image, number, &mut row, null_mut());
                row
            })
            .collect();
        // A fixed sequence that jumps through the functions.
        let order = || (0..LOOK_UPS).map(|turn| &rows[turn * 7919 % rows.len()]);
        let (mut number, start) = (0, processor_time());
        for row in order() {
            let found =
                hotswap_image_function_at(image, row.address + row.size / 2, &mut number, null_mut(), null_mut());
            assert!(found == CallStatus::Ok || row.size == 0);
        }
        let by_address = (processor_time() - start).as_nanos() / LOOK_UPS as u128;
        let start = processor_time();
        for row in order() {
            assert_eq!(hotswap_image_function_named(image, row.name, &mut number, null_mut()), CallStatus::Ok);
        }
        (by_address, (processor_time() - start).as_nanos() / LOOK_UPS as u128)
    }
}
