//! The JSON form of the disassembly: a document that any reader accepts, whose bytes are those of the file.
//!
//! It is the root of a fuzz target (`fuzz/Cargo.toml`), in this directory because the command is a program without a library, whose
//! modules it includes.
#![no_main]
#![allow(dead_code, unused_imports, unreachable_pub)]

mod args;
mod commands {
    pub(crate) mod disasm;
}
mod outcome;
mod stream_input;
mod work {
    pub(crate) mod inventory;
    pub(crate) use hotswap_report::text;
}

use clap::Parser;
use commands::disasm::{self, DisasmArguments};
use hotswap_report::codes;
use serde_json::Value;

libfuzzer_sys::fuzz_target!(|input: &[u8]| check(input));

#[derive(Parser)]
struct Words {
    #[command(flatten)]
    arguments: DisasmArguments,
}

thread_local! {
    static WORDS: Words = Words::parse_from(["disasm", "file", "--all", "--format", "json", "--demangle"]);
}

fn check(input: &[u8]) {
    let mut text = Vec::new();
    let outcome = WORDS.with(|words| disasm::write(&words.arguments, input, &mut text));
    let problems = match &outcome {
        Ok(outcome) => outcome.problems.as_slice(),
        Err(error) => std::slice::from_ref(error),
    };
    for problem in problems {
        assert!(![codes::VERIFY_FAILED, codes::INTERNAL].contains(&problem.code), "{problem}");
    }
    if outcome.is_err() {
        return assert!(text.is_empty(), "an error after a part of the document");
    }
    let document: Value = serde_json::from_slice(&text).expect("a JSON document");
    let objects = document["objects"].as_array().expect("a list of objects");
    let is_alone = input.starts_with(b"\x7fELF") && objects.len() == 1 && objects[0]["place"] == "0x0";
    for section in objects.iter().flat_map(|object| object["sections"].as_array().expect("a list of sections")) {
        let bytes = shown(section);
        assert_eq!(bytes.len() as u64, number(section, "size"), "a section is shown in part");
        let start = number(section, "file_offset") as usize;
        assert!(!is_alone || input.get(start..start + bytes.len()) == Some(&bytes), "bytes that are not the file's");
    }
}

/// The bytes of a section in the document, after the addresses were seen to follow each other.
fn shown(section: &Value) -> Vec<u8> {
    let (mut bytes, mut address) = (Vec::new(), number(section, "address"));
    let chunks = section["symbols"].as_array().expect("a list of symbols");
    for item in chunks.iter().flat_map(|chunk| chunk["instructions"].as_array().expect("a list of instructions")) {
        let size = number(item, "size");
        assert_eq!(number(item, "offset"), address);
        address = address.wrapping_add(size);
        let before = bytes.len();
        match item["padding"].as_str() {
            Some(word) => {
                let word = u32::from_str_radix(word, 16).expect("a word").to_le_bytes();
                bytes.extend(word.into_iter().cycle().take(size as usize));
            }
            None => {
                let digits = item["bytes"].as_str().expect("digits");
                bytes.extend((0..digits.len()).step_by(2).map(|at| byte_of_digits(digits, at)));
            }
        }
        assert_eq!((bytes.len() - before) as u64, size);
    }
    bytes
}

fn byte_of_digits(digits: &str, at: usize) -> u8 {
    u8::from_str_radix(&digits[at..at + 2], 16).expect("two digits")
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().expect("a number")
}
