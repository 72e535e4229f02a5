//! A second reader of raw profiles, written from `InstrProfData.inc` alone: it shares nothing with the command's.

/// The facts of one profile.
pub(crate) struct ProfileFacts {
    pub(crate) version: u64,
    pub(crate) records: u64,
    pub(crate) counters: u64,
    pub(crate) total: u64,
}

/// Reads the profile at the begin of `rest`, which is what follows it then. `None` where a part is cut off.
pub(crate) fn read(rest: &mut &[u8]) -> Option<ProfileFacts> {
    let mut next = || -> Option<u64> {
        let (word, left) = rest.split_first_chunk::<8>()?;
        *rest = left;
        Some(u64::from_le_bytes(*word))
    };
    let (_magic, version) = (next()?, next()? & 0xffff_ffff);
    let (ids, records, before, counters, after) = (next()?, next()?, next()?, next()?, next()?);
    let (bitmap, after_bitmap) = (next()?, next()?);
    let mut uniform_parts = (0, 0);
    if version == 11 {
        uniform_parts = (next()?, next()?);
        let _uniform_delta = next()?;
    }
    let (uniform, after_uniform) = uniform_parts;
    let names = next()?;
    let (_counters_delta, _bitmap_delta) = (next()?, next()?);
    let (_names_delta, tables, table_names, _last_value_kind) = (next()?, next()?, next()?, next()?);
    let record_size = if version == 11 { 72 } else { 64 };
    let mut take = |size: u128| -> Option<&[u8]> {
        let (part, left) = rest.split_at_checked(usize::try_from(size).ok()?)?;
        *rest = left;
        Some(part)
    };
    let padded = |size: u64| u128::from(size).next_multiple_of(8);
    take(ids.into())?;
    let data = take(u128::from(records) * record_size)?;
    take(before.into())?;
    let words = take(u128::from(counters) * 8)?;
    for size in [after.into(), bitmap.into(), after_bitmap.into(), u128::from(uniform) * 8, after_uniform.into()] {
        take(size)?;
    }
    take(padded(names))?;
    take(u128::from(tables) * 24)?;
    take(padded(table_names))?;
    // The numbers of value sites are three half words before the wave's size and the padding.
    let sites_at = if version == 11 { 60 } else { 52 };
    for record in data.chunks_exact(record_size as usize) {
        if record[sites_at..sites_at + 6] != [0; 6] {
            let size = u32::from_le_bytes(*rest.first_chunk()?);
            *rest = rest.get(size as usize..)?;
        }
    }
    let sum: u128 = words.chunks_exact(8).map(|word| u128::from(u64::from_le_bytes(word.try_into().unwrap()))).sum();
    Some(ProfileFacts { version, records, counters, total: u64::try_from(sum).unwrap_or(u64::MAX) })
}
