//! Copies between memory and LDS that the wave does not wait for (gfx12.5). Here they are done at once.
//!
//! Sources: LLVM's intrinsics `llvm.amdgcn.global.load.async.to.lds.*` and `global.store.async.from.lds.*`; the CDNA5 ISA
//! document: the offset of the instruction is added to both addresses.

use super::data::{LARGEST, active_lanes};
use super::global::{self, ResolvedAddress};
use super::lds::register_of;
use super::uninterpreted::check_multicast;
use super::{ExecContext, StepFault, StepFlow, StepResult};
use crate::micro::{MicroOp, MicroOpBody};

/// Both addresses of a lane: the third source is the one in LDS.
fn lane_destinations(
    step: &ExecContext<'_>,
    op: &MicroOp,
    lane: usize,
) -> Result<[ResolvedAddress; 2], Box<StepFault>> {
    let in_lds = step.wave.lane(register_of(op.sources[2], op)?, lane).wrapping_add(op.immediate as u32);
    Ok([ResolvedAddress::Memory(global::lane_address(step.wave, op, lane)), ResolvedAddress::Lds(in_lds)])
}

fn copy_lanes(step: &mut ExecContext<'_>, op: &MicroOp, to_lds: bool) -> StepResult {
    let MicroOpBody::Memory(operation) = op.body else { return Err(StepFault::unknown(op, "")) };
    for lane in active_lanes(step.wave.exec_mask()) {
        let [memory, lds] = lane_destinations(step, op, lane)?;
        let (from, to) = if to_lds { (memory, lds) } else { (lds, memory) };
        let mut bytes = [0; LARGEST];
        let bytes = &mut bytes[..usize::from(operation.bytes)];
        global::read_destination(step, from, bytes, lane)?;
        global::write_destination(step, to, bytes, lane)?;
    }
    Ok(StepFlow::Next)
}

pub(crate) fn load_to_lds(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    copy_lanes(step, op, true)
}

/// The same for a cluster: a mask in M0 is a fault where the stepping lacks masks.
pub(crate) fn cluster_load_to_lds(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    check_multicast(step, op)?;
    copy_lanes(step, op, true)
}

pub(crate) fn store_from_lds(step: &mut ExecContext<'_>, op: &MicroOp) -> StepResult {
    copy_lanes(step, op, false)
}
