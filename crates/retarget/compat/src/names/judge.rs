//! Whether the host part and the code agree about the GPUs that the code is to serve.

use super::device::{Dispatch, bodies_allow};
use super::host::{HostPart, HostStrings};
use super::table::{NamingLibrary, VersionNames};
use hotswap_report::{Diagnostic, codes};
use std::fmt;

/// The host part selects other kernels, or launches them otherwise, than the code was compiled for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disagreement {
    /// Processor that the code was compiled for.
    pub source: String,
    /// The GPU that it would serve.
    pub gpu: &'static str,
    /// The requested target: that GPU, or a generic one that covers it.
    pub target: &'static str,
    /// The library, with its version where it is known.
    pub library: String,
    /// One of its kernels.
    pub kernel: String,
    /// The reason, as half a sentence.
    pub why: String,
}

/// One mapping of names that the evidence leaves possible.
enum NameMapping<'h> {
    /// The names of a version, and those that a conversion adds.
    Known { version: &'static VersionNames, conversion: &'static [(&'static str, &'static str)] },
    /// An unknown version: each name in the host part may be an entry.
    Visible(&'h HostStrings),
}

impl NameMapping<'_> {
    /// The entry of a name; none is `unknown`.
    fn entry_of_name<'n>(&self, name: &'n str) -> Option<&'n str> {
        match self {
            Self::Known { version, conversion } => {
                let converted = conversion.iter().find(|(from, _)| *from == name).map_or(name, |(_, to)| *to);
                version.names.contains(&converted).then_some(converted)
            }
            Self::Visible(strings) => strings.names.contains(name).then_some(name),
        }
    }
}

/// The reasons why code compiled for `source`, with these kernels, is wrong on `gpus`: one row for
/// each library and GPU.
pub fn find_disagreements(
    source: &str,
    dispatches: &[Dispatch],
    gpus: &[&'static str],
    host: &HostPart<'_>,
) -> Vec<Disagreement> {
    let rows = dispatches
        .iter()
        .flat_map(|dispatch| gpus.iter().filter_map(move |gpu| judge_for_gpu(dispatch, gpu, source, host)));
    rows.collect()
}

fn judge_for_gpu(dispatch: &Dispatch, gpu: &'static str, source: &str, host: &HostPart<'_>) -> Option<Disagreement> {
    let why = judge_dispatch(dispatch, source, gpu, host).err()?;
    let (library, kernel) = (library_label(dispatch), dispatch.kernel.clone());
    Some(Disagreement { source: source.to_owned(), gpu, target: gpu, library, kernel, why })
}

fn library_label(dispatch: &Dispatch) -> String {
    let Some(library) = dispatch.naming_library() else { return "a library that HotSwap does not know".to_owned() };
    if let Some(number) = dispatch.namespace {
        return format!("{} {}.{}.{}", library.name, number / 100_000, number / 100 % 1000, number % 100);
    }
    let mut versions =
        library.versions.iter().filter(|version| version.namespace.is_none()).map(|version| version.version);
    let (first, last) = (versions.next().unwrap_or_default(), versions.next_back().unwrap_or_default());
    format!("{} (a version from {first} to {last})", library.name)
}

/// `Ok` if every table that is possible maps the GPU to the entry that the code was compiled with.
fn judge_dispatch(dispatch: &Dispatch, source: &str, gpu: &str, host: &HostPart<'_>) -> Result<(), String> {
    let Some(library) = dispatch.naming_library() else {
        return Err(
            "kernels are there for several GPUs, and only some have a body; which one the host part starts there \
                    is not known"
                .to_owned(),
        );
    };
    let tables = possible_tables(library, dispatch, host.host_strings());
    if tables.is_empty() {
        return Err("which names of GPUs this version knows is not known to HotSwap".to_owned());
    }
    let fits: Vec<&NameMapping<'_>> =
        tables.iter().filter(|table| bodies_allow(&dispatch.bodies, table.entry_of_name(source))).collect();
    if fits.is_empty() {
        return Err(format!("the kernels that have a body are not those that its host part starts on {source}"));
    }
    let wrong = fits.iter().find(|table| table.entry_of_name(source) != table.entry_of_name(gpu));
    let Some(table) = wrong else { return Ok(()) };
    let (host, code) = (gpu_entry_name(table.entry_of_name(gpu)), gpu_entry_name(table.entry_of_name(source)));
    let is_certain = fits.iter().all(|table| table.entry_of_name(source) != table.entry_of_name(gpu));
    let is = if is_certain { "are" } else { "may be" };
    let mut why =
        format!("on {gpu} the kernels that its host part starts {is} those for {host}, the code has those for {code}");
    if let Some(conversion) = library.conversion.as_ref().filter(|_| !is_certain) {
        why += &format!("; nothing shows that it was built with -D{}", conversion.option);
    }
    Err(why)
}

fn gpu_entry_name(entry: Option<&str>) -> String {
    entry.map_or("a GPU of unknown name".to_owned(), str::to_owned)
}

/// The tables that the evidence leaves possible. Strings in the host part exclude tables with names that are absent;
/// where they indicate no table at all (the host part is missing, or it compares otherwise), they exclude nothing.
fn possible_tables<'h>(
    library: &'static NamingLibrary,
    dispatch: &Dispatch,
    strings: &'h HostStrings,
) -> Vec<NameMapping<'h>> {
    let namespace = dispatch.namespace.map(|number| number / 100);
    let versions = library.versions.iter().filter(|version| version.namespace == namespace);
    let versions: Vec<&'static VersionNames> = versions.collect();
    let seen = versions.iter().copied().filter(|version| strings.has_all(version.names.iter().copied()));
    let seen: Vec<&'static VersionNames> = seen.collect();
    let is_visible = !seen.is_empty();
    let versions = if is_visible { seen } else { versions };
    let conversion = library.conversion.as_ref().map_or(&[][..], |conversion| conversion.names);
    let names: Vec<&str> = conversion.iter().map(|(from, _)| *from).collect();
    let converts = !names.is_empty() && is_visible && strings.has_row(&names);
    let may_convert = !names.is_empty() && (!is_visible || strings.has_all(names.iter().copied()));
    let mut tables = Vec::new();
    for version in versions {
        if !converts {
            tables.push(NameMapping::Known { version, conversion: &[] });
        }
        if may_convert {
            tables.push(NameMapping::Known { version, conversion });
        }
    }
    if dispatch.namespace.is_none() && is_visible && !converts {
        tables.push(NameMapping::Visible(strings));
    }
    tables
}

impl Disagreement {
    /// The same, for a code object that was requested for this target.
    pub fn asked_for(self, target: &'static str) -> Self {
        Self { target, ..self }
    }
}

impl From<&Disagreement> for Diagnostic {
    fn from(row: &Disagreement) -> Self {
        let mut problem = Self::error(codes::CHOSEN_BY_NAME, row.to_string());
        problem.place.kernel = Some(row.kernel.clone());
        problem
    }
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.library, self.why)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    const PLAIN: &[u8] =
        b"\0gfx803\0gfx900\0gfx906\0gfx908\0gfx90a\0gfx942\0gfx950\0gfx1030\0gfx1100\0gfx1102\0gfx1200\0gfx1201\0";
    const EXTRA: &[u8] = b"gfx902\0gfx909\0gfx90c\0gfx1031\0gfx1032\0gfx1033\0gfx1034\0gfx1035\0gfx1036\0";
    /// All names in another order, as in a program that contains a compiler.
    const OTHERS: &[u8] = b"gfx1036\0gfx1035\0gfx1034\0gfx1033\0gfx1032\0gfx1031\0gfx90c\0gfx909\0gfx902\0";
    const RAND: &[u8] =
        b"gfx900\0gfx902\0gfx904\0gfx906\0gfx908\0gfx909\0gfx90a\0gfx942\0gfx1030\0gfx1100\0gfx1101\0gfx1102\0";

    fn dispatch(library: usize, namespace: Option<u32>, bodies: &[u32]) -> Dispatch {
        let bodies: BTreeSet<u32> = bodies.iter().copied().collect();
        Dispatch { library: Some(library), namespace, kernel: "k".to_owned(), bodies }
    }

    fn is_right(dispatch: &Dispatch, pair: (&str, &'static str), host: &[&[u8]]) -> bool {
        let file = host.concat();
        let host = HostPart::without_containers(&file, []);
        find_disagreements(pair.0, std::slice::from_ref(dispatch), &[pair.1], &host).is_empty()
    }

    /// Version, bodies, host part, pair, whether it is right.
    type JudgeCase = (Option<u32>, &'static [u32], &'static [&'static [u8]], (&'static str, &'static str), bool);

    #[test]
    fn rocprim_is_judged_by_version_strings_and_bodies() {
        let new = Some(400_200);
        let cases: &[JudgeCase] = &[
            (new, &[], &[PLAIN], ("gfx1030", "gfx1031"), false),
            (new, &[1030], &[PLAIN], ("gfx1030", "gfx1031"), false),
            (new, &[], &[PLAIN], ("gfx1031", "gfx1032"), true),
            (new, &[u32::MAX], &[PLAIN], ("gfx1031", "gfx1032"), true),
            (new, &[], &[PLAIN], ("gfx1101", "gfx1103"), true),
            (new, &[], &[PLAIN], ("gfx1200", "gfx1201"), false),
            // The conversion is on both sides.
            (new, &[1030], &[PLAIN, EXTRA], ("gfx1030", "gfx1031"), true),
            (new, &[], &[PLAIN, EXTRA], ("gfx1030", "gfx1036"), true),
            (new, &[], &[PLAIN, EXTRA], ("gfx1100", "gfx1101"), false),
            // Names from another source prove no conversion.
            (new, &[], &[PLAIN, OTHERS], ("gfx1030", "gfx1031"), false),
            (new, &[], &[PLAIN, OTHERS], ("gfx1101", "gfx1103"), true),
            (new, &[1030], &[PLAIN, OTHERS], ("gfx1031", "gfx1032"), true),
            // Without a host part nothing excludes the conversion.
            (new, &[], &[], ("gfx1030", "gfx1031"), false),
            (new, &[], &[], ("gfx1031", "gfx1032"), true),
            // A code object without a body where the host part starts one.
            (new, &[1100], &[PLAIN], ("gfx1031", "gfx1032"), false),
            // Patches share a table; unknown versions have none.
            (Some(400_201), &[], &[PLAIN], ("gfx1031", "gfx1032"), true),
            (Some(500_000), &[], &[PLAIN], ("gfx1031", "gfx1032"), false),
            // Before the namespace: any table that the strings allow.
            (None, &[], &[PLAIN], ("gfx1200", "gfx1201"), false),
            (None, &[], &[PLAIN], ("gfx1101", "gfx1103"), true),
            (None, &[], &[PLAIN, b"gfx1103\0"], ("gfx1101", "gfx1103"), false),
            (None, &[], &[PLAIN, EXTRA], ("gfx900", "gfx90c"), true),
        ];
        for (namespace, bodies, host, pair, right) in cases {
            let dispatch = dispatch(0, *namespace, bodies);
            assert_eq!(is_right(&dispatch, *pair, host), *right, "{namespace:?} {bodies:?} {pair:?}");
        }
    }

    #[test]
    fn rocrand_is_judged_by_its_names() {
        let old = dispatch(1, None, &[]);
        for (pair, right) in [
            (("gfx1030", "gfx1031"), false),
            (("gfx1031", "gfx1036"), true),
            (("gfx900", "gfx902"), false),
            (("gfx1010", "gfx1011"), true),
            (("gfx1200", "gfx1201"), true),
            (("gfx1102", "gfx1103"), false),
        ] {
            assert_eq!(is_right(&old, pair, &[RAND]), right, "{pair:?}");
        }
        assert!(!is_right(&old, ("gfx1200", "gfx1201"), &[RAND, b"gfx1201\0"]));
    }

    #[test]
    fn an_unknown_library_with_empty_kernels_is_refused() {
        let bodies = BTreeSet::from([1030]);
        let unknown = Dispatch { library: None, namespace: None, kernel: "k".to_owned(), bodies };
        assert!(!is_right(&unknown, ("gfx1030", "gfx1031"), &[PLAIN]));
    }

    #[test]
    fn what_is_said_names_both_sides() {
        let dispatch = [dispatch(0, Some(400_200), &[])];
        let host = HostPart::without_containers(PLAIN, []);
        let found = find_disagreements("gfx1030", &dispatch, &["gfx1031"], &host);
        assert_eq!(
            found[0].to_string(),
            "rocPRIM 4.2.0: on gfx1031 the kernels that its host part starts are those for a GPU of unknown name, the code \
             has those for gfx1030"
        );
    }
}
