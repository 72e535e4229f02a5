/* Example of a family in C: s_sethalt becomes s_nop 0.
 *
 * A wave that halts between the two halves of a scaled matrix instruction may leak its scales to a
 * neighbour on early chips; whoever debugs on them can build a tool with this family. */
#include "hotswap_registry.h"

static int32_t rewrite(void *context, const struct hotswap_site *site, const struct hotswap_surroundings *around,
                       struct hotswap_answer *answer) {
  static const uint8_t s_nop[] = {0x00, 0x00, 0x80, 0xbf};
  (void)context;
  (void)around;
  /* SOPP, opcode 2; the low half is the number. */
  if (site->length != 4 || site->code[2] != 0x82 || site->code[3] != 0xbf)
    return HOTSWAP_NOT_MINE;
  answer->emit(answer, s_nop, sizeof s_nop);
  return HOTSWAP_REPLACE;
}

static const struct hotswap_rewriter rewriter = {
    sizeof rewriter,
    0,
    {"no_sethalt", "Instruction", 0, "s_sethalt becomes s_nop"},
    0,
    rewrite,
};

HOTSWAP_REGISTRAR void hotswap_register_no_sethalt_patch(struct hotswap_registry *registry);

HOTSWAP_REGISTRAR void hotswap_register_no_sethalt_patch(struct hotswap_registry *registry) {
  if (registry->version >= 2u)
    registry->bind_rewriter(registry, &rewriter);
}
