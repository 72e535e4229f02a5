//! Damaged code objects: the properties that the fuzz targets check hold for some thousand random changes of sound
//! files, too.

#[path = "../fuzz/src/checks.rs"]
mod checks;
mod common;

use common::{Random, assemble, compile, tool};
use hotswap_userland::{Workbench, say};

/// Arguments for the linker; none for a relocatable file.
const FORMS: &[Option<&str>] =
    &[None, Some(""), Some("--strip-all"), Some("--emit-relocs"), Some("--compress-debug-sections=zlib")];

#[test]
fn damage_is_told_and_never_a_panic() {
    let Some(bench) = Workbench::new("damage to code objects that are changed") else { return };
    let version = *bench.versions.last().unwrap();
    let (mut random, mut count) = (Random(5), 0);
    for target in ["gfx90a", "gfx1250"] {
        let text = compile(&bench, version, target, "-O1 -g");
        assemble(&bench, version, target, "k", &text);
        for form in FORMS {
            if let Some(words) = form {
                bench.run(&format!("{} -shared {words} k.o -o k.co", tool(version, "ld.lld")));
            }
            let sound = bench.read(if form.is_some() { "k.co" } else { "k.o" });
            checks::image(&sound);
            checks::rewritten(&sound);
            for _ in 0..ROUNDS {
                let mut file = sound.clone();
                for _ in 0..=random.below(3) {
                    let at = random.below(file.len() as u64) as usize;
                    file[at] = [0, 1, 0x7f, 0xff, random.below(256) as u8][random.below(5) as usize];
                }
                if random.below(20) == 0 {
                    file.truncate(random.below(file.len() as u64) as usize);
                }
                checks::image(&file);
                checks::rewritten(&file);
                count += 1;
            }
        }
    }
    say(&format!("layout engine: {count} damaged files are refused or changed, none makes it panic"));
}

/// Changes of each file.
const ROUNDS: usize = 60;
