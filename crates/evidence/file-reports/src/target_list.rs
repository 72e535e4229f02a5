//! The list of processors with limits and products, as text and JSON.

use hotswap_isa::Target;
use hotswap_report::text;
use hotswap_targets::{Capability, Limits, Processor, Support, Vgprs, products_of};
use serde_json::json;

/// Products that a row of the list shows.
const SHOWN_PRODUCTS: usize = 3;

/// The products with one target, with the documents that say so.
pub fn product_table(processor: &Processor) -> String {
    let mut rows = vec![["PRODUCT", "SOURCE"].map(str::to_owned).to_vec()];
    rows.extend(products_of(processor.name).map(|product| vec![product.name.to_owned(), product.source.to_owned()]));
    if rows.len() > 1 { format!("\n{}", text::table(&rows)) } else { String::new() }
}

/// The first products with a target, and the number of the others.
fn first_products(processor: &Processor) -> String {
    let names: Vec<&str> = products_of(processor.name).map(|product| product.name).collect();
    let others = names.len().saturating_sub(SHOWN_PRODUCTS);
    let shown = names[..names.len() - others].join(", ");
    if others > 0 { format!("{shown} and {others} more") } else { shown }
}

pub fn target_table(processors: &[&Processor]) -> String {
    let head = ["TARGET", "FAMILY", "GROUP", "WAVE", "VGPRS", "LDS", "XNACK", "SRAMECC", "COVERS, OR PRODUCTS"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(processors.iter().map(|processor| {
        vec![
            processor.name.to_owned(),
            processor.family.to_string(),
            processor.group.unwrap_or("-").to_owned(),
            waves(processor),
            vgprs(processor).map(|vgprs| vgprs.total.to_string()).collect::<Vec<_>>().join("/"),
            format!("{}K", processor.limits.lds.addressable / 1024),
            support(processor.xnack).to_owned(),
            support(processor.sramecc).to_owned(),
            covers_or_products(processor),
        ]
    }));
    text::table(&rows)
}

/// The targets that a generic one covers, or the products with a target; of targets without products the first compiler.
fn covers_or_products(processor: &Processor) -> String {
    let listed = if processor.is_generic() { processor.covers.join(" ") } else { first_products(processor) };
    if !processor.is_new_to_compilers() {
        return listed;
    }
    let label = format!("known to the compiler (LLVM {} on)", processor.first_llvm());
    if listed.is_empty() { label } else { format!("{listed}; {label}") }
}

fn support(support: Support) -> &'static str {
    match support {
        Support::No => "no",
        Support::Yes => "yes",
        Support::Unsettled => "?",
    }
}

fn lanes(processor: &Processor) -> impl Iterator<Item = u64> {
    [32, 64].into_iter().filter(|lanes| processor.waves.contains(*lanes))
}

fn waves(processor: &Processor) -> String {
    lanes(processor).map(|lanes| lanes.to_string()).collect::<Vec<_>>().join("/")
}

fn vgprs(processor: &Processor) -> impl Iterator<Item = &Vgprs> {
    lanes(processor).filter_map(|lanes| processor.limits.vgprs(lanes))
}

fn limits_json(processor: &Processor) -> serde_json::Value {
    let Limits { sgprs, waves_per_simd, simds_per_cu, lds, workgroup, cache_line, clause, .. } = processor.limits;
    let vgprs = lanes(processor).zip(vgprs(processor)).map(|(lanes, vgprs)| {
        json!({
            "wave": lanes,
            "addressable": vgprs.addressable,
            "allocatable": vgprs.allocatable,
            "per_simd": vgprs.total,
            "granule": vgprs.granule,
            "descriptor_granule": vgprs.descriptor_granule,
        })
    });
    let file = sgprs.shared.map(|file| json!({ "per_simd": file.total, "granule": file.granule, "descriptor_granule": file.descriptor_granule }));
    json!({
        "vgprs": vgprs.collect::<Vec<_>>(),
        "sgprs": { "addressable": sgprs.addressable, "user": sgprs.user, "shared": file },
        "lds": { "addressable": lds.addressable, "per_cu": lds.per_cu, "granule": lds.granule },
        "waves_per_simd": waves_per_simd,
        "simds_per_cu": simds_per_cu,
        "workgroup": workgroup,
        "cache_line": cache_line,
        "clause": clause,
    })
}

pub fn processor_json(processor: &Processor) -> serde_json::Value {
    json!({
        "name": processor.name,
        "mach": processor.mach,
        "family": processor.family.to_string(),
        "group": processor.group,
        "generic": processor.is_generic(),
        "xnack": support(processor.xnack),
        "sramecc": support(processor.sramecc),
        "covers": processor.covers,
        "first_llvm": processor.first_llvm(),
        "instructions": Target::find(processor.name).is_some(),
        "products": products_of(processor.name).map(|product| json!({ "name": product.name, "source": product.source })).collect::<Vec<_>>(),
        "triples": processor.triples(),
        "limits": limits_json(processor),
        "capabilities": processor.capabilities.iter().map(Capability::name).collect::<Vec<_>>(),
    })
}
