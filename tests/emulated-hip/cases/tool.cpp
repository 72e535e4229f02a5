// A tools library that tells when it is loaded, called and unloaded, with the macros TOOL (its name), REFUSES and PRIORITY.
#include <hsa/hsa.h>
#define AMD_INTERNAL_BUILD // the next header finds the others beside itself
#include <hsa/hsa_api_trace.h>

#include <cstdio>

static decltype(&hsa_system_get_info) next;
static hsa_status_t get_info(hsa_system_info_t attribute, void *value) {
  puts(TOOL " is called");
  return next(attribute, value);
}

// The tables are those of a runtime that was built with the same header.
static bool is_ours(const HsaApiTable &table) {
  static HsaApiTableContainer own;
  const ApiTableVersion *found[] = {&table.version, &table.core_->version, &table.amd_ext_->version, &table.finalizer_ext_->version,
                                    &table.image_ext_->version, &table.tools_->version, &table.pc_sampling_ext_->version};
  const ApiTableVersion *wanted[] = {&own.root.version, &own.core.version, &own.amd_ext.version, &own.finalizer_ext.version,
                                     &own.image_ext.version, &own.tools.version, &own.pc_sampling_ext.version};
  for (int i = 0; i < 7; i++)
    if (memcmp(found[i], wanted[i], sizeof *found[i])) return false;
  return true;
}

extern "C" bool OnLoad(HsaApiTable *table, uint64_t version, uint64_t count, const char *const *failed) {
  uint16_t major = 0;
  hsa_status_t status = table->core_->hsa_system_get_info_fn(HSA_SYSTEM_INFO_VERSION_MAJOR, &major);
  printf("%s: version %d, tables %s, HSA %d (%d), failed:", TOOL, int(version), is_ours(*table) ? "as built" : "WRONG", major, status);
  for (uint64_t i = 0; i < count; i++) printf(" %s", failed[i]);
  puts("");
#ifdef REFUSES
  return false;
#endif
  next = table->core_->hsa_system_get_info_fn;
  table->core_->hsa_system_get_info_fn = get_info;
  return true;
}
extern "C" void OnUnload() { puts(TOOL " is unloaded"); }
#ifdef PRIORITY
extern "C" const uint32_t HSA_AMD_TOOL_PRIORITY = PRIORITY;
#endif
