//! The process that uses the GPU: `hotswap ask-hip`.
//!
//! Without a directory it prints the devices: `{runtime, driver, devices: [{name, target}]}`, or `{absent: true}` without HIP. With
//! one it runs the kernels of `job.json` there and appends a line for each to `results.txt`: a start mark before it runs, then
//! its words. So the parent knows how far a process came that was ended.

use crate::hip::{DeviceBuffer, HipLibrary, HipModule, LaunchSize};
use crate::inputs::{CASES, INPUT_WORDS, RESULT_WORDS, all_inputs};
use crate::probe_table::{Probe, all_probes};
use hotswap_report::{Diagnostic, codes};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::Path;

/// The hidden command that uses the GPU.
pub const ASK_HIP: &str = "ask-hip";

pub(crate) const OBJECT: &str = "object.hsaco";
pub(crate) const JOB: &str = "job.json";
pub(crate) const RESULTS: &str = "results.txt";
/// Before the name of a kernel that starts, that has failed, and that has ended.
pub(crate) const STARTED: &str = "started";
pub(crate) const FAILED: &str = "failed";
pub(crate) const ENDED: &str = "ended";

/// The answer about the devices for standard output, or nothing after the job of a directory has run.
///
/// # Errors
/// The system's, if a file of the directory cannot be read or written. What HIP refuses is a part of the answer.
pub fn ask_hip(directory: Option<&Path>) -> Result<String, Diagnostic> {
    let Some(library) = HipLibrary::load() else { return Ok(json!({ "absent": true }).to_string()) };
    match directory {
        None => Ok(devices_json(&library).to_string()),
        Some(directory) => run_job(&library, directory).map(|()| String::new()),
    }
}

fn devices_json(library: &HipLibrary) -> Value {
    let devices = match library.devices() {
        Ok(devices) => devices,
        Err(reason) => return json!({ "reason": reason }),
    };
    let devices: Vec<Value> =
        devices.iter().map(|device| json!({ "name": device.name, "target": device.target })).collect();
    json!({
        "runtime": library.integer(c"hipRuntimeGetVersion"),
        "driver": library.integer(c"hipDriverGetVersion"),
        "devices": devices,
    })
}

fn run_job(library: &HipLibrary, directory: &Path) -> Result<(), Diagnostic> {
    let job = hotswap_files::read_file(&directory.join(JOB))?;
    let job: Value = serde_json::from_slice(&job).unwrap_or_default();
    let object = hotswap_files::read_file(&directory.join(OBJECT))?;
    let path = directory.join(RESULTS);
    let results = OpenOptions::new().append(true).create(true).open(&path);
    let mut results = results.map_err(|error| Diagnostic::cannot_write(&path, error))?;
    let device = job["device"].as_i64().unwrap_or_default() as i32;
    match CardMemory::new(library, device, &object) {
        Ok(memory) => run_launches(library, &memory, &job, &mut results),
        Err(reason) => write_line(&mut results, FAILED, "", &reason),
    }
    .map_err(|error| Diagnostic::cannot_write(&path, error))
}

/// The loaded kernels and the memory that they use.
struct CardMemory {
    module: HipModule,
    inputs: DeviceBuffer,
    results: DeviceBuffer,
}

impl CardMemory {
    fn new(library: &HipLibrary, device: i32, object: &[u8]) -> Result<Self, String> {
        library.choose_device(device)?;
        let module = library.load_module(object)?;
        let inputs = library.allocate(4 * CASES * INPUT_WORDS)?;
        Ok(Self { module, inputs, results: library.allocate(4 * CASES * RESULT_WORDS)? })
    }
}

/// Runs the kernels one after the other; after a failure HIP's state is unknown, and nothing more is run.
fn run_launches(
    library: &HipLibrary,
    memory: &CardMemory,
    job: &Value,
    results: &mut File,
) -> Result<(), std::io::Error> {
    let probes = all_probes();
    for launch in job["launches"].as_array().into_iter().flatten() {
        let name = launch["name"].as_str().unwrap_or_default();
        let Some(probe) = probes.iter().find(|probe| probe.name() == name) else { continue };
        write_line(results, STARTED, name, "")?;
        let [groups, group_size] = ["groups", "group_size"].map(|field| launch[field].as_u64().unwrap_or(1) as u32);
        match run_launch(library, memory, probe, LaunchSize { groups, group_size }) {
            Ok(words) => write_line(results, ENDED, name, &words)?,
            Err(reason) => return write_line(results, FAILED, name, &reason),
        }
    }
    Ok(())
}

fn write_line(results: &mut File, mark: &str, name: &str, rest: &str) -> Result<(), std::io::Error> {
    results.write_all(format!("{mark} {name} {rest}\n").as_bytes())
}

/// The words of the results as text.
fn run_launch(library: &HipLibrary, memory: &CardMemory, probe: &Probe, size: LaunchSize) -> Result<String, String> {
    let inputs: Vec<u8> = all_inputs(probe.input).iter().flat_map(|word| word.to_le_bytes()).collect();
    library.upload(memory.inputs, &inputs)?;
    library.clear(memory.results)?;
    library.launch(memory.module, &probe.name(), size, [memory.inputs, memory.results])?;
    let bytes = library.download(memory.results)?;
    let mut words = String::with_capacity(2 * bytes.len());
    for word in bytes.chunks_exact(4) {
        // Writing to a string cannot fail.
        let _ = write!(words, "{:08x}", u32::from_le_bytes([word[0], word[1], word[2], word[3]]));
    }
    Ok(words)
}

/// The answer about the devices of a process that was started as this command.
pub(crate) fn read_devices(output: &str) -> Result<Value, Diagnostic> {
    let answer: Value = serde_json::from_str(output.trim()).unwrap_or_default();
    match (&answer["absent"], answer["reason"].as_str(), answer["devices"].as_array()) {
        (Value::Bool(true), ..) => Err(no_card_error("libamdhip64.so cannot be loaded")),
        (_, Some(reason), _) => Err(no_card_error(&format!("HIP cannot say which GPUs there are: {reason}"))),
        (_, _, Some(devices)) if devices.is_empty() => Err(no_card_error("HIP finds no GPU")),
        (_, _, Some(_)) => Ok(answer),
        _ => Err(no_card_error("the process that asks HIP gave no answer")),
    }
}

fn no_card_error(reason: &str) -> Diagnostic {
    Diagnostic::error(codes::NO_CARD, reason)
}
