//! Reads, writes and bank roles of typical and odd instructions: one case a line in `effects_manual.txt`.
//!
//! The lines were printed by this test and reviewed, not written beforehand: they record what was reviewed and catch
//! nothing that the review missed. Independently of it, `effects.rs` compares every entry with its operands and rows,
//! and `isa check` compares the rows with LLVM's records.
//!
//! A line is TARGET[:w64], the words, the reads and the writes, separated by `|`. A register with `~` is written in
//! part; a following `'0`, `'1`, `'2`, `'d` is its bank-mode role (gfx12.5 only); `*` means that no operand names it.

use hotswap_isa::bank::{BankRole, VgprBanks};
use hotswap_isa::effects::{EffectIter, RegisterEffect, Space, WaitCounter};
use hotswap_isa::reg::{Reg, RegFile, Special};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Flag, Inst, Isa, Target, Wave};

fn isa(name: &str) -> Isa {
    let (target, wave) = name.split_once(':').unwrap_or((name, ""));
    let isa = Isa::new(Target::find(target).expect("a target of the rows"));
    if wave == "w64" { isa.with_wave(Wave::W64) } else { isa }
}

fn decode(isa: Isa, words: &str) -> Inst {
    let words = words.split_whitespace().map(|word| u32::from_str_radix(word, 16).expect("a word"));
    let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
    isa.decode(&bytes).unwrap_or_else(|error| panic!("{bytes:02x?}: {error:?}"))
}

fn described(effects: EffectIter, roles: bool) -> String {
    let one = |effect: RegisterEffect| {
        let role = match effect.role.filter(|_| roles && effect.reg.file == RegFile::Vgpr) {
            None => "",
            Some(BankRole::Source0) => "'0",
            Some(BankRole::Source1) => "'1",
            Some(BankRole::Source2) => "'2",
            Some(BankRole::Destination) => "'d",
        };
        let mark = |is, text| if is { text } else { "" };
        format!("{}{}{role}{}", mark(effect.partial, "~"), effect.reg, mark(effect.slot.is_none(), "*"))
    };
    effects.map(one).collect::<Vec<_>>().join(" ")
}

#[test]
fn reads_and_writes_stay_as_reviewed() {
    let mut wrong = Vec::new();
    let mut cases = 0;
    for line in include_str!("effects_manual.txt").lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        let fields: Vec<&str> = line.split('|').map(str::trim).collect();
        let [target, words, text, reads, writes] = fields[..] else { panic!("not a case: {line}") };
        let isa = isa(target);
        let inst = decode(isa, words);
        let roles = target.starts_with("gfx125");
        let found = [
            inst.text(isa).to_string().trim().to_owned(),
            described(inst.reads(isa), roles),
            described(inst.writes(isa), roles),
        ];
        if found != [text, reads, writes] {
            wrong.push(format!("{target} | {words} | {}", found.join(" | ")));
        }
        cases += 1;
    }
    assert!(wrong.is_empty(), "{} of {cases} are different, found:\n{}", wrong.len(), wrong.join("\n"));
    assert!(cases > 200);
}

#[test]
fn a_set_has_what_other_names_stand_for() {
    let special = |special, dwords| Reg::special(special, dwords);
    let cases = [
        ("gfx900", "be8000fb", special(Special::VccLo, 2)),
        ("gfx900", "be8000fc", special(Special::ExecLo, 2)),
        ("gfx900", "7e0002fe", special(Special::M0, 1)),
    ];
    for (target, words, reg) in cases {
        let isa = isa(target);
        assert!(decode(isa, words).read_set(isa, VgprBanks::ENTRY).contains(reg), "{words} reads {reg}");
    }
}

#[test]
fn registers_chosen_by_m0_may_be_any() {
    // v_movreld_b32, v_movrels_b32, s_movreld_b64, s_movrelsd_2_b32.
    for (words, file) in [
        ("7e028502", RegFile::Vgpr),
        ("7e028702", RegFile::Vgpr),
        ("be804302", RegFile::Sgpr),
        ("be804401", RegFile::Sgpr),
    ] {
        let isa = isa("gfx1100");
        let inst = decode(isa, words);
        assert!(inst.is(Flag::Indexed), "{inst:?}");
        let all = RegSet::all_of(file);
        assert!(all.is_subset(&inst.written_set(isa, VgprBanks::ENTRY)), "{inst:?}");
        assert!(all.is_subset(&inst.read_set(isa, VgprBanks::ENTRY)), "{inst:?}");
        assert!(inst.overwritten_set(isa, VgprBanks::ENTRY).is_empty(), "{inst:?}");
    }
}

#[test]
fn index_mode_of_gfx9() {
    let cases = [
        ("gfx900", "bf110900", Some(true)),
        ("gfx900", "bf9c0000", Some(false)),
        ("gfx900", "b900f801", Some(true)),
        ("gfx900", "b9001801", None),
        ("gfx900", "02020702", None),
        ("gfx1030", "b980f801", None),
    ];
    for (target, words, mode) in cases {
        let isa = isa(target);
        assert_eq!(decode(isa, words).index_mode(isa), mode, "{words} on {target}");
    }
}

#[test]
fn counters_by_hand() {
    let cases: &[(&str, &str, &[WaitCounter], Option<Space>)] = &[
        ("gfx1100", "bfb60001", &[WaitCounter::LgkmAll], None),
        ("gfx1200", "bfb60001", &[WaitCounter::Scalar], None),
        ("gfx1200", "be80507d", &[WaitCounter::Scalar], None),
        ("gfx1200", "ee0ac07c 00000000 00000000", &[WaitCounter::Load], Some(Space::Global)),
        ("gfx1200", "ee0b007c 00000000 00000000", &[WaitCounter::Store], Some(Space::Global)),
        ("gfx900", "d97f0000 00000001", &[WaitCounter::LgkmAll, WaitCounter::Export], Some(Space::Gds)),
        ("gfx1100", "d8fe0000 00000001", &[WaitCounter::LgkmAll, WaitCounter::Export], Some(Space::Gds)),
        ("gfx900", "e0500000 01010004", &[WaitCounter::Load], Some(Space::Buffer)),
    ];
    let all = [
        WaitCounter::Load,
        WaitCounter::Store,
        WaitCounter::Sample,
        WaitCounter::Bvh,
        WaitCounter::LgkmAll,
        WaitCounter::Lds,
    ];
    let all =
        all.into_iter().chain([WaitCounter::Scalar, WaitCounter::Export, WaitCounter::Async, WaitCounter::Tensor]);
    for (target, words, counters, space) in cases {
        let isa = isa(target);
        let inst = decode(isa, words);
        let found: Vec<WaitCounter> =
            all.clone().filter(|counter| inst.wait_counters(isa).has_counter(*counter)).collect();
        assert_eq!(
            (found.as_slice(), inst.memory_access().map(|memory| memory.space)),
            (*counters, *space),
            "{inst:?}"
        );
    }
}
