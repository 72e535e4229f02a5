//! Replacements of LDS accesses have the same effect: a thousand random ones, in every bank and with every overlap of
//! registers, are evaluated before and after on LLVM's listings of both.

use hotswap_rewrite_exam::assembly::{Kernel, assemble};
use hotswap_rewrite_exam::banks::banks;
use hotswap_rewrite_exam::evaluate::Lane;
use hotswap_rewrite_exam::exam::run;
use hotswap_rewrite_exam::listing::Listing;
use hotswap_userland::{Workbench, say};

struct Seed(u64);

impl Seed {
    fn below(&mut self, limit: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32 % limit
    }
}

/// An access with random registers (few, so that they overlap often), offsets and banks.
fn access(seed: &mut Seed) -> String {
    let wide = seed.below(2) == 1;
    let (bits, words) = if wide { ("b64", 2) } else { ("b32", 1) };
    let stride = ["", "_stride64"][seed.below(2) as usize];
    // Two words are an even tuple; four are, too.
    let tuple = |seed: &mut Seed, words: u32| {
        let first = seed.below(6) * 2 + if seed.below(8) == 0 { 240 } else { 0 };
        if words == 1 { format!("v{first}") } else { format!("v[{first}:{}]", first + words - 1) }
    };
    // Byte offsets of the halves are 16 bits; other ones are refused.
    let limit = if wide && !stride.is_empty() { 128 } else { 256 };
    let near = seed.below(3) == 0;
    let first = seed.below(limit - 1);
    let second = if near { first + 1 } else { (first + 1 + seed.below(limit - 1)) % limit };
    let offsets = format!("offset0:{first} offset1:{second}");
    let address = format!("v{}", seed.below(12));
    match seed.below(4) {
        0 | 1 => format!("ds_load_2addr{stride}_{bits} {}, {address} {offsets}", tuple(seed, 2 * words)),
        2 => {
            format!("ds_store_2addr{stride}_{bits} {address}, {}, {} {offsets}", tuple(seed, words), tuple(seed, words))
        }
        _ => format!(
            "ds_storexchg_2addr{stride}_rtn_{bits} {}, {address}, {}, {} {offsets}",
            tuple(seed, 2 * words),
            tuple(seed, words),
            tuple(seed, words)
        ),
    }
}

fn kernel(number: usize, seed: &mut Seed) -> Kernel {
    let name = format!("k{number}");
    let mode = if seed.below(2) == 0 { 0 } else { seed.below(256) };
    let inst = match seed.below(12) {
        0 => format!("ds_load_addtid_b32 v{} offset:{}", seed.below(8), seed.below(1000)),
        1 => format!("ds_store_addtid_b32 v{} offset:{}", seed.below(8), seed.below(1000)),
        _ => access(seed),
    };
    let code = format!(
        "// vgprs: 1024\n// workgroup: 32\n{name}:\n\ts_set_vgpr_msb {mode:#x}\n\t{inst}\n\ts_wait_dscnt 0x0\n\t\
         s_set_vgpr_msb {:#x}\n\ts_endpgm\n",
        mode << 8
    );
    Kernel { name, code }
}

fn listing(bench: &Workbench, name: &str) -> Listing {
    Listing::read(&bench.run(&format!("llvm-objdump-24 -d {name}")))
}

/// Numbers of the kernels that are refused, by the names in the refusals.
fn refused(refusals: &[String]) -> Vec<String> {
    let name = |text: &String| {
        text.split(": ").find(|word| word.starts_with('k') && word[1..].parse::<u32>().is_ok()).map(str::to_owned)
    };
    let mut names: Vec<String> = refusals.iter().filter_map(name).collect();
    names.dedup();
    names
}

#[test]
fn accesses_of_lds_do_the_same_before_and_after() {
    let Some(bench) = Workbench::with_llvm(24, "meaning of LDS accesses") else { return };
    let mut seed = Seed(0x1d5);
    let mut kernels: Vec<Kernel> = (0..1000).map(|number| kernel(number, &mut seed)).collect();
    let mut refusals = 0;
    let (name, made) = loop {
        let [(name, bytes), _] = assemble(&bench, "meaning", &kernels);
        match run(&bytes, false) {
            Ok(made) => break (name, made),
            Err(texts) => {
                let names = refused(&texts);
                assert!(!names.is_empty(), "{}", texts.join("\n"));
                refusals += names.len();
                kernels.retain(|kernel| !names.contains(&kernel.name));
            }
        }
    };
    bench.write("meaning.made", &made.bytes);
    let (before, after) = (listing(&bench, &name), listing(&bench, "meaning.made"));
    let (banks_before, banks_after) = (banks(&before), banks(&after));
    let start = |listing: &Listing, name: &str| *listing.functions.iter().find(|(_, own)| *own == name).unwrap().0;
    let mut runs = 0;
    for kernel in &kernels {
        for number in 0..8u32 {
            let mut old = Lane::new(number.wrapping_mul(0x0101_0107) + 3);
            let mut new = old.clone();
            old.run(&before, &banks_before, start(&before, &kernel.name)).unwrap();
            new.run(&after, &banks_after, start(&after, &kernel.name)).unwrap();
            assert_eq!(old.lds, new.lds, "{}", kernel.code);
            for (reg, value) in &old.vector {
                assert_eq!(new.vector.get(reg), Some(value), "v{reg}\n{}", kernel.code);
            }
            runs += 1;
        }
    }
    let split =
        made.record.families.iter().map(|family| format!("{} {}", family.name, family.sites)).collect::<Vec<_>>();
    say(&format!(
        "meaning of LDS accesses: {} kernels, {runs} runs, {refusals} refused; {}",
        kernels.len(),
        split.join(", ")
    ));
    assert!(kernels.len() > 850 && refusals < 150, "{refusals} refusals");
}
