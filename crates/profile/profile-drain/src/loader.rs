//! The dynamic loader: the images of the process, their notes, and libraries that are loaded.
//!
//! Invariant: nothing is loaded that was not loaded before, and no code of a library runs.
#![allow(unsafe_code)] // the loader's entries, each with its proof

use crate::bytes::{Span, word};
use crate::libc::dlsym;
use crate::text::Text;
use core::ffi::{CStr, c_char, c_int, c_void};

type PhdrCallback = extern "C" fn(*const PhdrInfo, usize, *mut c_void) -> c_int;

unsafe extern "C" {
    fn dlopen(name: *const c_char, mode: c_int) -> *mut c_void;
    fn dlclose(handle: *mut c_void) -> c_int;
    fn dl_iterate_phdr(callback: PhdrCallback, data: *mut c_void) -> c_int;
}

const RTLD_LAZY: c_int = 1;
const RTLD_NOLOAD: c_int = 4;
const PT_LOAD: u32 = 1;
const PT_NOTE: u32 = 4;

/// The first fields of `struct dl_phdr_info`.
#[repr(C)]
struct PhdrInfo {
    base: usize,
    name: *const c_char,
    headers: *const ProgramHeader,
    count: u16,
}

/// `Elf64_Phdr`, as the loader has it.
#[repr(C)]
struct ProgramHeader {
    kind: u32,
    flags: u32,
    offset: u64,
    address: u64,
    physical: u64,
    file_size: u64,
    memory_size: u64,
    alignment: u64,
}

/// A library that the program has loaded; we never load one.
pub struct LoadedLibrary {
    handle: *mut c_void,
}

impl LoadedLibrary {
    /// The loaded library whose file name begins with this, in any version.
    pub fn find(name: &[u8]) -> Option<Self> {
        let mut search = LibrarySearch { name, path: Text::default(), found: false };
        // SAFETY: the callback receives this pointer during the call only, and knows its type.
        unsafe { dl_iterate_phdr(is_library, (&raw mut search).cast()) };
        if !search.found || search.path.is_cut() {
            return None;
        }
        // SAFETY: a text with its zero. RTLD_NOLOAD: no code of the library runs.
        let handle = unsafe { dlopen(search.path.c_string().as_ptr().cast(), RTLD_LAZY | RTLD_NOLOAD) };
        (!handle.is_null()).then_some(Self { handle })
    }

    /// Address of a symbol; null where it does not exist.
    pub fn symbol(&self, name: &CStr) -> *mut c_void {
        // SAFETY: an open handle and a text with its zero.
        unsafe { dlsym(self.handle, name.as_ptr()) }
    }
}

impl Drop for LoadedLibrary {
    fn drop(&mut self) {
        // SAFETY: the handle came from dlopen and is closed once.
        unsafe { dlclose(self.handle) };
    }
}

/// Keeps the library that holds this address until the process ends; false where that is impossible.
pub fn keep_loaded(address: usize) -> bool {
    let mut search = AddressSearch { address, path: Text::default() };
    // SAFETY: the callback receives this pointer during the call only, and knows its type.
    unsafe { dl_iterate_phdr(holds_address, (&raw mut search).cast()) };
    if search.path.bytes().is_empty() || search.path.is_cut() {
        return false;
    }
    // SAFETY: a text with its zero. RTLD_NOLOAD: no code of the library runs. The handle is never closed.
    !unsafe { dlopen(search.path.c_string().as_ptr().cast(), RTLD_LAZY | RTLD_NOLOAD) }.is_null()
}

struct AddressSearch {
    address: usize,
    path: Text<4096>,
}

extern "C" fn holds_address(info: *const PhdrInfo, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader's entry is valid during the call, and `data` is the search that `keep_loaded` passed.
    let (info, search) = unsafe { (&*info, &mut *data.cast::<AddressSearch>()) };
    if info.headers.is_null() || info.name.is_null() {
        return 0;
    }
    // SAFETY: the loader's table has `count` program headers.
    let headers = unsafe { core::slice::from_raw_parts(info.headers, usize::from(info.count)) };
    let distance = search.address.wrapping_sub(info.base) as u64;
    let mut loads = headers.iter().filter(|header| header.kind == PT_LOAD);
    if !loads.any(|load| Span { address: load.address, size: load.memory_size }.holds(distance, 1)) {
        return 0;
    }
    // SAFETY: the loader's names are texts with zeros.
    search.path = Text::new(unsafe { CStr::from_ptr(info.name) }.to_bytes());
    1
}

struct LibrarySearch<'a> {
    name: &'a [u8],
    path: Text<4096>,
    found: bool,
}

extern "C" fn is_library(info: *const PhdrInfo, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader's entry is valid during the call, and `data` is the search that `find` passed.
    let (info, search) = unsafe { (&*info, &mut *data.cast::<LibrarySearch<'_>>()) };
    if info.name.is_null() {
        return 0;
    }
    // SAFETY: the loader's names are texts with zeros.
    let path = unsafe { CStr::from_ptr(info.name) }.to_bytes();
    let base = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
    if !base.starts_with(search.name) {
        return 0;
    }
    search.path = Text::new(path);
    search.found = true;
    1
}

/// A program or library in memory.
#[derive(Debug, Clone, Copy)]
pub struct LoadedImage {
    /// Whether it is the program itself.
    pub is_program: bool,
    pub start: usize,
    pub end: usize,
}

/// The callback of [`notes`] for each image that has the note, with a pointer to the note's content.
pub type NoteVisitor<'a> = &'a mut dyn FnMut(LoadedImage, *const u8);

struct Notes<'a> {
    name: &'a [u8],
    size: u32,
    visit: NoteVisitor<'a>,
}

/// Visits the ELF notes of this name (with its zero) and size in all loaded images, in the order of their loading.
pub fn notes(name: &[u8], size: u32, visit: NoteVisitor<'_>) {
    let mut notes = Notes { name, size, visit };
    // SAFETY: the callback receives this pointer during the call only, and knows its type.
    unsafe { dl_iterate_phdr(visit_notes, (&raw mut notes).cast()) };
}

extern "C" fn visit_notes(info: *const PhdrInfo, _: usize, data: *mut c_void) -> c_int {
    // SAFETY: the loader's entry is valid during the call, and `data` is the argument that `notes` passed.
    let (info, notes) = unsafe { (&*info, &mut *data.cast::<Notes<'_>>()) };
    // SAFETY: the program's name is null or empty.
    let is_program = info.name.is_null() || unsafe { *info.name } == 0;
    if info.headers.is_null() {
        return 0;
    }
    // SAFETY: the loader's table has `count` program headers.
    let headers = unsafe { core::slice::from_raw_parts(info.headers, usize::from(info.count)) };
    let loads = headers.iter().filter(|header| header.kind == PT_LOAD);
    let loads = loads.map(|header| Span { address: header.address, size: header.memory_size });
    let begin = loads.clone().map(|load| load.address).min().unwrap_or(0);
    let end = loads.clone().filter_map(|load| load.end()).max().unwrap_or(0);
    let [start, end] = [begin, end].map(|address| info.base.wrapping_add(address as usize));
    let image = LoadedImage { is_program, start, end };
    for header in headers.iter().filter(|header| header.kind == PT_NOTE) {
        if !loads.clone().any(|load| load.holds(header.address, header.memory_size)) {
            continue;
        }
        let start = (info.base.wrapping_add(header.address as usize)) as *const u8;
        // SAFETY: the segment is in a loaded part of an image, which the loader's lock keeps loaded.
        let bytes = unsafe { core::slice::from_raw_parts(start, header.memory_size as usize) };
        visit_segment(bytes, image, notes);
    }
    0
}

fn visit_segment(bytes: &[u8], image: LoadedImage, notes: &mut Notes<'_>) {
    let mut rest = bytes;
    while let Some((head, after)) = rest.split_at_checked(12) {
        let sizes = [word::<4>(head, 0) as usize, word::<4>(head, 4) as usize];
        let [name_room, content_room] = sizes.map(|size| size.wrapping_add(3) & !3);
        let [name_size, content_size] = sizes;
        let Some((name, after)) = after.split_at_checked(name_room) else { return };
        let Some((content, after)) = after.split_at_checked(content_room.min(after.len())) else { return };
        if name.get(..name_size) == Some(notes.name) && content_size == notes.size as usize {
            (notes.visit)(image, content.as_ptr());
        }
        rest = after;
    }
}
