//! Long chains and cycles of functions: results common to all of them are computed once.

use hotswap_isa::{Isa, Target};
use hotswap_program::{CodeSource, KernelNeeds, MarkKind, Program, SectionSymbol};

const BRANCH: u32 = 0xbfa0_0000;
const END: u32 = 0xbfb0_0000;
const COUNT: u32 = 16_000;

/// Functions of one dword each, which branch to the next one; the first is a kernel.
fn functions(words: &[u32]) -> Vec<u8> {
    words.iter().copied().flat_map(u32::to_le_bytes).collect()
}

fn program(bytes: &[u8]) -> Program<'_> {
    let mark = |number: u32| SectionSymbol {
        offset: 4 * number,
        size: 4,
        kind: match number {
            0 => MarkKind::Kernel(KernelNeeds { lanes: 32, ..KernelNeeds::default() }),
            _ => MarkKind::Function,
        },
        name: format!("f{number}").into(),
        exported: false,
    };
    Program::build(CodeSource {
        waves: Vec::new(),
        number: None,
        isa: Isa::new(Target::find("gfx1250").unwrap()),
        address: 0,
        bytes,
        linked: true,
        marks: (0..bytes.len() as u32 / 4).map(mark).collect(),
        fixups: Vec::new(),
        symbols: Vec::new(),
        slots: Vec::new(),
        shared: false,
        alone: true,
        hints: Vec::new(),
        entries: Vec::new(),
    })
}

fn all_share_the_kernel(program: &Program<'_>) {
    assert_eq!(program.functions.len(), COUNT as usize);
    let first = program.kernels_of(0);
    assert_eq!(first, [0]);
    // One list for all: one list for each took time and memory that grow with the square of their number.
    let is_shared = |function: usize| std::ptr::eq(program.kernels_of(function), first);
    assert!((0..COUNT as usize).all(is_shared));
}

#[test]
fn a_chain_shares_its_kernels() {
    let mut words = vec![BRANCH; COUNT as usize];
    words[COUNT as usize - 1] = END;
    all_share_the_kernel(&program(&functions(&words)));
}

#[test]
fn a_cycle_shares_its_kernels() {
    let mut words = vec![BRANCH; COUNT as usize];
    // Back to the second function; a distance counts from the next instruction.
    words[COUNT as usize - 1] = BRANCH | (2 + 0x1_0000 - (COUNT + 1)) & 0xffff;
    let bytes = functions(&words);
    let program = program(&bytes);
    assert!(program.bottom_up().iter().any(|group| group.len() > 10_000));
    all_share_the_kernel(&program);
}
