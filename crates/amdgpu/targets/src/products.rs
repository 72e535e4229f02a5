//! Products and the processor in each: what is printed on the box, for people who do not know the name of their target.
//!
//! Invariants: each row names the public document that it was read in, and rows are in the order of the processor table.
//! A name is never resolved by likeness: [`resolve`] takes a whole name, with or without the words that all of a maker's
//! names have, and refuses one that belongs to products with different processors. [`suggest`] is for messages only.
//!
//! Absent on purpose: products whose name says nothing about the chip ("Radeon Graphics", "Vega 8"), and those for which no
//! document was found.

use crate::{Processor, find_processor};
use hotswap_report::{Diagnostic, codes};

/// A product with a GPU.
#[derive(Debug, PartialEq, Eq)]
pub struct GpuProduct {
    /// Its name, without the maker's.
    pub name: &'static str,
    /// Name of its processor.
    pub processor: &'static str,
    /// The document that says so.
    pub source: &'static str,
}

const ROCM_SPECIFICATIONS: &str = "ROCm documentation, \"GPU hardware specifications\"";
const LLVM_GUIDE: &str = "LLVM, \"User Guide for AMDGPU Backend\", processors";
const THEROCK: &str = "TheRock, RELEASES.md, and the name of the device in libdrm's amdgpu.ids";
const ROCR_DEVICES: &str =
    "the product's device ID in libdrm's amdgpu.ids, and the processor of that ID in ROCR's libhsakmt/src/topology.c";
const SAME_DEVICE: &str =
    "libdrm's amdgpu.ids: it has the device ID, or the chip's name, of a product in ROCm's documents";
const KERNEL_DRIVER: &str = "Linux, drivers/gpu/drm/amd/amdkfd/kfd_device.c: GC 10.3.6 and 10.3.7";

const fn product_row(name: &'static str, processor: &'static str, source: &'static str) -> GpuProduct {
    GpuProduct { name, processor, source }
}

/// Every product, by processor.
#[rustfmt::skip]
pub const PRODUCTS: &[GpuProduct] = &[
    product_row("Radeon Instinct MI6", "gfx803", ROCM_SPECIFICATIONS),
    product_row("Radeon Instinct MI8", "gfx803", ROCM_SPECIFICATIONS),
    product_row("Radeon Instinct MI25", "gfx900", ROCM_SPECIFICATIONS),
    product_row("Radeon Vega Frontier Edition", "gfx900", LLVM_GUIDE),
    product_row("Radeon RX Vega 56", "gfx900", LLVM_GUIDE),
    product_row("Radeon RX Vega 64", "gfx900", LLVM_GUIDE),
    product_row("Ryzen 3 2200G", "gfx902", LLVM_GUIDE),
    product_row("Ryzen 5 2400G", "gfx902", LLVM_GUIDE),
    product_row("Radeon Instinct MI50", "gfx906", ROCM_SPECIFICATIONS),
    product_row("Radeon Instinct MI60", "gfx906", ROCM_SPECIFICATIONS),
    product_row("Radeon VII", "gfx906", ROCM_SPECIFICATIONS),
    product_row("Radeon Pro VII", "gfx906", ROCM_SPECIFICATIONS),
    product_row("Instinct MI100", "gfx908", ROCM_SPECIFICATIONS),
    product_row("Instinct MI210", "gfx90a", ROCM_SPECIFICATIONS),
    product_row("Instinct MI250", "gfx90a", ROCM_SPECIFICATIONS),
    product_row("Instinct MI250X", "gfx90a", ROCM_SPECIFICATIONS),
    product_row("Ryzen 3 4300G", "gfx90c", LLVM_GUIDE),
    product_row("Ryzen 5 4600G", "gfx90c", LLVM_GUIDE),
    product_row("Ryzen 7 4700G", "gfx90c", LLVM_GUIDE),
    product_row("Ryzen 7 Pro 4700G", "gfx90c", LLVM_GUIDE),
    product_row("Instinct MI300A", "gfx942", ROCM_SPECIFICATIONS),
    product_row("Instinct MI300X", "gfx942", ROCM_SPECIFICATIONS),
    product_row("Instinct MI325X", "gfx942", ROCM_SPECIFICATIONS),
    product_row("Instinct MI350X", "gfx950", ROCM_SPECIFICATIONS),
    product_row("Instinct MI355X", "gfx950", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 5600 XT", "gfx1010", ROCR_DEVICES),
    product_row("Radeon RX 5600M", "gfx1010", ROCR_DEVICES),
    product_row("Radeon RX 5700", "gfx1010", LLVM_GUIDE),
    product_row("Radeon RX 5700 XT", "gfx1010", LLVM_GUIDE),
    product_row("Radeon RX 5700M", "gfx1010", ROCR_DEVICES),
    product_row("Radeon Pro W5700", "gfx1010", ROCR_DEVICES),
    product_row("Radeon Pro V520", "gfx1011", LLVM_GUIDE),
    product_row("Radeon Pro 5600M", "gfx1011", ROCR_DEVICES),
    product_row("Radeon RX 5300", "gfx1012", ROCR_DEVICES),
    product_row("Radeon RX 5300M", "gfx1012", ROCR_DEVICES),
    product_row("Radeon RX 5500", "gfx1012", LLVM_GUIDE),
    product_row("Radeon RX 5500 XT", "gfx1012", LLVM_GUIDE),
    product_row("Radeon RX 5500M", "gfx1012", ROCR_DEVICES),
    product_row("Radeon Pro W5500", "gfx1012", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 6800", "gfx1030", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 6800 XT", "gfx1030", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 6900 XT", "gfx1030", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 6950 XT", "gfx1030", ROCM_SPECIFICATIONS),
    product_row("Radeon Pro V620", "gfx1030", ROCM_SPECIFICATIONS),
    product_row("Radeon Pro W6800", "gfx1030", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 6700", "gfx1031", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 6700 XT", "gfx1031", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 6700M", "gfx1031", ROCR_DEVICES),
    product_row("Radeon RX 6750 GRE 12GB", "gfx1031", ROCR_DEVICES),
    product_row("Radeon RX 6750 XT", "gfx1031", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 6800M", "gfx1031", ROCR_DEVICES),
    product_row("Radeon RX 6600", "gfx1032", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 6600 XT", "gfx1032", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 6600 LE", "gfx1032", ROCR_DEVICES),
    product_row("Radeon RX 6600M", "gfx1032", ROCR_DEVICES),
    product_row("Radeon RX 6600S", "gfx1032", ROCR_DEVICES),
    product_row("Radeon RX 6650 XT", "gfx1032", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 6650M", "gfx1032", ROCR_DEVICES),
    product_row("Radeon RX 6650M XT", "gfx1032", ROCR_DEVICES),
    product_row("Radeon RX 6700S", "gfx1032", ROCR_DEVICES),
    product_row("Radeon RX 6750 GRE 10GB", "gfx1032", ROCR_DEVICES),
    product_row("Radeon RX 6800S", "gfx1032", ROCR_DEVICES),
    product_row("Radeon Pro W6600", "gfx1032", ROCM_SPECIFICATIONS),
    product_row("Radeon Pro W6600M", "gfx1032", ROCR_DEVICES),
    product_row("Steam Deck", "gfx1033", ROCR_DEVICES),
    product_row("Radeon RX 6300M", "gfx1034", ROCR_DEVICES),
    product_row("Radeon RX 6400", "gfx1034", ROCR_DEVICES),
    product_row("Radeon RX 6500", "gfx1034", ROCR_DEVICES),
    product_row("Radeon RX 6500 XT", "gfx1034", THEROCK),
    product_row("Radeon RX 6500M", "gfx1034", ROCR_DEVICES),
    product_row("Radeon RX 6550M", "gfx1034", ROCR_DEVICES),
    product_row("Radeon Pro W6300", "gfx1034", ROCR_DEVICES),
    product_row("Radeon Pro W6400", "gfx1034", ROCR_DEVICES),
    product_row("Radeon Pro W6500M", "gfx1034", ROCR_DEVICES),
    product_row("Radeon 660M", "gfx1035", ROCR_DEVICES),
    product_row("Radeon 680M", "gfx1035", THEROCK),
    product_row("Radeon 610M", "gfx1036", KERNEL_DRIVER),
    product_row("Radeon RX 7900 GRE", "gfx1100", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 7900 XT", "gfx1100", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 7900 XTX", "gfx1100", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 7900M", "gfx1100", SAME_DEVICE),
    product_row("Radeon Pro W7800", "gfx1100", ROCM_SPECIFICATIONS),
    product_row("Radeon Pro W7800 48GB", "gfx1100", ROCM_SPECIFICATIONS),
    product_row("Radeon Pro W7900", "gfx1100", ROCM_SPECIFICATIONS),
    product_row("Radeon Pro W7900 Dual Slot", "gfx1100", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 7700", "gfx1101", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 7700 XT", "gfx1101", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 7800 XT", "gfx1101", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 7800M", "gfx1101", SAME_DEVICE),
    product_row("Radeon Pro V710", "gfx1101", ROCM_SPECIFICATIONS),
    product_row("Radeon Pro W7700", "gfx1101", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 7600", "gfx1102", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 7600 XT", "gfx1102", SAME_DEVICE),
    product_row("Radeon RX 7600M XT", "gfx1102", SAME_DEVICE),
    product_row("Radeon RX 7600S", "gfx1102", SAME_DEVICE),
    product_row("Radeon RX 7650 GRE", "gfx1102", SAME_DEVICE),
    product_row("Radeon RX 7700S", "gfx1102", SAME_DEVICE),
    product_row("Radeon Pro W7600", "gfx1102", SAME_DEVICE),
    product_row("Radeon 740M", "gfx1103", SAME_DEVICE),
    product_row("Radeon 760M", "gfx1103", SAME_DEVICE),
    product_row("Radeon 780M", "gfx1103", THEROCK),
    product_row("Radeon 880M", "gfx1150", SAME_DEVICE),
    product_row("Radeon 890M", "gfx1150", THEROCK),
    product_row("Ryzen AI 9 HX 375", "gfx1150", THEROCK),
    product_row("Radeon 8040S", "gfx1151", SAME_DEVICE),
    product_row("Radeon 8050S", "gfx1151", SAME_DEVICE),
    product_row("Radeon 8060S", "gfx1151", THEROCK),
    product_row("Ryzen AI Max+ PRO 395", "gfx1151", THEROCK),
    product_row("Radeon 840M", "gfx1152", SAME_DEVICE),
    product_row("Radeon 860M", "gfx1152", THEROCK),
    product_row("Ryzen AI 7 350", "gfx1152", THEROCK),
    product_row("Radeon 820M", "gfx1153", THEROCK),
    product_row("Radeon 840M", "gfx1153", SAME_DEVICE),
    product_row("Radeon RX 9060", "gfx1200", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 9060 XT", "gfx1200", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 9060 XT LP", "gfx1200", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 9070", "gfx1201", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 9070 GRE", "gfx1201", ROCM_SPECIFICATIONS),
    product_row("Radeon RX 9070 XT", "gfx1201", ROCM_SPECIFICATIONS),
    product_row("Radeon AI PRO R9600D", "gfx1201", ROCM_SPECIFICATIONS),
    product_row("Radeon AI PRO R9700", "gfx1201", ROCM_SPECIFICATIONS),
];

/// Words that do not tell one product from another.
const COMMON_WORDS: &[&str] = &["amd", "ati", "radeon", "instinct", "graphics", "gpu", "igpu", "tm", "r"];

/// Words at the start of a name that people leave out.
const OPTIONAL_SERIES: &[&str] = &["rx", "pro", "ryzen"];

const AMBIGUOUS_ADVICE: &str = "name the one that `rocminfo | grep gfx` prints";

/// A name that belongs to products with different processors.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is the name of products with different GPUs: {}", self.product_list())]
pub struct AmbiguousProduct {
    /// The name as it was given.
    pub name: String,
    pub products: Vec<&'static GpuProduct>,
}

impl AmbiguousProduct {
    fn product_list(&self) -> String {
        let parts = self.products.iter().map(|product| format!("{} is {}", product.name, product.processor));
        parts.collect::<Vec<_>>().join(", ")
    }
}

/// The products with a processor.
pub fn products_of(processor: &str) -> impl Iterator<Item = &'static GpuProduct> {
    PRODUCTS.iter().filter(move |product| product.processor == processor)
}

/// The processor that is named: by its own name, or by that of a product. `None` where neither is known.
///
/// # Errors
/// The products that have the name, where their processors differ.
pub fn resolve_processor(text: &str) -> Result<Option<&'static Processor>, AmbiguousProduct> {
    if let Some(processor) = find_processor(text) {
        return Ok(Some(processor));
    }
    let products = products_named(text);
    let Some(first) = products.first() else { return Ok(None) };
    if products.iter().any(|product| product.processor != first.processor) {
        return Err(AmbiguousProduct { name: text.to_owned(), products });
    }
    Ok(find_processor(first.processor))
}

/// The processor of that name, of its own or of a product.
///
/// # Errors
/// [`codes::UNKNOWN_TARGET`], with what is probably meant.
pub fn resolve_or_refuse(text: &str) -> Result<&'static Processor, Diagnostic> {
    let refuse = |what: String| Diagnostic::error(codes::UNKNOWN_TARGET, what);
    match resolve_processor(text) {
        Ok(Some(processor)) => Ok(processor),
        Ok(None) => Err(refuse(describe_unknown(text))),
        Err(ambiguous) => Err(refuse(ambiguous.to_string()).advise(AMBIGUOUS_ADVICE)),
    }
}

/// The statement of a message that no processor has the name, with what is probably meant.
pub fn describe_unknown(name: &str) -> String {
    let suggestion = suggest_processor(name).map(|text| format!("; {text}")).unwrap_or_default();
    format!("`{name}` is no known processor{suggestion}")
}

/// The clause of a message about a name that is not a processor's: the processor that is probably meant.
pub fn suggest_processor(text: &str) -> Option<String> {
    let name = text.split(':').next().unwrap_or_default();
    if let Ok(number) = name.parse::<u32>() {
        let processor = find_processor(&format!("gfx{number}"));
        if let Some(processor) = processor {
            return Some(format!("did you mean {processor}?"));
        }
    }
    match resolve_processor(name) {
        Ok(Some(processor)) if processor.name != name => {
            let product = products_named(name).first().map_or("", |product| product.name);
            Some(format!("did you mean {processor} ({product})?"))
        }
        Ok(_) => find_processor(&name.to_ascii_lowercase()).map(|processor| format!("did you mean {processor}?")),
        Err(ambiguous) => Some(ambiguous.to_string()),
    }
}

/// The products that have the name: all of it, or all but what people leave out.
fn products_named(text: &str) -> Vec<&'static GpuProduct> {
    let wanted = distinctive_words(text);
    if wanted.is_empty() {
        return Vec::new();
    }
    let exact: Vec<_> =
        PRODUCTS.iter().filter(|product| distinctive_words(product.name).concat() == wanted.concat()).collect();
    if !exact.is_empty() {
        return exact;
    }
    PRODUCTS.iter().filter(|product| short_forms(product.name).contains(&wanted.concat())).collect()
}

/// A name without its series, without the size of its memory, and without both.
fn short_forms(name: &str) -> Vec<String> {
    let words = distinctive_words(name);
    let start = usize::from(words.first().is_some_and(|word| OPTIONAL_SERIES.contains(&word.as_str())));
    let end = words.len() - usize::from(words.last().is_some_and(|word| is_memory_size(word)));
    [words[start..].concat(), words[..end].concat(), words[start..end].concat()].into()
}

fn is_memory_size(word: &str) -> bool {
    word.strip_suffix("gb").is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The words of a name in lower case, without those that all names have.
fn distinctive_words(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric() && c != '+');
    let words = words.map(str::to_lowercase).filter(|word| !word.is_empty());
    words.filter(|word| !COMMON_WORDS.contains(&word.as_str())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(text: &str) -> Option<&'static str> {
        resolve_processor(text).unwrap().map(|processor| processor.name)
    }

    #[test]
    fn products_are_known_by_their_names_and_short_names() {
        for (text, processor) in [
            ("RX 6700 XT", "gfx1031"),
            ("AMD Radeon RX 6700 XT", "gfx1031"),
            ("AMD Radeon(TM) RX 6700 XT Graphics", "gfx1031"),
            ("6700xt", "gfx1031"),
            ("rx6700", "gfx1031"),
            ("RX 6700S", "gfx1032"),
            ("RX 6800M", "gfx1031"),
            ("780M", "gfx1103"),
            ("Radeon 780M Graphics", "gfx1103"),
            ("Steam Deck", "gfx1033"),
            ("W6800", "gfx1030"),
            ("W7800", "gfx1100"),
            ("MI300X", "gfx942"),
            ("RX 6750 GRE 12GB", "gfx1031"),
            ("RX 6750 GRE 10 GB", "gfx1032"),
            ("gfx1031", "gfx1031"),
        ] {
            assert_eq!(resolved(text), Some(processor), "{text}");
        }
    }

    #[test]
    fn no_name_is_resolved_by_likeness() {
        for text in
            ["", "Radeon", "AMD Radeon Graphics", "RX", "6", "670", "RX 67", "XT", "RX 6700 XTX", "gfx10", "GTX 1080"]
        {
            assert_eq!(resolved(text), None, "{text}");
        }
    }

    #[test]
    fn a_name_of_several_chips_is_refused_with_all() {
        let refused = |text: &str| resolve_processor(text).unwrap_err().to_string();
        assert_eq!(
            refused("840M"),
            "`840M` is the name of products with different GPUs: Radeon 840M is gfx1152, Radeon 840M is gfx1153"
        );
        assert!(refused("RX 6750 GRE").contains("RX 6750 GRE 12GB is gfx1031, Radeon RX 6750 GRE 10GB is gfx1032"));
    }

    #[test]
    fn suggestions_name_the_processor() {
        assert_eq!(suggest_processor("6700xt").unwrap(), "did you mean gfx1031 (Radeon RX 6700 XT)?");
        assert_eq!(suggest_processor("1031").unwrap(), "did you mean gfx1031?");
        assert_eq!(suggest_processor("GFX1031:xnack-").unwrap(), "did you mean gfx1031?");
        assert!(suggest_processor("840m").unwrap().contains("gfx1153"));
        assert_eq!([suggest_processor("gfx9999"), suggest_processor("")], [None, None]);
    }

    #[test]
    fn the_rows_name_processors_in_the_order_of_their_table() {
        let place = |name: &str| crate::PROCESSORS.iter().position(|processor| processor.name == name).unwrap();
        let places: Vec<usize> = PRODUCTS.iter().map(|product| place(product.processor)).collect();
        assert!(places.is_sorted());
        for (index, product) in PRODUCTS.iter().enumerate() {
            let is_same = |other: &GpuProduct| (other.name, other.processor) == (product.name, product.processor);
            assert!(!PRODUCTS[..index].iter().any(is_same), "{} is twice in the table", product.name);
            assert!(!find_processor(product.processor).unwrap().is_generic());
        }
    }
}
