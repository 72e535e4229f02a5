//! Libraries that choose kernels by the name of the GPU, with code that was relabelled for a sibling.

use hotswap_dispatch::{Recorded, Recorder, Setup, difference};
use hotswap_userland::{ENV_STACK, skip};
use std::path::{Path, PathBuf};
use std::process::Command;

const NAMES: &str = "HOTSWAP_NAMES=gfx1031=gfx1030";
const S: Setup<'_> = Setup { devices: "gfx1030", has_names: false, variables: "" };
const T: Setup<'_> = Setup { devices: "gfx1031", ..S };

/// The program on a sibling: wrong kernels without the library, those of the source with it, on one device and beside the
/// source's own.
fn judge(recorder: &Recorder, command: &str, variables: &str) {
    let reference = recorder.run(&Setup { variables, ..S }, command);
    assert_eq!(reference.code, Some(0), "{}", reference.error);
    assert!(reference.empty().is_empty(), "{:?}", reference.empty());
    // The fault that the library is for: nothing fails, and kernels without code are started.
    let wrong = recorder.run(&Setup { variables, ..T }, command);
    assert_eq!((wrong.code, wrong.error.as_str()), (Some(0), ""));
    assert!(!wrong.empty().is_empty(), "no wrong kernel was seen: the test compares nothing");
    assert!(difference(&reference.dispatches, &wrong.dispatches).is_some());
    // With the names.
    let names = format!("{variables} {NAMES}");
    let shown = Setup { has_names: true, variables: &names, ..T };
    let right = recorder.run(&shown, command);
    assert_eq!((right.code, right.error.as_str()), (Some(0), ""));
    assert_eq!(difference(&reference.dispatches, &right.dispatches), None);
    assert!(right.dispatches.iter().all(|dispatch| dispatch.is_for_device() && dispatch.target == "gfx1031"));
    // A GPU that is not named runs as without the library.
    let unnamed = recorder.run(&Setup { devices: "gfx1030", ..shown }, command);
    assert_eq!((difference(&reference.dispatches, &unnamed.dispatches), unnamed.output), (None, reference.output));
}

#[test]
fn hipcub_on_a_sibling_starts_the_kernels_of_the_source() {
    const TEST: &str = "hipCUB on a sibling";
    let Some(recorder) = Recorder::new(TEST) else { return };
    let Some(hotswap) = recorder.hotswap(TEST) else { return };
    recorder.work.write("reduce.hip", include_bytes!("../cases/reduce.hip"));
    recorder.work.run(&format!(
        "clang++-22 -O1 -w -x hip --offload-arch=gfx1030 reduce.hip -o plain -lamdhip64 && \
         {hotswap} retarget plain --to gfx1031 --allow names -o reduce"
    ));
    judge(&recorder, "./reduce", "");
    let wrong = recorder.run(&T, "./reduce");
    assert!(wrong.empty().iter().any(|dispatch| dispatch.kernel.contains("target_archE4294967295")), "{wrong:?}");
    // Both kinds in one process.
    let both = recorder.run(&Setup { devices: "gfx1030,gfx1031", has_names: true, variables: NAMES }, "./reduce");
    assert_eq!((both.code, both.output.as_str()), (Some(0), "device 0 gfx1030\ndevice 1 gfx1030\n"), "{}", both.error);
    assert!(both.dispatches.iter().all(|dispatch| dispatch.is_for_device() && !dispatch.is_empty));
    assert_eq!(difference(&both.on(0), &both.on(1)), None);
    assert_eq!(difference(&recorder.run(&S, "./reduce").dispatches, &both.on(0)), None);
}

#[test]
fn rocrand_on_a_sibling_starts_the_kernels_of_the_source() {
    const TEST: &str = "rocRAND on a sibling";
    let Some(recorder) = Recorder::new(TEST) else { return };
    let Some(hotswap) = recorder.hotswap(TEST) else { return };
    recorder.work.write("random.cpp", include_bytes!("../cases/random.cpp"));
    recorder.work.run(&format!(
        "g++ -O1 -w -D__HIP_PLATFORM_AMD__ random.cpp -o random -lamdhip64 -lrocrand && mkdir served && \
         {hotswap} prune /usr/lib/*/librocrand.so.1 --keep gfx1030 -o trimmed && \
         {hotswap} retarget trimmed --to gfx1031 --allow names -o served/librocrand.so.1 && rm trimmed"
    ));
    judge(&recorder, "./random", "LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$PWD/served");
    // The same by the file of a served tree, which names the library alone.
    recorder.work.write("served/hotswap-names.conf", b"names gfx1031=gfx1030\nserves librocrand.so.1\n");
    let variables = "LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$PWD/served";
    let reference = recorder.run(&Setup { variables, ..S }, "./random");
    let served = recorder.run(&Setup { has_names: true, variables, ..T }, "./random");
    assert_eq!(
        (served.code, difference(&reference.dispatches, &served.dispatches)),
        (Some(0), None),
        "{}",
        served.error
    );
}

/// Copies the part of rocBLAS's package that has code for gfx1030, without those of other GPUs: a tenth of it.
const COPY: &str = r#"mkdir -p "$1/usr/lib" && cd "$0" &&
find . \( -name '*gfx1030*' -o -name '*fallback.dat' -o -name 'librocblas.so*' \) -print0 |
    tar -cf - --null -T - | tar -xf - -C "$1/usr/lib""#;

/// Copies rocBLAS to `package`, and builds `blas.c`. rocBLAS marks ranges for profilers by a library of another
/// package, whose functions become empty ones.
fn build_blas(recorder: &Recorder, package: &Path) -> String {
    let copied = Command::new("sh").arg("-c").arg(COPY).arg(package).arg(recorder.work.path("package")).status();
    assert!(copied.is_ok_and(|status| status.success()), "the package cannot be copied");
    recorder.work.write("blas.c", include_bytes!("../cases/blas.c"));
    let directory = recorder.work.run("dirname package/usr/lib/*/librocblas.so.5").trim().to_owned();
    recorder.work.run(&format!(
        "mkdir roctx && nm -D --undefined-only {directory}/librocblas.so.5 | grep -o 'roctx[A-Za-z]*' | sort -u |
             sed 's/.*/int &(void) {{ return 0; }}/' > roctx/roctx.c && echo 'ROCTX_4.1 {{ global: *; }};' > roctx/map &&
         gcc -w -shared -fPIC -Wl,-soname,libroctx64.so.4 -Wl,--version-script=roctx/map roctx/roctx.c \
             -o hsa/libroctx64.so.4 &&
         gcc -Wall -Wextra blas.c -o blas -lamdhip64 -L{directory} -l:librocblas.so.5 -Wl,-rpath-link,hsa"
    ));
    directory
}

#[test]
fn rocblas_of_a_served_tree_starts_the_kernels_of_the_source() {
    const TEST: &str = "rocBLAS on a sibling";
    let Some(recorder) = Recorder::new(TEST) else { return };
    let Some(hotswap) = recorder.hotswap(TEST) else { return };
    let stack = std::env::var_os(ENV_STACK).unwrap_or_default();
    let has_rocblas = |directory: &PathBuf| directory.to_string_lossy().contains("rocblas");
    let Some(package) = std::env::split_paths(&stack).find(has_rocblas) else {
        return skip(TEST, &format!("{ENV_STACK} names no rocBLAS"));
    };
    let directory = build_blas(&recorder, &package);
    if !recorder.work.shell(&format!("{hotswap} serve --help")).status.success() {
        return skip(TEST, "this `hotswap` has no command `serve`");
    }
    recorder.work.run(&format!("{hotswap} serve gfx1031 --root $PWD/package/usr --from gfx1030 --dest $PWD/served"));
    let own = format!("LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$PWD/{directory}");
    let reference = recorder.run(&Setup { variables: &own, ..S }, "./blas");
    assert_eq!(reference.code, Some(0), "{}", reference.error);
    assert!(
        reference.dispatches.iter().any(|dispatch| dispatch.kernel.contains("ISA1030")),
        "no tuned kernel was seen"
    );
    // Without the library rocBLAS asks for files of gfx1031 and aborts.
    let served = "LD_LIBRARY_PATH=$LD_LIBRARY_PATH:$(dirname $PWD/served/lib/*/librocblas.so.5) \
                  ROCBLAS_TENSILE_LIBPATH=$(echo $PWD/served/lib/*/rocblas/5/library)";
    let aborted = recorder.run(&Setup { variables: served, ..T }, "./blas");
    assert!(aborted.code.is_none() && aborted.error.contains("rocBLAS error: Cannot read"), "{}", aborted.error);
    // With it, the tree's file is enough.
    let setup = Setup { has_names: true, variables: served, ..S };
    let both = recorder.run(&Setup { devices: "gfx1030,gfx1031", ..setup }, "./blas");
    assert_eq!((both.code, both.error.as_str()), (Some(0), ""));
    assert!(both.dispatches.iter().all(|dispatch| dispatch.is_for_device()));
    for device in [0, 1] {
        assert_eq!(difference(&reference.dispatches, &both.on(device)), None, "device {device}");
    }
    a_served_package_is_pruned(&recorder, &hotswap, &directory, &reference);
    the_tree_is_tried(&recorder, &hotswap);
}

/// A package that is served and then pruned to the served GPU starts the same kernels: its data has the source's name.
fn a_served_package_is_pruned(recorder: &Recorder, hotswap: &str, directory: &str, reference: &Recorded) {
    recorder.work.run(&format!(
        "tar -C package -cf blas.tar usr && {hotswap} serve gfx1031 blas.tar --from gfx1030 --dest packed &&
         {hotswap} prune packed/blas.tar --keep gfx1031 -o pruned.tar && rm packed/blas.tar &&
         mkdir pruned && tar -C pruned -xf pruned.tar && rm pruned.tar &&
         {hotswap} uses pruned --gpu gfx1031 > pruned.uses"
    ));
    let pruned = directory.replacen("package", "$PWD/pruned", 1);
    let variables =
        format!("LD_LIBRARY_PATH=$LD_LIBRARY_PATH:{pruned} ROCBLAS_TENSILE_LIBPATH={pruned}/rocblas/5/library");
    let right = recorder.run(&Setup { has_names: true, variables: &variables, ..T }, "./blas");
    assert_eq!((right.code, right.error.as_str()), (Some(0), ""));
    assert!(right.dispatches.iter().all(|dispatch| dispatch.is_for_device()));
    assert_eq!(difference(&reference.dispatches, &right.dispatches), None);
    // A file that the answer names is missed by the answer and by the program.
    recorder.work.run(&format!("rm {}/rocblas/5/library/TensileLibrary_lazy_gfx1030.dat", pruned.replace("$PWD/", "")));
    let told = recorder.work.run(&format!("{hotswap} uses pruned --gpu gfx1031 2>&1; echo code $?"));
    assert!(told.contains("TensileLibrary_lazy_gfx1030.dat") && !told.contains("code 0"), "{told}");
    let wrong = recorder.run(&Setup { has_names: true, variables: &variables, ..T }, "./blas");
    assert!(wrong.code.is_none() && wrong.error.contains("Cannot read"), "{}", wrong.error);
}

/// `serve --try` sees the silent fault: without the names rocRAND starts kernels that have no body, and reports nothing.
#[test]
fn rocrand_of_a_served_tree_is_tried() {
    const TEST: &str = "rocRAND of a served tree";
    let Some(recorder) = Recorder::new(TEST) else { return };
    let Some(hotswap) = recorder.hotswap(TEST) else { return };
    recorder.work.run(&format!(
        "mkdir root && {hotswap} prune /usr/lib/*/librocrand.so.1 --keep gfx1030 -o root/librocrand.so.1 && \
         {hotswap} serve gfx1031 --root root --from gfx1030 --dest tree"
    ));
    let right = recorder.work.run(&format!("{hotswap} serve --try --dest tree --format json"));
    assert!(right.contains("\"result\": \"right\"") && right.contains("generate_philox"), "{right}");
    let wrong = recorder
        .work
        .run(&format!("sed -i /LD_PRELOAD/d tree/env.sh; {hotswap} serve --try --dest tree 2>&1; echo code $?"));
    assert!(wrong.contains("4096 of 4096 values are wrong") && wrong.contains("code 13"), "{wrong}");
}

/// rocFFT compiles its kernels while the trial runs.
#[test]
fn rocfft_of_a_served_tree_is_tried() {
    const TEST: &str = "rocFFT of a served tree";
    let Some(recorder) = Recorder::new(TEST) else { return };
    let Some(hotswap) = recorder.hotswap(TEST) else { return };
    let stack = std::env::var_os(ENV_STACK).unwrap_or_default();
    let has_rocfft = |directory: &PathBuf| directory.to_string_lossy().contains("rocfft");
    let Some(package) = std::env::split_paths(&stack).find(has_rocfft) else {
        return skip(TEST, &format!("{ENV_STACK} names no rocFFT"));
    };
    let copied = Command::new("cp").arg("-a").arg(package).arg(recorder.work.path("root")).status();
    assert!(copied.is_ok_and(|status| status.success()), "the package cannot be copied");
    recorder.work.run(&format!("{hotswap} serve gfx1031 --root root --from gfx1030 --dest tree"));
    let right =
        recorder.work.run(&format!("HOME=$PWD {hotswap} serve --try --dest tree --format json; find .cache; true"));
    assert!(right.contains("\"result\": \"right\"") && right.contains("fft_rtc_fwd_len_240"), "{right}");
    assert!(!right.contains(".cache/"), "the trial left kernels in a cache: {right}");
    let cut = recorder.work.run(&format!(
        "truncate -s 500000 $(find tree -name 'librocfft.so.0.?')
         {hotswap} serve --try --dest tree 2>&1; echo code $?"
    ));
    assert!(cut.contains("code 13\n") && !cut.contains("right, "), "{cut}");
}

/// Files of the tree that a product of matrices needs, as rocBLAS names them, and its words where one is missing.
const NEEDED: &[(&str, &str)] = &[
    ("TensileLibrary_lazy_gfx1030.dat", "rocBLAS error: Cannot read"),
    ("TensileLibrary_Type_SS_Contraction_l_Ailk_Bljk_Cijk_Dijk_gfx1030.co", "rocblas_sgemm returned the error"),
    ("TensileLibrary_Type_SS_Contraction_l_Ailk_Bljk_Cijk_Dijk_gfx1030.dat", "it was ended by signal"),
];

/// `serve --try`: rocBLAS computes on the emulated GPU, and does not where the tree lacks a file.
fn the_tree_is_tried(recorder: &Recorder, hotswap: &str) {
    recorder.work.run("mkdir -p roctx && cp hsa/libroctx64.so.4 roctx/");
    let tries = |change: &str, back: &str| {
        let script = format!(
            "cd served/lib/*/rocblas/5/library && {change} && cd - > /dev/null
             LD_LIBRARY_PATH=$PWD/roctx {hotswap} serve --try --dest served 2>&1; echo code $?
             cd served/lib/*/rocblas/5/library && {back}"
        );
        recorder.work.run(&script)
    };
    let right = tries("true", "true");
    assert!(right.contains("right, 9216 values") && right.contains("Cijk_Ailk_Bljk_SB"), "{right}");
    assert!(right.contains("code 0\n") && !right.contains("FAILED"), "{right}");
    for (file, reason) in NEEDED {
        let missing = tries(&format!("mv {file} ../kept"), &format!("mv ../kept {file}"));
        let is_found = missing.contains("FAILED") && missing.contains(&format!("rocBLAS on gfx1031: {reason}"));
        assert!(is_found && missing.contains("code 13\n"), "without {file}: {missing}");
    }
    // Code that is cut off, or damaged: comgr may know the whole file by the hash in its header, from the trial before.
    let (code, _) = NEEDED[1];
    for change in [format!("truncate -s 4096 {code}"), format!("echo damaged | dd of={code} seek=500 conv=notrunc")] {
        let changed = tries(&format!("cp {code} ../kept && {change}"), &format!("mv ../kept {code}"));
        assert!(changed.contains("rocBLAS on gfx1031") && changed.contains("code 13\n"), "{change}: {changed}");
    }
    // A file that this product does not need.
    let other = "TensileLibrary_Type_SS_Contraction_l_Ailk_Bljk_Cijk_Dijk_fallback_gfx1030.hsaco";
    let other = tries(&format!("mv {other} ../kept"), &format!("mv ../kept {other}"));
    assert!(other.contains("right, 9216") && other.contains("HS0422") && other.contains("code 13\n"), "{other}");
}
