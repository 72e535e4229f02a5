/* The interface for registrars of patch families. Plain C99, no dependencies.
 *
 * Every family of patches.def has one registrar, hotswap_register_<name>_patch. The manifest of
 * a program that was built with a plan holds a pointer to the registrar of every family that the
 * plan names, in the section hotswap_regtab, so that a missing family does not link.
 * On ELF a program can walk that table from __start_hotswap_regtab to __stop_hotswap_regtab.
 *
 * A third-party family is one more registrar, linked into a tool that is built from
 * HotSwap's libraries. It binds a struct hotswap_rewriter, whose function is called for
 * instructions that none of HotSwap's own families handles.
 *
 * Versioning: members are only appended, and each change increments HOTSWAP_REGISTRY_VERSION.
 * A registrar binds nothing in a registry whose version is below the one that it needs.
 * Structures passed to a rewriter begin with their size; members beyond it do not exist.
 */
#ifndef HOTSWAP_REGISTRY_H
#define HOTSWAP_REGISTRY_H

#include <stdint.h>

/* 1: bind. 2: bind_rewriter. */
#define HOTSWAP_REGISTRY_VERSION 2u

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

/* Register files. */
#define HOTSWAP_VGPR 0u
#define HOTSWAP_SGPR 1u
/* The value for an unknown number. */
#define HOTSWAP_UNKNOWN 0xffffffffu

/* An instruction that may be replaced. Nothing of it lives longer than the call. */
struct hotswap_site {
  uint32_t size;            /* of this structure, in the caller */
  uint32_t length;          /* bytes of the instruction */
  const uint8_t *code;      /* the instruction */
  const char *mnemonic;     /* without suffix of the encoding, e.g. "v_mov_b32" */
  const char *source;       /* processor that it was written for, e.g. "gfx1250" */
  const char *target;       /* processor that it is to run on */
  uint32_t bank_mode;       /* low byte of s_set_vgpr_msb before it, or HOTSWAP_UNKNOWN */
  uint32_t own_scheduling;  /* 1: the program may have switched off the hardware's interlocks */
};

/* Queries about the surrounding code. VGPRs are 0 to 1023. */
struct hotswap_surroundings {
  uint32_t size;
  uint32_t reserved;
  const void *context;
  /* The first of COUNT consecutive registers, a multiple of ALIGNMENT, that the instruction does
   * not name, whose values are not needed and that no earlier call has returned; HOTSWAP_UNKNOWN if
   * there are none. A kernel that has too few gets more. HotSwap waits for outstanding reads of them
   * before the code of the replacement. */
  uint32_t (*free_registers)(const struct hotswap_surroundings *around, uint32_t file, uint32_t count,
                             uint32_t alignment);
  /* 1 if none of the registers is read after the instruction before it is written. */
  uint32_t (*is_dead_after)(const struct hotswap_surroundings *around, uint32_t file, uint32_t first,
                            uint32_t count);
};

/* Receives the answer. */
struct hotswap_answer {
  uint32_t size;
  uint32_t reserved;
  void *context;
  /* Appends instructions to the replacement; the bytes are copied. It runs from its first instruction to its last:
   * branches, jumps, calls and ends of the wave are rejected. */
  void (*emit)(struct hotswap_answer *answer, const uint8_t *code, uint32_t length);
  /* The reason of HOTSWAP_LEAVE or HOTSWAP_REFUSE, UTF-8; copied. */
  void (*explain)(struct hotswap_answer *answer, const char *reason);
};

/* The results of a rewriter; anything else is a defect of the family. */
#define HOTSWAP_NOT_MINE 0
#define HOTSWAP_LEAVE 1
#define HOTSWAP_REPLACE 2
#define HOTSWAP_REFUSE 3

/* A family that replaces instructions. Scope and order of FAMILY are ignored: third-party families
 * run after HotSwap's own, in the order in which the tool lists them. */
struct hotswap_rewriter {
  uint32_t size;
  uint32_t reserved;
  struct hotswap_family family;
  void *context;
  /* May be called from several threads at once. */
  int32_t (*rewrite)(void *context, const struct hotswap_site *site,
                     const struct hotswap_surroundings *around, struct hotswap_answer *answer);
};

/* Made by the tool that collects the families. */
struct hotswap_registry {
  uint32_t version; /* HOTSWAP_REGISTRY_VERSION of the maker */
  void *context;    /* for bind; registrars do not use it */
  /* Called exactly once by each registrar of version 1, with its own family. */
  void (*bind)(struct hotswap_registry *registry, const struct hotswap_family *family);
  /* Since version 2: called in place of bind by a registrar that has a rewriter. */
  void (*bind_rewriter)(struct hotswap_registry *registry, const struct hotswap_rewriter *rewriter);
};

typedef void (*hotswap_registrar)(struct hotswap_registry *registry);

#ifdef __cplusplus
}
#endif

/* Registrars are local to their link; no program exports them. */
#if defined(__ELF__)
#define HOTSWAP_REGISTRAR __attribute__((visibility("hidden")))
#else
#define HOTSWAP_REGISTRAR
#endif

#endif
