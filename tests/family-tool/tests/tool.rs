//! The tool's results with its families, and the agreement of header and mirror.

use hotswap_families::code::{CodeSite, Scheduling, SiteAnswer, SiteQueries};
use hotswap_families::{FamilyAnswer, FamilyRefusal, FamilyRegistry};
use hotswap_family_abi as abi;
use hotswap_isa::bank::VgprBanks;
use hotswap_isa::effects::WaitCounter;
use hotswap_isa::reg::{Reg, RegFile};
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Inst, Isa, Target};
use std::mem::offset_of;
use std::thread;

struct Nothing;

impl SiteQueries for Nothing {
    fn banks(&self) -> VgprBanks {
        VgprBanks::ENTRY
    }
    fn last_def(&self, _: Reg) -> Option<&Inst> {
        None
    }

    fn alignment(&self, _: Reg) -> u32 {
        1
    }
    fn find_dead(&self, _: RegFile, _: u8, _: u8, _: &RegSet) -> Option<Reg> {
        None
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

fn isa(name: &str) -> Isa {
    Isa::new(Target::find(name).unwrap())
}

/// Threads race to install; one wins, and all others get an error.
#[test]
fn one_process_has_one_registry_in_which_the_families_of_others_come_last() {
    let installed: Vec<_> = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..8).map(|_| scope.spawn(|| FamilyRegistry::install_with(hotswap_family_tool::FAMILIES).ok())).collect();
        threads.into_iter().filter_map(|thread| thread.join().unwrap()).collect()
    });
    assert_eq!(installed.len(), 1);
    assert!(std::ptr::eq(installed[0], FamilyRegistry::installed()));

    let rewriter = FamilyRegistry::installed().prepare_rewriter().unwrap();
    let (source, target) = (isa("gfx1250"), isa("gfx1250-strict"));
    let ask = |word: u32| {
        let inst = source.decode(&word.to_le_bytes()).unwrap();
        assert!(rewriter.concerns_encoding(inst.entry()));
        match rewriter.rewrite_site(&CodeSite { source, target, inst: &inst }, &Nothing) {
            Ok(None) => "nobody's".to_owned(),
            Ok(Some(FamilyAnswer { family, answer: SiteAnswer::Replace(new) })) => {
                format!("{}: {:?}", family.name, new.code)
            }
            Ok(Some(FamilyAnswer { family, answer })) => format!("{}: {answer:?}", family.name),
            Err(FamilyRefusal { family, refusal }) => format!("{}: {}", family.name, refusal.reason),
        }
    };
    assert_eq!(ask(0xbf82_0001), "no_sethalt: [Inst(s_nop [bf800000])]");
    assert_eq!(ask(0xbf90_0002), "no_trap: this tool makes code for systems without a trap handler");
    assert_eq!(ask(0xbe80_4fc1), "barriers: Leave(\"the target does the same\")");
    assert_eq!(ask(0xbf80_0003), "nobody's");
}

macro_rules! layout {
    ($($structure:ident { $($member:ident),* })*) => {
        [$(vec![size_of::<abi::$structure>(), $(offset_of!(abi::$structure, $member)),*]),*].concat()
    };
}

#[test]
fn the_mirror_has_the_layout_of_the_header() {
    #[allow(unsafe_code)]
    // Sound: both are defined in src/layout.c, the length is that of the array.
    let header = unsafe {
        unsafe extern "C" {
            static hotswap_layout: usize;
            static hotswap_layout_length: usize;
        }
        std::slice::from_raw_parts(&raw const hotswap_layout, hotswap_layout_length)
    };
    let mut mirror = layout! {
        Family { name, scope, order, summary }
        Site { size, length, code, mnemonic, source, target, bank_mode, own_scheduling }
        Surroundings { size, reserved, context, free_registers, is_dead_after }
        Answer { size, reserved, context, emit, explain }
        Rewriter { size, reserved, family, context, rewrite }
        Registry { version, context, bind, bind_rewriter }
    };
    mirror.push(abi::VERSION as usize);
    assert_eq!(header, mirror);
}
