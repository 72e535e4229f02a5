//! `hotswap-isa` as the decoder under test.

use crate::oracle::Word;
use crate::setting::Setting;
use crate::verdict::{Decoded, Subject};
use hotswap_isa::encode::reassemble;
use hotswap_isa::{Inst, Isa, Target, Wave};

/// The decoder under test.
pub struct Ours;

/// The decoder with that setting; `None` for a processor that it does not know.
pub fn isa(setting: &Setting) -> Option<Isa> {
    let mut isa = Isa::new(Target::find(&setting.cpu)?);
    if let Some(wave) = setting.wave {
        isa = isa.with_wave(if wave == 32 { Wave::W32 } else { Wave::W64 });
    }
    if let Some(true16) = setting.true16 {
        isa = isa.with_true16(true16);
    }
    Some(isa)
}

impl Subject for Ours {
    fn knows(&self, setting: &Setting) -> bool {
        isa(setting).is_some()
    }

    fn decode(&self, setting: &Setting, word: &Word) -> Option<Decoded> {
        let isa = isa(setting)?;
        let inst = isa.decode(word.bytes()).ok()?;
        let length = inst.len();
        Some(Decoded {
            length,
            text: inst.text(isa).to_string(),
            bytes: inst.bytes()[..usize::from(length)].to_vec(),
            size: isa.instruction_size(word.bytes()),
            rebuilt: rebuilt(&inst, isa),
        })
    }
}

fn rebuilt(inst: &Inst, isa: Isa) -> Result<Vec<u8>, String> {
    let built = reassemble(inst, isa).map_err(|error| error.to_string())?;
    Ok(built.bytes()[..usize::from(built.len())].to_vec())
}
