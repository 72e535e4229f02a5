//! A function of libc by the symbol table in memory, without a question to the dynamic loader.
//!
//! Invariant: only tables that the loader has loaded and relocated are read: those of libc, and of libdl, which has the
//! loader's functions before glibc 2.34. Without a function of that name, the answer is 0.
#![allow(unsafe_code)] // tables of a loaded library

use std::ffi::{CStr, c_int, c_void};

/// `Elf64_Dyn`, an entry of the dynamic section.
#[repr(C)]
struct DynamicEntry {
    tag: i64,
    value: usize,
}

const DT_NULL: i64 = 0;
const DT_STRTAB: i64 = 5;
const DT_SYMTAB: i64 = 6;
const DT_GNU_HASH: i64 = 0x6fff_fef5;
const STT_FUNC: u8 = 2;

/// A question, and its answer.
struct Wanted<'n> {
    name: &'n CStr,
    address: usize,
}

/// The address of libc's function of that name, or 0.
pub(crate) fn find_libc_function(name: &CStr) -> usize {
    let mut wanted = Wanted { name, address: 0 };
    // SAFETY: the function below is called before this one returns, with the address of `wanted`.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut wanted).cast()) };
    wanted.address
}

/// Looks into one loaded file; a result other than zero ends the walk.
unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _: libc::size_t, data: *mut c_void) -> c_int {
    // SAFETY: the loader passes its structure, and the address that the walk was started with.
    let (info, wanted) = unsafe { (&*info, &mut *data.cast::<Wanted<'_>>()) };
    if info.dlpi_name.is_null() || info.dlpi_phdr.is_null() {
        return 0;
    }
    // SAFETY: the name of a loaded file; the loader's lock is held.
    let name = unsafe { CStr::from_ptr(info.dlpi_name) }.to_bytes();
    let file = name.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    if !file.starts_with(b"libc.so.") && !file.starts_with(b"libdl.so.") {
        return 0;
    }
    // SAFETY: the program headers of a loaded file, as many as the loader says.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let base = info.dlpi_addr as usize;
    if let Some(dynamic) = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC) {
        // SAFETY: the dynamic section of that file, at its place in memory.
        wanted.address =
            unsafe { in_tables(base, (base + dynamic.p_vaddr as usize) as *const DynamicEntry, wanted.name) };
    }
    c_int::from(wanted.address != 0)
}

/// The address of a function by the tables of a dynamic section, or 0.
///
/// # Safety
/// The dynamic section of a file that is loaded at `base`.
unsafe fn in_tables(base: usize, mut entry: *const DynamicEntry, name: &CStr) -> usize {
    let (mut strings, mut symbols, mut hashes) = (0, 0, 0);
    // SAFETY: the section ends with an entry of this tag.
    while let Some(DynamicEntry { tag, value }) = unsafe { entry.as_ref() }.filter(|entry| entry.tag != DT_NULL) {
        // The loader has made addresses of them where the section can be written.
        let address = if *value < base { base + value } else { *value };
        match *tag {
            DT_STRTAB => strings = address,
            DT_SYMTAB => symbols = address,
            DT_GNU_HASH => hashes = address,
            _ => {}
        }
        // SAFETY: this was not the last one.
        entry = unsafe { entry.add(1) };
    }
    if strings == 0 || symbols == 0 || hashes == 0 {
        return 0;
    }
    let (strings, symbols) = (strings as *const libc::c_char, symbols as *const libc::Elf64_Sym);
    // SAFETY: the tables of that file, whose symbols' names are C strings in the table of strings.
    unsafe {
        let found = symbols_with_hash(hashes as *const u32, gnu_hash(name)).map(|number| &*symbols.add(number)).find(
            |symbol| {
                let is_function = symbol.st_shndx != 0 && symbol.st_info & 0xf == STT_FUNC;
                is_function && CStr::from_ptr(strings.add(symbol.st_name as usize)) == name
            },
        );
        found.map_or(0, |symbol| base + symbol.st_value as usize)
    }
}

/// The numbers of the symbols with that hash.
///
/// # Safety
/// A table `DT_GNU_HASH`: four numbers, words of a filter, buckets, and a chain for each bucket.
unsafe fn symbols_with_hash(table: *const u32, hash: u32) -> impl Iterator<Item = usize> {
    // SAFETY: a chain begins at the number of its bucket, and ends with an entry whose lowest bit is set.
    unsafe {
        let [buckets, first, words] = [0, 1, 2].map(|place| *table.add(place) as usize);
        let bucket = table.add(4 + words * (size_of::<usize>() / size_of::<u32>()));
        let chains = bucket.add(buckets);
        let start = if buckets == 0 { 0 } else { *bucket.add(hash as usize % buckets) as usize };
        let mut next = Some(start).filter(|start| *start >= first && *start > 0);
        std::iter::from_fn(move || {
            let number = next?;
            let of_symbol = *chains.add(number - first);
            next = (of_symbol & 1 == 0).then_some(number + 1);
            Some((number, of_symbol))
        })
        .filter(move |(_, of_symbol)| of_symbol | 1 == hash | 1)
        .map(|(number, _)| number)
    }
}

/// The hash of `DT_GNU_HASH`.
fn gnu_hash(name: &CStr) -> u32 {
    name.to_bytes().iter().fold(5381, |hash: u32, byte| hash.wrapping_mul(33).wrapping_add(u32::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_libc_are_found() {
        assert_eq!(gnu_hash(c"printf"), 0x156b_2bb8);
        for (name, address) in [
            (c"qsort", libc::qsort as *const () as usize),
            (c"getpid", libc::getpid as *const () as usize),
            (c"dladdr", libc::dladdr as *const () as usize),
        ] {
            assert_eq!(find_libc_function(name), address, "{name:?}");
        }
        assert_eq!((find_libc_function(c"no_such_function"), find_libc_function(c"")), (0, 0));
        // A variable is no function.
        assert_eq!(find_libc_function(c"environ"), 0);
    }

    #[test]
    fn the_loaders_functions_are_libcs() {
        for name in [c"dlsym", c"dlvsym"] {
            let file = crate::scope::file_of(find_libc_function(name) as *const c_void).unwrap();
            let file = file.file_name().unwrap().to_string_lossy().into_owned();
            assert!(file.starts_with("libc.so") || file.starts_with("libdl.so"), "{file}");
        }
    }
}
