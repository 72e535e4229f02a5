//! Inputs that could not be read are not absent: what an earlier run made of them stays, and the run says so.

use super::{DATA, Directory, rand_object};
use hotswap_faults::{Effect, Errno, Fault, Traced};
use std::fs::{self, File};
use std::process::Command;

const KERNELS: &str = "rocm/lib/rocblas/5/library/Kernels.so-000-gfx1030.hsaco";

/// One fault of a run.
struct Case {
    call: &'static str,
    path: &'static str,
    error: Errno,
}

const fn case(call: &'static str, path: &'static str, error: Errno) -> Case {
    Case { call, path, error }
}

const CASES: &[Case] = &[
    case("openat", KERNELS, Errno::EIO),
    case("openat", KERNELS, Errno::EACCES),
    case("openat", KERNELS, Errno::EMFILE),
    case("openat", "rocm/lib/rocblas/5/library", Errno::EIO),
    case("openat", "rocm/lib/rocblas/5", Errno::EACCES),
    case("openat", "rocm/lib/librocblas.so.5.2", Errno::EIO),
    case("openat", "rocm/lib/librocrand.so.1.1", Errno::EACCES),
    case("statx", KERNELS, Errno::EIO),
    case("statx", "rocm/lib/rocblas", Errno::EACCES),
    case("statx", "rocm/lib/librocblas.so.5.2", Errno::ENOENT),
    case("statx", "rocm/lib/librocblas.so.5", Errno::EIO),
    case("readlink", "rocm/lib/librocblas.so.5", Errno::EIO),
];

fn traced(directory: &Directory, words: &str, fault: &Fault) -> (Traced, String) {
    let output = directory.path("said");
    let file = || File::options().create(true).append(true).open(&output).unwrap();
    let _ = fs::remove_file(&output);
    let mut command = Command::new(crate::made::installed());
    command.args(words.split(' ')).current_dir(directory.path("")).stdout(file()).stderr(file());
    let traced = hotswap_faults::run(&mut command, Some(fault)).unwrap();
    (traced, fs::read_to_string(output).unwrap())
}

#[test]
fn what_was_made_of_an_input_that_cannot_be_read_stays() {
    if !hotswap_faults::is_supported() {
        return hotswap_userland::skip("what_was_made_of_an_input_that_cannot_be_read_stays", "ptrace is forbidden");
    }
    let directory = Directory::rocm();
    directory.serve().success();
    let before = directory.state("out");
    let mut injected = 0;
    for Case { call, path, error } in CASES {
        let words = ["serve gfx1031 --root rocm --dest out", "serve --check --dest out"];
        for (words, number) in words.iter().flat_map(|words| (0..3).map(move |number| (words, number))) {
            let fault = Fault { call, number, path: Some((*path).to_owned()), effect: Effect::Error(*error) };
            let (traced, said) = traced(&directory, words, &fault);
            if !traced.is_injected {
                continue;
            }
            injected += 1;
            assert_eq!(directory.state("out"), before, "{fault:?}: {said}");
            // A later call may be about something that does not matter, as the length of a progress bar; a check reads the file after
            // the look.
            let is_look = *call == "statx" && words.contains("--check");
            let is_gone = words.contains("--check") && *error == Errno::ENOENT;
            let is_good = matches!(traced.code, Some(0 | 17));
            if is_gone || is_good && (number > 0 || is_look) {
                continue;
            }
            assert!(traced.code.is_some_and(|code| code != 0), "{words}: {fault:?}: {said}");
            let text = std::io::Error::from_raw_os_error(*error as i32).to_string();
            assert!(said.contains("HS0501") && said.contains(&text), "{words}: {fault:?}: {said}");
        }
    }
    hotswap_userland::say(&format!("serve: {injected} faults of inputs, nothing was removed"));
    assert!(injected > 20);
    directory.run("serve --check --dest out").success();
}

/// Another run of the same library, whose other files have changed, does not mix two states.
#[test]
fn a_library_of_which_one_file_cannot_be_read_is_not_mixed() {
    if !hotswap_faults::is_supported() {
        return hotswap_userland::skip(
            "a_library_of_which_one_file_cannot_be_read_is_not_mixed",
            "ptrace is forbidden",
        );
    }
    let directory = Directory::rocm();
    directory.serve().success();
    let before = directory.state("out");
    directory.write(&format!("{DATA}/TensileLibrary_lazy_gfx1030.dat"), b"a new index");
    directory.write(&format!("{DATA}/TensileLibrary_a_fallback_gfx1030.hsaco"), &rand_object("gfx1030"));
    let words = "serve gfx1031 --root rocm --dest out";
    let path = Some(KERNELS.to_owned());
    let fault = Fault { call: "openat", number: 0, path, effect: Effect::Error(Errno::EIO) };
    let (_, said) = traced(&directory, words, &fault);
    assert!(said.contains("NOT READ: 5 files as before") || said.contains("NOT READ"), "{said}");
    assert_eq!(directory.state("out"), before, "{said}");
    directory.serve().success();
    assert_ne!(directory.state("out"), before);
    // A request for another GPU cannot keep them.
    let before = directory.state("out");
    let (traced, said) = traced(&directory, "serve gfx1031 gfx1032 --root rocm --dest out", &fault);
    assert!(traced.code == Some(14) && said.contains("nothing was changed"), "{said}");
    assert_eq!(directory.state("out"), before);
}
