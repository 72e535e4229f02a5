//! The results of cases, their files in the target directory, and the page that is made of them.

use crate::outcome::{During, Outcome};
use crate::paths;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fs;

use super::{SOURCE, TARGET};

/// The end of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CaseEnd {
    Passed,
    /// The suite skips it itself.
    Skipped,
    Failed,
    EndedByLimit,
}

/// The end of a case on a GPU, and what it printed where it failed.
#[derive(Debug, Clone)]
pub(crate) struct CaseState {
    end: CaseEnd,
    text: String,
}

/// A case on each GPU.
#[derive(Debug)]
pub(crate) struct CaseResult {
    pub(crate) program: String,
    pub(crate) case: String,
    pub(crate) by_gpu: Vec<GpuState>,
}

#[derive(Debug)]
pub(crate) struct GpuState {
    pub(crate) gpu: String,
    pub(crate) state: CaseState,
}

#[derive(Debug)]
pub(crate) struct FolderResults {
    folder: String,
    pub(crate) cases: Vec<CaseResult>,
    /// Sources that are not compiled or linked.
    pub(crate) not_built: Vec<String>,
}

/// The party at whose side a failure is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum FailureOwner {
    Ours,
    Hip,
    Suite,
    Unknown,
}

/// A reason for failures: of cases whose name begins with `case` and whose output contains `output`.
struct Explanation {
    case: &'static str,
    output: &'static str,
    owner: FailureOwner,
    reason: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FailureReason {
    owner: FailureOwner,
    reason: &'static str,
}

/// The first that fits counts.
#[rustfmt::skip]
const EXPLANATIONS: &[Explanation] = &[
    Explanation { case: "Unit_hipStreamQuery_With", output: "SIGSEGV", owner: FailureOwner::Hip, reason: READS_STREAM },
    Explanation { case: "Unit_hipStreamSynchronize_Uninit", output: "SIGSEGV", owner: FailureOwner::Hip, reason: READS_STREAM },
    Explanation { case: "Unit_hipStreamWaitEvent_Uninit", output: "SIGSEGV", owner: FailureOwner::Hip, reason: READS_STREAM },
    Explanation { case: "Unit_hipStreamDestroy_Negative_Double", output: "0 == 709", owner: FailureOwner::Hip, reason: "HIP 7.2 answers success when a stream is destroyed twice" },
    Explanation { case: "", output: "hsa_amd_ipc_memory_create is not supported", owner: FailureOwner::Ours, reason: "memory cannot be shared with other processes" },
    Explanation { case: "", output: "Error: file not found", owner: FailureOwner::Ours, reason: "this task does not build the suite's separate code objects" },
    Explanation { case: "", output: LIMIT, owner: FailureOwner::Ours, reason: "the time limit: emulated kernels are slow" },
];
const READS_STREAM: &str = "HIP 7.2 reads a stream that does not exist: the segmentation fault is in libamdhip64";
const DISABLED: &str = "the suite's own list disables the case on Linux";

/// The line that the suite prints for a case that it skips.
const SKIPPED: &str = "HIP_SKIP_THIS_TEST";
/// How a case ended that the time limit ended.
const LIMIT: &str = "ended by the limit";
/// The most text that is kept of a failed case.
const KEPT_TEXT: usize = 4000;

impl FailureOwner {
    fn title(self) -> &'static str {
        match self {
            Self::Ours => "ours",
            Self::Hip => "HIP's",
            Self::Suite => "the suite's",
            Self::Unknown => "not explained",
        }
    }
}

impl CaseEnd {
    const ALL: [Self; 4] = [Self::Passed, Self::Skipped, Self::Failed, Self::EndedByLimit];

    fn word(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Skipped => "skipped",
            Self::Failed => "failed",
            Self::EndedByLimit => LIMIT,
        }
    }
}

impl CaseState {
    pub(crate) fn failed(text: String) -> Self {
        Self { end: CaseEnd::Failed, text }
    }

    pub(crate) fn ended_by_limit(output: &str) -> Self {
        Self { end: CaseEnd::EndedByLimit, text: shorten(output) }
    }

    /// The suite's verdict: its exit code counts failed cases, and a case that is skipped says so.
    pub(crate) fn from_output(code: Option<i32>, output: &str) -> Self {
        match code {
            Some(0) if output.contains(SKIPPED) => Self { end: CaseEnd::Skipped, text: skip_reason(output) },
            // A filter that fits no case passes as well.
            Some(0) if !output.contains("No test cases matched") => Self { end: CaseEnd::Passed, text: String::new() },
            code => {
                let end = code.map_or("ended by a signal".to_owned(), |code| format!("exit code {code}"));
                Self::failed(format!("{}\n{end}", shorten(output)))
            }
        }
    }

    pub(crate) fn ends_like(&self, other: &Self) -> bool {
        self.end == other.end
    }
}

/// The reason that the suite prints.
fn skip_reason(output: &str) -> String {
    output
        .lines()
        .find_map(|line| line.split_once("Reason: "))
        .map_or_else(String::new, |(_, reason)| reason.to_owned())
}

fn shorten(output: &str) -> String {
    output.chars().take(KEPT_TEXT).collect()
}

impl CaseResult {
    pub(crate) fn line(&self) -> String {
        let ends: Vec<String> = self.by_gpu.iter().map(|on| format!("{} {}", on.gpu, on.state.end.word())).collect();
        format!("{}: {}", self.case, ends.join(", "))
    }

    fn on(&self, gpu: &str) -> Option<&CaseState> {
        self.by_gpu.iter().find(|on| on.gpu == gpu).map(|on| &on.state)
    }

    fn ends_on(&self, gpu: &str, ends: &[CaseEnd]) -> bool {
        self.on(gpu).is_some_and(|state| ends.contains(&state.end))
    }

    /// Whether source and retargeted GPU end alike.
    fn is_equal(&self) -> bool {
        matches!((self.on(SOURCE), self.on(TARGET)), (Some(one), Some(other)) if one.ends_like(other))
    }

    /// The party and the reason; `disabled` has the cases that the suite's own list disables.
    fn explanation(&self, gpu: &str, disabled: &[String]) -> FailureReason {
        let state = self.on(gpu);
        let known = EXPLANATIONS.iter().find(|known| self.case.starts_with(known.case) && known.explains(state));
        match known {
            Some(known) => FailureReason { owner: known.owner, reason: known.reason },
            None if disabled.contains(&self.case) => FailureReason { owner: FailureOwner::Suite, reason: DISABLED },
            None => FailureReason { owner: FailureOwner::Unknown, reason: "" },
        }
    }
}

impl Explanation {
    fn explains(&self, state: Option<&CaseState>) -> bool {
        state.is_some_and(|state| match state.end {
            CaseEnd::EndedByLimit => self.output == LIMIT,
            _ => state.text.contains(self.output),
        })
    }
}

impl FolderResults {
    pub(crate) fn new(folder: &str) -> Self {
        Self { folder: folder.to_owned(), cases: Vec::new(), not_built: Vec::new() }
    }

    fn count(&self, gpu: &str, ends: &[CaseEnd]) -> usize {
        self.cases.iter().filter(|case| case.ends_on(gpu, ends)).count()
    }

    fn failures<'r>(&'r self, gpu: &'r str) -> impl Iterator<Item = &'r CaseResult> {
        self.cases.iter().filter(move |case| case.ends_on(gpu, &[CaseEnd::Failed, CaseEnd::EndedByLimit]))
    }

    fn to_json(&self) -> Value {
        let cases = self.cases.iter().map(|case| {
            let by_gpu = case.by_gpu.iter().map(|on| json!([on.gpu, on.state.end.word(), on.state.text]));
            json!({ "program": case.program, "case": case.case, "gpus": by_gpu.collect::<Vec<_>>() })
        });
        json!({ "folder": self.folder, "not_built": self.not_built, "cases": cases.collect::<Vec<_>>() })
    }

    fn from_json(value: &Value) -> Self {
        let cases = value["cases"].as_array().into_iter().flatten().map(|case| CaseResult {
            program: text_of(&case["program"]),
            case: text_of(&case["case"]),
            by_gpu: case["gpus"].as_array().into_iter().flatten().map(state_from_json).collect(),
        });
        let not_built = value["not_built"].as_array().into_iter().flatten().map(text_of);
        Self { folder: text_of(&value["folder"]), cases: cases.collect(), not_built: not_built.collect() }
    }
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn state_from_json(value: &Value) -> GpuState {
    let word = text_of(&value[1]);
    let end = CaseEnd::ALL.into_iter().find(|end| end.word() == word).unwrap_or(CaseEnd::Failed);
    GpuState { gpu: text_of(&value[0]), state: CaseState { end, text: text_of(&value[2]) } }
}

pub(crate) fn save_folder(results: &FolderResults) -> Outcome {
    let directory = paths::scratch("hip-tests-results");
    fs::create_dir_all(&directory).during("create", &directory)?;
    let file = directory.join(format!("{}.json", results.folder));
    fs::write(&file, serde_json::to_string_pretty(&results.to_json())?).during("write", &file)
}

/// The folders that this run or earlier ones have run, by name.
pub(crate) fn known_folders() -> Outcome<Vec<FolderResults>> {
    let directory = paths::scratch("hip-tests-results");
    let mut folders = Vec::new();
    for entry in fs::read_dir(&directory).during("read", &directory)? {
        let file = entry.during("read", &directory)?.path();
        let text = fs::read_to_string(&file).during("read", &file)?;
        folders.push(FolderResults::from_json(&serde_json::from_str(&text)?));
    }
    folders.sort_by(|one, other| one.folder.cmp(&other.folder));
    Ok(folders)
}

/// The cases that end otherwise on the retargeted GPU: they fail the task.
pub(crate) fn faults(folders: &[FolderResults]) -> Vec<String> {
    let cases = folders.iter().flat_map(|folder| &folder.cases);
    cases.filter(|case| !case.is_equal()).map(|case| format!("differs on {TARGET}: {}", case.line())).collect()
}

pub(crate) fn page_text(version: &str, folders: &[FolderResults], disabled: &[String]) -> String {
    let mut text = format!(
        "# AMD's tests of HIP on emulated GPUs\n\n<!-- Written by `cargo xtask hip-tests`; do not edit. -->\n\n\
         For users of `hotswap run` and of retargeted code: how AMD's own tests of HIP end there.\n\n\
         AMD's suite [hip-tests](https://github.com/ROCm/hip-tests) ({version}) on the real HIP 7.2, built by `hotswap-clang++` for {SOURCE}\n\
         with the plan `{SOURCE}=>{TARGET}`. Each case is a process of its own on one emulated GPU, with a time limit; cases that end\n\
         otherwise on {TARGET} than on {SOURCE} are run once more on both. Failed cases include those that the limit ended.\n\n\
         | folder | cases | passed | skipped by the suite | failed | retargeted {TARGET} differs |\n\
         | --- | ---: | ---: | ---: | ---: | ---: |\n"
    );
    for folder in folders {
        let different = folder.cases.iter().filter(|case| !case.is_equal()).count();
        text += &format!(
            "| {} | {} | {} | {} | {} | {different} |\n",
            folder.folder,
            folder.cases.len(),
            folder.count(SOURCE, &[CaseEnd::Passed]),
            folder.count(SOURCE, &[CaseEnd::Skipped]),
            folder.failures(SOURCE).count(),
        );
    }
    text += &native_table(folders);
    text += &failure_table(folders, disabled);
    for folder in folders.iter().filter(|folder| !folder.not_built.is_empty()) {
        text += &format!("\nNot built by clang with HIP 7.2, in {}: {}.\n", folder.folder, folder.not_built.join(", "));
    }
    text
}

/// The folders on GPUs that clang compiled for.
fn native_table(folders: &[FolderResults]) -> String {
    let mut text = String::new();
    for folder in folders {
        let Some(first) = folder.cases.first() else { continue };
        for GpuState { gpu, .. } in first.by_gpu.iter().filter(|on| on.gpu != SOURCE && on.gpu != TARGET) {
            text += &format!(
                "| {gpu} | {} | {} | {} | {} |\n",
                folder.folder,
                folder.count(gpu, &[CaseEnd::Passed]),
                folder.count(gpu, &[CaseEnd::Skipped]),
                folder.failures(gpu).count(),
            );
        }
    }
    if text.is_empty() {
        return text;
    }
    format!(
        "\nThe same cases with clang's code for other GPUs:\n\n| GPU | folder | passed | skipped by the suite | failed |\n\
         | --- | --- | ---: | ---: | ---: |\n{text}"
    )
}

/// The failed cases by owner and reason.
fn failure_table(folders: &[FolderResults], disabled: &[String]) -> String {
    let mut by_reason: BTreeMap<FailureReason, Vec<&str>> = BTreeMap::new();
    for folder in folders {
        for case in folder.failures(SOURCE) {
            by_reason.entry(case.explanation(SOURCE, disabled)).or_default().push(&case.case);
        }
    }
    let mut text =
        String::from("\n## Failed cases\n\n| whose | reason | number | cases |\n| --- | --- | ---: | --- |\n");
    for (FailureReason { owner, reason }, cases) in by_reason {
        let number = cases.len();
        text += &format!("| {} | {reason} | {number} | {} |\n", owner.title(), cases.join(", "));
    }
    text
}

/// The cases that the suite's list of Linux disables for every GPU: quoted words up to the first condition's end.
pub(crate) fn disabled_cases(list: &str) -> Vec<String> {
    let common = list.split_once("#if defined COMMON").map_or("", |(_, rest)| rest);
    let common = common.split("#endif").next().unwrap_or_default();
    let lines = common.lines().map(|line| line.trim().trim_end_matches(','));
    lines.filter_map(|line| line.strip_prefix('"')?.strip_suffix('"')).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case(source: CaseState, target: CaseState) -> CaseResult {
        let source = GpuState { gpu: SOURCE.to_owned(), state: source };
        let by_gpu = vec![source, GpuState { gpu: TARGET.to_owned(), state: target }];
        CaseResult { program: "p".to_owned(), case: "Unit_a".to_owned(), by_gpu }
    }

    fn passed_state() -> CaseState {
        CaseState::from_output(Some(0), "")
    }

    fn failed_state() -> CaseState {
        CaseState::failed("x".to_owned())
    }

    fn end_of(code: Option<i32>, output: &str) -> CaseEnd {
        CaseState::from_output(code, output).end
    }

    #[test]
    fn ends_are_those_of_the_suite() {
        assert_eq!(end_of(Some(0), "All tests passed"), CaseEnd::Passed);
        assert_eq!(end_of(Some(0), "Skipping test. Reason: old\nHIP_SKIP_THIS_TEST"), CaseEnd::Skipped);
        assert_eq!(end_of(Some(0), "No test cases matched 'x'"), CaseEnd::Failed);
        assert_eq!(end_of(Some(1), ""), CaseEnd::Failed);
        assert_eq!(end_of(None, ""), CaseEnd::Failed);
    }

    #[test]
    fn a_case_that_ends_otherwise_is_a_fault_and_stays_one_in_the_file() {
        let mut results = FolderResults::new("event");
        results.cases.push(case(passed_state(), passed_state()));
        assert!(faults(&[FolderResults::from_json(&results.to_json())]).is_empty());
        results.cases.push(case(passed_state(), failed_state()));
        let read = FolderResults::from_json(&results.to_json());
        assert_eq!(faults(&[read]).len(), 1);
        assert!(page_text("v", &[results], &[]).contains("| event | 2 | 2 | 0 | 0 | 1 |"));
    }

    #[test]
    fn the_suites_list_explains_failures_that_no_other_reason_does() {
        let list = "#define COMMON\n[\n #if defined COMMON\n \"Unit_a\",\n \"b\"\n #endif\n #if defined gfx1\n \"c\",\n #endif";
        let disabled = disabled_cases(list);
        assert_eq!(disabled, ["Unit_a", "b"]);
        let listed = case(failed_state(), failed_state());
        assert_eq!(listed.explanation(SOURCE, &disabled).owner, FailureOwner::Suite);
        assert_eq!(listed.explanation(SOURCE, &[]).owner, FailureOwner::Unknown);
        let limit = case(CaseState::ended_by_limit(""), failed_state());
        assert_eq!(limit.explanation(SOURCE, &disabled).owner, FailureOwner::Ours);
    }
}
