//! The structures in which HIP returns a device's name.
//!
//! The layout changed with HIP 6.0; both stay in HIP's library, under names of their own. `tests/dispatch` compares
//! the offsets with HIP's headers.
//!
//! Invariant: nothing but the name is changed, and only where HIP's own text is that of a named GPU.

use crate::message::say_once;
use crate::name_map::NameMap;

/// Where a structure has the name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PropertiesLayout {
    /// Offset of `gcnArchName` in bytes.
    pub offset: usize,
    /// Size of the structure.
    pub size: usize,
}

/// `hipDeviceProp_tR0600`, from HIP 6.0 on.
pub const R0600: PropertiesLayout = PropertiesLayout { offset: 1160, size: 1472 };
/// `hipDeviceProp_tR0000`, before HIP 6.0.
pub const R0000: PropertiesLayout = PropertiesLayout { offset: 396, size: 792 };
/// Size of `gcnArchName` in both.
pub const NAME_SIZE: usize = 256;

/// The name in the field.
pub(crate) fn name(field: &[u8]) -> Option<&str> {
    let end = field.iter().position(|byte| *byte == 0)?;
    std::str::from_utf8(&field[..end]).ok()
}

/// Replaces the name in the field by the one that is shown.
pub(crate) fn show_name(field: &mut [u8], names: &NameMap) {
    let Some(own) = name(field) else { return };
    if let Some(lack) = names.missing_reason(own) {
        say_once(&lack);
    }
    let Some(shown) = names.shown_name(own) else { return };
    if shown.len() < field.len() {
        field.fill(0);
        field[..shown.len()].copy_from_slice(shown.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_name_of_a_named_gpu_is_replaced() {
        let names = NameMap::parse("gfx902=gfx900,gfx90c=gfx900,gfx1031=gfx1030").unwrap();
        let shown = |text: &[u8]| {
            let mut field = [0; 16];
            field[..text.len()].copy_from_slice(text);
            show_name(&mut field, &names);
            field
        };
        assert_eq!(&shown(b"gfx1031"), b"gfx1030\0\0\0\0\0\0\0\0\0");
        assert_eq!(&shown(b"gfx902:xnack-"), b"gfx900:xnack-\0\0\0");
        assert_eq!(&shown(b"gfx1100"), b"gfx1100\0\0\0\0\0\0\0\0\0");
        // Neither text without an end nor other bytes are a name.
        assert_eq!(&shown(b"gfx1031:xxxxxxxx"), b"gfx1031:xxxxxxxx");
        assert_eq!(shown(&[0xff; 3])[..4], [0xff, 0xff, 0xff, 0]);
    }
}
