/* Sizes and offsets of the header's structures, in the order of the table in tests/tool.rs. */
#include "hotswap_registry.h"

#include <stddef.h>

#define AT(structure, member) offsetof(struct structure, member)

const size_t hotswap_layout[] = {
    sizeof(struct hotswap_family), AT(hotswap_family, name), AT(hotswap_family, scope), AT(hotswap_family, order),
    AT(hotswap_family, summary),
    sizeof(struct hotswap_site), AT(hotswap_site, size), AT(hotswap_site, length), AT(hotswap_site, code),
    AT(hotswap_site, mnemonic), AT(hotswap_site, source), AT(hotswap_site, target), AT(hotswap_site, bank_mode),
    AT(hotswap_site, own_scheduling),
    sizeof(struct hotswap_surroundings), AT(hotswap_surroundings, size), AT(hotswap_surroundings, reserved),
    AT(hotswap_surroundings, context), AT(hotswap_surroundings, free_registers),
    AT(hotswap_surroundings, is_dead_after),
    sizeof(struct hotswap_answer), AT(hotswap_answer, size), AT(hotswap_answer, reserved),
    AT(hotswap_answer, context), AT(hotswap_answer, emit), AT(hotswap_answer, explain),
    sizeof(struct hotswap_rewriter), AT(hotswap_rewriter, size), AT(hotswap_rewriter, reserved),
    AT(hotswap_rewriter, family), AT(hotswap_rewriter, context), AT(hotswap_rewriter, rewrite),
    sizeof(struct hotswap_registry), AT(hotswap_registry, version), AT(hotswap_registry, context),
    AT(hotswap_registry, bind), AT(hotswap_registry, bind_rewriter),
    HOTSWAP_REGISTRY_VERSION,
};
const size_t hotswap_layout_length = sizeof hotswap_layout / sizeof hotswap_layout[0];
