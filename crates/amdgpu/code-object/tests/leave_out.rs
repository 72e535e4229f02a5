//! Code objects without some of their kernels, on objects made here.

use hotswap_code_object::{CodeMap, CodeObject, without_kernels};
use hotswap_report::codes;
use hotswap_samples::code_object::Sample;
use std::collections::BTreeSet;

fn names(bytes: &[u8]) -> Vec<String> {
    let object = CodeObject::parse(bytes).unwrap();
    object.note().kernels.iter().map(|kernel| kernel.name.to_owned()).collect()
}

#[test]
fn kernels_go_from_notes_symbols_and_descriptors() {
    for notes in [1, 2, 3] {
        let kernels = vec!["first", "second", "third", "fourth"];
        let sample = Sample { kernels, notes, apart: true, ..Sample::default() }.build();
        let object = CodeObject::parse(&sample).unwrap();
        let new = without_kernels(&object, &BTreeSet::from(["second", "fourth"])).unwrap();
        assert_eq!(new.len(), sample.len());
        let stay: BTreeSet<String> = names(&new).into_iter().collect();
        assert_eq!(stay, BTreeSet::from(["first".to_owned(), "third".to_owned()]), "{notes} notes");
        let left = CodeObject::parse(&new).unwrap();
        assert_eq!(left.descriptors().len(), 2);
        let map = CodeMap::from_object(&left);
        let symbols: Vec<&str> =
            map.sections.iter().flat_map(|section| &section.symbols).map(|symbol| &*symbol.name).collect();
        assert!(!symbols.iter().any(|name| name.starts_with("second") || name.starts_with("fourth")), "{symbols:?}");
    }
}

#[test]
fn unknown_kernels_are_refused_and_all_may_go() {
    let sample = Sample { apart: true, ..Sample::default() }.build();
    let object = CodeObject::parse(&sample).unwrap();
    assert_eq!(without_kernels(&object, &BTreeSet::from(["third"])).unwrap_err().code, codes::NOT_SAFE);
    assert!(names(&without_kernels(&object, &BTreeSet::from(["first", "second"])).unwrap()).is_empty());
}
