// A kernel that calls functions of another code object.
extern "C" __attribute__((device)) unsigned twist(unsigned x);
extern "C" __attribute__((device)) unsigned mix(const unsigned *words, unsigned n);
extern "C" __attribute__((global)) void k_mix(unsigned *to, const unsigned *words) {
  unsigned i = __builtin_amdgcn_workgroup_id_x() * 64 + __builtin_amdgcn_workitem_id_x();
  to[i] = mix(words, i + 3) ^ twist(i);
}
