// CK's build system makes this header; its settings are options of the compiler here, as in the build of flash-attn.
// CK's list of this family lacks gfx1033, whose instructions are those of the others.
#ifdef __gfx1033__
#define __gfx103__
#endif
