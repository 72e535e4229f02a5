//! `hotswap run --kernel NAME`: starts one kernel of a code object, without a program and without HIP.
//!
//! Buffers are files: a kernel's pointer arguments are `in:` and `out:`, numbers are given by value. Output files are written
//! when the kernel has ended, and not at all if it has not.

use crate::outcome::CommandOutcome;
use crate::work::inventory::{self, InventoryContainer};
use clap::Args;
use hotswap_bundle::ImageKind;
use hotswap_code_object::SourceLines;
use hotswap_emulator::{
    DirectLaunch, EmulatedDevice, LaunchError, LoadedKernel, LoadedObject, SparseMemory, launch_kernel, read_back,
};
use hotswap_report::{Diagnostic, codes};
use hotswap_targets::TargetId;
use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// The options that start a kernel directly.
#[derive(Debug, Args)]
pub(crate) struct DirectArguments {
    /// Start this kernel of FILE directly, without a program; for GPUs that HIP does not know, too
    #[arg(long, value_name = "NAME", requires = "file", conflicts_with_all = ["command", "memory"])]
    pub(crate) kernel: Option<String>,
    /// Work-items of the grid, as X, X,Y or X,Y,Z
    #[arg(long, value_name = "SIZE", requires = "kernel", default_value = "64")]
    grid: ItemCounts,
    /// Work-items of a work-group
    #[arg(long, value_name = "SIZE", requires = "kernel", default_value = "64")]
    group: ItemCounts,
    /// Bytes of dynamic LDS
    #[arg(long, value_name = "BYTES", requires = "kernel", default_value_t = 0)]
    lds: u32,
    /// The kernel's next argument: in:FILE, out:FILE:BYTES or inout:FILE:OUT for buffers; i8:N, u8:N, i16:N, u16:N, i32:N,
    /// u32:N, i64:N, u64:N, f32:N, f64:N, or bytes:HEX
    #[arg(long = "arg", value_name = "ARGUMENT", requires = "kernel", allow_hyphen_values = true)]
    values: Vec<LaunchArgument>,
    /// Code object, or anything that `hotswap list` reads
    #[arg(value_name = "FILE", requires = "kernel", conflicts_with = "command")]
    pub(crate) file: Option<PathBuf>,
}

/// Sizes in up to three dimensions.
#[derive(Debug, Clone, Copy)]
struct ItemCounts([u32; 3]);

impl FromStr for ItemCounts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut counts = [1; 3];
        let parts: Vec<&str> = text.split(',').collect();
        if parts.len() > 3 {
            return Err("more than three dimensions".to_owned());
        }
        for (count, part) in counts.iter_mut().zip(parts) {
            *count = part.parse().ok().filter(|count| *count > 0).ok_or_else(|| format!("`{part}` is no size"))?;
        }
        Ok(Self(counts))
    }
}

/// Bytes of a buffer that a kernel fills; it is in memory twice while its file is written.
const LARGEST_OUTPUT: u64 = 4 << 30;

/// An argument of a kernel.
#[derive(Debug, Clone)]
enum LaunchArgument {
    Value(Vec<u8>),
    Input(PathBuf),
    Output { file: PathBuf, size: u64 },
    Both { input: PathBuf, output: PathBuf },
}

impl FromStr for LaunchArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = text.split_once(':').ok_or("an argument is KIND:VALUE, as in u32:5 or in:data.bin")?;
        Ok(match kind {
            "in" => Self::Input(rest.into()),
            "out" => {
                let [file, size] = two_parts(kind, rest)?;
                let bytes: u64 = size.parse().map_err(|_| format!("`{size}` is no size"))?;
                if bytes > LARGEST_OUTPUT {
                    return Err(format!("a buffer of {bytes} bytes; at most {LARGEST_OUTPUT} are possible"));
                }
                Self::Output { file: file.into(), size: bytes }
            }
            "inout" => {
                let [input, output] = two_parts(kind, rest)?;
                Self::Both { input: input.into(), output: output.into() }
            }
            "i8" => {
                Self::Value(parsed::<i8>(rest).map_err(|one| argument_number_error(one, rest))?.to_le_bytes().into())
            }
            "u8" => {
                Self::Value(parsed::<u8>(rest).map_err(|one| argument_number_error(one, rest))?.to_le_bytes().into())
            }
            "i16" => {
                Self::Value(parsed::<i16>(rest).map_err(|one| argument_number_error(one, rest))?.to_le_bytes().into())
            }
            "u16" => {
                Self::Value(parsed::<u16>(rest).map_err(|one| argument_number_error(one, rest))?.to_le_bytes().into())
            }
            "i32" => {
                Self::Value(parsed::<i32>(rest).map_err(|one| argument_number_error(one, rest))?.to_le_bytes().into())
            }
            "u32" => {
                Self::Value(parsed::<u32>(rest).map_err(|one| argument_number_error(one, rest))?.to_le_bytes().into())
            }
            "i64" => {
                Self::Value(parsed::<i64>(rest).map_err(|one| argument_number_error(one, rest))?.to_le_bytes().into())
            }
            "u64" => {
                Self::Value(parsed::<u64>(rest).map_err(|one| argument_number_error(one, rest))?.to_le_bytes().into())
            }
            "f32" => {
                Self::Value(parsed::<f32>(rest).map_err(|one| argument_number_error(one, rest))?.to_le_bytes().into())
            }
            "f64" => {
                Self::Value(parsed::<f64>(rest).map_err(|one| argument_number_error(one, rest))?.to_le_bytes().into())
            }
            "bytes" => Self::Value(hex(rest).ok_or("bytes: needs pairs of hexadecimal digits")?),
            _ => return Err(format!("`{kind}` is no kind of argument")),
        })
    }
}

fn two_parts<'t>(kind: &str, rest: &'t str) -> Result<[&'t str; 2], String> {
    rest.rsplit_once(':').map(Into::into).ok_or_else(|| format!("{kind}: needs two parts"))
}

fn argument_number_error(error: String, rest: &str) -> String {
    format!("`{rest}`: {error}")
}

fn parsed<T: FromStr<Err: ToString>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn hex(text: &str) -> Option<Vec<u8>> {
    let is_even = text.len().is_multiple_of(2) && text.is_ascii();
    is_even.then(|| (0..text.len() / 2).map(|number| parse_hex_byte(2 * number, text)).collect()).flatten()
}

fn parse_hex_byte(at: usize, text: &str) -> Option<u8> {
    u8::from_str_radix(text.get(at..at + 2)?, 16).ok()
}

/// Options that the program form has as well.
pub(super) struct LaunchOptions<'a> {
    pub(super) gpu: &'a TargetId,
    pub(super) counters: bool,
    pub(super) late: bool,
    pub(super) poison: bool,
    pub(super) matrix: Option<&'a str>,
    pub(super) budget: Option<u64>,
    pub(super) threads: Option<u64>,
}

/// A buffer that is written to a file afterwards.
struct OutputBuffer<'a> {
    file: &'a Path,
    address: u64,
    size: usize,
}

/// Starts the kernel of `--kernel` and waits for it.
pub(super) fn run(arguments: &DirectArguments, options: &LaunchOptions<'_>) -> Result<CommandOutcome, Diagnostic> {
    let (Some(name), Some(file)) = (&arguments.kernel, &arguments.file) else {
        return Err(Diagnostic::error(codes::USAGE, "run needs a program, or --kernel and a file"));
    };
    let device = device(options)?;
    let bytes = hotswap_files::open_or_stdin(file)?;
    let object = code_object(&bytes, options.gpu).map_err(|error| error.in_file(file))?;
    let mut memory = SparseMemory::new();
    let loaded = LoadedObject::load(&object, &mut memory).map_err(|error| error.in_file(file))?;
    check_target(&loaded, &device).map_err(|error| error.in_file(file))?;
    let kernel = find(&loaded, name).map_err(|error| error.in_file(file))?;
    let (values, outputs) = place_buffers(&arguments.values, &mut memory)?;
    let workgroup = workgroup(arguments)?;
    let request = DirectLaunch { grid: arguments.grid.0, workgroup, arguments: &values, dynamic_lds: arguments.lds };
    let counts = launch_kernel(&device, &mut memory, kernel, &request)
        .map_err(|error| failure(name, error, (&object, &loaded)).in_file(file))?;
    for output in outputs {
        hotswap_files::replace_file(output.file, &read_back(&memory, output.address, output.size))?;
    }
    if counts.undetermined > 0 {
        let fact = format!(
            "kernel {name}: {} elements of products of matrices depend on the order of additions",
            counts.undetermined
        );
        eprintln!("hotswap: {}", Diagnostic::warning(codes::UNKNOWN_ORDER, fact).in_file(file));
    }
    let mut text = String::new();
    if options.counters {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "{} instructions, {} waves, {} work-groups",
            counts.instructions, counts.waves, counts.workgroups
        );
        let mut rows: Vec<_> = counts.by_mnemonic.into_iter().collect();
        rows.sort_by_key(|(mnemonic, count)| (std::cmp::Reverse(*count), *mnemonic));
        for (mnemonic, count) in rows {
            let _ = writeln!(text, "{count:>12} {mnemonic}");
        }
    }
    Ok(text.into())
}

fn device(options: &LaunchOptions<'_>) -> Result<EmulatedDevice, Diagnostic> {
    let mut device = EmulatedDevice::new(options.gpu.processor.name).map_err(unknown_gpu_error)?;
    device.counters = options.counters;
    device.late_completion = options.late;
    device.poison = options.poison;
    device.choose_matrix_model(options.matrix.unwrap_or("sequential"));
    device.instruction_budget = options.budget.or(Some(20_000_000_000));
    device.threads = options.threads.map_or(device.threads, |threads| threads as usize);
    Ok(device)
}

fn unknown_gpu_error(error: hotswap_emulator::UnknownDevice) -> Diagnostic {
    Diagnostic::error(codes::UNKNOWN_TARGET, error.to_string())
}

fn workgroup(arguments: &DirectArguments) -> Result<[u16; 3], Diagnostic> {
    let sizes = arguments.group.0;
    if sizes.iter().map(|size| u64::from(*size)).product::<u64>() > 1024 {
        return Err(Diagnostic::error(codes::USAGE, "a work-group has at most 1024 work-items"));
    }
    Ok(sizes.map(|size| size as u16))
}

/// The code object for the GPU: the file itself, or the entry of a container.
fn code_object(bytes: &[u8], gpu: &TargetId) -> Result<Vec<u8>, Diagnostic> {
    if hotswap_code_object::is_code_object(bytes) {
        return Ok(bytes.to_owned());
    }
    let contents = hotswap_bundle::find_containers(bytes);
    let wanted = gpu.to_string();
    let mut found = Vec::new();
    let problems = inventory::visit(&contents, |container| {
        let InventoryContainer { rows, .. } = container;
        let matching = rows.into_iter().filter(|row| row.image.kind == ImageKind::CodeObject && row.is_for(&wanted));
        found.extend(matching.map(|row| row.image.data.to_vec()));
    });
    if let Some(problem) = problems.into_iter().next() {
        return Err(problem);
    }
    let missing =
        || Diagnostic::error(codes::NOT_FOUND, format!("no code object for {wanted}")).advise("see `hotswap list`");
    found.into_iter().next().ok_or_else(missing)
}

fn check_target(loaded: &LoadedObject, device: &EmulatedDevice) -> Result<(), Diagnostic> {
    let fits = hotswap_targets::find_processor(loaded.processor)
        .is_some_and(|own| own.name == device.processor.name || own.covers(device.processor));
    if fits {
        return Ok(());
    }
    let what = format!("the code object is for {}, the GPU is {}", loaded.processor, device.processor.name);
    Err(Diagnostic::error(codes::OTHER_TARGET, what))
}

fn find<'l>(loaded: &'l LoadedObject, name: &str) -> Result<&'l LoadedKernel, Diagnostic> {
    loaded.find_kernel(name).ok_or_else(|| {
        let names: Vec<&str> = loaded.kernels.iter().take(12).map(|kernel| kernel.name.as_str()).collect();
        let what = format!("there is no kernel `{name}`; kernels are {}", names.join(", "));
        Diagnostic::error(codes::NO_PART, what)
    })
}

/// Puts buffers into memory; returns the bytes of the arguments and the buffers to write.
fn place_buffers<'a>(
    values: &'a [LaunchArgument],
    memory: &mut SparseMemory,
) -> Result<(Vec<Vec<u8>>, Vec<OutputBuffer<'a>>), Diagnostic> {
    let (mut bytes, mut outputs) = (Vec::new(), Vec::new());
    for value in values {
        let address = match value {
            LaunchArgument::Value(value) => {
                bytes.push(value.clone());
                continue;
            }
            LaunchArgument::Input(file) => memory.allocate_copy(&hotswap_files::open_or_stdin(file)?),
            LaunchArgument::Output { file, size } => {
                let address = memory.allocate(*size);
                outputs.push(OutputBuffer { file, address, size: *size as usize });
                address
            }
            LaunchArgument::Both { input, output } => {
                let content = hotswap_files::open_or_stdin(input)?;
                let address = memory.allocate_copy(&content);
                outputs.push(OutputBuffer { file: output, address, size: content.len() });
                address
            }
        };
        bytes.push(address.to_le_bytes().to_vec());
    }
    Ok((bytes, outputs))
}

/// The diagnostic for a kernel that did not end; program counters are those of the file.
fn failure(name: &str, error: LaunchError, (object, loaded): (&[u8], &LoadedObject)) -> Diagnostic {
    let LaunchError::Fault(mut fault) = error else {
        return Diagnostic::error(codes::USAGE, error.to_string());
    };
    // A dispatch that did not start has no place.
    if fault.place.pc != 0 {
        fault.place.pc = fault.place.pc.wrapping_sub(loaded.delta);
    }
    let line = SourceLines::of_address(object, fault.place.pc).map_or(String::new(), |line| format!(" ({line})"));
    Diagnostic::error(codes::KERNEL_FAULT, format!("kernel {name}: {fault}{line}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read() {
        let value = |text: &str| match text.parse() {
            Ok(LaunchArgument::Value(bytes)) => Some(bytes),
            _ => None,
        };
        assert_eq!(value("i32:-1"), Some(vec![255; 4]));
        assert_eq!(value("bytes:0a0B"), Some(vec![10, 11]));
        assert_eq!(value("f32:1"), Some(vec![0, 0, 0x80, 0x3f]));
        assert_eq!(value("u8:200"), Some(vec![200]));
        for wrong in ["5", "u32:-1", "u8:256", "u7:1", "bytes:0", "bytes:äa", "out:file", "out:file:x"] {
            assert!(wrong.parse::<LaunchArgument>().is_err(), "{wrong}");
        }
        assert!("1,2,3,4".parse::<ItemCounts>().is_err() && "0".parse::<ItemCounts>().is_err());
    }
}
