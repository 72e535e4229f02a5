//! The block up to a site. Sites of one block are visited in order, and few families look back.

use hotswap_isa::Inst;
use hotswap_program::{BlockCursor, LastDefs, SectionProgram};

#[derive(Debug, Default)]
pub(super) struct BlockPrefix(BlockCursor<BlockPrefixCode>);

#[derive(Debug, Default)]
struct BlockPrefixCode {
    code: Vec<Inst>,
    last_defs: LastDefs,
}

impl BlockPrefix {
    /// Reads the block that holds an offset up to that.
    pub(super) fn read(&mut self, unit: &SectionProgram<'_>, number: usize, offset: u32) {
        let function = &unit.program.functions[number];
        let Some(block) = function.block_at(offset) else { return };
        self.0.advance_to(
            (block, offset),
            || (function.block(block).start, BlockPrefixCode::default()),
            |mut at, prefix| {
                while at < offset {
                    let Some(inst) = unit.program.decode(at) else { break };
                    at += u32::from(inst.len());
                    prefix.code.push(inst);
                }
                at
            },
        );
    }

    /// The code that was read.
    pub(super) fn code(&self) -> &[Inst] {
        self.0.last_state().map_or(&[], |prefix| &prefix.code)
    }

    /// Cached results about the code.
    pub(super) fn last_defs(&self) -> Option<&LastDefs> {
        self.0.last_state().map(|prefix| &prefix.last_defs)
    }
}
