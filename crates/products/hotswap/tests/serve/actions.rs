//! `hotswap serve --list-actions`, `--action` and `--made`: outputs that are made apart from their tree, and faults in them.

use super::*;

/// The actions that are listed for the tree, the last of which makes it.
fn listed(directory: &Directory, words: &str) -> Vec<Value> {
    let listed = directory.run(&format!("{words} --list-actions")).success();
    let text = String::from_utf8(listed.get_output().stdout.clone()).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn texts(value: &Value) -> Vec<&str> {
    value.as_array().unwrap().iter().map(|word| word.as_str().unwrap()).collect()
}

/// Runs an action in a directory with its declared inputs and nothing else, and returns its outputs to the first one.
fn run_elsewhere(directory: &Directory, action: &Value) {
    let worker = Directory(TempDir::new().unwrap());
    for input in texts(&action["inputs"]) {
        worker.write(input, &directory.read(input));
    }
    let mut command = Command::new(crate::made::installed());
    command.args(&texts(&action["arguments"])[1..]).current_dir(worker.0.path()).assert().success();
    for output in texts(&action["outputs"]) {
        directory.write(output, &worker.read(output));
    }
}

/// rocBLAS alone, with an index that can be read: rocRAND chooses by a table of names.
fn use_own_names(directory: &Directory) {
    fs::remove_file(directory.path("rocm/lib/librocrand.so.1.1")).unwrap();
    directory.write(&format!("{DATA}/TensileLibrary_lazy_gfx1030.dat"), &placeholder("x_gfx1030"));
}

#[test]
fn outputs_made_elsewhere_make_the_same_tree() {
    for options in ["", " --names own"] {
        let directory = Directory::rocm();
        if !options.is_empty() {
            use_own_names(&directory);
        }
        let words = format!("serve gfx1031 --root rocm --dest out{options}");
        directory.run(&words).success();
        let plain = directory.state("out");
        directory.run("serve --undo --dest out").success();
        let actions = listed(&directory, &format!("{words} --made made"));
        assert!(!directory.exists("out") && !directory.exists("made"), "nothing was run");
        let (last, rest) = actions.split_last().unwrap();
        assert_eq!(rest.len(), if options.is_empty() { 5 } else { 4 }, "{actions:#?}");
        rest.iter().rev().for_each(|action| run_elsewhere(&directory, action));
        let made = directory.state("made");
        let tree = texts(&last["arguments"])[1..].join(" ");
        directory.run(&tree).success().stderr(contains("HS0437").not());
        let content = |state: State| state.into_iter().map(|(path, (bytes, _))| (path, bytes)).collect::<Vec<_>>();
        assert_eq!(content(directory.state("out")), content(plain));
        assert_eq!(directory.state("made"), made, "it is only read");
        assert!(texts(&last["inputs"]).contains(&"rocm") && texts(&last["outputs"]) == ["out"], "{last:#}");
    }
}

#[test]
fn outputs_that_are_not_the_run_s_own_are_made_anew() {
    let directory = Directory::rocm();
    let words = "serve gfx1031 --root rocm --dest out --made made";
    let code = format!("made/{}", DATA.strip_prefix("rocm/").unwrap());
    let code = format!("{code}/Kernels.so-000-gfx1030.hsaco");
    let record = format!("{code}.hotswap-made.json");
    let actions = listed(&directory, words);
    let make = || actions[..actions.len() - 1].iter().for_each(|action| run_elsewhere(&directory, action));
    directory.run("serve gfx1031 --root rocm --dest out").success();
    let plain: Vec<Vec<u8>> = directory.state("out").into_values().map(|(bytes, _)| bytes).collect();
    let others = listed(&directory, "serve gfx1032 --root rocm --dest out --made other");
    others[..others.len() - 1].iter().for_each(|action| run_elsewhere(&directory, action));
    let other = code.replacen("made", "other", 1);
    let host = "made/lib/librocrand.so.1.1";
    let faults: [(&str, &dyn Fn()); 8] = [
        ("a device for a record", &|| {
            fs::remove_file(directory.path(&record)).unwrap();
            symlink("/dev/zero", directory.path(&record)).unwrap();
        }),
        ("a directory for an output", &|| {
            fs::remove_file(directory.path(&code)).unwrap();
            fs::create_dir(directory.path(&code)).unwrap();
        }),
        ("another content", &|| directory.write(&code, &directory.read(&other))),
        ("content and record of another GPU", &|| {
            directory.write(&code, &directory.read(&other));
            directory.write(&record, &directory.read(&format!("{other}.hotswap-made.json")));
        }),
        ("one bit", &|| {
            let mut bytes = directory.read(&code);
            *bytes.last_mut().unwrap() ^= 1;
            directory.write(&code, &bytes);
        }),
        ("no record", &|| fs::remove_file(directory.path(&record)).unwrap()),
        ("no output", &|| fs::remove_file(directory.path(&code)).unwrap()),
        ("a damaged record", &|| directory.write(&record, b"{")),
    ];
    for (fault, plant) in faults {
        let _ = fs::remove_dir_all(directory.path("made"));
        make();
        plant();
        directory.run("serve --undo --dest out").success();
        directory.run(words).success().stderr(contains("HS0437").and(contains("Kernels.so-000-gfx1030.hsaco")));
        let again: Vec<Vec<u8>> = directory.state("out").into_values().map(|(bytes, _)| bytes).collect();
        assert!(again == plain, "{fault}");
    }
    // A record that takes the output for a copy of its input, and says so truly of another file.
    make();
    let record = format!("{host}.hotswap-made.json");
    let text = String::from_utf8(directory.read(&record)).unwrap();
    directory.write(&record, text.replace("false", "true").as_bytes());
    directory.run("serve --undo --dest out").success();
    directory.run(words).success().stderr(contains("HS0437").and(contains("librocrand")));
    assert!(directory.targets("out/lib/librocrand.so.1.1", rand_object)[0].contains("gfx1031"));
    // The library has changed since.
    make();
    directory.run("serve --undo --dest out").success();
    directory.write(&format!("{DATA}/Kernels.so-000-gfx1030.hsaco"), &rand_object("gfx1030"));
    directory.run(words).success().stderr(contains("HS0437"));
    let out = format!("out/{}", code.strip_prefix("made/").unwrap());
    assert_eq!(directory.targets(&out, rand_object), ["gfx1030 gfx1031"]);
}

#[test]
fn wrong_actions_are_refused_and_write_nothing() {
    let directory = Directory::rocm();
    directory.run("serve gfx1031 --root rocm --dest out --list-actions").code(2).stderr(contains("--made"));
    directory.run("serve gfx9999 --root rocm --dest out --made made --list-actions").code(11);
    directory.run("serve --action {} -o x").code(2).stderr(contains("missing field"));
    directory.run("serve --action {}").code(2);
    directory.run("serve gfx1031 --root rocm --dest out -o x").code(2).stderr(contains("-o is for --action"));
    for made in ["rocm", "rocm/lib/new", "."] {
        directory.run(&format!("serve gfx1031 --root rocm --dest out --made {made}")).code(2);
    }
    directory.run("serve gfx1031 package.whl --dest out --made made").code(2).stderr(contains("an action by itself"));
    let actions = listed(&directory, "serve gfx1031 --root rocm --dest out --made made");
    let (_, rest) = actions.split_last().unwrap();
    let before = directory.state("rocm");
    for action in rest {
        let words = texts(&action["arguments"]);
        let input = texts(&action["inputs"])[0];
        let mut command = Command::new(crate::made::installed());
        command.args(["serve", "--action", words[3], "-o", input]).current_dir(directory.0.path());
        command.assert().code(2).stderr(contains("the output is an input"));
    }
    assert_eq!(directory.state("rocm"), before);
    for (old, new, expected) in [
        ("gfx1031", "gfx9999", 11),
        ("gfx1031", "gfx90a:xnack+", 2),
        ("gfx1031", "gfx1100", 11),
        ("rocm/", "nothing/", 14),
    ] {
        for action in rest {
            let words = texts(&action["arguments"]);
            // rocRAND has code for gfx1100, which its host part would start wrongly.
            let code = if new == "gfx1100" && words[3].contains("librocrand") { 13 } else { expected };
            let mut command = Command::new(crate::made::installed());
            command.args(["serve", "--action", &words[3].replace(old, new), "-o", "x"]).current_dir(directory.0.path());
            command.assert().code(code);
            assert!(!directory.exists("x"));
        }
    }
}

#[test]
fn listed_commands_have_all_options_of_the_tree() {
    let directory = Directory::rocm();
    let words = "--max-size 2M serve gfx1031 --root rocm --dest out --from gfx1030 --keep gfx1100 --leave-out kernels --made made";
    let actions = listed(&directory, words);
    for action in &actions {
        assert!(texts(&action["arguments"]).contains(&"--max-size=2097152"), "{action:#}");
    }
    let last = texts(&actions.last().unwrap()["arguments"]).join(" ");
    for option in ["--from=gfx1030", "--keep=gfx1100", "--leave-out=kernels", "--made made"] {
        assert!(last.contains(option), "{last}");
    }
    let words = "serve gfx1031 --root=-rocm --dest=-out --made=-made";
    fs::rename(directory.path("rocm"), directory.path("-rocm")).unwrap();
    let actions = listed(&directory, words);
    actions.iter().for_each(|action| {
        let mut command = Command::new(crate::made::installed());
        command.args(&texts(&action["arguments"])[1..]).current_dir(directory.0.path()).assert().success();
    });
    assert!(directory.exists("-out/env.sh"));
}
