extern "C" __attribute__((device)) float lib_fn(const float *p, int n);
extern "C" __attribute__((global)) void k_use(float *p, int n) { p[0] = lib_fn(p, n) + 1; }
extern "C" __attribute__((global)) void k_alone(float *p) { p[0] = p[1] + 1; }
