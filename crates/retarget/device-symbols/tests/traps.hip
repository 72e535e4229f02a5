// Traps: no code follows the last one of a function, the next function's does.
__attribute__((device, noinline, noreturn)) void dies(float x, float *p) { p[0] = leaf(x); __builtin_trap(); }
DEVICE void behind_death(float *p) { p[0] = leaf(p[2]); }
DEVICE float asserting(float x, float *p) { if (x > p[1]) dies(x, p); return x + 2; }
__attribute__((device, noinline, noreturn)) void passes_death_on(float x, float *p) { p[1] = x; dies(x, p); }
DEVICE void behind_passing(float *p) { p[0] = leaf(p[3]) + 1; }
KERNEL void trapping(float *p, int n) {
  p[0] = asserting(p[1], p);
  if (n == 3) passes_death_on(p[4], p);
  behind_death(p); behind_passing(p);
}
