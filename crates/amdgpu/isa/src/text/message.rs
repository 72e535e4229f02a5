//! Messages of `s_sendmsg`.
//!
//! Invariant: a message that the target does not have is written as numbers, and only if that loses no information.

use super::TextWriter;
use crate::isa::Isa;
use crate::tables::Feature;
use core::fmt::{self, Write};
use core::ops::Range;

/// A message of some generations.
struct SentMessage {
    number: u16,
    name: &'static str,
    /// The first generation with it, and the first without it again.
    generations: Range<u8>,
}

const fn sent_message(number: u16, name: &'static str, first: u8, end: u8) -> SentMessage {
    SentMessage { number, name, generations: first..end }
}

/// Stands for a generation after all that exist.
const ON: u8 = 255;

const MESSAGES: &[SentMessage] = &[
    sent_message(1, "MSG_INTERRUPT", 9, ON),
    sent_message(2, "MSG_GS", 9, 11),
    sent_message(2, "MSG_HS_TESSFACTOR", 11, ON),
    sent_message(3, "MSG_GS_DONE", 9, 11),
    sent_message(3, "MSG_DEALLOC_VGPRS", 11, ON),
    sent_message(4, "MSG_SAVEWAVE", 9, 11),
    sent_message(5, "MSG_STALL_WAVE_GEN", 9, 12),
    sent_message(6, "MSG_HALT_WAVES", 9, 12),
    sent_message(7, "MSG_ORDERED_PS_DONE", 9, 11),
    sent_message(8, "MSG_EARLY_PRIM_DEALLOC", 9, 11),
    sent_message(9, "MSG_GS_ALLOC_REQ", 9, ON),
    sent_message(10, "MSG_GET_DOORBELL", 9, 11),
    sent_message(11, "MSG_GET_DDID", 10, 11),
    sent_message(15, "MSG_SYSMSG", 9, ON),
    sent_message(128, "MSG_RTN_GET_DOORBELL", 11, ON),
    sent_message(129, "MSG_RTN_GET_DDID", 11, ON),
    sent_message(130, "MSG_RTN_GET_TMA", 11, ON),
    sent_message(131, "MSG_RTN_GET_REALTIME", 11, ON),
    sent_message(132, "MSG_RTN_SAVE_WAVE", 11, ON),
    sent_message(133, "MSG_RTN_GET_TBA", 11, ON),
    sent_message(134, "MSG_RTN_GET_TBA_TO_PC", 11, ON),
    sent_message(135, "MSG_RTN_GET_SE_AID_ID", 12, ON),
];

const MESSAGES_GFX1250: &[SentMessage] = &[
    sent_message(136, "MSG_RTN_GET_CLUSTER_BARRIER_STATE", 12, ON),
    sent_message(152, "MSG_RTN_SAVE_WAVE_HAS_TDM", 12, ON),
];

/// Operations of the messages about geometry streams.
const STREAM: [&str; 4] = ["GS_OP_NOP", "GS_OP_CUT", "GS_OP_EMIT", "GS_OP_EMIT_CUT"];

/// Numbers of messages with operations.
const GS: u16 = 2;
const GS_DONE: u16 = 3;
const SYSMSG: u16 = 15;

/// The generation, 9 to 12.
pub(super) fn isa_generation(isa: Isa) -> u8 {
    match () {
        () if isa.has(Feature::Gfx12Insts) => 12,
        () if isa.has(Feature::Gfx11Insts) => 11,
        () if isa.has(Feature::Gfx10Insts) => 10,
        () => 9,
    }
}

fn message_name(id: u16, isa: Isa) -> Option<&'static str> {
    let generation = isa_generation(isa);
    let newest = if isa.has(Feature::Gfx1250Insts) { MESSAGES_GFX1250 } else { &[] };
    let mut messages = MESSAGES.iter().chain(newest);
    let found = messages.find(|one| one.number == id && one.generations.contains(&generation));
    found.map(|found| found.name)
}

fn operation_name(id: u16, operation: u16) -> Option<&'static str> {
    match id {
        SYSMSG => match operation {
            1 => Some("SYSMSG_OP_ECC_ERR_INTERRUPT"),
            2 => Some("SYSMSG_OP_REG_RD"),
            4 => Some("SYSMSG_OP_TTRACE_PC"),
            _ => None,
        },
        _ => STREAM.get(usize::from(operation)).copied(),
    }
}

impl TextWriter<'_, '_, '_> {
    /// A message: number in bits 0 to 3 (0 to 7 from gfx11 on), operation in bits 4 to 6, stream in bits 8 and 9.
    pub(super) fn write_message(&mut self, raw: u16) -> fmt::Result {
        let gfx11 = self.isa.has(Feature::Gfx11Insts);
        let (id, operation, stream) = match gfx11 {
            true => (raw & 0xff, 0, 0),
            false => (raw & 15, raw >> 4 & 7, raw >> 8 & 3),
        };
        let geometry = !gfx11 && (id == GS || id == GS_DONE);
        let has_operation = id == SYSMSG || geometry;
        let valid_operation = match has_operation {
            true => !(geometry && id == GS && operation == 0) && operation_name(id, operation).is_some(),
            false => operation == 0,
        };
        let has_stream = geometry && !(id == GS_DONE && operation == 0);
        let valid_stream = has_stream || stream == 0;
        match message_name(id, self.isa) {
            Some(name) if valid_operation && valid_stream => {
                self.out.write_str("sendmsg(")?;
                self.out.write_str(name)?;
                if has_operation {
                    self.out.write_str(", ")?;
                    self.out.write_str(operation_name(id, operation).unwrap_or(""))?;
                    if geometry && operation != 0 {
                        self.out.write_str(", ")?;
                        self.out.write_decimal(u64::from(stream))?;
                    }
                }
                self.out.write_char(')')
            }
            _ if id | operation << 4 | stream << 8 == raw => self.message_numbers([id, operation, stream]),
            _ => self.out.write_decimal(u64::from(raw)),
        }
    }

    fn message_numbers(&mut self, numbers: [u16; 3]) -> fmt::Result {
        for (index, number) in numbers.into_iter().enumerate() {
            self.out.write_str(if index == 0 { "sendmsg(" } else { ", " })?;
            self.out.write_decimal(u64::from(number))?;
        }
        self.out.write_char(')')
    }
}
