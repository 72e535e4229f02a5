//! C text of a family's registrar; build.rs compiles it into `libhotswap_registry.a`.
//!
//! Invariant: the text depends on the family's line alone, and compiles with only `hotswap_registry.h`, for any target.

use crate::patches_def::{DefLine, registrar_symbol};

/// Name of the file that [`registrar`] belongs in.
pub fn file_name(family: &str) -> String {
    format!("{family}.c")
}

/// The whole C source of one registrar.
pub fn registrar_source(line: &DefLine) -> String {
    let DefLine { name, scope, order, summary } = line;
    let symbol = registrar_symbol(name);
    let scope = scope.name();
    format!(
        "/* Registrar of the patch family {name}; generated from patches.def. */\n\
         #include \"hotswap_registry.h\"\n\
         \n\
         static const struct hotswap_family family = {{\n\
         \x20 \"{name}\",\n\
         \x20 \"{scope}\",\n\
         \x20 {order}u,\n\
         \x20 \"{summary}\",\n\
         }};\n\
         \n\
         HOTSWAP_REGISTRAR void {symbol}(struct hotswap_registry *registry);\n\
         \n\
         HOTSWAP_REGISTRAR void {symbol}(struct hotswap_registry *registry) {{\n\
         \x20 if (registry->version >= 1u)\n\
         \x20   registry->bind(registry, &family);\n\
         }}\n"
    )
}
