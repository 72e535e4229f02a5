//! Evidence in the kernels of a code object: their library, its version, and the GPUs for which they have bodies.

use super::table::{LIBRARIES, NamingLibrary, gpu_number};
use hotswap_code_object::{CodeMap, CodeObject, SymbolKind};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a kernel that consists of `s_endpgm`.
const EMPTY: usize = 4;
/// In mangled names, the end of the enumeration whose value names a GPU.
const ENUMERATION: &str = "archE";

/// Kernels of one library that its host part chooses by the name of the GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dispatch {
    /// Row of the table; none for kernels of an unknown library.
    pub(crate) library: Option<usize>,
    /// The number of the version in the kernels' names.
    pub(crate) namespace: Option<u32>,
    /// The first of the kernels.
    pub(crate) kernel: String,
    /// Of kernels that exist for several GPUs: the GPUs with a body. Empty where no names indicate that.
    pub(crate) bodies: BTreeSet<u32>,
}

impl Dispatch {
    /// The libraries that are in a code object, each once.
    pub fn find_libraries(object: &CodeObject<'_>) -> Vec<Self> {
        let mut found: Vec<Self> = Vec::new();
        let mut has_enumeration = false;
        for kernel in object.note().kernels.iter() {
            has_enumeration |= kernel.name.contains(ENUMERATION);
            if let Some(dispatch) = Self::from_kernel(kernel.name)
                && !found.iter().any(|known| known.is_like(&dispatch))
            {
                found.push(dispatch);
            }
        }
        if has_enumeration {
            add_bodies(object, &mut found);
        }
        found
    }

    /// The library of a kernel.
    fn from_kernel(kernel: &str) -> Option<Self> {
        let library =
            LIBRARIES.iter().position(|library| library.kernels.iter().any(|begin| kernel.starts_with(begin)))?;
        let namespace = LIBRARIES[library].namespace.and_then(|(before, after)| {
            let digits = kernel.split_once(before)?.1.split_once(after)?.0;
            digits.parse::<u32>().ok()
        });
        Some(Self { library: Some(library), namespace, kernel: kernel.to_owned(), bodies: BTreeSet::new() })
    }

    fn is_like(&self, other: &Self) -> bool {
        (self.library, self.namespace) == (other.library, other.namespace)
    }

    pub(crate) fn naming_library(&self) -> Option<&'static NamingLibrary> {
        LIBRARIES.get(self.library?)
    }
}

/// Instantiations that differ only in the number of a GPU, and those of them that have a body.
#[derive(Debug, Default)]
struct Instances {
    first: String,
    bodies: BTreeSet<u32>,
    empty: BTreeSet<u32>,
}

/// Records the bodies of kernels that exist for several GPUs, of which only some have one.
fn add_bodies(object: &CodeObject<'_>, found: &mut Vec<Dispatch>) {
    let map = CodeMap::names_of(object);
    let sizes: BTreeMap<&str, usize> = map
        .sections
        .iter()
        .flat_map(|section| &section.symbols)
        .filter(|symbol| matches!(symbol.kind, SymbolKind::Kernel(_)))
        .map(|symbol| (&*symbol.name, symbol.size))
        .collect();
    let mut groups: BTreeMap<String, Instances> = BTreeMap::new();
    for kernel in object.note().kernels.iter() {
        let Some(KernelInstance { group, gpu }) = split_instance(kernel.name) else { continue };
        let instances = groups.entry(group).or_default();
        // A kernel whose entry is the end of the section lacks a symbol in it, and a body.
        let has_body = sizes.get(kernel.name).is_some_and(|size| *size > EMPTY);
        if has_body { &mut instances.bodies } else { &mut instances.empty }.insert(gpu);
        if instances.first.is_empty() || has_body {
            instances.first = kernel.name.to_owned();
        }
    }
    for instances in groups.into_values().filter(|group| !group.bodies.is_empty() && !group.empty.is_empty()) {
        let kernel = instances.first;
        let dispatch = Dispatch::from_kernel(&kernel).unwrap_or_else(|| Dispatch {
            library: None,
            namespace: None,
            kernel: kernel.clone(),
            bodies: BTreeSet::new(),
        });
        let place = found.iter().position(|known| known.is_like(&dispatch)).unwrap_or_else(|| {
            found.push(dispatch);
            found.len() - 1
        });
        // A kernel with a body is the better example.
        if found[place].bodies.is_empty() {
            found[place].kernel = kernel;
        }
        found[place].bodies.extend(instances.bodies);
    }
}

/// A kernel that was instantiated for a GPU.
#[derive(Debug, PartialEq, Eq)]
struct KernelInstance {
    /// The kernel's name without the number of the GPU.
    group: String,
    gpu: u32,
}

fn split_instance(name: &str) -> Option<KernelInstance> {
    let (before, rest) = name.split_once(ENUMERATION)?;
    let digits = rest.split_once('E')?.0;
    let gpu: u32 = digits.parse().ok()?;
    Some(KernelInstance { group: format!("{before}{ENUMERATION}{}", &rest[digits.len()..]), gpu })
}

/// Whether the bodies are consistent with compilation for this entry of the table.
pub(crate) fn bodies_allow(bodies: &BTreeSet<u32>, entry: Option<&str>) -> bool {
    bodies.is_empty() || gpu_number(entry).is_some_and(|number| bodies.contains(&number))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_name_their_library_and_version() {
        let name = "_ZN7rocprim17ROCPRIM_400200_NS6detail17trampoline_kernelILNS1_11target_archE1030EEEvv";
        let found = Dispatch::from_kernel(name).unwrap();
        assert_eq!((found.naming_library().unwrap().name, found.namespace), ("rocPRIM", Some(400_200)));
        assert_eq!(Dispatch::from_kernel("_ZN7rocprim6detail3xyzEv").unwrap().namespace, None);
        assert_eq!(
            Dispatch::from_kernel("_ZN12rocrand_impl4host1xEv").unwrap().naming_library().unwrap().name,
            "rocRAND"
        );
        // A kernel of the user that takes an iterator of rocPRIM is not a kernel of rocPRIM.
        assert_eq!(Dispatch::from_kernel("_Z4mineN7rocprim17ROCPRIM_400200_NS17counting_iteratorE"), None);
    }

    #[test]
    fn instantiations_differ_in_the_number_alone() {
        let one = split_instance("_Z1kIL11target_archE1030EEvv").unwrap();
        let other = split_instance("_Z1kIL11target_archE4294967295EEvv").unwrap();
        assert_eq!((one.group == other.group, one.gpu, other.gpu), (true, 1030, u32::MAX));
        assert_eq!(split_instance("_Z1kIL11target_archEvv"), None);
        assert_eq!(split_instance("_Z1kILi1030EEvv"), None);
    }

    #[test]
    fn bodies_say_which_entry_was_compiled() {
        let bodies = BTreeSet::from([910]);
        assert!(
            bodies_allow(&bodies, Some("gfx90a"))
                && !bodies_allow(&bodies, None)
                && !bodies_allow(&bodies, Some("gfx906"))
        );
        assert!(bodies_allow(&BTreeSet::new(), None));
    }
}
