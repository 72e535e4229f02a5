//! The parts of a case.

/// How the project uses HotSwap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// No setting; `find_package` makes `hotswap-clang++` the HIP compiler.
    Found,
    /// The user sets `CMAKE_HIP_COMPILER=hotswap-clang++`.
    Compiler,
    /// The user sets `CMAKE_HIP_COMPILER=hotswap-clang`, the name of a C compiler.
    CompilerC,
    /// The HIP compiler is clang; the target's commands are started by `hotswap exec --`.
    Launcher,
}

/// One action and its expected result. Files are relative to the build tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Configures with these definitions; it must succeed.
    Configure(&'static [&'static str]),
    /// Configures; it must succeed with this message. Line breaks count as blanks.
    Warns(&'static [&'static str], &'static str),
    /// Configures; it must fail with this message.
    Refused(&'static [&'static str], &'static str),
    /// Builds; it must succeed.
    Build,
    Target(&'static str),
    /// Builds; it must succeed with this message.
    Says(&'static str),
    /// Builds; it must fail with this message.
    Stops(&'static str),
    /// Whether the device code in the file has counters.
    Counters(&'static str, bool),
    /// The file must exist.
    Exists(&'static str),
    /// The text occurs that many times in the file.
    Contains(&'static str, &'static str, usize),
    /// Builds; exactly these source files must be compiled, each once (with Makefiles: of HIP).
    Compiles(&'static [&'static str]),
    /// Builds again; there must be nothing to do.
    Idle,
    /// The file must contain valid code objects for exactly these GPUs.
    Has(&'static str, &'static [&'static str]),
    /// For each GPU, how many code objects of the file were made from another GPU's.
    Derived(&'static str, &'static [(&'static str, usize)]),
    /// The file must contain the manifests of that many plans.
    Plans(&'static str, usize),
    /// The report must name these GPUs.
    Report(&'static str, &'static [&'static str]),
    /// The program must run to HIP's message about the missing device.
    Runs(&'static str),
    /// Builds each of these programs, whatever happens to the others: `hotswap verify --require` accepts its file with device code
    /// for these GPUs, and on each of them, emulated, it ends with 0.
    Executes(&'static [Program], &'static [&'static str]),
    /// The same, or the build of the program stops with HotSwap's own message.
    ExecutesOrStops(&'static [Program], &'static [&'static str]),
    /// HotSwap is replaced by one of another identity.
    NewHotSwap,
    /// Another clang takes the place of the first one, and the build tree is removed.
    NewClang,
    /// The file must have been made by the HotSwap that is installed now.
    MadeByInstalled(&'static str),
    /// Adds another pair to the plan's file.
    ChangePlanFile,
    /// The directory with the plans is removed.
    RemovePlans,
    /// The built files are removed, so that the next build queries the cache.
    Clean,
    /// Hits and misses of the compiler cache since the last such step.
    Cache(Cache, usize, usize),
    /// Installs below the directory `installed` of the build tree.
    Install,
    /// This directory of the project is configured and built as a project of its own, with clang.
    /// Later steps are about that build.
    Consumer(&'static str),
}

/// A program of a project that has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Program {
    /// Its target and file.
    pub name: &'static str,
    /// The file with its device code.
    pub file: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cache {
    Ccache,
    Sccache,
}

/// A row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Case {
    /// The tested property; unique.
    pub name: &'static str,
    /// Directory of `projects`, or `examples/NAME` of the workspace.
    pub project: &'static str,
    /// The modes in which it must work.
    pub modes: &'static [Mode],
    /// The requirements of the case.
    pub needs: Needs,
    /// The steps, in order.
    pub steps: &'static [Step],
}

/// A restriction to certain set-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Any set-up.
    Any,
    /// Project, build tree and HotSwap are in a directory with blanks in its name.
    Blanks,
    /// A generator of several configurations.
    Configurations,
    /// Ninja: the step uses a feature that Makefiles do not have.
    Ninja,
    /// A CMake that is too old for HIP on Debian.
    OldCMake,
    /// A clang that another one with the same flags can replace.
    Upgrade,
}

impl Case {
    /// Whether the case changes HotSwap, and so needs an installation of its own.
    pub fn own_installation(&self) -> bool {
        self.needs == Needs::Blanks || self.steps.contains(&Step::NewHotSwap)
    }
}
