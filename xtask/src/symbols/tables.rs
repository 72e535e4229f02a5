//! The exam's tests and tables as data.

/// A table of the page.
pub(super) struct ExamTable {
    /// The word of its rows, and of the marks of its part of the page.
    pub(super) word: &'static str,
    pub(super) head: &'static str,
    pub(super) columns: &'static str,
}

pub(super) const TABLES: [ExamTable; 15] = [
    ExamTable {
        word: "calls",
        head: "Calls, registers and frames, compared with LLVM's assembly and relocations",
        columns: "clang | GPU | level | functions | calls | missed | invented | unknown targets | registers equal | frames equal | frames unknown",
    },
    ExamTable {
        word: "programs",
        head: "Calls of HIP programs with `assert`, `printf`, shuffles and virtual calls, compared with LLVM's assembly",
        columns: "program | clang | GPU | options | functions | calls | with address taken | unknown targets",
    },
    ExamTable {
        word: "projects",
        head: "Calls of other projects' HIP programs, compared with LLVM's assembly; `check` has no finding of the equal ones",
        columns: "project | programs | do not compile, or not link alone | functions | calls | with address taken | unknown targets | programs that differ",
    },
    ExamTable {
        word: "stripped",
        head: "Functions of stripped files that known code calls",
        columns: "GPU and level | functions | found without symbols | starts that are no function's",
    },
    ExamTable {
        word: "graphs",
        head: "Generated call graphs, compiled apart: runs with their budgets, and with planted shortages, which `check` finds and the emulated GPU faults",
        columns: "clang | GPU | options | graphs, all right | short as linked | registers planted | scratch planted | other wave sizes told | fewer registers than LTO",
    },
    ExamTable {
        word: "llvm",
        head: "LLVM's own tests with calls: `check` has no finding about their usual code, and `fix` writes its registers where the compiler leaves them to the linker (`-amdgpu-enable-object-linking`)",
        columns: "GPU | tests | llc does not compile | kernels without a finding | objects that no linker takes | kernels finished by `fix` | short before | findings",
    },
    ExamTable {
        word: "granted",
        head: "Registers inside of a granule: the last number that is granted is no finding, the next one is",
        columns: "GPU and options | registers | declared | granted | needed",
    },
    ExamTable {
        word: "scratch",
        head: "Scratch of kernels with a recursion after `fix`, and that of LTO, which counts one frame of functions that call each other",
        columns: "GPU and options | kernel | scratch | by LTO",
    },
    ExamTable {
        word: "stacks",
        head: "Emulated GPUs on which each line of HS0440's advice works, and runs without it fail: too little scratch",
        columns: "GPU | links and limits | runs right | runs that fail",
    },
    ExamTable {
        word: "budgets",
        head: "Numbers of a natively linked kernel after `fix`, and those of LTO",
        columns: "clang | GPU | VGPRs | scratch | VGPRs by LTO | scratch by LTO",
    },
    ExamTable {
        word: "bindings",
        head: "Needs of a kernel with a library in another code object, equal to those of one link",
        columns: "clang | GPU | VGPRs | scratch",
    },
    ExamTable {
        word: "slots",
        head: "Words that a loader fills with addresses of another code object, all right",
        columns: "clang | GPU | level | words",
    },
    ExamTable {
        word: "runs",
        head: "A kernel that calls functions of another code object, on emulated GPUs: results equal to the host's",
        columns: "clang | GPU | level | values",
    },
    ExamTable { word: "refused", head: "Faults, and what is told of them", columns: "fault | code | told" },
    ExamTable {
        word: "kept",
        head: "The table of a code object after tools have handled it",
        columns: "by | functions",
    },
];

/// A test that prints rows.
pub(super) struct ExamTest {
    pub(super) package: &'static str,
    pub(super) test: &'static str,
    /// The words of its tables.
    pub(super) tables: &'static [&'static str],
    /// It runs the installed tools.
    pub(super) is_of_installation: bool,
}

const fn exam_test(package: &'static str, test: &'static str, tables: &'static [&'static str]) -> ExamTest {
    ExamTest { package, test, tables, is_of_installation: false }
}

pub(super) const TESTS: [ExamTest; 17] = [
    exam_test("hotswap-device-symbols", "truth", &["calls"]),
    exam_test("hotswap-device-symbols", "programs", &["programs"]),
    exam_test("hotswap-device-link", "projects", &["projects"]),
    exam_test("hotswap-device-symbols", "stripped", &["stripped"]),
    exam_test("hotswap-emulated-hip", "graphs", &["graphs"]),
    exam_test("hotswap-device-symbols", "note", &["refused"]),
    exam_test("hotswap-device-symbols", "sources", &[]),
    exam_test("hotswap-device-link", "llvm_tests", &["llvm"]),
    exam_test("hotswap-device-link", "granted", &["granted"]),
    exam_test("hotswap-device-link", "scratch", &["scratch"]),
    exam_test("hotswap-emulated-hip", "scratch", &["stacks"]),
    exam_test("hotswap-device-link", "budgets", &["budgets", "refused"]),
    exam_test("hotswap-device-link", "exchange", &["bindings", "refused"]),
    exam_test("hotswap-device-link", "lds", &["refused"]),
    exam_test("hotswap-c", "exchange", &["slots"]),
    exam_test("hotswap-emulated-hip", "exchange", &["runs"]),
    ExamTest { is_of_installation: true, ..exam_test("hotswap-device-link", "built", &["kept"]) },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_table_has_a_test_and_each_test_tables_that_exist() {
        for table in &TABLES {
            assert!(TESTS.iter().any(|test| test.tables.contains(&table.word)), "{}", table.word);
        }
        for word in TESTS.iter().flat_map(|test| test.tables) {
            assert!(TABLES.iter().any(|table| table.word == *word), "{word}");
        }
    }
}
