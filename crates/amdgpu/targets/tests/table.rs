//! Consistency of the table, and round trips of target IDs and flags.

use hotswap_targets::{
    Capabilities, Capability, EFlags, FlagsError, PROCESSORS, Support, TargetError, TargetId, by_mach, by_triple,
    find_processor,
};
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn names_and_machines_are_unique_and_covered_processors_exist() {
    let names: BTreeSet<&str> = PROCESSORS.iter().map(|p| p.name).collect();
    let machines: BTreeSet<u8> = PROCESSORS.iter().map(|p| p.mach).collect();
    let subarches: BTreeSet<&str> = PROCESSORS.iter().map(|p| p.subarch).collect();
    assert_eq!([names.len(), machines.len(), subarches.len()], [PROCESSORS.len(); 3]);
    for generic in PROCESSORS {
        assert_eq!(generic.is_generic(), !generic.covers.is_empty(), "{generic}");
        for name in generic.covers {
            let covered = find_processor(name).unwrap_or_else(|| panic!("{generic} covers unknown {name}"));
            assert!(!covered.is_generic() && generic.covers(covered));
        }
    }
}

/// An alias changes neither lengths nor feature bits, so its members must agree in both.
#[test]
fn siblings_agree_in_everything_that_a_label_does_not_hold() {
    let groups: BTreeSet<&str> = PROCESSORS.iter().filter_map(|p| p.group).collect();
    assert_eq!(
        groups.into_iter().collect::<Vec<_>>(),
        ["gfx1010", "gfx1011", "gfx1030", "gfx1150", "gfx1200", "gfx900"]
    );
    for one in PROCESSORS.iter().filter(|p| p.group.is_some()) {
        assert!(find_processor(one.group.unwrap()).is_some_and(|first| first.group == one.group));
        for two in PROCESSORS.iter().filter(|p| p.group == one.group) {
            assert_eq!((one.name.len(), one.subarch.len()), (two.name.len(), two.subarch.len()));
            assert_eq!(
                (one.xnack, one.sramecc, one.family, one.waves),
                (two.xnack, two.sramecc, two.family, two.waves)
            );
            assert_eq!((one.limits, one.capabilities), (two.limits, two.capabilities), "{one} and {two}");
        }
    }
}

/// A sibling that a generic target does not list would lose the code that it has for the others.
#[test]
fn siblings_are_covered_by_the_same_generic_targets() {
    for generic in PROCESSORS.iter().filter(|p| p.is_generic()) {
        for first in generic.covers.iter().filter_map(|name| find_processor(name)) {
            for sibling in PROCESSORS.iter().filter(|p| p.group.is_some() && p.group == first.group) {
                assert!(generic.covers(sibling), "{generic} covers {first} and not its sibling {sibling}");
            }
        }
    }
}

#[test]
fn limits_fit_the_wave_sizes_and_each_other() {
    for processor in PROCESSORS {
        let limits = &processor.limits;
        for lanes in [0, 16, 32, 64, 128] {
            assert_eq!(limits.vgprs(lanes).is_some(), processor.waves.contains(lanes), "{processor} {lanes}");
            let Some(vgprs) = limits.vgprs(lanes) else {
                assert_eq!(limits.waves_with_vgprs(lanes, 1), 0);
                continue;
            };
            assert!(vgprs.addressable <= vgprs.allocatable && vgprs.allocatable <= vgprs.total, "{processor}");
            assert_eq!(limits.waves_with_vgprs(lanes, 0), u32::from(limits.waves_per_simd), "{processor}");
            assert!(limits.waves_with_vgprs(lanes, vgprs.allocatable.into()) >= 1, "{processor}");
            assert_eq!(limits.waves_with_vgprs(lanes, u32::from(vgprs.allocatable) + 1), 0, "{processor}");
            let largest = vgprs.descriptor_blocks(vgprs.allocatable.into());
            assert!(largest.is_some(), "{processor}: the descriptor has no room for all registers");
        }
        assert!(limits.lds.addressable <= limits.lds.per_cu * 2, "{processor}");
        assert_eq!(processor.has(Capability::VgprBanks), limits.wave32.is_some_and(|v| v.addressable > 256));
    }
}

#[test]
fn a_descriptor_states_at_least_what_was_asked_for() {
    for processor in PROCESSORS {
        for vgprs in [32, 64].iter().filter_map(|lanes| processor.limits.vgprs(*lanes)) {
            for count in 0..=u32::from(vgprs.allocatable) {
                let blocks = vgprs.descriptor_blocks(count).unwrap_or_else(|| panic!("{processor} {count}"));
                let described = vgprs.described_count(blocks);
                assert!(described >= count && described < count.max(1) + u32::from(vgprs.descriptor_granule));
            }
            assert_eq!(vgprs.descriptor_blocks(64 * u32::from(vgprs.descriptor_granule) + 1), None);
        }
    }
}

#[test]
fn triples_name_their_processor() {
    for processor in PROCESSORS {
        let [old, new] = processor.triples();
        assert_eq!((old.as_str(), by_triple(&new)), ("amdgcn-amd-amdhsa", Some(processor)));
    }
    assert_eq!(by_triple("amdgpu12.50-amd-amdhsa").unwrap().name, "gfx1250");
    assert_eq!(by_triple("amdgpu12.50s-amd-amdhsa").unwrap().name, "gfx1250-strict");
    for other in ["", "amdgpu", "amdgpu-amd-amdhsa", "amdgcn-amd-amdhsa", "amdgpu12.99-amd-amdhsa", "x86_64-linux-gnu"]
    {
        assert_eq!(by_triple(other), None, "{other}");
    }
}

#[test]
fn sets_of_capabilities_add_and_remove() {
    for one in Capability::ALL {
        let set = Capabilities::of_list(&[*one]);
        assert_eq!(set.iter().collect::<Vec<_>>(), [*one]);
        assert_eq!(
            Capabilities::of_list(Capability::ALL).without(&[*one]).with(&[*one]),
            Capabilities::of_list(Capability::ALL)
        );
        assert!(!Capabilities::of_list(Capability::ALL).without(&[*one]).contains(*one));
    }
    let names: BTreeSet<&str> = Capability::ALL.iter().map(|capability| capability.name()).collect();
    assert_eq!(names.len(), Capability::ALL.len());
}

#[test]
fn target_ids_are_read_in_any_order_and_written_in_one() {
    for (text, canonical) in [
        ("gfx1030", "gfx1030"),
        ("gfx90a:sramecc+:xnack-", "gfx90a:sramecc+:xnack-"),
        ("gfx90a:xnack-:sramecc+", "gfx90a:sramecc+:xnack-"),
        ("gfx900:xnack+", "gfx900:xnack+"),
        ("gfx9-4-generic:sramecc-", "gfx9-4-generic:sramecc-"),
        ("gfx1250-strict", "gfx1250-strict"),
    ] {
        assert_eq!(text.parse::<TargetId>().unwrap().to_string(), canonical);
    }
}

#[test]
fn a_text_that_is_no_target_id_is_refused_with_its_part() {
    for (text, part) in [
        ("", "`` is no known processor"),
        ("gfx9999", "`gfx9999` is no known processor"),
        ("gfx1030 ", "`gfx1030 ` is no known processor"),
        ("GFX1030", "no known processor"),
        ("gfx940", "withdrawn"),
        ("gfx941:xnack+", "withdrawn"),
        ("gfx1030:xnack+", "states xnack, which gfx1030 does not have"),
        ("gfx900:sramecc-", "states sramecc, which gfx900 does not have"),
        ("gfx906:xnack", "`xnack` in"),
        ("gfx906:", "`` in"),
        ("gfx906:tgsplit+", "`tgsplit+` in"),
        ("gfx906:xnack+:xnack+", "states xnack twice"),
    ] {
        let error: TargetError = text.parse::<TargetId>().unwrap_err();
        assert!(error.to_string().contains(part), "{text}: {error}");
    }
}

#[test]
fn features_are_carried_over_only_where_they_exist() {
    let xnack: TargetId = "gfx900:xnack+".parse().unwrap();
    assert_eq!(xnack.with_processor(find_processor("gfx902").unwrap()).unwrap().to_string(), "gfx902:xnack+");
    assert_eq!(xnack.with_processor(find_processor("gfx1030").unwrap()), None);
}

#[test]
fn known_flags_decode_to_their_target_ids() {
    for (flags, abi, id) in [
        (0x36, 4, "gfx1030"),
        (0x12c, 4, "gfx900"),
        (0x52f, 4, "gfx906"),
        (0x72f, 4, "gfx906:xnack+"),
        (0xe2f, 4, "gfx906:sramecc+:xnack-"),
        (0x0100_0151, 4, "gfx9-generic"),
        (0x0100_055f, 4, "gfx9-4-generic"),
        (0x549, 4, "gfx1250"),
        (0x149, 4, "gfx1250"),
        (0x12c, 1, "gfx900:xnack+"),
        (0x22f, 1, "gfx906:sramecc+:xnack-"),
    ] {
        let decoded = EFlags::decode(flags, abi).unwrap();
        assert_eq!(decoded.target_id().to_string(), id);
        assert_eq!(decoded.encode_for(abi), flags, "{id}");
    }
}

#[test]
fn flags_that_mean_nothing_are_refused() {
    type Fits = fn(&FlagsError) -> bool;
    let rows: &[(u32, u8, Fits)] = &[
        (0x00, 4, |e| matches!(e, FlagsError::Machine(0))),
        (0x40, 4, |e| matches!(e, FlagsError::Withdrawn { name: "gfx940", .. })),
        (0x4b, 4, |e| matches!(e, FlagsError::Withdrawn { name: "gfx941", .. })),
        (0x136, 4, |e| matches!(e, FlagsError::Feature { feature: "xnack", .. })),
        (0x2c, 4, |e| matches!(e, FlagsError::Feature { feature: "xnack", .. })),
        (0x12f, 4, |e| matches!(e, FlagsError::Feature { feature: "sramecc", .. })),
        (0x53, 4, |e| matches!(e, FlagsError::GenericVersion { expected: 1, found: 0, .. })),
        (0x0200_0053, 4, |e| matches!(e, FlagsError::GenericVersion { found: 2, .. })),
        (0x0100_0036, 4, |e| matches!(e, FlagsError::GenericVersion { expected: 0, .. })),
        (0x0100_0036, 3, |e| matches!(e, FlagsError::Reserved(_))),
        (0x1036, 4, |e| matches!(e, FlagsError::Reserved(_))),
        (0x36, 0, |e| matches!(e, FlagsError::Abi(0))),
        (0x36, 5, |e| matches!(e, FlagsError::Abi(5))),
    ];
    for (flags, abi, fits) in rows {
        let error = EFlags::decode(*flags, *abi).unwrap_err();
        assert!(fits(&error), "{flags:#x}: {error}");
    }
}

fn settled() -> impl Strategy<Value = TargetId> {
    let usable: Vec<_> = PROCESSORS
        .iter()
        .filter(|p| !p.withdrawn && p.xnack != Support::Unsettled)
        .map(TargetId::of_processor)
        .collect();
    (prop::sample::select(usable), any::<[Option<bool>; 2]>()).prop_map(|(mut id, [xnack, sramecc])| {
        id.xnack = xnack.filter(|_| id.processor.xnack == Support::Yes);
        id.sramecc = sramecc.filter(|_| id.processor.sramecc == Support::Yes);
        id
    })
}

proptest! {
    #[test]
    fn target_ids_survive_text_and_flags(id in settled()) {
        prop_assert_eq!(id.to_string().parse::<TargetId>(), Ok(id));
        for abi in 1..=4 {
            let flags = EFlags::of(&id).encode_for(abi);
            if abi == 4 || (abi > 1 && !id.processor.is_generic()) {
                prop_assert_eq!(EFlags::decode(flags, abi).unwrap().target_id(), id);
            }
        }
    }

    #[test]
    fn every_flags_value_that_decodes_encodes_to_itself(flags: u32, mach: u8, abi in 0u8..6) {
        let flags = (flags & 0x0100_0f00) | u32::from(mach);
        if let Ok(decoded) = EFlags::decode(flags, abi) {
            prop_assert_eq!(decoded.encode_for(abi), flags);
            prop_assert_eq!(by_mach(mach), Some(decoded.processor));
        }
    }

    #[test]
    fn no_text_makes_reading_panic(text in "(gfx[0-9a-z-]{0,12})?(:[a-z]{0,8}[+-]?){0,3}|\\PC{0,20}") {
        let _ = text.parse::<TargetId>();
    }
}
