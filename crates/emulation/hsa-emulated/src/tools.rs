//! Tools libraries: profilers, tracers and the like, which the user of a program names or preloads, and which change the tables of
//! functions ([`crate::api_table`]).
//!
//! The rules are those of ROCr (`Runtime::LoadTools`): `HSA_TOOLS_LIB` has names separated by spaces; a loaded library that exports
//! `HSA_AMD_TOOL_PRIORITY`, a number, is a tool as well, and comes after those, by its number. `OnLoad` gets the tables, their
//! version, and the names of failed tools; one that returns false or lacks `OnLoad` is closed. `OnUnload` is called
//! in the opposite order at the last `hsa_shut_down`, and the tables are then what they were.
//!
//! Absent on purpose: `WrapAgent` and `AddAgent` (ROCr passes its own C++ objects), rocprofiler-register (Debian's ROCr has it not).
#![allow(unsafe_code)] // libraries are loaded and called

use crate::api_table::{ROOT_VERSION, SavedTables, root_table};
use crate::message::report_message;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::atomic::AtomicUsize;

/// `OnLoad`: tables, version, number and names of tools that failed.
type OnLoad = unsafe extern "C" fn(*const AtomicUsize, u64, u64, *const *const c_char) -> bool;
type OnUnload = unsafe extern "C" fn();

/// A library that is loaded.
struct ToolLibrary {
    handle: *mut c_void,
    name: CString,
    /// The place in the order of loading.
    order: u64,
}

// SAFETY: handles of the dynamic loader may be used by any thread.
unsafe impl Send for ToolLibrary {}

impl ToolLibrary {
    /// A library by its name, as `dlopen` finds it; `None` where it is not found, or not loaded yet with `RTLD_NOLOAD`.
    fn open(name: &CStr, flags: c_int, order: u64) -> Option<Self> {
        // SAFETY: the name ends with NUL. Constructors of the library are what its user asked for.
        let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_LAZY | flags) };
        (!handle.is_null()).then(|| Self { handle, name: name.to_owned(), order })
    }

    fn find_symbol(&self, name: &CStr) -> Option<*mut c_void> {
        // SAFETY: the handle is open.
        let found = unsafe { libc::dlsym(self.handle, name.as_ptr()) };
        (!found.is_null()).then_some(found)
    }

    /// The number that makes a loaded library a tool. The dynamic loader also finds the symbols of a library's dependencies, so the
    /// symbol's own library is compared.
    fn tool_priority(&self) -> Option<u32> {
        let symbol = self.find_symbol(c"HSA_AMD_TOOL_PRIORITY")?;
        // SAFETY: the structure is plain data; the symbol is an address of a loaded library.
        let place = unsafe {
            let mut place: libc::Dl_info = std::mem::zeroed();
            (libc::dladdr(symbol, &mut place) != 0 && !place.dli_fname.is_null()).then_some(place)?
        };
        // SAFETY: the name is that of a loaded library; the symbol is a number of 32 bits by the rule above.
        unsafe { (CStr::from_ptr(place.dli_fname) == &*self.name).then(|| symbol.cast::<u32>().read_unaligned()) }
    }

    fn close(&self) {
        // SAFETY: the handle is open, and not used again.
        unsafe { libc::dlclose(self.handle) };
    }
}

/// The tools of a process, and the tables without them.
pub(crate) struct LoadedTools {
    libraries: Vec<ToolLibrary>,
    tables: SavedTables,
}

impl LoadedTools {
    /// Loads the tools that the environment names, and those that are loaded already.
    pub(crate) fn load() -> Self {
        let tables = SavedTables::save_current();
        let mut failed: Vec<CString> = Vec::new();
        let mut libraries = Vec::new();
        for tool in candidate_tools(&mut failed) {
            if start_tool(&tool, &failed) {
                libraries.push(tool);
            } else {
                tool.close();
                failed.push(tool.name);
            }
        }
        Self { libraries, tables }
    }

    /// Tells the tools that the library ends, and puts the tables back.
    pub(crate) fn unload(self) {
        for tool in self.libraries.iter().rev() {
            if let Some(symbol) = tool.find_symbol(c"OnUnload") {
                // SAFETY: a tool's function of this name has this type.
                unsafe { std::mem::transmute::<*mut c_void, OnUnload>(symbol)() };
            }
        }
        self.tables.put_back();
        self.libraries.iter().for_each(ToolLibrary::close);
    }
}

/// Calls `OnLoad`; whether the tool is to stay.
fn start_tool(tool: &ToolLibrary, failed: &[CString]) -> bool {
    let Some(symbol) = tool.find_symbol(c"OnLoad") else { return false };
    let names: Vec<*const c_char> = failed.iter().map(|name| name.as_ptr()).collect();
    // SAFETY: a tool's function of this name has this type; the names live until it returns.
    unsafe {
        let on_load = std::mem::transmute::<*mut c_void, OnLoad>(symbol);
        on_load(root_table().as_ptr(), ROOT_VERSION, names.len() as u64, names.as_ptr())
    }
}

/// The tools in their order, each once; names that cannot be loaded are told if the user asks for it.
fn candidate_tools(failed: &mut Vec<CString>) -> Vec<ToolLibrary> {
    let names = tool_names(&std::env::var("HSA_TOOLS_LIB").unwrap_or_default());
    let mut all: Vec<ToolLibrary> = Vec::new();
    for name in names.iter().filter_map(|name| CString::new(name.as_str()).ok()) {
        match ToolLibrary::open(&name, 0, all.len() as u64) {
            Some(tool) => add_tool(&mut all, tool),
            None => {
                if std::env::var("HSA_TOOLS_REPORT_LOAD_FAILURE").is_ok_and(|value| value == "1") {
                    report_message(&format!("tools library {} cannot be loaded", name.to_string_lossy()));
                }
                failed.push(name);
            }
        }
    }
    for name in loaded_libraries() {
        let Some(mut tool) = ToolLibrary::open(&name, libc::RTLD_NOLOAD, 0) else { continue };
        match tool.tool_priority() {
            Some(priority) => {
                tool.order = names.len() as u64 + u64::from(priority);
                add_tool(&mut all, tool);
            }
            None => tool.close(),
        }
    }
    all.sort_by_key(|tool| tool.order);
    all
}

fn add_tool(all: &mut Vec<ToolLibrary>, tool: ToolLibrary) {
    if all.iter().any(|other| other.handle == tool.handle) { tool.close() } else { all.push(tool) }
}

/// The names of the libraries that the process has loaded.
fn loaded_libraries() -> Vec<CString> {
    unsafe extern "C" fn add_name(info: *mut libc::dl_phdr_info, _: usize, names: *mut c_void) -> c_int {
        // SAFETY: the dynamic loader passes a library, `loaded_libraries` the list.
        unsafe {
            let name = (*info).dlpi_name;
            if !name.is_null() && *name != 0 {
                (*names.cast::<Vec<CString>>()).push(CStr::from_ptr(name).to_owned());
            }
        }
        0
    }
    let mut names: Vec<CString> = Vec::new();
    // SAFETY: the list outlives the call.
    unsafe { libc::dl_iterate_phdr(Some(add_name), (&raw mut names).cast()) };
    names
}

/// The names in `HSA_TOOLS_LIB`: a space ends one, quotation marks hold one together, and a backslash takes the next character as it
/// is.
fn tool_names(text: &str) -> Vec<String> {
    let (mut names, mut name, mut quoted) = (Vec::new(), String::new(), false);
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match letter {
            ' ' if !quoted => names.push(std::mem::take(&mut name)),
            '"' => quoted = !quoted,
            '\\' => name.extend(letters.next()),
            other => name.push(other),
        }
    }
    names.push(name);
    names.retain(|name| !name.is_empty());
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_separated_by_spaces() {
        assert_eq!(tool_names("liba.so /opt/b.so"), ["liba.so", "/opt/b.so"]);
        assert_eq!(tool_names(r#""/my tools/a.so" /b\ c.so  "#), ["/my tools/a.so", "/b c.so"]);
        assert!(tool_names("").is_empty());
    }

    /// A tool that cannot be loaded is passed to the next one's `OnLoad`, and changes nothing.
    #[test]
    fn the_tables_are_put_back() {
        let before = SavedTables::save_current();
        let word = &root_table()[2];
        let value = word.load(std::sync::atomic::Ordering::Relaxed);
        word.store(0, std::sync::atomic::Ordering::Relaxed);
        before.put_back();
        assert_eq!(word.load(std::sync::atomic::Ordering::Relaxed), value);
    }
}
