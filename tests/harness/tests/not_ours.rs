//! A plan of the environment is for a whole build. Commands that it does not concern (CUDA, links without device code,
//! other host systems) run as with clang alone, and directories of tools that they name are respected.

use hotswap_tests::artifact::{devices, targets};
use hotswap_tests::mode::write_sources;
use hotswap_tests::{Bench, Call, Clang, Ran, Scratch, in_turn, one_of_each, parallel};

const PLAN: &str = "gfx1030=>gfx1031";
const CUDA: &str = "__attribute__((global)) void k(int *p) { *p = 1; }\n";

/// How a command has the plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    Environment,
    Arguments,
}

/// A command whose steps must be clang's.
#[derive(Debug, Clone, PartialEq)]
struct Command {
    args: &'static str,
    origin: Origin,
}

fn commands() -> Vec<Command> {
    const ARGS: &[&str] = &[
        "-c a.cu",
        "-c a.cu --offload-new-driver",
        "a.cu -o a --offload-new-driver",
        "-x cuda -c a.cpp --offload-new-driver",
        "-c a.cu -fgpu-rdc --offload-new-driver",
        "--target=powerpc64le-ibm-linux-gnu -c a.cu --offload-new-driver",
        "--target=powerpc64le-ibm-linux-gnu a.cu --offload-new-driver",
        "--target=x86_64-pc-windows-msvc a.cu --offload-new-driver",
    ];
    let both = |args: &&'static str| [Origin::Environment, Origin::Arguments].map(|origin| Command { args, origin });
    ARGS.iter().flat_map(both).collect()
}

fn scratch(bench: &Bench) -> Scratch {
    let scratch = bench.scratch();
    write_sources(&scratch, false);
    scratch.write("a.cu", CUDA);
    scratch.write("a.cpp", CUDA);
    scratch
}

/// The command under the plan.
fn planned<'b>(bench: &'b Bench, clang: &Clang, scratch: &Scratch, args: &[String], origin: Origin) -> Call<'b> {
    let mut words = vec![bench.installed("bin/hotswap-clang++")];
    if origin == Origin::Arguments {
        words.extend(["-Xoffload-linker".to_owned(), format!("--hotswap-retarget={PLAN}")]);
    }
    words.extend_from_slice(args);
    let call = Call::new(bench, &scratch.inside, &words).env("HOTSWAP_CLANG", clang.program.clone());
    if origin == Origin::Environment { call.env("HOTSWAP_RETARGET", PLAN) } else { call }
}

/// The commands that `-###` prints, without the names of temporary files.
fn steps(ran: &Ran) -> Vec<String> {
    let step = |line: &str| {
        let words = line.split_whitespace().map(|word| if word.contains("/tmp/") { "TEMPORARY" } else { word });
        words.collect::<Vec<_>>().join(" ")
    };
    ran.stderr.lines().filter(|line| line.starts_with(" \"")).map(step).collect()
}

fn compare(bench: &Bench, clang: &Clang, command: &Command) -> Result<(), String> {
    let scratch = scratch(bench);
    let mut args: Vec<String> = ["-###", "-nocudainc", "-nocudalib", "--offload-arch=sm_75"].map(str::to_owned).into();
    args.extend(command.args.split_whitespace().map(str::to_owned));
    let plain = [vec![clang.program.clone()], args.clone()].concat();
    let clangs = Call::new(bench, &scratch.inside, &plain).run();
    let ours = planned(bench, clang, &scratch, &args, command.origin).run();
    if steps(&clangs).is_empty() || !clangs.ok() {
        return Err(format!("clang: {}", clangs.brief()));
    }
    if ours.code != clangs.code || steps(&ours) != steps(&clangs) {
        return Err(format!("{:#?} are not clang's {:#?}, {}", steps(&ours), steps(&clangs), ours.brief()));
    }
    Ok(())
}

#[test]
fn not_ours_are_commands_for_cuda() {
    let Some(bench) = Bench::ready("CUDA under a plan") else { return };
    let all = commands();
    let cases = in_turn("CUDA under a plan", &all, &bench.clangs, |_| false);
    let results = parallel(&cases, |(clang, command)| compare(&bench, clang, command));
    let wrong: Vec<String> = cases
        .iter()
        .zip(&results)
        .filter_map(|((clang, command), result)| {
            Some(format!("clang {} {command:?}: {}", clang.version, result.as_ref().err()?))
        })
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An object with relocatable CUDA code, made without CUDA's own tools.
fn cuda_object(bench: &Bench, clang: &Clang, scratch: &Scratch) {
    scratch.write("cuda.ll", "target triple = \"nvptx64-nvidia-cuda\"\ndefine void @k() { ret void }\n");
    let image = "--image=file=cuda.bc,triple=nvptx64-nvidia-cuda,arch=sm_75,kind=cuda";
    let steps = [
        format!("{} -c -emit-llvm -x ir cuda.ll -o cuda.bc --target=nvptx64-nvidia-cuda", clang.program),
        format!("{} -o cuda.out {image}", clang.tool("llvm-offload-binary")),
        format!("{} -c plain.cpp -o cuda.o -Xclang -fembed-offload-object=cuda.out", clang.program),
    ];
    for step in steps {
        let words: Vec<&str> = step.split(' ').collect();
        let ran = Call::new(bench, &scratch.inside, &words).run();
        assert!(ran.ok(), "{step}: {}", ran.brief());
    }
}

/// NVIDIA's tools are not here, so the link fails; the command of each device link is printed before.
#[test]
fn not_ours_are_links_of_cuda_objects() {
    let Some(bench) = Bench::ready("CUDA objects") else { return };
    for clang in &bench.clangs {
        let scratch = scratch(&bench);
        cuda_object(&bench, clang, &scratch);
        let compile = "-fgpu-rdc --offload-new-driver --offload-arch=gfx1030 -c b.hip -o hip.o";
        let words = [clang.light(), compile.split(' ').map(str::to_owned).collect()].concat();
        let ran = planned(&bench, clang, &scratch, &words, Origin::Environment).run();
        assert!(ran.ok(), "{}", ran.brief());
        let link = "-v --offload-new-driver --hip-link -fgpu-rdc --offload-link hip.o cuda.o -o x";
        let words = [clang.hip.clone(), link.split(' ').map(str::to_owned).collect()].concat();
        for origin in [Origin::Environment, Origin::Arguments] {
            let ran = planned(&bench, clang, &scratch, &words, origin).run();
            let links = |triple: &str| {
                let is_link = |line: &&str| line.contains(&format!("--target={triple}"));
                ran.stderr.lines().filter(is_link).map(str::to_owned).collect::<Vec<_>>()
            };
            let (amd, nvidia) = ([links("amdgcn-amd"), links("amdgpu")].concat(), links("nvptx64-nvidia-cuda"));
            assert!(!amd.is_empty() && !nvidia.is_empty(), "clang {}: {}", clang.version, ran.stderr);
            assert!(amd.iter().all(|line| line.contains("--hotswap-plan=")), "clang {}: {amd:?}", clang.version);
            assert!(!nvidia.iter().any(|line| line.contains("hotswap-plan")), "clang {}: {nvidia:?}", clang.version);
        }
    }
}

#[test]
fn not_ours_are_links_without_device_code() {
    let Some(bench) = Bench::ready("links without device code") else { return };
    let clangs = one_of_each("links without device code", bench.clangs.clone(), |clang| clang.version, |_| true);
    for clang in &clangs {
        let scratch = scratch(&bench);
        let words = |text: &str| [clang.hip.clone(), text.split(' ').map(str::to_owned).collect()].concat();
        let plain = ["-c plain.cpp -o plain.o", "--hip-link plain.o -o clangs"].map(words);
        for args in plain {
            let ran = Call::new(&bench, &scratch.inside, &[vec![clang.program.clone()], args].concat()).run();
            assert!(ran.ok(), "{}", ran.brief());
        }
        for origin in [Origin::Environment, Origin::Arguments] {
            let ran = planned(&bench, clang, &scratch, &words("--hip-link plain.o -o ours"), origin).run();
            assert!(ran.ok() && ran.ours().is_empty(), "{origin:?}: {}", ran.brief());
            assert!(scratch.read("ours") == scratch.read("clangs"), "clang {} {origin:?}", clang.version);
        }
    }
}

/// Host systems for which no manifest can be made: the steps of HIP are printed, with one warning.
#[test]
fn not_ours_are_other_host_systems() {
    let Some(bench) = Bench::ready("other host systems") else { return };
    for clang in &bench.clangs {
        for triple in ["powerpc64le-ibm-linux-gnu", "x86_64-pc-windows-msvc"] {
            let scratch = scratch(&bench);
            let mut args = clang.light();
            args.extend(["-###", "-nogpulib", "--offload-arch=gfx1030", "a.hip"].map(str::to_owned));
            args.push(format!("--target={triple}"));
            let ran = planned(&bench, clang, &scratch, &args, Origin::Environment).run();
            assert!(ran.ok() && !steps(&ran).is_empty(), "clang {} {triple}: {}", clang.version, ran.brief());
            let warned = ran.stderr.lines().filter(|line| line.contains("warning: [HS")).count();
            assert_eq!(warned, 1, "clang {} {triple}: {}", clang.version, ran.stderr);
        }
    }
}

/// A directory of `-B` in which each tool notes its use and becomes clang's own.
fn own_tools(bench: &Bench, clang: &Clang, scratch: &Scratch, tools: &[&str]) {
    for tool in tools {
        let real = format!("/usr/lib/llvm-{}/bin/{tool}", clang.version);
        if bench.userland.outside(&real).exists() {
            scratch.script(
                &format!("own/{tool}"),
                &format!("echo {tool} >> {}\nexec {real} \"$@\"", scratch.inside("used")),
            );
        }
    }
}

#[test]
fn not_ours_are_tools_that_the_user_names() {
    let Some(bench) = Bench::ready("tools of -B") else { return };
    const ALL: &[&str] = &[
        "lld",
        "ld.lld",
        "clang-offload-bundler",
        "clang-linker-wrapper",
        "llvm-offload-binary",
        "clang-offload-packager",
    ];
    for clang in &bench.clangs {
        for (tools, args) in [
            (&["ld.lld"][..], "a.hip -fuse-ld=lld -o x"),
            (ALL, "a.hip -fuse-ld=lld -o x"),
            (ALL, "a.hip --no-offload-new-driver -o x"),
            (ALL, "-fgpu-rdc b.hip plain.cpp -o x"),
        ] {
            let run = |is_planned: bool| {
                let scratch = scratch(&bench);
                own_tools(&bench, clang, &scratch, tools);
                let mut words = clang.light();
                words.extend(clang.link.iter().cloned());
                words.extend([format!("-B{}", scratch.inside("own")), "--offload-arch=gfx1030".to_owned()]);
                words.extend(args.split(' ').map(str::to_owned));
                let ran = if is_planned {
                    planned(&bench, clang, &scratch, &words, Origin::Environment).run()
                } else {
                    Call::new(&bench, &scratch.inside, &[vec![clang.program.clone()], words].concat()).run()
                };
                assert!(ran.ok(), "clang {} {args}: {}", clang.version, ran.brief());
                let mut used: Vec<String> =
                    String::from_utf8_lossy(&scratch.read("used")).lines().map(str::to_owned).collect();
                used.sort();
                (used, targets(&devices(&scratch.read("x")).expect("the program can be read")))
            };
            let ((clangs, _), (ours, made)) = (run(false), run(true));
            assert_eq!(ours, clangs, "clang {} {args}", clang.version);
            assert!(made.contains_key("gfx1031"), "clang {} {args}: {made:?}", clang.version);
        }
    }
}

/// A plan of the environment is for commands that compile for its sources; others are clang's, with one note.
#[test]
fn not_ours_are_other_gpus() {
    let Some(bench) = Bench::ready("other GPUs") else { return };
    let clangs = one_of_each("other GPUs", bench.clangs.clone(), |clang| clang.version, |_| true);
    for clang in &clangs {
        let scratch = scratch(&bench);
        let words = |output: &str, archs: &str| {
            let mut words = clang.light();
            words.extend(["-fuse-cuid=none", "-c", "a.hip", "-o", output].map(str::to_owned));
            words.push(format!("--offload-arch={archs}"));
            words
        };
        let plain = [vec![clang.program.clone()], words("clangs.o", "gfx1100")].concat();
        assert!(Call::new(&bench, &scratch.inside, &plain).run().ok());
        let ran = planned(&bench, clang, &scratch, &words("ours.o", "gfx1100"), Origin::Environment).run();
        assert!(ran.ok() && ran.ours().len() == 1, "clang {}: {}", clang.version, ran.stderr);
        assert!(ran.stderr.contains("note: gfx1030=>gfx1031 of the environment's plan"), "{}", ran.stderr);
        assert!(scratch.read("ours.o") == scratch.read("clangs.o"), "clang {}", clang.version);
        let both = words("both.o", "gfx1030");
        let call = planned(&bench, clang, &scratch, &both, Origin::Environment);
        let ran = call.env("HOTSWAP_RETARGET", format!("{PLAN};gfx1100=>gfx1102")).run();
        assert!(ran.ok(), "clang {}: {}", clang.version, ran.stderr);
        let made = targets(&devices(&scratch.read("both.o")).expect("the object can be read"));
        assert_eq!(made.into_keys().collect::<Vec<_>>(), ["gfx1030", "gfx1031"], "clang {}", clang.version);
    }
}

/// The policy `compile` compiles what is missing for whichever reason: no source, or a pair that is not possible.
#[test]
fn not_ours_to_derive_is_compiled() {
    let Some(bench) = Bench::ready("compiled targets") else { return };
    for clang in &bench.clangs {
        for (pairs, archs, all) in [
            (PLAN, "gfx1100", "gfx1031,gfx1100"),
            ("gfx1030=>gfx1100", "gfx1030", "gfx1030,gfx1100"),
            ("gfx1102=>gfx1150", "gfx1102", "gfx1102,gfx1150"),
        ] {
            let scratch = scratch(&bench);
            let common = [clang.light(), ["-fuse-cuid=none", "-c", "a.hip"].map(str::to_owned).to_vec()].concat();
            let plain = [format!("--offload-arch={all}"), "-o".into(), "clangs.o".into()];
            let plain = [vec![clang.program.clone()], common.clone(), plain.to_vec()].concat();
            assert!(Call::new(&bench, &scratch.inside, &plain).run().ok());
            let mut ours = vec![bench.installed("bin/hotswap-clang++")];
            for word in [format!("--hotswap-retarget={pairs}"), "--hotswap-policy=compile".to_owned()] {
                ours.extend(["-Xoffload-linker".to_owned(), word]);
            }
            ours.extend(common);
            ours.extend([format!("--offload-arch={archs}"), "-o".into(), "ours.o".into()]);
            let ran = Call::new(&bench, &scratch.inside, &ours).env("HOTSWAP_CLANG", clang.program.clone()).run();
            assert!(ran.ok(), "clang {} {pairs}: {}", clang.version, ran.brief());
            let sorted = |name: &str| {
                let mut found = devices(&scratch.read(name)).expect("the object can be read");
                found.sort_by(|one, other| one.id.cmp(&other.id));
                found
            };
            assert!(sorted("ours.o") == sorted("clangs.o"), "clang {} {pairs}", clang.version);
        }
    }
}
