//! Third-party families: C on one side, the registry on the other.
//!
//! Invariants: the code that a family emits is decoded for the target before it counts. A family that breaks the rules
//! of `hotswap_registry.h` is a refusal that names it, never a guess. Structures passed to it live as long as the call.

use crate::code::{CodeSite, Replacement, Scheduling, Sequence, SiteAnswer, SiteQueries, SiteRefusal};
use crate::patches_def::is_family_name;
use crate::table::{FamilyScope, PatchFamily, find_family};
use hotswap_family_abi as abi;
use hotswap_isa::effects::ControlFlow;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Inst, Isa};
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};

/// The advice for a defect of a third-party family.
const TELL_ITS_AUTHOR: &str = "tell the author of the family";

/// A family that a third-party registrar has bound.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ThirdParty {
    pub(crate) family: &'static PatchFamily,
    rewriter: &'static abi::Rewriter,
}

/// The bindings that registrars make while they are called.
#[derive(Default)]
struct BoundRewriters {
    rewriters: Vec<&'static abi::Rewriter>,
    /// Calls of `bind`: families without a function.
    without: usize,
}

/// Calls a registrar, and checks the family that it binds.
///
/// # Errors
/// The rule that it broke.
pub(crate) fn call_registrar(registrar: &abi::Registrar, taken: &[ThirdParty]) -> Result<ThirdParty, String> {
    let name = registrar.name;
    if !is_family_name(name)
        || find_family(name).is_some()
        || taken.iter().find(|one| is_earlier_registration(one, name)).is_some()
    {
        return Err(format!("`{name}` is not a valid name for a third-party family, or it is taken"));
    }
    let bound = bound_by(registrar);
    let rewriter = match bound.rewriters[..] {
        [] if bound.without > 0 => return Err(format!("the registrar of `{name}` binds a family that does nothing")),
        [] => return Err(format!("the registrar of `{name}` binds nothing")),
        [rewriter] if bound.without == 0 => rewriter,
        _ => {
            return Err(format!(
                "the registrar of `{name}` binds its slot {} times",
                bound.rewriters.len() + bound.without
            ));
        }
    };
    let own = string_from_c(rewriter.family.name);
    if own.as_deref() != Some(name) {
        return Err(format!("the registrar of `{name}` binds the slot of `{}`", own.unwrap_or_default()));
    }
    if (rewriter.size as usize) < size_of::<abi::Rewriter>() || rewriter.rewrite.is_none() {
        return Err(format!("the registrar of `{name}` binds a family without a function"));
    }
    let summary = string_from_c(rewriter.family.summary).unwrap_or_default();
    // Once per process, for its lifetime.
    let family =
        Box::leak(Box::new(PatchFamily { name, scope: FamilyScope::Instruction, order: 0, summary: summary.leak() }));
    Ok(ThirdParty { family, rewriter })
}

fn is_earlier_registration(other: &&ThirdParty, name: &str) -> bool {
    other.family.name == name
}

#[allow(unsafe_code)]
fn bound_by(registrar: &abi::Registrar) -> BoundRewriters {
    let mut bound = BoundRewriters::default();
    let mut registry = abi::Registry { version: abi::VERSION, context: (&raw mut bound).cast(), bind, bind_rewriter };
    // Sound: the symbol is a registrar by its name, which the linker found. The registry lives as long as the call, and
    // registrars keep no reference to it.
    unsafe { (registrar.register)(&raw mut registry) };
    bound
}

// Sound: `registry` is the one of `bound_by`, whose context is a `BoundRewriters` that nothing else refers to.
#[allow(unsafe_code)]
unsafe extern "C" fn bind(registry: *mut abi::Registry, _: *const abi::Family) {
    let bound = unsafe { &mut *(*registry).context.cast::<BoundRewriters>() };
    bound.without += 1;
}

// Sound: as above. The header requires that rewriters live as long as the program. A null pointer binds nothing.
#[allow(unsafe_code)]
unsafe extern "C" fn bind_rewriter(registry: *mut abi::Registry, rewriter: *const abi::Rewriter) {
    let bound = unsafe { &mut *(*registry).context.cast::<BoundRewriters>() };
    bound.rewriters.extend(unsafe { rewriter.as_ref() });
}

/// A C string; `None` for a null pointer.
#[allow(unsafe_code)]
fn string_from_c(pointer: *const c_char) -> Option<String> {
    // Sound: the header requires strings that end with 0.
    (!pointer.is_null()).then(|| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
}

/// The answers of a family while it is called.
#[derive(Default)]
struct AbiReply {
    code: Vec<u8>,
    reason: Option<String>,
}

/// The sources of the answers to a family's queries.
struct SiteContext<'a> {
    site: &'a CodeSite<'a>,
    around: &'a dyn SiteQueries,
    /// Registers that were given to the family.
    borrowed: RefCell<RegSet>,
}

impl SiteContext<'_> {
    /// The waits for the registers that were given to the family, before its own code: it cannot know that memory
    /// instructions may have to be issued again.
    fn waits_for_borrowed(&self) -> Result<Replacement, SiteRefusal> {
        let mut waits = Sequence::new(self.site, self.around);
        self.borrowed.borrow().iter().try_for_each(|reg| waits.declare_scratch(reg))?;
        waits.finish()
    }
}

impl ThirdParty {
    /// Calls the family for an instruction.
    ///
    /// # Errors
    /// Its refusal, or the rule that it broke.
    #[allow(unsafe_code)]
    pub(crate) fn rewrite_site(self, site: &CodeSite<'_>, around: &dyn SiteQueries) -> Result<SiteAnswer, SiteRefusal> {
        let bytes = site.inst.bytes();
        let [mnemonic, source, target] =
            [site.inst.mnemonic(), site.source.target().name, site.target.target().name].map(c_text);
        let asked = abi::Site {
            size: size_of::<abi::Site>() as u32,
            length: u32::from(site.inst.len()),
            code: bytes.as_ptr(),
            mnemonic: mnemonic.as_ptr(),
            source: source.as_ptr(),
            target: target.as_ptr(),
            bank_mode: around.banks().mode().map_or(abi::UNKNOWN, u32::from),
            own_scheduling: u32::from(around.scheduling() == Scheduling::Program),
        };
        let context = SiteContext { site, around, borrowed: RefCell::new(RegSet::EMPTY) };
        let surroundings = abi::Surroundings {
            size: size_of::<abi::Surroundings>() as u32,
            reserved: 0,
            context: (&raw const context).cast(),
            free_registers,
            is_dead_after,
        };
        let mut said = AbiReply::default();
        let mut answer = abi::Answer {
            size: size_of::<abi::Answer>() as u32,
            reserved: 0,
            context: (&raw mut said).cast(),
            emit,
            explain,
        };
        let Some(rewrite) = self.rewriter.rewrite else { return Ok(SiteAnswer::NotMine) };
        // Sound: everything lives as long as the call, and the types are those of the header.
        let result =
            unsafe { rewrite(self.rewriter.context, &raw const asked, &raw const surroundings, &raw mut answer) };
        match self.judge_answer(result, said, site.target)? {
            SiteAnswer::Replace(new) => {
                let mut all = context.waits_for_borrowed()?;
                all.code.extend(new.code);
                Ok(all.into())
            }
            other => Ok(other),
        }
    }

    fn judge_answer(self, result: i32, said: AbiReply, target: Isa) -> Result<SiteAnswer, SiteRefusal> {
        let name = self.family.name;
        match result {
            abi::answers::NOT_MINE if said.code.is_empty() => Ok(SiteAnswer::NotMine),
            abi::answers::LEAVE if said.code.is_empty() => Ok(SiteAnswer::Leave("a third-party family says so")),
            abi::answers::REFUSE => {
                let reason = said.reason.unwrap_or_else(|| format!("the family `{name}` refuses it without a reason"));
                Err(SiteRefusal::new(reason, crate::code::RECOMPILE))
            }
            abi::answers::REPLACE => match decode_all(&said.code, target) {
                Some(code) => match code.iter().find(|inst| inst.control_flow(0, target) != ControlFlow::Next) {
                    None => Ok(Replacement::plain(code).into()),
                    Some(inst) => Err(family_answer_refusal(
                        format!(
                            "emits control flow (`{}`), and a replacement must run from its first instruction to its last",
                            inst.mnemonic()
                        ),
                        name,
                    )),
                },
                None => Err(family_answer_refusal("emits what the target does not decode".to_owned(), name)),
            },
            abi::answers::NOT_MINE | abi::answers::LEAVE => {
                Err(family_answer_refusal("emits code and says that it does not".to_owned(), name))
            }
            other => Err(family_answer_refusal(format!("answers {other}, which means nothing"), name)),
        }
    }
}

fn family_answer_refusal(what: String, name: &str) -> SiteRefusal {
    SiteRefusal::new(format!("the family `{name}` {what}"), TELL_ITS_AUTHOR)
}

/// Decodes the instructions in some bytes; `None` if any is invalid.
fn decode_all(bytes: &[u8], target: Isa) -> Option<Vec<Inst>> {
    target.walk(bytes).map(|(_, inst)| inst.ok()).collect()
}

fn c_text(text: &str) -> CString {
    // Names in the tables do not contain a 0.
    CString::new(text).unwrap_or_default()
}

// Sound: `around` is the one that `rewrite` made, during its call.
#[allow(unsafe_code)]
unsafe extern "C" fn free_registers(around: *const abi::Surroundings, file: u32, count: u32, alignment: u32) -> u32 {
    let SiteContext { site, around, borrowed } = unsafe { &*(*around).context.cast::<SiteContext<'_>>() };
    let (Some(file), Ok(count), Ok(alignment)) = (register_file(file), u8::try_from(count), u8::try_from(alignment))
    else {
        return abi::UNKNOWN;
    };
    if count == 0 || alignment == 0 {
        return abi::UNKNOWN;
    }
    let mut taken = site.named_registers(around.banks());
    taken.union_with(&borrowed.borrow());
    let Some(reg) = around.find_dead(file, count, alignment, &taken) else { return abi::UNKNOWN };
    borrowed.borrow_mut().insert(reg);
    u32::from(reg.index)
}

// Sound: as above.
#[allow(unsafe_code)]
unsafe extern "C" fn is_dead_after(around: *const abi::Surroundings, file: u32, first: u32, count: u32) -> u32 {
    let SiteContext { around, .. } = unsafe { &*(*around).context.cast::<SiteContext<'_>>() };
    let (Some(file), Ok(first), Ok(count)) = (register_file(file), u16::try_from(first), u8::try_from(count)) else {
        return 0;
    };
    u32::from(around.is_dead_after(Reg::new(file, first, count)))
}

fn register_file(file: u32) -> Option<RegFile> {
    match file {
        abi::files::VGPR => Some(RegFile::Vgpr),
        abi::files::SGPR => Some(RegFile::Sgpr),
        _ => None,
    }
}

// Sound: `answer` is the one that `rewrite` made, during its call. The header requires that many readable bytes.
#[allow(unsafe_code)]
unsafe extern "C" fn emit(answer: *mut abi::Answer, code: *const u8, length: u32) {
    let said = unsafe { &mut *(*answer).context.cast::<AbiReply>() };
    if !code.is_null() {
        said.code.extend_from_slice(unsafe { std::slice::from_raw_parts(code, length as usize) });
    }
}

// Sound: as above. The header requires a string that ends with 0.
#[allow(unsafe_code)]
unsafe extern "C" fn explain(answer: *mut abi::Answer, reason: *const c_char) {
    let said = unsafe { &mut *(*answer).context.cast::<AbiReply>() };
    said.reason = string_from_c(reason);
}

#[cfg(test)]
mod tests {
    use super::*;
    use hotswap_isa::Target;
    use hotswap_isa::bank::VgprBanks;
    use hotswap_isa::effects::WaitCounter;
    use std::ptr::null_mut;

    /// The answer of a family that emits these dwords.
    fn judged(words: &[u32]) -> Result<SiteAnswer, SiteRefusal> {
        let name = c"others_branch".as_ptr();
        let family = abi::Family { name, scope: name, order: 0, summary: name };
        let size = size_of::<abi::Rewriter>() as u32;
        let rewriter = abi::Rewriter { size, reserved: 0, family, context: null_mut(), rewrite: None };
        let known = PatchFamily { name: "others_branch", scope: FamilyScope::Instruction, order: 0, summary: "" };
        let third = ThirdParty { family: Box::leak(Box::new(known)), rewriter: Box::leak(Box::new(rewriter)) };
        let code = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let target = Isa::new(Target::find("gfx1250-strict").unwrap());
        third.judge_answer(abi::answers::REPLACE, AbiReply { code, reason: None }, target)
    }

    /// Branches, ends, jumps and calls: the instructions after the site would be skipped.
    #[test]
    fn a_replacement_with_control_flow_is_refused() {
        const NOP: u32 = 0xbf80_0000;
        assert!(judged(&[NOP, NOP]).is_ok());
        // s_branch 3, s_cbranch_scc0 1, s_endpgm, s_set_pc_i64 s[20:21], s_swap_pc_i64 s[0:1], s[20:21].
        for word in [0xbfa0_0003, 0xbfa1_0001, 0xbfb0_0000, 0xbe80_4814, 0xbe80_4914] {
            let refusal = judged(&[NOP, word, NOP]).expect_err(&format!("{word:#x}"));
            assert!(refusal.reason.contains("emits control flow (`s_"), "{}", refusal.reason);
        }
    }

    /// Registers from v40 on are free.
    struct FreeFromV40;

    impl SiteQueries for FreeFromV40 {
        fn banks(&self) -> VgprBanks {
            VgprBanks::ENTRY
        }
        fn last_def(&self, _: Reg) -> Option<&Inst> {
            None
        }

        fn alignment(&self, _: Reg) -> u32 {
            1
        }
        fn find_dead(&self, file: RegFile, count: u8, _: u8, excluding: &RegSet) -> Option<Reg> {
            (40..44).map(|index| Reg::new(file, index, count)).find(|reg| !excluding.touches(*reg))
        }
        fn is_dead_after(&self, _: Reg) -> bool {
            false
        }
        fn outstanding(&self, _: Reg) -> Vec<WaitCounter> {
            Vec::new()
        }
        fn other_half_mode(&self) -> Option<&str> {
            None
        }
        fn scheduling(&self) -> Scheduling {
            Scheduling::Hardware
        }
    }

    /// Moves the site's source through two vector registers, `v_mov_b32`.
    #[allow(unsafe_code)]
    unsafe extern "C" fn through_two(
        _: *mut std::ffi::c_void,
        _: *const abi::Site,
        around: *const abi::Surroundings,
        answer: *mut abi::Answer,
    ) -> i32 {
        // Sound: both pointers live as long as this call.
        let ask = || unsafe { ((*around).free_registers)(around, abi::files::VGPR, 1, 1) };
        let registers = [ask(), ask()];
        for register in registers {
            let code = (0x7e00_0300 | register << 17).to_le_bytes();
            // Sound: as above, and the bytes are there.
            unsafe { ((*answer).emit)(answer, code.as_ptr(), 4) };
        }
        abi::answers::REPLACE
    }

    #[test]
    fn registers_that_a_family_is_given_are_waited_for_and_counted() {
        let name = c"others_move".as_ptr();
        let family = abi::Family { name, scope: name, order: 0, summary: name };
        let (size, context) = (size_of::<abi::Rewriter>() as u32, null_mut());
        let rewriter = abi::Rewriter { size, reserved: 0, family, context, rewrite: Some(through_two) };
        let known = PatchFamily { name: "others_move", scope: FamilyScope::Instruction, order: 0, summary: "" };
        let third = ThirdParty { family: Box::leak(Box::new(known)), rewriter: Box::leak(Box::new(rewriter)) };
        let [source, target] = ["gfx1250", "gfx1250-strict"].map(|name| Isa::new(Target::find(name).unwrap()));
        let inst = source.decode(&0x7e00_0300_u32.to_le_bytes()).unwrap();
        let answer = third.rewrite_site(&CodeSite { source, target, inst: &inst }, &FreeFromV40);
        let Ok(SiteAnswer::Replace(new)) = answer else { panic!("{answer:?}") };
        let code: Vec<&str> = new.code.iter().map(Inst::mnemonic).collect();
        assert_eq!(code, ["s_wait_xcnt", "v_mov_b32", "v_mov_b32"]);
        assert_eq!(new.scratch, [40, 41].map(|index| Reg::new(RegFile::Vgpr, index, 1)));
    }
}
