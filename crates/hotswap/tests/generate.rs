//! Man pages and completions: every command has a page with its options, and shells know the commands.

use assert_cmd::Command;

fn generate(words: &[&str]) -> String {
    let assert = Command::new(env!("CARGO_BIN_EXE_hotswap")).arg("generate").args(words).assert().success();
    String::from_utf8(assert.get_output().stdout.clone()).unwrap()
}

#[test]
fn every_command_has_a_page_with_its_options() {
    let pages = generate(&["pages"]);
    let names: Vec<&str> = pages.lines().collect();
    assert!(names.contains(&"hotswap-retarget") && names.contains(&"hotswap") && names.len() > 25);
    for name in &names {
        let words: Vec<&str> = ["man"].into_iter().chain(name.strip_prefix("hotswap-")).collect();
        let page = generate(&words);
        assert!(page.contains(".SH NAME\n") && page.contains(&name.replace('-', "\\-")), "{name}: {page}");
    }
    assert!(generate(&["man", "retarget"]).contains("keep\\-source"));
    let mut absent = Command::new(env!("CARGO_BIN_EXE_hotswap"));
    absent.args(["generate", "man", "absent"]).assert().code(2);
}

#[test]
fn completions_know_the_commands() {
    for shell in ["bash", "zsh", "fish"] {
        let text = generate(&[shell]);
        assert!(text.contains("retarget") && text.contains("doctor"), "{shell}");
    }
}
