//! The data files that the libraries of a tree open for a GPU, and what they get of them, as text and JSON.

use crate::container_uses::grouped_modes;
use hotswap_load_model::{DeviceModes, FileState, OpenedFile, SeenGpu, TreeReader, TreeUse};
use hotswap_report::{Diagnostic, codes, text};
use hotswap_targets::TargetId;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The name of a file of a tree in messages.
pub type FileLabel<'l> = dyn Fn(&Path) -> PathBuf + 'l;

/// The answer for some modes of a GPU.
pub struct ModesAnswer {
    pub modes: Vec<TargetId>,
    pub answer: TreeUse,
}

/// The answers for the modes of a GPU, those with the same one together.
pub fn grouped_answers(reader: &TreeReader<'_>, gpu: &DeviceModes, shown: &str) -> Vec<ModesAnswer> {
    let groups = grouped_modes(gpu, |one, other| {
        gpu_use_answer(one, reader, shown).files == gpu_use_answer(other, reader, shown).files
    });
    let answers = groups.into_iter().map(|modes| {
        let answer = gpu_use_answer(&modes[0], reader, shown);
        ModesAnswer { modes, answer }
    });
    answers.collect()
}

fn gpu_use_answer(device: &TargetId, reader: &TreeReader<'_>, shown: &str) -> TreeUse {
    reader.use_of_gpu(&SeenGpu { device: *device, shown: shown.to_owned() })
}

/// Faults that are shown one by one; a GPU without code has as many as the library has files.
const SHOWN_FAULTS: usize = 10;

pub fn use_faults(gpu: &str, answer: &TreeUse, label: &FileLabel<'_>) -> Vec<Diagnostic> {
    let mut shown: Vec<Diagnostic> = answer.faults().take(SHOWN_FAULTS).map(|file| fault(gpu, file, label)).collect();
    let more = answer.faults().count().saturating_sub(SHOWN_FAULTS);
    if more > 0 {
        let what =
            format!("{} of its libraries on {gpu} do not exist, or give it nothing", text::counted(more, "more file"));
        shown.push(Diagnostic::error(codes::LACKS_GPU, what));
    }
    shown
}

fn fault(gpu: &str, file: &OpenedFile, label: &FileLabel<'_>) -> Diagnostic {
    let what = format!("{} opens it on {gpu} ({}), and {}", file.library, file.because, state_text(&file.state));
    Diagnostic::error(codes::LACKS_GPU, what).in_file(label(&file.path))
}

fn state_text(state: &FileState) -> String {
    match state {
        FileState::Read => "read".to_owned(),
        FileState::Loads(entries) => entries.join(", "),
        FileState::Missing => "it does not exist".to_owned(),
        FileState::Fails(reason) => format!("HIP loads nothing: {reason}"),
    }
}

const HEADS: [&str; 4] = ["LIBRARY", "FILE", "LOADS", "BECAUSE"];

pub fn opened_table(name: &Path, gpu: &str, answer: &TreeUse) -> String {
    let mut rows = vec![HEADS.map(str::to_owned).to_vec()];
    rows.extend(answer.files.iter().map(|file| {
        let path = text::plain(&file.path.display().to_string());
        vec![file.library.to_owned(), path, text::plain(&state_text(&file.state)), text::plain(&file.because)]
    }));
    let good = answer.files.iter().filter(|file| file.state.is_good()).count();
    let shown = match answer.gpu.shown == answer.gpu.device.processor.name {
        true => String::new(),
        false => format!(", shown as {}", answer.gpu.shown),
    };
    let of = text::counted(answer.files.len(), "data file");
    format!("{}: {gpu}{shown} gets {good} of {of}\n{}", text::plain(&name.display().to_string()), text::table(&rows))
}

pub fn opened_json(gpu: &DeviceModes, modes: &[TargetId], answer: &TreeUse) -> Value {
    let modes: Vec<String> = modes.iter().map(TargetId::to_string).collect();
    let files: Vec<Value> = answer.files.iter().map(file_json).collect();
    json!({ "gpu": gpu.requested.to_string(), "modes": modes, "shown": answer.gpu.shown, "files": files })
}

fn file_json(file: &OpenedFile) -> Value {
    let state = match &file.state {
        FileState::Read => "read",
        FileState::Loads(_) => "loaded",
        FileState::Missing => "missing",
        FileState::Fails(_) => "failed",
    };
    let entries = if let FileState::Loads(entries) = &file.state { entries.clone() } else { Vec::new() };
    json!({
        "library": file.library,
        "file": file.path.display().to_string(),
        "state": state,
        "entries": entries,
        "optional": file.is_optional,
        "reason": format!("{}{}", file.because, fail_text(&file.state)),
    })
}

fn fail_text(state: &FileState) -> String {
    if let FileState::Fails(reason) = state { format!("; {reason}") } else { String::new() }
}
