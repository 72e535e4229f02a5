// items=1 group=1 input=1 output=1024
// A program of csmith, SOURCE, as a kernel of one work-item and as a program of the host.
#define main generated
#include SOURCE
#undef main

#ifdef __AMDGCN__
__attribute__((amdgpu_kernel)) void run(const uint32_t *in, uint32_t *out, uint32_t items) {
    results = out;
    generated();
}
#else
long write(int file, const void *bytes, size_t size);
int main(void) {
    static uint32_t memory[RESULTS];
    results = memory;
    generated();
    return write(1, memory, sizeof memory) != sizeof memory;
}
#endif
