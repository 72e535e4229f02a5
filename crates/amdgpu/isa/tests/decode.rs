//! Decoding and lengths: known words, every entry with random fields, arbitrary bytes, cut-off input.

mod common;

use common::Random;
use hotswap_isa::{Inst, Isa, TableEntry, Target, Undecoded, Wave};
use proptest::prelude::*;

const KNOWN: &str = include_str!("known.txt");

fn isa(name: &str) -> Isa {
    Isa::new(Target::find(name).unwrap_or_else(|| panic!("no target {name}")))
}

/// A target of every family in all modes that differ.
fn isas() -> Vec<Isa> {
    let names =
        ["gfx900", "gfx90a", "gfx942", "gfx950", "gfx1010", "gfx1030", "gfx1100", "gfx1170", "gfx1201", "gfx1250"];
    let mut result: Vec<Isa> = Vec::new();
    for isa in names.map(isa) {
        for (wave, true16) in [(Wave::W32, true), (Wave::W32, false), (Wave::W64, true), (Wave::W64, false)] {
            let isa = isa.with_wave(wave).with_true16(true16);
            if !result.iter().any(|other| other.features() == isa.features()) {
                result.push(isa);
            }
        }
    }
    result
}

#[test]
fn known_words() {
    for line in KNOWN.lines().filter(|line| !line.starts_with('#')) {
        let (target, rest) = line.split_once(' ').unwrap();
        let words: Vec<&str> = rest.split_whitespace().collect();
        let is_byte = |word: &&&str| word.len() == 2 && u8::from_str_radix(word, 16).is_ok();
        let count = words.iter().take_while(is_byte).count();
        let bytes: Vec<u8> = words[..count].iter().map(|word| u8::from_str_radix(word, 16).unwrap()).collect();
        let wanted = words[count..].join(" ");
        let found = match isa(target).decode(&bytes) {
            Ok(inst) => {
                assert_eq!(usize::from(inst.len()), bytes.len(), "{line}");
                assert_eq!(isa(target).instruction_size(&bytes), Some(inst.len()), "{line}");
                inst.mnemonic().to_owned()
            }
            Err(Undecoded::Opaque { len: Some(len) }) => format!("opaque {len}"),
            Err(Undecoded::Opaque { len: None }) => "opaque".to_owned(),
            Err(Undecoded::Truncated { have }) => {
                assert_eq!(have, bytes.len(), "{line}");
                "truncated".to_owned()
            }
        };
        assert_eq!(found, wanted, "{line}");
    }
}

/// Every entry on every target that has it: random fields, and random fields whose bytes are often 255, 254, 250, 249,
/// 234 and 233, which announce literals and further words.
#[test]
fn size_agrees_with_decode_on_every_entry() {
    let mut numbers = Random::new(2);
    let (mut tried, mut decoded) = (0u32, 0u32);
    for isa in isas() {
        for entry in TableEntry::all_entries().filter(|entry| entry.available(isa)) {
            let (value, mask) = entry.fixed();
            for round in 0..4 {
                let mut random = numbers.wide();
                if round & 1 != 0 {
                    let special = [0xff, 0xfe, 0xfa, 0xf9, 0xea, 0xe9][numbers.next() as usize % 6];
                    let at = [0, 8, 32, 41, 50, 64][numbers.next() as usize % 6];
                    random = random & !(0x1ff << at) | special << at;
                }
                let mut bytes = [0; 20];
                bytes[..16].copy_from_slice(&(random & !mask | value).to_le_bytes());
                bytes[16..].copy_from_slice(&(numbers.next() as u32).to_le_bytes());
                tried += 1;
                if let Ok(inst) = isa.decode(&bytes) {
                    decoded += 1;
                    assert_eq!(isa.instruction_size(&bytes), Some(inst.len()), "{isa:?} {inst:?} {bytes:02x?}");
                    judge(isa, &bytes, &inst);
                }
            }
        }
    }
    println!("{tried} words tried, {decoded} decoded");
    assert!(decoded > tried / 2, "{decoded} of {tried}");
}

/// Properties of every instruction, whatever the bytes.
fn judge(isa: Isa, bytes: &[u8], inst: &Inst) {
    let len = usize::from(inst.len());
    assert!(len <= bytes.len() && len <= usize::from(isa.longest()));
    assert_eq!(inst.bytes()[..len], bytes[..len]);
    assert!(inst.bytes()[len..].iter().all(|byte| *byte == 0));
    assert!(inst.entry().available(isa));
    assert_eq!(isa.decode(&bytes[..len]), Ok(*inst), "bytes behind an instruction matter");
    for cut in 0..len {
        assert!(isa.decode(&bytes[..cut]) != Ok(*inst));
    }
}

#[test]
fn memory_of_the_tables() {
    let mut sum = 0;
    for (name, bytes) in hotswap_isa::table_bytes() {
        println!("{bytes:>9} {name}");
        sum += bytes;
    }
    println!("{sum:>9} all generations together, {} entries", TableEntry::all_entries().count());
    assert!(sum <= 5 << 20);
}

#[test]
fn odd_input() {
    for isa in isas() {
        assert_eq!(isa.decode(&[]), Err(Undecoded::Truncated { have: 0 }));
        assert_eq!(isa.decode(&[0xbf; 3]), Err(Undecoded::Truncated { have: 3 }));
        assert_eq!(isa.walk(&[]).count(), 0);
        for byte in [0, 0xff] {
            let bytes = [byte; 27];
            let items: Vec<_> = isa.walk(&bytes).collect();
            assert!(items.windows(2).all(|pair| pair[0].0 < pair[1].0));
        }
    }
}

#[test]
fn unknown_targets_are_not_found() {
    for name in ["", "gfx", "gfx803", "gfx1300", "GFX900", "gfx900:xnack+"] {
        assert!(Target::find(name).is_none(), "{name}");
    }
}

#[test]
fn modes() {
    let gfx9 = isa("gfx900");
    assert_eq!(gfx9.wave(), Wave::W64);
    assert_eq!(gfx9.with_wave(Wave::W32).wave(), Wave::W64);
    let gfx11 = isa("gfx1100");
    assert_eq!((gfx11.wave(), gfx11.true16()), (Wave::W32, true));
    assert_eq!(gfx11.with_wave(Wave::W64).with_true16(false).wave(), Wave::W64);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn every_input_has_an_answer(bytes in proptest::collection::vec(any::<u8>(), 0..24), target in 0..Target::all_targets().len()) {
        let isa = Isa::new(&Target::all_targets()[target]);
        match isa.decode(&bytes) {
            Ok(inst) => {
                prop_assert_eq!(isa.instruction_size(&bytes), Some(inst.len()));
                judge(isa, &bytes, &inst);
            }
            Err(Undecoded::Opaque { len }) => prop_assert!(len.is_none_or(|len| usize::from(len) <= bytes.len())),
            Err(Undecoded::Truncated { have }) => prop_assert!(have == bytes.len() && have < 20),
        }
    }

    #[test]
    fn walking_covers_every_byte(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let isa = isa("gfx1250");
        let mut end = 0;
        let mut walk = isa.walk(&bytes);
        while let Some((offset, _)) = walk.next() {
            prop_assert_eq!(offset, end);
            end = walk.offset();
        }
        prop_assert_eq!(end, bytes.len());
    }
}
