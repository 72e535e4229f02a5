//! Patterns of names in the table of rules: `*` is any text without `/`, `{gpu}` the name of a processor.
//!
//! A processor's name may be followed by features, as in `gfx90a-xnack+`, and by digits that do not belong to it, as in
//! MIOpen's `gfx90878`: a gfx908 with 0x78 compute units. So a name of the table of processors is preferred.

/// Whether the name matches; the processor's name where the pattern has its place.
pub(crate) fn match_pattern<'n>(pattern: &str, name: &'n str) -> Option<Option<&'n str>> {
    if let Some(rest) = pattern.strip_prefix('*') {
        let ends = name.char_indices().map(|(at, _)| at).chain([name.len()]);
        // The longest text first: a processor's name is at the end of a file's name.
        let mut ends: Vec<usize> = ends.take_while(|end| !name[..*end].contains('/')).collect();
        ends.reverse();
        return ends.into_iter().find_map(|end| match_pattern(rest, &name[end..]));
    }
    if let Some(rest) = pattern.strip_prefix("{gpu}") {
        let processor = processors_at_start(name)?.find(|processor| {
            let features = length_of_features(&name[processor.len()..]);
            [features, 0].into_iter().any(|extra| match_pattern(rest, &name[processor.len() + extra..]).is_some())
        });
        return processor.map(Some);
    }
    match (pattern.chars().next(), name.chars().next()) {
        (None, None) => Some(None),
        (Some(wanted), Some(found)) if wanted == found => {
            match_pattern(&pattern[wanted.len_utf8()..], &name[found.len_utf8()..])
        }
        _ => None,
    }
}

/// The processor's name at the beginning, `gfx` and hexadecimal digits: known ones, the longest first, and
/// then with all digits.
fn processors_at_start(text: &str) -> Option<impl Iterator<Item = &str>> {
    let digits = text.strip_prefix("gfx")?;
    let length = digits.bytes().position(|byte| !matches!(byte, b'0'..=b'9' | b'a'..=b'f')).unwrap_or(digits.len());
    let all = (length >= 3).then(|| &text[..3 + length])?;
    let known =
        (6..=all.len()).rev().map(|end| &text[..end]).filter(|name| hotswap_targets::find_processor(name).is_some());
    Some(known.chain([all]))
}

/// The length of the features at the beginning.
fn length_of_features(text: &str) -> usize {
    let mut rest = text;
    while let Some(length) = feature_suffix_length(rest) {
        rest = &rest[rest.len() - length..];
    }
    text.len() - rest.len()
}

fn feature_suffix_length(text: &str) -> Option<usize> {
    let name = text.strip_prefix(['-', ':'])?;
    let name = name.strip_prefix("xnack").or_else(|| name.strip_prefix("sramecc"))?;
    name.strip_prefix(['+', '-']).map(str::len)
}

#[cfg(test)]
mod tests {
    use super::match_pattern;

    #[test]
    fn the_place_of_the_gpu_is_found() {
        for (pattern, name, gpu) in [
            ("*_{gpu}.co", "TensileLibrary_Type_HH_gfx1030.co", Some(Some("gfx1030"))),
            ("*_{gpu}.hsaco", "TensileLibrary_Type_HH_fallback_gfx90a-xnack+.hsaco", Some(Some("gfx90a"))),
            ("Kernels.so-000-{gpu}.hsaco", "Kernels.so-000-gfx90a-xnack-.hsaco", Some(Some("gfx90a"))),
            ("*_{gpu}.co", "a_gfx1030_b_gfx1031.co", Some(Some("gfx1031"))),
            ("*.dat", "TensileLibrary_Type_HH_fallback.dat", Some(None)),
            ("librocblas.so*", "librocblas.so.5.2", Some(None)),
            ("rocblas/*/library", "rocblas/5/library", Some(None)),
            ("rocblas/*/library", "rocblas/5/x/library", None),
            ("*_{gpu}.co", "TensileLibrary_lazy.co", None),
            ("{gpu}*.kdb", "gfx1030_36.kdb", Some(Some("gfx1030"))),
            ("{gpu}*.kdb", "gfx1030.kdb", Some(Some("gfx1030"))),
            ("{gpu}*.kdb", "gfx90878.kdb", Some(Some("gfx908"))),
            ("{gpu}*.kdb", "gfx90a6e.kdb", Some(Some("gfx90a"))),
            ("{gpu}*.kdb", "gfx99999_36.kdb", Some(Some("gfx99999"))),
            ("*_{gpu}.co", "x_gfx12345.co", Some(Some("gfx12345"))),
            ("*_{gpu}.co", "x_gfx12.co", None),
            ("*_{gpu}.co", "x_gfx1030.con", None),
            ("", "", Some(None)),
            ("*", "ä", Some(None)),
        ] {
            assert_eq!(match_pattern(pattern, name), gpu, "{pattern} {name}");
        }
    }
}
