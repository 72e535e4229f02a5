//! Registers that the instructions of a function name, as if every bank were the first.

use crate::bits::DwordSet;
use crate::ops::{AddressOp, Ops};
use hotswap_isa::Isa;
use hotswap_isa::effects::EffectReader;
use hotswap_isa::regset::RegSet;

#[derive(Debug, Clone, Default)]
pub(crate) struct NamedRegisterSets {
    pub(crate) reads: RegSet,
    pub(crate) writes: RegSet,
    /// Those that are loaded from scratch or from lanes: they may have been saved.
    pub(crate) restored: RegSet,
}

impl NamedRegisterSets {
    /// From the instructions whose offsets from the first of these bytes are in `starts`.
    pub(crate) fn of(isa: Isa, ops: &Ops, bytes: &[u8], starts: &DwordSet) -> Self {
        let reader = EffectReader::new(isa);
        let mut named = Self::default();
        // EXEC and MODE, which almost everything reads: each is added once.
        let (mut known_writes, mut known_reads) = (0, 0);
        for index in starts.iter() {
            let Some(Ok(inst)) = bytes.get(index * 4..).map(|bytes| isa.decode(bytes)) else { continue };
            let line = ops.line(&inst);
            let restores = line.reloads || line.op == AddressOp::ReadLane;
            let implicit = reader.visit(&inst, |effect| {
                if !effect.written() {
                    return named.reads.insert_effect(effect);
                }
                named.writes.insert_effect(effect);
                if restores {
                    named.restored.insert_effect(effect);
                }
            });
            let (written, read) = (implicit.writes.bits() & !known_writes, implicit.reads.bits() & !known_reads);
            if written | read != 0 {
                (known_writes, known_reads) = (known_writes | written, known_reads | read);
                implicit.for_each_effect(isa, |effect| {
                    let set = if effect.written() { &mut named.writes } else { &mut named.reads };
                    set.insert(effect.reg());
                });
            }
        }
        named
    }
}
