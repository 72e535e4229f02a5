//! `hotswap-isa` as the decoder under test.

use crate::oracle::Word;
use crate::setting::Setting;
use crate::verdict::{Decoded, Subject};

/// The decoder under test.
pub struct Ours;

impl Subject for Ours {
    fn knows(&self, setting: &Setting) -> bool {
        setting.cpu.starts_with("gfx9") || (setting.cpu.starts_with("gfx1") && !setting.cpu.starts_with("gfx13"))
    }

    fn decode(&self, _: &Setting, _: &Word) -> Option<Decoded> {
        None
    }
}
