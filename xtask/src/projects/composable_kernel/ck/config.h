// CK's build system makes this header; its settings are options of the compiler here, as in the build of flash-attn.
