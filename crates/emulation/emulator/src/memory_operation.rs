//! Loads and stores by mnemonic: how many bytes, and what becomes of them.

/// A load or a store of one lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryOperation {
    pub(crate) is_store: bool,
    pub(crate) bytes: u8,
    /// Short loads are extended with their sign.
    pub(crate) signed: bool,
    pub(crate) half: DataHalf,
}

impl MemoryOperation {
    /// Whether it moves a whole word.
    pub(crate) fn is_word(self) -> bool {
        self.bytes == 4 && self.half == DataHalf::Whole
    }
}

/// The part of the register that a short access concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DataHalf {
    /// All bits of the register.
    Whole,
    /// The lower half; the upper one is kept.
    Low,
    /// The upper half; the lower one is kept.
    High,
}

/// The operation of a mnemonic such as `global_load_d16_hi_u8`, `ds_write_b16_d16_hi` or `s_load_dwordx4`.
pub(crate) fn of_mnemonic(mnemonic: &str) -> Option<MemoryOperation> {
    let prefixes = ["global_", "flat_", "scratch_", "buffer_", "ds_", "s_buffer_", "s_scratch_", "s_", "cluster_"];
    let rest = prefixes.iter().find_map(|prefix| mnemonic.strip_prefix(prefix))?;
    let load = rest.strip_prefix("load_").or_else(|| rest.strip_prefix("read_"));
    let store = rest.strip_prefix("store_").or_else(|| rest.strip_prefix("write_"));
    let (is_store, rest) = match (load, store) {
        (Some(rest), _) => (false, rest),
        (_, Some(rest)) => (true, rest),
        _ => return None,
    };
    let rest = rest.strip_prefix("monitor_").unwrap_or(rest);
    let (half, kind) = half_of(rest);
    let (bytes, signed) = size_of(&kind)?;
    Some(MemoryOperation { is_store, bytes, signed, half })
}

/// The operation of a copy between memory and LDS such as `global_load_async_to_lds_b32`.
pub(crate) fn of_copy(mnemonic: &str) -> Option<MemoryOperation> {
    const PREFIXES: [(&str, bool); 3] = [
        ("global_load_async_to_lds_", false),
        ("cluster_load_async_to_lds_", false),
        ("global_store_async_from_lds_", true),
    ];
    let (rest, is_store) =
        PREFIXES.iter().find_map(|(prefix, is_store)| Some((mnemonic.strip_prefix(prefix)?, *is_store)))?;
    let (bytes, signed) = size_of(rest)?;
    Some(MemoryOperation { is_store, bytes, signed, half: DataHalf::Whole })
}

/// Takes the words `d16` and `hi` off the rest of a mnemonic.
fn half_of(rest: &str) -> (DataHalf, String) {
    let words: Vec<&str> = rest.split('_').collect();
    let half = match (words.contains(&"d16"), words.contains(&"hi")) {
        (false, _) => DataHalf::Whole,
        (true, false) => DataHalf::Low,
        (true, true) => DataHalf::High,
    };
    let kind: Vec<&str> = words.into_iter().filter(|word| !matches!(*word, "d16" | "hi")).collect();
    (half, kind.join("_"))
}

fn size_of(kind: &str) -> Option<(u8, bool)> {
    Some(match kind {
        "ubyte" | "u8" | "byte" | "b8" => (1, false),
        "sbyte" | "i8" => (1, true),
        "ushort" | "u16" | "short" | "b16" => (2, false),
        "sshort" | "i16" => (2, true),
        "dword" | "b32" => (4, false),
        "dwordx2" | "b64" => (8, false),
        "dwordx3" | "b96" => (12, false),
        "dwordx4" | "b128" => (16, false),
        "dwordx8" | "b256" => (32, false),
        "dwordx16" | "b512" => (64, false),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_all_generations_are_read() {
        let high = MemoryOperation { is_store: false, bytes: 1, signed: false, half: DataHalf::High };
        for name in ["global_load_ubyte_d16_hi", "flat_load_d16_hi_u8", "ds_read_u8_d16_hi", "ds_load_u8_d16_hi"] {
            assert_eq!(of_mnemonic(name), Some(high), "{name}");
        }
        assert_eq!(of_mnemonic("scratch_store_b96").map(|found| (found.bytes, found.is_store)), Some((12, true)));
        assert_eq!(
            of_mnemonic("ds_write_b16_d16_hi").map(|found| (found.bytes, found.half)),
            Some((2, DataHalf::High))
        );
        assert_eq!(of_mnemonic("s_load_dwordx16").map(|found| found.bytes), Some(64));
        for name in ["ds_read2_b32", "global_load_lds_dword", "global_atomic_add_u32", "buffer_load_format_x"] {
            assert_eq!(of_mnemonic(name), None, "{name}");
        }
    }
}
