//! The front end's LLVM IR, compared without the name of its GPU.
//!
//! The name occurs in three places that do not belong to the program: the function attribute `target-cpu`, the target
//! triple (from LLVM 23 on), and the comment with the module's name. Anywhere else, a string with the name is the
//! program's own and counts. The attribute `target-features` stays, so processors with other features differ.

use hotswap_targets::{Processor, TargetId};
use sha2::{Digest, Sha256};

/// Whether preprocessed texts are equal without their processors' names: only then is it worth making a module.
pub(super) fn differ_in_names_alone(
    one: &Processor,
    one_texts: &[Vec<u8>],
    other: &Processor,
    other_texts: &[Vec<u8>],
) -> bool {
    texts_without_name(one_texts, one) == texts_without_name(other_texts, other)
}

fn texts_without_name(texts: &[Vec<u8>], processor: &Processor) -> Vec<String> {
    texts.iter().map(|text| without_name(&String::from_utf8_lossy(text), processor)).collect()
}

/// The text without the processor's name, in both spellings of clang (`gfx10-3-generic`, `gfx10_3_generic`).
fn without_name(text: &str, processor: &Processor) -> String {
    let text = text.replace(processor.name, "@");
    text.replace(&processor.name.replace('-', "_"), "@")
}

/// A hash of the module's text; `None` for an invalid ID.
pub(super) fn hash_without_target(module: &[u8], id: &str) -> Option<[u8; 32]> {
    let target: TargetId = id.parse().ok()?;
    let mut hash = Sha256::new();
    for line in module.split(|byte| *byte == b'\n') {
        hash.update(neutral_line(line, target.processor).as_deref().unwrap_or(line));
        hash.update(b"\n");
    }
    Some(hash.finalize().into())
}

/// A line that names the target for itself, with the name removed; `None` for every other line.
fn neutral_line(line: &[u8], processor: &Processor) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(line).ok()?;
    if text.starts_with("attributes #") {
        let own = format!("\"target-cpu\"=\"{}\"", processor.name);
        return Some(text.replacen(&own, "\"target-cpu\"=\"@\"", 1).into_bytes());
    }
    text.starts_with("target triple = ").then(|| {
        let triples = processor.triples();
        triples.iter().fold(text.to_owned(), |text, triple| text.replacen(triple, "@", 1)).into_bytes()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MODULE: &str = "target triple = \"amdgcn-amd-amdhsa\"\n@s = constant [8 x i8] c\"NAME\\00\"\n\
                          attributes #0 = { \"target-cpu\"=\"gfx1031\" \"target-features\"=\"+dl\" }\n";

    fn hash(module: &str, id: &str) -> [u8; 32] {
        hash_without_target(module.as_bytes(), id).unwrap()
    }

    #[test]
    fn only_the_attribute_and_the_triple_may_name_the_gpu() {
        let for_gfx1032 = MODULE.replace("gfx1031", "gfx1032");
        assert_eq!(hash(MODULE, "gfx1031"), hash(&for_gfx1032, "gfx1032"));
        let own_string = |id: &str| hash(&MODULE.replace("NAME", id).replace("\"gfx1031\"", &format!("\"{id}\"")), id);
        assert_ne!(own_string("gfx1031"), own_string("gfx1032"));
        let features = for_gfx1032.replace("+dl", "+dpp");
        assert_ne!(hash(MODULE, "gfx1031"), hash(&features, "gfx1032"));
        assert!(hash_without_target(b"", "none").is_none());
    }

    #[test]
    fn texts_with_another_difference_are_not_worth_a_module() {
        let find = |name| hotswap_targets::find_processor(name).unwrap();
        let text = |name: &str, more: &str| vec![format!("f(\"{name}\");{more}").into_bytes()];
        let one = text("gfx1031", "");
        assert!(differ_in_names_alone(find("gfx1031"), &one, find("gfx1036"), &text("gfx1036", "")));
        assert!(!differ_in_names_alone(find("gfx1031"), &one, find("gfx1036"), &text("gfx1036", "int a;")));
        let generic = text("gfx10_3_generic", "");
        assert!(differ_in_names_alone(find("gfx1031"), &one, find("gfx10-3-generic"), &generic));
    }
}
