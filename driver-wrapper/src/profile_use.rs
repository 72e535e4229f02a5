//! Builds that use a profile: how much of the device code the profile matches.
//!
//! A profile of other sources, of other names or of another level of optimisation matches no function, and clang does
//! not report it. The optimiser's own pass shows it: its result is written to a directory ([`WORDS`]), where functions in
//! the profile have an entry count.
//!
//! Invariants: the compilation is the one that would have run, with its streams, and with its exit code; where nothing
//! can be counted, nothing is reported.
//!
//! Absent on purpose: profiles of the front end, whose mismatches clang reports itself; host code.

use crate::command::{ClangCommand, InputKind};
use crate::exec::LaunchCommand;
use crate::flags::{OffloadSide, Phase};
use crate::words::ClangArgument;
use hotswap_files::{ScratchDirectory, reads};
use hotswap_report::{Diagnostic, Severity, codes};
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Makes the optimiser write the module after the pass; the directory follows.
const WORDS: [&str; 3] =
    ["-mllvm=-print-after=pgo-instr-use", "-mllvm=-print-module-scope", "-mllvm=-ir-dump-directory="];
const CHANNEL: &str = "-Xarch_device";

/// A command that compiles device code by a profile.
#[derive(Debug, PartialEq, Eq)]
pub struct ProfileUse {
    profile: OsString,
}

impl ProfileUse {
    /// `None` for any other command.
    #[must_use]
    pub fn of(command: &ClangCommand, words: &[OsString]) -> Option<Self> {
        let hip = command.inputs.iter().any(|input| input.kind == InputKind::Hip);
        let compiles = hip && command.phase > Phase::Front && command.scope != OffloadSide::Host;
        let asks = command.dry_run || command.query || names(words, "-print-after") || names(words, "-ir-dump");
        if !compiles || asks {
            return None;
        }
        let mut profile = None;
        for (at, word) in words.iter().enumerate() {
            let before = at.checked_sub(1).and_then(|at| words.get(at));
            let for_host = before.is_some_and(|before| before == "-Xarch_host");
            match word.as_bytes() {
                b"-fno-profile-use" => profile = None,
                b"-fprofile-use" if !for_host => profile = Some("default.profdata".into()),
                bytes if !for_host => {
                    profile =
                        bytes.strip_prefix(b"-fprofile-use=").map(|p| OsStr::from_bytes(p).to_owned()).or(profile);
                }
                _ => {}
            }
        }
        profile.map(|profile| Self { profile })
    }

    /// Compiles by that function and counts; clang's exit code.
    ///
    /// # Errors
    /// Those of starting clang.
    pub fn run(
        &self,
        mut launch: LaunchCommand,
        compile: impl FnOnce(&LaunchCommand) -> Result<i32, Diagnostic>,
        warn: &dyn Fn(&str),
    ) -> Result<i32, Diagnostic> {
        let directory = match ScratchDirectory::temporary("hotswap-profile-use.") {
            Ok(directory) => directory,
            Err(why) => {
                warn(&not_counted(why));
                return compile(&launch);
            }
        };
        let mut words = vec!["--start-no-unused-arguments".into()];
        for word in WORDS {
            let mut word = OsString::from(word);
            if word.as_bytes().ends_with(b"=") {
                word.push(directory.path());
            }
            words.extend([CHANNEL.into(), word]);
        }
        words.push("--end-no-unused-arguments".into());
        launch.words.splice(0..0, words.into_iter().map(ClangArgument::Plain));
        let code = compile(&launch)?;
        let found = ProfiledFunctions::of_modules(directory.path());
        drop(directory);
        match found {
            Ok(found) if code == 0 => self.say(found, warn),
            Err(why) if code == 0 => warn(&not_counted(why)),
            _ => {}
        }
        Ok(code)
    }

    fn say(&self, ProfiledFunctions { matched, all }: ProfiledFunctions, warn: &dyn Fn(&str)) {
        let what = match all {
            0 if !is_of_the_optimiser(Path::new(&self.profile)) => return,
            0 => "the profile fits no function of device code at this level of optimisation".to_owned(),
            _ => format!("the profile fits {matched} of {all} functions of device code"),
        };
        if all == 0 || matched * 2 < all {
            let advice = "use it with the sources, the names and the level of optimisation (-O) that it was made with";
            let warning = Diagnostic::warning(codes::PROFILE_DOES_NOT_FIT, what).in_file(&self.profile).advise(advice);
            warn(&warning.to_string());
        } else {
            warn(&format!("note: {}: {what}", Path::new(&self.profile).display()));
        }
    }
}

/// The warning about a count that could not be made.
fn not_counted(why: Diagnostic) -> String {
    let what = format!("the functions that the profile fits are not counted: {}", why.what);
    Diagnostic { severity: Severity::Warning, what, ..why }.to_string()
}

/// Whether a merged profile has counters of the optimiser: magic, then a version word with that bit in its upper half.
fn is_of_the_optimiser(profile: &Path) -> bool {
    const MAGIC: &[u8] = b"\xfflprofi\x81";
    let mut head = [0u8; 16];
    let read = fs::File::open(profile).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head.starts_with(MAGIC) && head[15] & 1 == 1
}

fn names(words: &[OsString], part: &str) -> bool {
    words.iter().any(|word| word.as_bytes().windows(part.len()).any(|window| window == part.as_bytes()))
}

/// Functions of all modules.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct ProfiledFunctions {
    matched: usize,
    all: usize,
}

impl ProfiledFunctions {
    /// Those of the modules in that directory.
    fn of_modules(directory: &Path) -> Result<Self, Diagnostic> {
        let mut found = Self::default();
        for entry in fs::read_dir(directory).map_err(|error| reads::unread_file(directory, &error))? {
            let path = entry.map_err(|error| reads::unread_file(directory, &error))?.path();
            found.add_module(&path).map_err(|error| reads::unread_file(&path, &error))?;
        }
        Ok(found)
    }

    fn add_module(&mut self, path: &Path) -> io::Result<()> {
        for line in BufReader::new(fs::File::open(path)?).split(b'\n') {
            self.add(&String::from_utf8_lossy(&line?));
        }
        Ok(())
    }

    fn add(&mut self, line: &str) {
        // Copies of functions that another file defines count there.
        if line.starts_with("define ") && !line.starts_with("define available_externally ") {
            self.all += 1;
            self.matched += usize::from(line.contains(" !prof !"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::scan;

    #[test]
    fn commands_that_compile_device_code_by_a_profile() {
        for (line, profile) in [
            ("-c a.hip -fprofile-use=x.profdata", Some("x.profdata")),
            ("a.hip -fprofile-use -o a", Some("default.profdata")),
            ("a.hip -Xarch_gfx90a -fprofile-use=y -o a", Some("y")),
            ("a.hip -fprofile-use=x -fno-profile-use", None),
            ("a.hip -Xarch_host -fprofile-use=x", None),
            ("-c a.cpp -fprofile-use=x", None),
            ("--hip-link a.o -fprofile-use=x", None),
            ("-E a.hip -fprofile-use=x", None),
            ("-### a.hip -fprofile-use=x", None),
            ("--offload-host-only -c a.hip -fprofile-use=x", None),
            ("-c a.hip -fprofile-instr-use=x", None),
            ("-c a.hip -fprofile-use=x -mllvm -print-after-all", None),
        ] {
            let words: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
            let used = ProfileUse::of(&scan(&words), &words);
            assert_eq!(used, profile.map(|profile| ProfileUse { profile: profile.into() }), "{line}");
        }
    }

    #[test]
    fn functions_with_an_entry_count_fit() {
        let mut found = ProfiledFunctions::default();
        for line in [
            "define protected amdgpu_kernel void @a(ptr %0) #0 !prof !12 {",
            "define hidden float @b(float %0) #1 {",
            "define available_externally void @c() {",
            "declare void @d()",
            "!12 = !{!\"function_entry_count\", i64 100}",
        ] {
            found.add(line);
        }
        assert_eq!(found, ProfiledFunctions { matched: 1, all: 2 });
    }
}
