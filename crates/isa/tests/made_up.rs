//! An instruction that no chip has, added by one line of `overlay.isa`: decoded, printed, built, with its reads and writes.

use hotswap_isa::bank::VgprBanks;
use hotswap_isa::regset::RegSet;
use hotswap_isa::{Isa, Target};

#[test]
fn one_row_is_a_whole_instruction() {
    let isa = Isa::new(Target::find("gfx1100").unwrap());
    // v1 = demo(v2): VOP1 opcode 0x70.
    let word = 0x7e00_0000u32 | 1 << 17 | 0x70 << 9 | 258;
    let inst = isa.decode(&word.to_le_bytes()).unwrap();
    assert_eq!(inst.text(isa).to_string(), "v_hotswap_demo_f32_e32 v1, v2");
    assert_eq!((inst.mnemonic(), inst.len()), ("v_hotswap_demo_f32", 4));
    let names = |set: RegSet| set.iter().map(|reg| reg.to_string()).collect::<Vec<_>>().join(" ");
    assert_eq!(names(inst.read_set(isa, VgprBanks::ENTRY)), "v2 exec_lo mode");
    assert_eq!(names(inst.written_set(isa, VgprBanks::ENTRY)), "v1");
    let other = Isa::new(Target::find("gfx1201").unwrap());
    assert!(other.decode(&word.to_le_bytes()).is_err());
}
