// The system, the host, and the devices of STANDIN_DEVICES.
#include "standin.h"
#include <stdio.h>
#include <time.h>

static int device_count;
static char processors[MAX_DEVICES][64];

__attribute__((constructor)) static void read_devices(void) {
  const char *list = getenv("STANDIN_DEVICES");
  for (list = list ? list : "gfx1030"; *list && device_count < MAX_DEVICES; device_count++) {
    size_t length = strcspn(list, ",");
    snprintf(processors[device_count], sizeof processors[0], "%.*s", (int)length, list);
    list += length + (list[length] == ',');
  }
}

int device_of(uint64_t agent) { return agent < FIRST_DEVICE ? -1 : (int)(agent - FIRST_DEVICE); }
const char *processor_of(int device) { return processors[device]; }

uint64_t ticks(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 100000000ull + now.tv_nsec / 10;
}

hsa_status_t hsa_init(void) { return device_count ? SUCCESS : NO_MEMORY; }
hsa_status_t hsa_shut_down(void) { return SUCCESS; }
hsa_status_t hsa_status_string(hsa_status_t status, const char **text) {
  *text = status == SUCCESS ? "success" : "an error of the stand-in for HSA";
  return SUCCESS;
}
hsa_status_t hsa_amd_register_system_event_handler(hsa_amd_system_event_callback_t call, void *data) {
  (void)call, (void)data; // No event ever happens.
  return SUCCESS;
}
hsa_status_t hsa_amd_enable_logging(uint8_t *flags, void *file) { return (void)flags, (void)file, SUCCESS; }
hsa_status_t hsa_amd_agent_set_async_scratch_limit(hsa_agent_t agent, size_t size) {
  return (void)agent, (void)size, SUCCESS;
}
hsa_status_t hsa_amd_coherency_set_type(hsa_agent_t agent, hsa_amd_coherency_type_t type) {
  return (void)agent, (void)type, SUCCESS;
}

hsa_status_t hsa_system_get_info(hsa_system_info_t attribute, void *value) {
  switch ((int)attribute) {
  case HSA_SYSTEM_INFO_VERSION_MAJOR: *(uint16_t *)value = 1; return SUCCESS;
  case HSA_SYSTEM_INFO_VERSION_MINOR: *(uint16_t *)value = 18; return SUCCESS;
  case HSA_SYSTEM_INFO_TIMESTAMP: *(uint64_t *)value = ticks(); return SUCCESS;
  case HSA_SYSTEM_INFO_TIMESTAMP_FREQUENCY: *(uint64_t *)value = 100000000; return SUCCESS;
  case HSA_SYSTEM_INFO_SIGNAL_MAX_WAIT: *(uint64_t *)value = UINT64_MAX; return SUCCESS;
  case HSA_SYSTEM_INFO_ENDIANNESS: *(hsa_endianness_t *)value = HSA_ENDIANNESS_LITTLE; return SUCCESS;
  case HSA_SYSTEM_INFO_MACHINE_MODEL: *(hsa_machine_model_t *)value = HSA_MACHINE_MODEL_LARGE; return SUCCESS;
  case HSA_SYSTEM_INFO_EXTENSIONS: memset(value, 0, 128); return SUCCESS;
  case HSA_AMD_SYSTEM_INFO_SVM_SUPPORTED:
  case HSA_AMD_SYSTEM_INFO_SVM_ACCESSIBLE_BY_DEFAULT:
  case HSA_AMD_SYSTEM_INFO_DMABUF_SUPPORTED:
  case HSA_AMD_SYSTEM_INFO_VIRTUAL_MEM_API_SUPPORTED: *(bool *)value = false; return SUCCESS;
  }
  return INVALID;
}

hsa_status_t hsa_iterate_agents(hsa_status_t (*call)(hsa_agent_t, void *), void *data) {
  hsa_status_t status = call((hsa_agent_t){HOST}, data);
  for (int device = 0; device < device_count && status == SUCCESS; device++)
    status = call((hsa_agent_t){FIRST_DEVICE + device}, data);
  return status;
}

// A device has one ISA, whose handle is that of the agent.
hsa_status_t hsa_agent_iterate_isas(hsa_agent_t agent, hsa_status_t (*call)(hsa_isa_t, void *), void *data) {
  return device_of(agent.handle) < 0 ? HSA_STATUS_ERROR_INVALID_AGENT : call((hsa_isa_t){agent.handle}, data);
}
hsa_status_t hsa_isa_get_info_alt(hsa_isa_t isa, hsa_isa_info_t attribute, void *value) {
  char name[128];
  int length = snprintf(name, sizeof name, "amdgcn-amd-amdhsa--%s", processors[device_of(isa.handle)]);
  if (attribute == HSA_ISA_INFO_NAME_LENGTH) *(uint32_t *)value = length + 1;
  else if (attribute == HSA_ISA_INFO_NAME) memcpy(value, name, length + 1);
  else return INVALID;
  return SUCCESS;
}

static bool has_wave64(const char *processor) { // gfx9 and older
  return strcspn(processor, ":") == 6;
}

static hsa_status_t put_text(void *value, size_t size, const char *text) {
  memset(value, 0, size);
  memcpy(value, text, strlen(text) < size ? strlen(text) : size - 1);
  return SUCCESS;
}

// Attributes that are no 32-bit numbers. The size of each is that of HSA's documentation: HIP has no more room.
static bool other_attribute(int device, int attribute, void *value) {
  static const uint32_t cache_sizes[4] = {16384, 3 << 20, 96 << 20, 0};
  char uuid[21];
  switch (attribute) {
  case HSA_AGENT_INFO_NAME: put_text(value, 64, device < 0 ? "host" : processors[device]); return true;
  case HSA_AGENT_INFO_VENDOR_NAME: put_text(value, 64, device < 0 ? "CPU" : "AMD"); return true;
  case HSA_AMD_AGENT_INFO_PRODUCT_NAME: put_text(value, 64, device < 0 ? "host" : "stand-in"); return true;
  case HSA_AMD_AGENT_INFO_UUID:
    snprintf(uuid, sizeof uuid, "GPU-%016x", device + 1);
    put_text(value, 21, device < 0 ? "CPU-XX" : uuid);
    return true;
  case HSA_AGENT_INFO_VERSION_MAJOR: case HSA_AGENT_INFO_VERSION_MINOR: *(uint16_t *)value = 1; return true;
  case HSA_AGENT_INFO_WORKGROUP_MAX_DIM:
    for (int axis = 0; axis < 3; axis++) ((uint16_t *)value)[axis] = 1024;
    return true;
  case HSA_AGENT_INFO_GRID_MAX_DIM: *(hsa_dim3_t *)value = (hsa_dim3_t){INT32_MAX, UINT16_MAX, UINT16_MAX}; return true;
  case HSA_AGENT_INFO_CACHE_SIZE: memcpy(value, cache_sizes, sizeof cache_sizes); return true;
  case HSA_AGENT_INFO_EXTENSIONS: memset(value, 0, 128); return true;
  case HSA_AGENT_INFO_ISA: *(uint64_t *)value = FIRST_DEVICE + device; return true;
  case HSA_AMD_AGENT_INFO_COOPERATIVE_QUEUES: *(bool *)value = true; return true;
  case HSA_AMD_AGENT_INFO_SVM_DIRECT_HOST_ACCESS: *(bool *)value = false; return true;
  case HSA_AMD_AGENT_INFO_HDP_FLUSH: memset(value, 0, sizeof(hsa_amd_hdp_flush_t)); return true;
  case HSA_AMD_AGENT_INFO_MEMORY_PROPERTIES: memset(value, 0, 8); return true;
  case HSA_AMD_AGENT_INFO_NEAREST_CPU: ((hsa_agent_t *)value)->handle = HOST; return true;
  case HSA_AMD_AGENT_INFO_MEMORY_AVAIL: *(uint64_t *)value = 8ull << 30; return true;
  case HSA_AMD_AGENT_INFO_TIMESTAMP_FREQUENCY: *(uint64_t *)value = 100000000; return true;
  case HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_MAX: *(uint64_t *)value = 1ull << 30; return true;
  case HSA_AMD_AGENT_INFO_SCRATCH_LIMIT_CURRENT: *(uint64_t *)value = 0; return true;
  }
  return false;
}

// Attributes that are 32-bit numbers. All devices are alike in them.
static bool number(int device, int attribute, uint32_t *value) {
  bool is_device = device >= 0;
  switch (attribute) {
  case HSA_AGENT_INFO_FEATURE: *value = is_device ? HSA_AGENT_FEATURE_KERNEL_DISPATCH : 0; return true;
  case HSA_AGENT_INFO_MACHINE_MODEL: *value = HSA_MACHINE_MODEL_LARGE; return true;
  case HSA_AGENT_INFO_PROFILE: *value = is_device ? HSA_PROFILE_BASE : HSA_PROFILE_FULL; return true;
  case HSA_AGENT_INFO_DEFAULT_FLOAT_ROUNDING_MODE: *value = HSA_DEFAULT_FLOAT_ROUNDING_MODE_NEAR; return true;
  case HSA_AGENT_INFO_DEVICE: *value = is_device ? HSA_DEVICE_TYPE_GPU : HSA_DEVICE_TYPE_CPU; return true;
  case HSA_AGENT_INFO_NODE: case HSA_AMD_AGENT_INFO_DRIVER_NODE_ID: case HSA_AMD_AGENT_INFO_DRIVER_UID:
    *value = device + 1; return true;
  case HSA_AGENT_INFO_WAVEFRONT_SIZE: *value = is_device && has_wave64(processors[device]) ? 64 : 32; return true;
  case HSA_AGENT_INFO_WORKGROUP_MAX_SIZE: *value = 1024; return true;
  case HSA_AGENT_INFO_GRID_MAX_SIZE: *value = UINT32_MAX; return true;
  case HSA_AGENT_INFO_FBARRIER_MAX_SIZE: *value = 32; return true;
  case HSA_AGENT_INFO_QUEUES_MAX: *value = is_device ? 128 : 0; return true;
  case HSA_AGENT_INFO_QUEUE_MIN_SIZE: *value = is_device ? 64 : 0; return true;
  case HSA_AGENT_INFO_QUEUE_MAX_SIZE: *value = is_device ? 131072 : 0; return true;
  case HSA_AGENT_INFO_QUEUE_TYPE: *value = HSA_QUEUE_TYPE_MULTI; return true;
  case HSA_AMD_AGENT_INFO_CHIP_ID: *value = 0x73df; return true;
  case HSA_AMD_AGENT_INFO_CACHELINE_SIZE: *value = 128; return true;
  case HSA_AMD_AGENT_INFO_COMPUTE_UNIT_COUNT: *value = is_device ? 40 : 2; return true;
  case HSA_AMD_AGENT_INFO_COOPERATIVE_COMPUTE_UNIT_COUNT: *value = 40; return true;
  case HSA_AMD_AGENT_INFO_MAX_CLOCK_FREQUENCY: *value = 2000; return true;
  case HSA_AMD_AGENT_INFO_MEMORY_MAX_FREQUENCY: *value = 1000; return true;
  case HSA_AMD_AGENT_INFO_MAX_ADDRESS_WATCH_POINTS: *value = 4; return true;
  case HSA_AMD_AGENT_INFO_BDFID: *value = is_device ? (3 + device) << 8 : 0; return true;
  case HSA_AMD_AGENT_INFO_MEMORY_WIDTH: *value = 192; return true;
  case HSA_AMD_AGENT_INFO_MAX_WAVES_PER_CU: *value = 32; return true;
  case HSA_AMD_AGENT_INFO_NUM_SIMDS_PER_CU: case HSA_AMD_AGENT_INFO_NUM_SHADER_ENGINES:
  case HSA_AMD_AGENT_INFO_NUM_SHADER_ARRAYS_PER_SE: case HSA_AMD_AGENT_INFO_NUM_SDMA_ENG: *value = 2; return true;
  case HSA_AMD_AGENT_INFO_NUM_XCC: *value = 1; return true;
  case HSA_AMD_AGENT_INFO_ASIC_FAMILY_ID: *value = 143; return true;
  case HSA_AMD_AGENT_INFO_UCODE_VERSION: case HSA_AMD_AGENT_INFO_SDMA_UCODE_VERSION: *value = 100; return true;
  case HSA_AMD_AGENT_INFO_DOMAIN: case HSA_AMD_AGENT_INFO_ASIC_REVISION:
  case HSA_AMD_AGENT_INFO_NUM_SDMA_XGMI_ENG: case HSA_AMD_AGENT_INFO_IOMMU_SUPPORT: *value = 0; return true;
  }
  return false;
}

hsa_status_t hsa_agent_get_info(hsa_agent_t agent, hsa_agent_info_t attribute, void *value) {
  int device = device_of(agent.handle);
  return other_attribute(device, attribute, value) || number(device, attribute, value) ? SUCCESS : INVALID;
}
