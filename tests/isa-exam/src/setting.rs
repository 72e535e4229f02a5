//! The settings of a decoder: processor, wave size, spelling of 16-bit registers.

use std::fmt;

/// Settings of one run of a disassembler.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Setting {
    /// Name of the processor, as LLVM spells it.
    pub cpu: String,
    /// 32 or 64 where it is not the default.
    pub wave: Option<u8>,
    /// Whether halves of registers are operands of their own, where it is not the default.
    pub true16: Option<bool>,
}

impl Setting {
    /// The defaults of a processor.
    pub fn new(cpu: &str) -> Self {
        Self { cpu: cpu.to_owned(), wave: None, true16: None }
    }

    /// The same with that wave size.
    pub fn with_wave(self, wave: u8) -> Self {
        Self { wave: Some(wave), ..self }
    }

    /// The same with or without halves of registers.
    pub fn with_true16(self, true16: bool) -> Self {
        Self { true16: Some(true16), ..self }
    }

    /// Takes one attribute of `-mattr`; `false` when it is not a setting of a decoder.
    pub fn take(&mut self, attribute: &str) -> bool {
        match attribute.to_ascii_lowercase().as_str() {
            "+wavefrontsize32" => self.wave = Some(32),
            "+wavefrontsize64" => self.wave = Some(64),
            "+real-true16" => self.true16 = Some(true),
            "-real-true16" => self.true16 = Some(false),
            // Disabling one size is redundant: the attribute for the other follows.
            "-wavefrontsize32" | "-wavefrontsize64" => {}
            // Modes of the memory system, not of the encoding.
            "+xnack" | "-xnack" | "+sramecc" | "-sramecc" => {}
            _ => return false,
        }
        true
    }

    /// The attributes for LLVM's `-mattr`.
    pub fn attributes(&self) -> String {
        let wave = match self.wave {
            Some(32) => Some("+wavefrontsize32,-wavefrontsize64"),
            Some(_) => Some("-wavefrontsize32,+wavefrontsize64"),
            None => None,
        };
        let true16 = self.true16.map(|on| if on { "+real-true16" } else { "-real-true16" });
        [wave, true16].into_iter().flatten().collect::<Vec<_>>().join(",")
    }

    /// Parses the text form of [`Setting`].
    pub fn parse(text: &str) -> Option<Self> {
        let mut words = text.split('/');
        let mut setting = Self::new(words.next().filter(|cpu| !cpu.is_empty())?);
        for word in words {
            match word {
                "wave32" => setting.wave = Some(32),
                "wave64" => setting.wave = Some(64),
                "true16" => setting.true16 = Some(true),
                "fake16" => setting.true16 = Some(false),
                _ => return None,
            }
        }
        Some(setting)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.cpu)?;
        if let Some(wave) = self.wave {
            write!(out, "/wave{wave}")?;
        }
        match self.true16 {
            Some(true) => out.write_str("/true16"),
            Some(false) => out.write_str("/fake16"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_forms_are_read_back() {
        for text in ["gfx900", "gfx1100/wave64", "gfx1250/fake16", "gfx12-generic/wave32/true16"] {
            assert_eq!(Setting::parse(text).map(|setting| setting.to_string()).as_deref(), Some(text));
        }
        for text in ["", "gfx900/wave16", "gfx900/"] {
            assert_eq!(Setting::parse(text), None, "{text}");
        }
    }

    #[test]
    fn attributes_are_taken_in_any_case_and_unknown_ones_are_not() {
        let mut setting = Setting::new("gfx1100");
        assert!(setting.take("+WavefrontSize64") && setting.take("-real-true16") && setting.take("+xnack"));
        assert_eq!(setting.to_string(), "gfx1100/wave64/fake16");
        assert_eq!(setting.attributes(), "-wavefrontsize32,+wavefrontsize64,-real-true16");
        assert!(!setting.take("+dot1-insts"));
    }
}
