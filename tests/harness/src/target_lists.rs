//! Lists of `--offload-arch`, generated from the generic targets and their members: siblings, generic targets that cover
//! them, settings of features, in any order. A new row of either is in the tests that use them, too.

/// A generic target, the processors that it covers and every supported clang knows, and whether they have XNACK and
/// SRAM ECC as settings.
#[derive(Debug, Clone, Copy)]
struct Family {
    generic: &'static str,
    members: &'static [&'static str],
    settings: &'static [&'static str],
}

const FAMILIES: &[Family] = &[
    Family {
        generic: "gfx9-generic",
        members: &["gfx900", "gfx902", "gfx909", "gfx90c", "gfx904", "gfx906"],
        settings: &[":xnack+", ":xnack-"],
    },
    Family {
        generic: "gfx9-4-generic",
        members: &["gfx942", "gfx950"],
        settings: &[":sramecc+:xnack-", ":xnack+", ":sramecc-"],
    },
    Family {
        generic: "gfx10-1-generic",
        members: &["gfx1010", "gfx1013", "gfx1011", "gfx1012"],
        settings: &[":xnack+", ":xnack-"],
    },
    Family {
        generic: "gfx10-3-generic",
        members: &["gfx1030", "gfx1031", "gfx1032", "gfx1033", "gfx1034", "gfx1035", "gfx1036"],
        settings: &[],
    },
    Family {
        generic: "gfx11-generic",
        members: &["gfx1100", "gfx1102", "gfx1150", "gfx1152", "gfx1153", "gfx1103"],
        settings: &[],
    },
    Family { generic: "gfx12-generic", members: &["gfx1200", "gfx1201"], settings: &[] },
];

/// Numbers that are the same in every run.
struct Numbers(u32);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (self.0 >> 16) as usize % limit
    }

    /// The names in another order.
    fn shuffled(&mut self, names: &[&'static str]) -> Vec<String> {
        let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        for at in (1..names.len()).rev() {
            names.swap(at, self.below(at + 1));
        }
        names
    }
}

/// The lists of `--offload-arch`.
pub fn lists() -> Vec<String> {
    let mut numbers = Numbers(44);
    let mut lists = Vec::new();
    for family in FAMILIES {
        for place in [0, 1, 4] {
            let mut list = numbers.shuffled(family.members);
            list.truncate(4);
            list.insert(place.min(list.len()), family.generic.to_owned());
            lists.push(list.join(","));
        }
        if !family.settings.is_empty() {
            lists.extend(with_settings(family, &mut numbers));
        }
    }
    for pair in FAMILIES.chunks(2) {
        let first = numbers.shuffled(pair[0].members);
        let second = numbers.shuffled(pair[1].members);
        let (generic, other) = (pair[0].generic, pair[1].generic);
        lists.push([&first[..2], &[other.to_owned()], &second[..2], &[generic.to_owned()]].concat().join(","));
    }
    lists
}

/// One setting for all, both for some, and settings of the generic target alone. Clang takes no processor with and
/// without a setting in one list.
fn with_settings(family: &Family, numbers: &mut Numbers) -> [String; 3] {
    let setting = |index: usize| family.settings[index % family.settings.len()];
    let with = |name: &str, index: usize| format!("{name}{}", setting(index));
    let members = numbers.shuffled(family.members);
    let [first, second] = [&members[0], &members[1]];
    let third = members.last().unwrap_or(first);
    let same = [with(family.generic, 0), with(first, 0), with(second, 0)].join(",");
    let both = [with(first, 0), with(family.generic, 0), with(first, 1), with(second, 1), with(second, 0)].join(",");
    let mut generic_alone = vec![with(family.generic, 1), first.clone(), second.clone()];
    if third != second && third != first {
        generic_alone.push(with(third, 0));
    }
    [same, both, generic_alone.join(",")]
}
