// A code object with a kernel and a variable that another one refers to.
extern __attribute__((device, visibility("default"))) int outside;
__attribute__((device)) int *inside = &outside;
extern "C" __attribute__((global)) void kernel(int *to) { *to = *inside; }
