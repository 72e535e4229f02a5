//! Example of a family in Rust: `s_trap` is refused.

use hotswap_family_abi::{Answer, Family, Registry, Rewriter, Site, Surroundings, answers};
use std::ffi::{CStr, c_void};
use std::ptr::null_mut;

extern "C" fn rewrite(_: *mut c_void, site: *const Site, _: *const Surroundings, answer: *mut Answer) -> i32 {
    // Sound: the caller passes a site and an answer that live as long as the call.
    let (mnemonic, answer) = unsafe { (CStr::from_ptr((*site).mnemonic), &mut *answer) };
    if mnemonic != c"s_trap" {
        return answers::NOT_MINE;
    }
    // Sound: as above; the text ends with 0.
    unsafe { (answer.explain)(answer, c"this tool makes code for systems without a trap handler".as_ptr()) };
    answers::REFUSE
}

static REWRITER: Rewriter = Rewriter {
    size: size_of::<Rewriter>() as u32,
    reserved: 0,
    family: Family {
        name: c"no_trap".as_ptr(),
        scope: c"Instruction".as_ptr(),
        order: 0,
        summary: c"s_trap is refused".as_ptr(),
    },
    context: null_mut(),
    rewrite: Some(rewrite),
};

// Sound: no other object of the tool defines the symbol; its type is that of the header.
#[unsafe(no_mangle)]
extern "C" fn hotswap_register_no_trap_patch(registry: *mut Registry) {
    // Sound: the caller passes a registry that lives as long as the call.
    unsafe {
        if (*registry).version >= 2 {
            ((*registry).bind_rewriter)(registry, &REWRITER);
        }
    }
}
