/* What a registrar of a patch family sees. Plain C99, no dependencies.
 *
 * Every family of patches.def has one registrar, hotswap_register_<name>_patch. The manifest of
 * a program that was built with a plan holds a pointer to the registrar of every family that the
 * plan names, in the section hotswap_regtab, so that a family that is not there does not link.
 * On ELF a program can walk that table from __start_hotswap_regtab to __stop_hotswap_regtab.
 *
 * Rules of growth: members are only appended; HOTSWAP_REGISTRY_VERSION counts up with each
 * change; a registrar binds nothing in a registry whose version is below the one it was built for.
 */
#ifndef HOTSWAP_REGISTRY_H
#define HOTSWAP_REGISTRY_H

#include <stdint.h>

#define HOTSWAP_REGISTRY_VERSION 1u

#ifdef __cplusplus
extern "C" {
#endif

/* One line of patches.def. All strings live as long as the program. */
struct hotswap_family {
  const char *name;
  const char *scope;
  uint32_t order;
  const char *summary;
};

/* Made by whoever wants to know the families. */
struct hotswap_registry {
  uint32_t version; /* HOTSWAP_REGISTRY_VERSION of the maker */
  void *context;    /* for bind; registrars do not touch it */
  /* Called exactly once by each registrar, with its own family. */
  void (*bind)(struct hotswap_registry *registry, const struct hotswap_family *family);
};

typedef void (*hotswap_registrar)(struct hotswap_registry *registry);

#ifdef __cplusplus
}
#endif

/* Registrars belong to the link that they are in; no program exports them. */
#if defined(__ELF__)
#define HOTSWAP_REGISTRAR __attribute__((visibility("hidden")))
#else
#define HOTSWAP_REGISTRAR
#endif

#endif
