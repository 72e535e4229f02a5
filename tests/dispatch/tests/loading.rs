//! Code that a program loads: relabelled for identical siblings, otherwise left to HIP.

use hotswap_dispatch::{Recorded, Recorder, Setup, difference};

/// Ways of loading, and the text by which HIP refuses code for another GPU.
const WAYS: &[(&str, &str)] = &[
    ("data", "load 209\n"),
    ("data-ex", "load 209\n"),
    ("address", "load 209\n"),
    ("file", "load 209\n"),
    // A library is loaded when it is used first.
    ("library-data", "load 0\nkernel 209\n"),
    ("library-file", "load 0\nkernel 209\n"),
    ("library-later", "load 0\nkernel 209\n"),
];
const NAMES: &str = "HOTSWAP_NAMES=gfx1031=gfx1030";

fn recorder(test: &str) -> Option<Recorder> {
    let recorder = Recorder::new(test)?;
    recorder.work.write("runtime.cpp", include_bytes!("../cases/runtime.cpp"));
    recorder.work.write("twice.hip", include_bytes!("../cases/twice.hip"));
    recorder.work.run("g++ -O1 -Wall -Wextra -D__HIP_PLATFORM_AMD__ runtime.cpp -o runtime -lamdhip64 -lhiprtc");
    Some(recorder)
}

/// Compiles `twice.hip` to a bundle with code for these GPUs.
fn bundle(recorder: &Recorder, targets: &str, words: &str, output: &str) {
    let offload: String = targets.split(',').map(|target| format!(" --offload-arch={target}")).collect();
    let clang = "clang++-22 -nogpuinc -nogpulib -O1 -x hip --offload-device-only --gpu-bundle-output";
    recorder.work.run(&format!("{clang}{offload} {words} -c twice.hip -o {output}"));
}

fn run(recorder: &Recorder, devices: &str, names: Option<&str>, command: &str) -> Recorded {
    let setup = Setup { devices, has_names: names.is_some(), variables: names.unwrap_or_default() };
    recorder.run(&setup, command)
}

/// One empty thread block of `twice` for each device, by code that is for it.
fn ran_on_all(ran: &Recorded, devices: usize) {
    let numbers: Vec<usize> = ran.dispatches.iter().map(|dispatch| dispatch.device).collect();
    assert_eq!((ran.code, numbers), (Some(0), (0..devices).collect()), "{}{}", ran.output, ran.error);
    assert!(ran.dispatches.iter().all(|dispatch| dispatch.kernel == "twice" && dispatch.is_for_device()));
    assert!(ran.messages().is_empty(), "{}", ran.error);
}

#[test]
fn code_compiled_for_the_shown_name_is_relabelled() {
    let Some(recorder) = recorder("code compiled at run time") else { return };
    for (way, refusal) in WAYS {
        // The fault: names alone are not enough, HIP refuses the code.
        let refused = run(&recorder, "gfx1031", None, &format!("./runtime {way} gfx1030"));
        assert_eq!((refused.output.as_str(), refused.dispatches.len()), (*refusal, 0), "{way}: {}", refused.error);
        let ran = run(&recorder, "gfx1030,gfx1031,gfx1031", Some(NAMES), &format!("./runtime {way}"));
        ran_on_all(&ran, 3);
        // The same code is made once: both devices of one kind run the same code object.
        assert_eq!(ran.dispatches[1].object, ran.dispatches[2].object, "{way}");
        // A device with names of its own runs what it runs without the library.
        let plain = run(&recorder, "gfx1030", None, &format!("./runtime {way}"));
        assert_eq!(difference(&plain.dispatches, &ran.on(0)), None, "{way}");
        assert_eq!(plain.dispatches[0].object, ran.dispatches[0].object, "{way}");
    }
}

#[test]
fn bundles_are_relabelled_and_native_code_wins() {
    let Some(recorder) = recorder("bundles loaded at run time") else { return };
    for compress in ["--no-offload-compress", "--offload-compress"] {
        bundle(&recorder, "gfx1030", compress, "one.hipfb");
        bundle(&recorder, "gfx1030,gfx1031", compress, "both.hipfb");
        bundle(&recorder, "gfx1030,gfx10-3-generic", compress, "generic.hipfb");
        for way in ["fat-binary", "data", "file", "library-data"] {
            let of = |file: &str, names| run(&recorder, "gfx1031", names, &format!("./runtime {way} @{file}"));
            assert!(of("one.hipfb", None).dispatches.is_empty(), "{way} {compress}");
            ran_on_all(&of("one.hipfb", Some(NAMES)), 1);
            for file in ["both.hipfb", "generic.hipfb"] {
                let (own, with) = (of(file, None), of(file, Some(NAMES)));
                assert_eq!(difference(&own.dispatches, &with.dispatches), None, "{way} {compress} {file}");
                assert_eq!(own.dispatches[0].object, with.dispatches[0].object, "{way} {compress} {file}");
            }
        }
    }
}

#[test]
fn code_compiled_for_the_gpu_itself_is_loaded_as_it_is() {
    let Some(recorder) = recorder("native code compiled at run time") else { return };
    for (way, _) in WAYS {
        let of = |names| run(&recorder, "gfx1031", names, &format!("./runtime {way} gfx1031"));
        let (own, with) = (of(None), of(Some(NAMES)));
        ran_on_all(&with, 1);
        assert_eq!(own.dispatches, with.dispatches, "{way}");
    }
}

#[test]
fn others_than_identical_siblings_are_refused_in_one_sentence() {
    let Some(recorder) = recorder("code that is not relabelled") else { return };
    // Code for gfx1102 may serve gfx1103 after checks of the code, and the two are not identical.
    for (way, refusal) in WAYS {
        let command = format!("./runtime {way}");
        let ran = run(&recorder, "gfx1103", Some("HOTSWAP_NAMES=gfx1103=gfx1102"), &command);
        assert_eq!((ran.output.as_str(), ran.dispatches.len()), (*refusal, 0), "{way}: {}", ran.error);
        let [message] = ran.messages()[..] else { panic!("{way}: {}", ran.error) };
        assert!(
            message.contains("gfx1102") && message.contains("gfx1103") && message.contains("identical"),
            "{message}"
        );
    }
    // Code for a third GPU is none of ours.
    let ran = run(&recorder, "gfx1031", Some(NAMES), "./runtime data gfx1100");
    assert_eq!((ran.output.as_str(), ran.messages().len()), ("load 209\n", 0), "{}", ran.error);
    // Nor is the code for a device that is not named.
    let ran = run(&recorder, "gfx1032", Some(NAMES), "./runtime data gfx1030");
    assert_eq!((ran.output.as_str(), ran.messages().len()), ("load 209\n", 0), "{}", ran.error);
}

#[test]
fn threads_load_at_the_same_time() {
    let Some(recorder) = recorder("code loaded by several threads") else { return };
    recorder.work.write("threads.cpp", include_bytes!("../cases/threads.cpp"));
    recorder
        .work
        .run("g++ -O1 -Wall -Wextra -D__HIP_PLATFORM_AMD__ threads.cpp -o threads -lamdhip64 -lhiprtc -pthread");
    let ran = run(&recorder, "gfx1030,gfx1031", Some(NAMES), "./threads");
    assert_eq!((ran.code, ran.error.as_str()), (Some(0), ""), "{}", ran.output);
    assert_eq!(ran.dispatches.len(), 8 * 20);
    assert!(ran.dispatches.iter().all(|dispatch| dispatch.is_for_device()));
    // Two contents, each as it is and relabelled.
    let objects: std::collections::BTreeSet<_> = ran.dispatches.iter().map(|one| (one.device, one.object)).collect();
    assert_eq!(objects.len(), 4, "{objects:?}");
}

#[test]
fn damaged_files_get_hips_own_answer() {
    let Some(recorder) = recorder("damaged code loaded at run time") else { return };
    bundle(&recorder, "gfx1030", "--no-offload-compress", "good.hipfb");
    bundle(&recorder, "gfx1030", "--offload-compress", "packed.hipfb");
    let no_file = run(&recorder, "gfx1031", Some(NAMES), "./runtime file @missing");
    assert_eq!(no_file.output, run(&recorder, "gfx1031", None, "./runtime file @missing").output);
    for file in ["good.hipfb", "packed.hipfb"] {
        let good = recorder.work.read(file);
        for size in [0, 3, 24, 40, 100, good.len() / 2] {
            recorder.work.write("cut", &good[..size.min(good.len())]);
            // HIP is asked for the file that is there; a runtime that crashes on it does so without the library, too.
            let (own, with) = (
                run(&recorder, "gfx1031", None, "./runtime file @cut"),
                run(&recorder, "gfx1031", Some(NAMES), "./runtime file @cut"),
            );
            assert_eq!((own.code, &own.output), (with.code, &with.output), "{file} {size}: {}", with.error);
            assert!(with.dispatches.is_empty() && !with.error.contains("panicked"), "{file} {size}: {}", with.error);
        }
    }
}
