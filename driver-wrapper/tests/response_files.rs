//! Response files with random quoting: our tokens are those of the real compiler, which names each in an error message.

#[allow(dead_code, reason = "other tests use the rest")]
mod common;

use common::Bench;
use std::ffi::OsString;
use std::fs;

const FILES: usize = 60;

/// Bytes that matter to quoting; `a` begins a token that is no option and no file.
const ALPHABET: &[u8] = b"aab'\"\\ \t\n\r$`#";

/// A generator whose numbers are the same in every run.
struct NumberSequence(u64);

impl NumberSequence {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % limit
    }
}

fn contents() -> Vec<Vec<u8>> {
    let mut numbers = NumberSequence(7);
    let mut file = || {
        let length = 1 + numbers.below(40);
        (0..length).map(|_| ALPHABET[numbers.below(ALPHABET.len())]).collect()
    };
    (0..FILES).map(|_| file()).collect()
}

/// Clang's message for each token that is no file.
fn messages(words: &[OsString]) -> String {
    let line = |word: &OsString| format!("clang: error: no such file or directory: '{}'\n", word.display());
    words.iter().map(line).collect()
}

#[test]
fn tokens_are_those_of_the_real_compiler() {
    let Some(bench) = Bench::new("tokens_are_those_of_the_real_compiler") else { return };
    let contents = contents();
    for (number, content) in contents.iter().enumerate() {
        fs::write(bench.at(&format!("r{number}")), content).unwrap();
    }
    for version in bench.versions() {
        let script = format!("for n in $(seq 0 {}); do $RC @r$n 2> said$n; done; true", FILES - 1);
        bench.run(version, &script);
        let mut tokens = 0;
        for (number, content) in contents.iter().enumerate() {
            let words = hotswap_files::tokenize_gnu(content);
            let said = fs::read(bench.at(&format!("said{number}"))).unwrap();
            let text = String::from_utf8_lossy(&said).into_owned();
            let said = text.replace(&format!("clang-{version}:"), "clang:");
            let expected = messages(&words) + "clang: error: no input files\n";
            assert_eq!(said, expected, "clang {version}, file `{}`", content.escape_ascii());
            tokens += words.len();
        }
        assert!(tokens > FILES, "the files hold {tokens} tokens");
    }
}
