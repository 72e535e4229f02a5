//! The table of products against libdrm's list of device IDs, and the page that is made of it. `HOTSWAP_BLESS=1` writes it.

use hotswap_targets::{GpuProduct, PRODUCTS, find_processor};
use hotswap_userland::{Userland, golden, skip};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

const LIST: &str = "/usr/share/libdrm/amdgpu.ids";

const HEAD: &str = "\
# Products and their targets

For owners of an AMD graphics card: the target of its GPU.

Each row has the name on the box, the target of its GPU, and the public document that states it. `hotswap targets`, `hotswap serve` and
`hotswap compat` take these names, with or without \"AMD\", \"Radeon\", \"RX\" or \"Pro\", in any case: `hotswap targets \"RX 6700 XT\"`. A name
that belongs to products with different GPUs is refused, with all of them. Laptops' names mislead: an RX 6800M has the GPU of an
RX 6700 XT, an RX 6800S that of an RX 6600 XT. `rocminfo | grep gfx` prints the target of a GPU that is in the machine.

The page is generated from the table in `crates/amdgpu/targets/src/products.rs` (`HOTSWAP_BLESS=1 cargo test -p hotswap-targets`).

| product | target | family | source |
| --- | --- | --- | --- |
";

#[test]
fn the_page_is_the_table() {
    let mut page = HEAD.to_owned();
    for GpuProduct { name, processor, source } in PRODUCTS {
        page += &format!("| {name} | {processor} | {} | {source} |\n", find_processor(processor).unwrap().family);
    }
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/products.md");
    golden(&file, &page).unwrap_or_else(|difference| panic!("{difference}"));
}

/// The device IDs of libdrm's list with the names of their products, without the maker's.
fn devices(list: &str) -> BTreeMap<&str, BTreeSet<String>> {
    let mut devices: BTreeMap<&str, BTreeSet<String>> = BTreeMap::new();
    for line in list.lines().filter(|line| !line.starts_with('#')) {
        let Some((device, rest)) = line.split_once(',') else { continue };
        let Some((_, name)) = rest.split_once(',') else { continue };
        let name = name.trim().trim_start_matches("AMD ").trim_end_matches(" Graphics");
        devices.entry(device).or_default().insert(name.to_owned());
    }
    devices
}

/// The row of a name, if it is the only one.
fn only_row<'p>(products: &'p [GpuProduct], name: &str) -> Option<&'p GpuProduct> {
    let mut rows = products.iter().filter(|product| product.name.eq_ignore_ascii_case(name));
    rows.next().filter(|_| rows.next().is_none())
}

/// Products of one device ID that the table gives different processors. A name that the table has for several processors
/// says nothing about the device.
fn contradictions(products: &[GpuProduct], list: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (device, names) in devices(list) {
        let known: Vec<&GpuProduct> = names.iter().filter_map(|name| only_row(products, name)).collect();
        if let Some(other) = known.iter().find(|product| product.processor != known[0].processor) {
            found.push(format!("{device}: {} and {}", known[0].name, other.name));
        }
    }
    found
}

fn absent<'p>(products: &'p [GpuProduct], list: &str) -> Vec<&'p str> {
    let names: BTreeSet<String> = devices(list).into_values().flatten().map(|name| name.to_lowercase()).collect();
    let is_of_list = |product: &&GpuProduct| product.source.contains("device ID");
    let products = products.iter().filter(is_of_list).map(|product| product.name);
    products.filter(|name| !names.contains(&name.to_lowercase()) && *name != "Steam Deck").collect()
}

#[test]
fn products_of_one_device_have_one_processor() {
    let Some(userland) = Userland::from_env() else {
        return skip("products_of_one_device_have_one_processor", "no userland with libdrm's list");
    };
    let list = fs::read_to_string(userland.outside(LIST)).expect("libdrm's list of device IDs");
    assert_eq!((contradictions(PRODUCTS, &list), absent(PRODUCTS, &list)), (Vec::new(), Vec::new()));
    let seen = PRODUCTS.iter().filter(|product| list.contains(&format!("{}\n", product.name))).count();
    assert!(seen > 70, "only {seen} products are in the list");
}

#[test]
fn a_wrong_processor_is_found() {
    let list =
        "73DF,\tC1,\tAMD Radeon RX 6700 XT\n73DF,\tC3,\tAMD Radeon RX 6800M\n1114,\t00,\tAMD Radeon 860M Graphics\n";
    let product = |name, processor| GpuProduct { name, processor, source: "the device ID" };
    let wrong = [
        product("Radeon RX 6700 XT", "gfx1031"),
        product("Radeon RX 6800M", "gfx1030"),
        product("Radeon 680M", "gfx1035"),
    ];
    assert_eq!(contradictions(&wrong, list), ["73DF: Radeon RX 6700 XT and Radeon RX 6800M"]);
    assert_eq!(absent(&wrong, list), ["Radeon 680M"]);
}
