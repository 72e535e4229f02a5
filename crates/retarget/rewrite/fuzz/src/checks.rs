//! Properties that must hold for any input bytes, one function for each fuzz target.
//!
//! Nothing panics, and no memory is allocated just because a header claims a size. Written files can be parsed again.
//! Odd input is reported by the codes for input errors: a result that fails its verification would be a finding.

// Each target calls one of them.
#![allow(dead_code)]

use hotswap_code_object::image::{ImageLayout, ObjectImage};
use hotswap_program::{CodeSource, Program};
use hotswap_report::{Diagnostic, codes};
use hotswap_rewrite::{CodeEdits, RewriteOptions, rewrite_object, verify_object};
use std::collections::BTreeMap;

/// `s_nop 0`.
const NOP: [u8; 4] = 0xbf80_0000_u32.to_le_bytes();

fn check(error: &Diagnostic) {
    let ours = [codes::VERIFY_FAILED, codes::INTERNAL];
    assert!(!ours.contains(&error.code), "{error}");
    let line = error.to_string();
    assert!(!line.chars().any(char::is_control), "more than a line: {line}");
}

/// Writing the parts of a file restores it. With other sizes, writing succeeds or reports an error of the input.
pub(crate) fn image(input: &[u8]) {
    let image = match ObjectImage::parse(input) {
        Ok(image) => image,
        Err(error) => return check(&error),
    };
    let mut sizes: Vec<u64> = image.sections.iter().map(|section| section.size).collect();
    let again = ImageLayout::new(&image, &sizes).and_then(|layout| layout.write_file(&image));
    assert_eq!(again.as_deref().ok(), Some(input), "the old sizes give the old file");
    for error in [image.symbol_tables().err(), image.relocations().err()].into_iter().flatten() {
        check(&error);
    }
    for (number, section) in image.sections.iter().enumerate() {
        if section.is_in_file() && section.size > 0 {
            sizes[number] += [0, 4, 64, 5000][number % 4];
        }
    }
    if let Err(error) = ImageLayout::new(&image, &sizes).and_then(|layout| layout.write_file(&image)) {
        check(&error);
    }
}

/// Edits that depend on the input alone: its size is the seed.
fn edits(image: &ObjectImage<'_>, seed: u64) -> BTreeMap<usize, CodeEdits> {
    let sources = CodeSource::read(image.bytes()).unwrap_or_default();
    let mut all = BTreeMap::new();
    for (number, section) in image.sections.iter().enumerate().filter(|(_, section)| section.is_code()) {
        let Some(source) = sources.iter().find(|source| std::ptr::eq(source.bytes.as_ptr(), section.bytes.as_ptr()))
        else {
            continue;
        };
        let program = Program::build(source.clone());
        let mut edits = CodeEdits::new();
        for (at, inst) in program.source.isa.walk(section.bytes) {
            let Ok(inst) = inst else { continue };
            let chance = (at as u64 + seed).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            match chance % 11 {
                0 => edits.insert_before(at as u64, &NOP, &[]),
                1 => edits.insert_after(at as u64, &NOP, &[]),
                2 if inst.mnemonic() == "s_nop" => edits.remove(at as u64, u64::from(inst.len())),
                _ => {}
            }
        }
        all.insert(number, edits);
    }
    all
}

/// A result is valid if the input was, and a second run without edits reproduces it.
pub(crate) fn rewritten(input: &[u8]) {
    let image = match ObjectImage::parse(input) {
        Ok(image) => image,
        Err(error) => return check(&error),
    };
    let edits = edits(&image, input.len() as u64);
    match rewrite_object(input, &edits, &RewriteOptions::default()) {
        Ok(new) => {
            // Without edits the file is unchanged, valid or not.
            if let Err(error) = verify_object(&new.bytes) {
                assert!(new.bytes == input, "{error}");
            }
            let again = rewrite_object(&new.bytes, &BTreeMap::new(), &RewriteOptions::default());
            assert_eq!(again.map(|again| again.bytes).as_ref().ok(), Some(&new.bytes), "a second run");
        }
        // An invalid input has a result that is none, and the verification says so.
        Err(error) if error.code == codes::VERIFY_FAILED && verify_object(input).is_err() => {}
        Err(error) => check(&error),
    }
}
