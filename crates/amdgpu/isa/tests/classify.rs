//! The classifier against the decoder: every entry, every upper half of a first word, arbitrary words.

mod common;

use common::{Random, settings};
use hotswap_isa::{ClassRule, Classifier, Implicit, Inst, Isa, Name, QuickClass, QuickClassifier, TableEntry};

const SOURCES: [Name; 4] = [Name::Src0, Name::Src1, Name::Src2, Name::Src0X];
/// A number that is a valid source on some targets and not on others.
const NUMBER: u64 = 230;

fn class(entry: TableEntry) -> Option<u8> {
    let class = entry.id() % 250;
    (!class.is_multiple_of(16)).then_some(class as u8)
}

fn grade(entry: TableEntry) -> ClassRule {
    let slots = entry.slots().iter().filter(|slot| SOURCES.contains(&slot.name));
    let except = slots.map(|slot| (slot.pieces(), NUMBER)).collect();
    ClassRule { class: class(entry), except, without_scalars: without_scalars(entry) }
}

fn without_scalars(entry: TableEntry) -> bool {
    entry.id() % 4 > 1
}

fn touches_scalars(inst: &Inst, isa: Isa) -> bool {
    let mut found = false;
    let implicit = inst.visit(isa, |effect| found |= effect.is_scalar());
    found || implicit.writes.has_register(Implicit::Vcc) || implicit.writes.has_register(Implicit::Scc)
}

/// Whether there is an answer, which must be right; and whether there is an instruction that could have one.
fn judge(isa: Isa, classifier: &Classifier, bytes: &[u8; 20]) -> (bool, bool) {
    let decoded = isa.decode(bytes);
    let plain = decoded.as_ref().is_ok_and(|inst| {
        let slots = inst.entry().slots().iter();
        let mut sources = slots.filter(|slot| SOURCES.contains(&slot.name));
        let touches = without_scalars(inst.entry()) && touches_scalars(inst, isa);
        class(inst.entry()).is_some() && !touches && !sources.any(|slot| inst.raw_slot(slot) == NUMBER)
    });
    let Some(seen) = classifier.classify_bytes(bytes) else { return (false, plain) };
    let inst = decoded.unwrap_or_else(|error| panic!("{isa:?} {bytes:02x?}: {seen:?}, but {error}"));
    assert!(plain, "{isa:?} {bytes:02x?}: {seen:?}, but {inst:?}");
    let expected = (inst.len(), class(inst.entry()), inst.entry());
    assert_eq!((seen.len, Some(seen.class), seen.entry), expected, "{isa:?} {inst:?} {bytes:02x?}");
    (true, true)
}

fn bytes_of(low: u128, last: u32) -> [u8; 20] {
    let mut bytes = [0; 20];
    bytes[..16].copy_from_slice(&low.to_le_bytes());
    bytes[16..].copy_from_slice(&last.to_le_bytes());
    bytes
}

/// Values of fields that announce literals and further words, or have another special meaning.
const SPECIAL: [u128; 8] = [0xff, 0xfe, 0xfa, 0xf9, 0xea, 0xe9, 0xe6, 0x7c];

#[test]
fn every_entry_in_every_setting() {
    let mut numbers = Random::new(3);
    let (mut answers, mut plain) = (0u64, 0u64);
    for isa in settings() {
        let classifier = Classifier::new(isa, grade);
        for entry in TableEntry::all_entries().filter(|entry| entry.available(isa)) {
            let (value, mask) = entry.fixed();
            for round in 0..4 {
                let mut random = numbers.wide();
                let at = [0, 8, 9, 32, 41, 50][numbers.next() as usize % 6];
                match round {
                    // Registers, which every field takes.
                    0 => random = random & !(0x1ff | 0x7ff_ffff << 32) | 0x102 | 0x402_0501 << 32,
                    1 => {}
                    _ => random = random & !(0x1ff << at) | SPECIAL[numbers.next() as usize % 8] << at,
                }
                let (answer, could) = judge(isa, &classifier, &bytes_of(random & !mask | value, numbers.next() as u32));
                answers += u64::from(answer);
                plain += u64::from(could);
            }
        }
    }
    // Most lines are rare forms (lane operations, images), which need the decoder; in real code hardly any is.
    assert!(plain > 500_000 && answers * 10 > plain * 4, "{answers} answers for {plain} instructions");
}

/// Second words: registers, a literal in each source, the number in the second one, all bits.
const SECOND: [u128; 6] = [0, 0x402_0501, 0xfdff_00ff, 0x1cc0_0000, 0xe6 << 9, 0xffff_ffff];

#[test]
fn every_upper_half_with_every_kind_of_source() {
    for name in ["gfx900", "gfx942", "gfx1030", "gfx1100", "gfx1201", "gfx1250"] {
        let isa = Isa::new(hotswap_isa::Target::find(name).unwrap());
        let classifier = Classifier::new(isa, grade);
        for upper in 0..=0xffffu128 {
            for (turn, lower) in (upper as usize..).zip([0, 0x102, 0x80, 0xf8, 0xe602].into_iter().chain(SPECIAL)) {
                let second = SECOND[turn % SECOND.len()];
                judge(isa, &classifier, &bytes_of(upper << 16 | lower | second << 32, 7));
            }
        }
    }
}

#[test]
fn arbitrary_words() {
    let mut numbers = Random::new(4);
    for isa in settings() {
        let classifier = Classifier::new(isa, grade);
        for _ in 0..20_000 {
            judge(isa, &classifier, &bytes_of(numbers.wide(), numbers.next() as u32));
        }
    }
}

/// The answer for two targets: that of the first where the other one decodes the same.
#[test]
fn two_targets_at_once() {
    let isa = |name| Isa::new(hotswap_isa::Target::find(name).unwrap());
    let mut numbers = Random::new(5);
    let (mut shared, mut lost) = (0, 0);
    let (source, target) = (isa("gfx1250"), isa("gfx1250-strict"));
    let (both, one) = (Classifier::shared_by(&[source, target], grade), Classifier::new(source, grade));
    for entry in TableEntry::all_entries().filter(|entry| entry.available(source) || entry.available(target)) {
        let (value, mask) = entry.fixed();
        for _ in 0..16 {
            let random = numbers.wide() & !(0x1ff | 0x7ff_ffff << 32) | 0x102 | 0x402_0501 << 32;
            let bytes = bytes_of(random & !mask | value, numbers.next() as u32);
            let seen = both.classify_bytes(&bytes);
            judge(target, &both, &bytes);
            judge(source, &both, &bytes);
            let same = source.decode(&bytes) == target.decode(&bytes);
            assert!(same || seen.is_none(), "{bytes:02x?}");
            assert_eq!(seen, one.classify_bytes(&bytes).filter(|_| same), "{bytes:02x?}");
            shared += u32::from(seen.is_some());
            lost += u32::from(!same);
        }
    }
    assert!(shared > 5_000 && lost > 100, "{shared} shared, {lost} not");
    // One has other lookup tables.
    let bytes = bytes_of(0x7e00_0280, 0);
    assert!(
        Classifier::new(source, grade).classify_bytes(&bytes).is_some()
            || class(source.decode(&bytes).unwrap().entry()).is_none()
    );
    assert_eq!(Classifier::shared_by(&[source, isa("gfx1100")], grade).classify_bytes(&bytes), None);
    assert_eq!(Classifier::shared_by(&[], grade).classify_bytes(&bytes), None);
}

#[test]
fn lines_without_a_class_have_no_answer() {
    let isa = Isa::new(hotswap_isa::Target::find("gfx1250").unwrap());
    let classifier = Classifier::new(isa, |_| ClassRule::default());
    let s_nop = bytes_of(0xbf80_0000, 0);
    assert!(isa.decode(&s_nop).is_ok());
    assert_eq!(classifier.classify_bytes(&s_nop), None);
}

/// The same answers, and no fewer.
#[test]
fn a_glance_is_what_the_classifier_says() {
    let mut numbers = Random::new(6);
    for isa in settings() {
        for classes in [1, 8, 250] {
            let few =
                |entry: TableEntry| ClassRule { class: class(entry).map(|class| class % classes), ..grade(entry) };
            let classifier = Classifier::new(isa, few);
            let glance = QuickClassifier::new(classifier.clone());
            let check = |low: u128| {
                let bytes = bytes_of(low, 7);
                let seen = classifier.classify_bytes(&bytes).and_then(|seen| QuickClass::new(seen.len, seen.class));
                let glanced = glance.classify_bytes(&bytes);
                // Large classes do not fit in the tables.
                if classes <= 8 || glanced.is_some() {
                    assert_eq!(glanced, seen, "{isa:?} {bytes:02x?}");
                }
            };
            for upper in 0..=0xffffu128 {
                let wild = numbers.wide() & !0xffff_0000 | upper << 16;
                check(wild);
                check(wild & !(0x1ff | 0x7ff_ffff << 32) | 0x102 | 0x402_0501 << 32);
                // In each part of the lower half, with all opcodes there after some rounds.
                for special in SPECIAL.into_iter().filter(|_| classes == 8) {
                    check(wild & !0xff | special);
                    check(wild & !0xff00 | special << 8);
                    // Sources in the second word, together with others that are registers.
                    let tame = wild & !(0x1ff | 0x7ff_ffff << 32) | 0x101 | 0x402_0101 << 32;
                    for at in [32, 41, 50] {
                        check(tame & !(0x1ff << at) | special << at);
                    }
                }
            }
        }
    }
}
