//! A label of any length: laid out anew, appended, reverted; and the differences that the comparison detects.

use hotswap_code_object::{CodeObject, ObjectEdit, same_but_for_label};
use hotswap_samples::code_object::Sample;
use hotswap_targets::EFlags;
use proptest::prelude::*;

fn sample(target: &str, kernels: Vec<&'static str>, notes: usize) -> Sample {
    let id = target.rsplit("amdhsa-").next().unwrap().trim_start_matches("unknown").trim_start_matches('-');
    let flags = EFlags::of(&id.parse().unwrap()).encode();
    Sample { target: target.to_owned(), flags, kernels, notes, ..Sample::default() }
}

fn relabelled(bytes: &[u8], target: &str) -> Vec<u8> {
    let object = CodeObject::parse(bytes).unwrap();
    let id = target.parse().unwrap();
    let mut edit = ObjectEdit::new(&object);
    edit.set_note_target(&object.note().respell_target(&id)).unwrap();
    edit.set_e_flags(EFlags::of(&id).encode());
    let made = edit.finish();
    let again = CodeObject::parse(&made).unwrap();
    assert_eq!(again.target_id(), id);
    same_but_for_label(&object, &again).unwrap();
    let copy = CodeObject::parse_copy(&made, &object).unwrap();
    assert_eq!(format!("{copy:?}"), format!("{again:?}"));
    // Parts that are as in the other file were taken from there.
    assert!(object.descriptors().is_empty() || std::ptr::eq(copy.descriptors(), object.descriptors()));
    made
}

/// Names that give every length of note and string table modulo 64.
const NAMES: &str = "kernel_with_a_name_of_up_to_as_many_letters_as_there_can_be_in_the_padding";

#[test]
fn every_length_is_laid_out_as_a_linker_would_or_appended() {
    let (mut laid_out, mut appended) = (0, 0);
    for (arch, generic) in [
        ("amdgcn-amd-amdhsa-", "amdgcn-amd-amdhsa-"),
        ("amdgpu10.30-amd-amdhsa-unknown", "amdgpu10.3-amd-amdhsa-unknown"),
    ] {
        for length in 1..NAMES.len() {
            for notes in [1, 2] {
                let kernels = vec![&NAMES[..length], "second"];
                let native = sample(&format!("{arch}-gfx1030"), kernels.clone(), notes).build();
                let wanted = sample(&format!("{generic}-gfx10-3-generic"), kernels, notes).build();
                let made = relabelled(&native, "gfx10-3-generic");
                if made.len() == native.len() {
                    // The sample is laid out from scratch, as a linker does it.
                    assert!(made == wanted, "{arch} {length} {notes}");
                    laid_out += 1;
                } else {
                    let object = CodeObject::parse(&made).unwrap();
                    let note = &object.sections()[1];
                    assert_eq!((note.flags, note.address, note.range.end), (0, 0, made.len()));
                    assert_eq!(object.segments()[1].range, note.range);
                    appended += 1;
                }
                // A second time changes nothing; the reverse gives the first object where it was laid out.
                assert!(relabelled(&made, "gfx10-3-generic") == made);
                let back = relabelled(&made, "gfx1030");
                assert!(back == native || made.len() != native.len(), "{arch} {length} {notes}");
                assert!(relabelled(&back, "gfx1031").len() == back.len());
            }
        }
    }
    assert!(laid_out > 100 && appended > 10, "{laid_out} {appended}");
}

#[test]
fn what_knows_an_address_of_a_table_keeps_it_in_place() {
    let native = sample("amdgcn-amd-amdhsa--gfx1030", vec!["a", "b"], 1).build();
    let roomy = relabelled(&native, "gfx10-3-generic");
    assert_eq!(roomy.len(), native.len(), "the sample has room");
    let object = CodeObject::parse(&native).unwrap();
    let table = u64::from_le_bytes(native[40..48].try_into().unwrap()) as usize;
    let symbols = object.sections()[2].range.clone();
    let tail = object.sections()[3].range.end;
    // A symbol in `.dynstr`; a byte in the padding; a section of another kind in the window.
    let changes: [(usize, &[u8]); 3] = [(symbols.start + 6, &[3, 0]), (tail, &[1]), (table + 3 * 64 + 4, &[1])];
    for (at, with) in changes {
        let mut bytes = native.clone();
        bytes[at..at + with.len()].copy_from_slice(with);
        if CodeObject::parse(&bytes).is_err() {
            continue;
        }
        let made = relabelled(&bytes, "gfx10-3-generic");
        assert!(made.len() > bytes.len(), "{at:#x}");
        assert_eq!(made[symbols.clone()], bytes[symbols.clone()]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// The comparison detects every changed byte outside of the label.
    #[test]
    fn a_changed_byte_is_noticed(position in 0.0f64..1.0, bit in 0u8..8, name in 1usize..70) {
        let native = sample("amdgcn-amd-amdhsa--gfx1030", vec![&NAMES[..name], "second"], 1).build();
        let object = CodeObject::parse(&native).unwrap();
        let made = relabelled(&native, "gfx10-3-generic");
        let at = (position * made.len() as f64) as usize;
        let mut wrong = made.clone();
        wrong[at] ^= 1 << bit;
        let [again, copy] = [CodeObject::parse(&wrong), CodeObject::parse_copy(&wrong, &object)];
        prop_assert_eq!(format!("{again:?}"), format!("{copy:?}"), "{:#x}", at);
        let label = [8, 48, 49, 50, 51].contains(&at);
        if let Ok(changed) = again && !label && changed.target_id() == "gfx10-3-generic".parse().unwrap() {
            // Of an appended note's own rows, parts that are never read may differ.
            prop_assert!(same_but_for_label(&object, &changed).is_err() || is_unread(&object, at), "{at:#x}");
        }
    }
}

/// Addresses, flags and sizes in memory in the rows of the note.
fn is_unread(object: &CodeObject<'_>, at: usize) -> bool {
    let sections = u64::from_le_bytes(object.bytes()[40..48].try_into().unwrap()) as usize;
    (64 + 56 + 16..64 + 56 + 48).contains(&at) || (sections + 64 + 8..sections + 64 + 24).contains(&at)
}
