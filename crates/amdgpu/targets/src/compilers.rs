//! The first LLVM that knows a processor, of the versions that compile code for HotSwap.
//!
//! A test asks clang and llc of every version that is installed (`tests/against_clang.rs`).

use crate::Processor;

/// The oldest LLVM whose compilers are asked.
pub const OLDEST_LLVM: u32 = 22;

/// A processor that [`OLDEST_LLVM`] does not know.
struct LaterProcessor {
    name: &'static str,
    /// The first version that knows it.
    llvm: u32,
}

const fn since(llvm: u32, name: &'static str) -> LaterProcessor {
    LaterProcessor { name, llvm }
}

const LATER: &[LaterProcessor] = &[
    since(23, "gfx1154"),
    since(23, "gfx1170"),
    since(23, "gfx1171"),
    since(23, "gfx1172"),
    since(23, "gfx1310"),
    since(23, "gfx11-7-generic"),
    since(23, "gfx12-5-generic"),
    since(23, "gfx13-generic"),
    since(24, "gfx1250-strict"),
];

impl Processor {
    /// The first LLVM from [`OLDEST_LLVM`] on that knows it.
    pub fn first_llvm(&self) -> u32 {
        LATER.iter().find(|later| later.name == self.name).map_or(OLDEST_LLVM, |later| later.llvm)
    }

    /// Whether only newer compilers than [`OLDEST_LLVM`] know it. What the table says of such a processor is what they say:
    /// no document names a product with it.
    pub fn is_new_to_compilers(&self) -> bool {
        self.first_llvm() > OLDEST_LLVM
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{PROCESSORS, find_processor, products_of};

    #[test]
    fn processors_that_are_new_to_compilers_have_no_product() {
        for LaterProcessor { name, llvm } in LATER {
            assert!(
                *llvm > OLDEST_LLVM && find_processor(name).is_some_and(|processor| !processor.withdrawn),
                "{name}"
            );
        }
        for processor in PROCESSORS.iter().filter(|processor| processor.is_new_to_compilers()) {
            assert_eq!(products_of(processor.name).count(), 0, "{processor}: its product says more than compilers do");
        }
    }
}
