// Mixed precision and halves of registers: what gfx900, gfx904 and gfx906 do differently.
typedef _Float16 half;
typedef half half2 __attribute__((ext_vector_type(2)));
#define KERNEL extern "C" __attribute__((global)) void
#define ID (__builtin_amdgcn_workgroup_id_x() * 256 + __builtin_amdgcn_workitem_id_x())
KERNEL plain(const float *x, float *y) { y[ID] += x[ID] * 3; }
#ifdef MIX
KERNEL mix(const half *a, const half *b, const half *c, float *y) {
  y[ID] = (float)a[ID] * (float)b[ID] + (float)c[ID];
}
#endif
#ifdef HALVES
KERNEL halves(const half *x, const unsigned *at, half2 *y) {
  half2 pair = {x[at[2 * ID]], x[at[2 * ID + 1]]};
  y[ID] = pair * pair;
}
#endif
