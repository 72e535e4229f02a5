//! What the emulator knows, by target.

use hotswap_emulator::known_mnemonics;

#[test]
fn unknown() {
    for gpu in std::env::var("COVER").unwrap_or_default().split(',').filter(|gpu| !gpu.is_empty()) {
        let known = known_mnemonics(gpu).unwrap();
        let unknown: Vec<&str> = known.iter().filter(|(_, known)| !**known).map(|(name, _)| *name).collect();
        println!("{gpu}: {} of {}: {}", known.len() - unknown.len(), known.len(), unknown.join(" "));
    }
}
