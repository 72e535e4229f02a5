//! Every table entry, with random fields: changing a field changes its bits and nothing else, and an instruction that
//! is rebuilt from its operands has the same operands.

mod common;

use common::{Random, entries, random};
use hotswap_isa::encode::{EncodeError, reassemble};
use hotswap_isa::{Inst, Isa};
use std::collections::BTreeMap;

fn low(inst: &Inst) -> u128 {
    let bytes = inst.bytes();
    u128::from_le_bytes(bytes[..16].try_into().expect("16 of 20 bytes"))
}

/// Instructions of every table entry, at most `most` of each.
fn each_instruction(most: usize, mut check: impl FnMut(&Inst, Isa)) {
    let mut source = Random::new(3);
    let (mut accepted, mut without) = (0, Vec::new());
    let all = entries(3);
    let total = all.len();
    for (entry, settings) in all {
        let tries = (0..4).flat_map(|_| &settings);
        let found = tries.filter_map(|isa| Some((random(entry, *isa, &mut source)?, *isa))).take(most);
        let found = found.map(|(inst, isa)| check(&inst, isa)).count();
        accepted += found;
        if found == 0 {
            without.push(entry);
        }
    }
    // Entries of the 16-bit spellings that another entry always precedes have none.
    println!("{accepted} instructions; {} of {total} lines came up with none", without.len());
    assert!(accepted > total * 9 / 10, "only {accepted} instructions");
    assert!(without.len() * 100 < total, "{without:?}");
}

#[test]
fn the_same_value_is_no_change() {
    each_instruction(12, |inst, isa| {
        for field in inst.entry().fields() {
            let value = inst.gather(field.pieces);
            let again = inst.with_field(isa, field.name, value);
            assert_eq!(again.as_ref(), Ok(inst), "{inst:?} {} {isa:?}", field.name.as_str());
        }
    });
}

#[test]
fn a_field_takes_its_bounds_or_says_why_not() {
    let mut refused: BTreeMap<&str, usize> = BTreeMap::new();
    each_instruction(1, |inst, isa| {
        for field in inst.entry().fields() {
            let held = field
                .pieces
                .iter()
                .fold(0, |held: u64, piece| held | (u64::MAX >> (64 - u32::from(piece.width))) << piece.from);
            let top = 1 << (63 - held.leading_zeros());
            for value in [0, held, top, held & !top, held & held.wrapping_neg()] {
                match inst.with_field(isa, field.name, value) {
                    Ok(changed) => {
                        assert_eq!(changed.gather(field.pieces), value);
                        let own = field.pieces.iter().filter(|piece| piece.at < 128).fold(0u128, |bits, piece| {
                            bits | (u128::MAX >> (128 - u32::from(piece.width))) << piece.at
                        });
                        assert_eq!((low(&changed) ^ low(inst)) & !own, 0, "{inst:?} {}", field.name.as_str());
                    }
                    Err(EncodeError::OutOfRange { .. }) => panic!("{inst:?} {} {value:#x}", field.name.as_str()),
                    Err(EncodeError::OtherInstruction { .. }) => *refused.entry("other instruction").or_default() += 1,
                    Err(EncodeError::OtherLength { .. }) => *refused.entry("other length").or_default() += 1,
                    Err(EncodeError::Undecodable) => *refused.entry("undecodable").or_default() += 1,
                    Err(error) => panic!("{inst:?} {} {value:#x}: {error}", field.name.as_str()),
                }
            }
            if held != u64::MAX {
                let beyond = inst.with_field(isa, field.name, held.wrapping_add(1) | !held & held.wrapping_neg());
                assert!(beyond.is_err() || held & (held + 1) != 0, "{inst:?} {}", field.name.as_str());
            }
        }
    });
    println!("refused: {refused:?}");
}

#[test]
fn rebuilding_keeps_entry_and_operands() {
    let mut built = 0usize;
    let mut refused: BTreeMap<String, (usize, String)> = BTreeMap::new();
    each_instruction(12, |inst, isa| match reassemble(inst, isa) {
        Ok(again) => {
            built += 1;
            assert_eq!(again.entry(), inst.entry());
            for (before, after) in inst.operands(isa).zip(again.operands(isa)) {
                let name = before.name.as_str();
                assert_eq!(before.value, after.value, "{inst:?} became {again:?} on {isa:?}: {name}");
            }
            assert_eq!(again.len(), inst.len(), "{inst:?} became {again:?} on {isa:?}");
            assert_eq!(again.literal(), inst.literal());
        }
        Err(error) => {
            let name = format!("{error:?}").split(['(', ' ']).next().unwrap_or_default().to_owned();
            let place = refused.entry(name).or_insert_with(|| (0, format!("{inst:?} {isa:?}: {error}")));
            place.0 += 1;
        }
    });
    println!("built {built}, refused:");
    for (name, (count, example)) in &refused {
        println!("{count:8} {name}: {example}");
    }
}
