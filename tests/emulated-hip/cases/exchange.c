// A library of device functions and a code object that imports them, in two executables of unmodified HSA: bound by libhotswap,
// loaded, executed. Arguments: the library, the user.
#include <hotswap.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <hsa/hsa_ven_amd_loader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ITEMS = 128, WORDS = 120 };

static hsa_agent_t gpu, cpu;
static hsa_amd_memory_pool_t pool;
static int wrong;

static void need(const char *what, int status) {
  if (!status) return;
  printf("WRONG %s: 0x%x\n", what, status);
  exit(1);
}
#define NEED(call) need(#call, call)

static void expect(const char *what, int right) {
  printf("%s %s\n", right ? "right" : "WRONG", what);
  wrong += !right;
}

static hsa_status_t find_agent(hsa_agent_t agent, void *data) {
  hsa_device_type_t type;
  (void)data;
  if (hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type)) return HSA_STATUS_SUCCESS;
  *(type == HSA_DEVICE_TYPE_GPU ? &gpu : &cpu) = agent;
  return HSA_STATUS_SUCCESS;
}

static hsa_status_t find_pool(hsa_amd_memory_pool_t one, void *data) {
  (void)data;
  if (!pool.handle) pool = one;
  return HSA_STATUS_SUCCESS;
}

static void *allocate(size_t size) {
  void *memory;
  NEED(hsa_amd_memory_pool_allocate(pool, size, 0, &memory));
  NEED(hsa_amd_agents_allow_access(1, &gpu, NULL, memory));
  return memset(memory, 0, size);
}

static hotswap_image *image_of(const char *path) {
  static char bytes[1 << 20];
  FILE *file = fopen(path, "rb");
  hotswap_image *image;
  if (!file) exit(20);
  size_t size = fread(bytes, 1, sizeof bytes, file);
  fclose(file);
  NEED(hotswap_image_from_memory(bytes, size, &image, NULL));
  return image;
}

static hsa_executable_t executable(void) {
  hsa_executable_t made;
  NEED(hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &made));
  return made;
}

static int load(hsa_executable_t to, const void *bytes, size_t size, hsa_loaded_code_object_t *loaded) {
  hsa_code_object_reader_t reader;
  NEED(hsa_code_object_reader_create_from_memory(bytes, size, &reader));
  int status = hsa_executable_load_agent_code_object(to, gpu, reader, NULL, loaded);
  return status ? status : hsa_executable_freeze(to, NULL);
}

static hotswap_binding *bind(const hotswap_image *user, const hotswap_image *library, hotswap_binding_info *info) {
  hotswap_binding *binding;
  const char *problem;
  NEED(hotswap_binding_check(user, &library, 1, &binding, NULL));
  info->struct_size = sizeof *info;
  NEED(hotswap_binding_info_get(binding, info, NULL));
  for (size_t number = 0; number < info->problems; number++) {
    NEED(hotswap_binding_problem(binding, number, &problem, NULL));
    printf("problem %s\n", problem);
  }
  return binding;
}

static void dispatch(hsa_executable_t from, void *arguments) {
  hsa_executable_symbol_t symbol;
  hsa_queue_t *queue;
  hsa_signal_t done;
  uint64_t kernel;
  uint32_t scratch, lds;
  NEED(hsa_executable_get_symbol_by_name(from, "k_mix.kd", &gpu, &symbol));
  NEED(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &kernel));
  NEED(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE, &scratch));
  NEED(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE, &lds));
  NEED(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
  NEED(hsa_signal_create(1, 0, NULL, &done));
  hsa_kernel_dispatch_packet_t *packet = queue->base_address;
  memset(packet, 0, sizeof *packet);
  packet->setup = 1;
  packet->workgroup_size_x = 64, packet->workgroup_size_y = packet->workgroup_size_z = 1;
  packet->grid_size_x = ITEMS, packet->grid_size_y = packet->grid_size_z = 1;
  packet->private_segment_size = scratch, packet->group_segment_size = lds;
  packet->kernel_object = kernel, packet->kernarg_address = arguments, packet->completion_signal = done;
  uint16_t header = HSA_PACKET_TYPE_KERNEL_DISPATCH << HSA_PACKET_HEADER_TYPE |
                    HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                    HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
  __atomic_store_n(&packet->header, header, __ATOMIC_RELEASE);
  hsa_signal_store_screlease(queue->doorbell_signal, hsa_queue_add_write_index_screlease(queue, 1));
  hsa_signal_value_t left = hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED);
  expect("the kernel ran to its end", left == 0);
  hsa_signal_destroy(done), hsa_queue_destroy(queue);
}

// The device's functions once more.
static uint32_t twist(uint32_t x) { return x * 2654435761u ^ x >> 7; }
static uint32_t mix(const uint32_t *words, uint32_t n) {
  uint32_t a[WORDS], sum = n;
  for (int i = 0; i < WORDS; i++) a[i] = words[i] * n;
  for (int i = 0; i < WORDS; i++) sum = sum * 31 + (a[i] ^ a[WORDS - 1 - i]) + a[i * 7 % WORDS];
  for (int i = 0; i < WORDS; i++) sum = sum * (a[i] | 1) + a[i * 13 % WORDS];
  return twist(sum);
}

int main(int count, char **paths) {
  struct { uint32_t *to, *words; } *arguments;
  hotswap_binding_info info;
  hotswap_error *error;
  hotswap_output *output;
  hsa_loaded_code_object_t object;
  hsa_ven_amd_loader_1_01_pfn_t loader;
  const void *bytes;
  size_t size;
  int64_t delta;
  if (count < 3) return 21;
  NEED(hsa_init());
  NEED(hsa_iterate_agents(find_agent, NULL));
  NEED(hsa_amd_agent_iterate_memory_pools(cpu, find_pool, NULL));
  NEED(hsa_system_get_major_extension_table(HSA_EXTENSION_AMD_LOADER, 1, sizeof loader, &loader));
  hotswap_image *library = image_of(paths[1]), *user = image_of(paths[2]);

  hsa_executable_t first = executable();
  NEED(hotswap_image_bytes(library, &bytes, &size, NULL));
  NEED(load(first, bytes, size, &object));
  NEED(loader.hsa_ven_amd_loader_loaded_code_object_get_info(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA, &delta));

  // Without definitions the loader refuses it.
  hsa_executable_t alone = executable();
  NEED(hotswap_image_bytes(user, &bytes, &size, NULL));
  expect("undefined functions are refused", load(alone, bytes, size, NULL) == HSA_STATUS_ERROR_VARIABLE_UNDEFINED);
  hsa_executable_destroy(alone);

  hotswap_hsa_define define = (hotswap_hsa_define)hsa_executable_agent_global_variable_define;
  hsa_executable_t second = executable();
  hotswap_hsa_handle to = {second.handle}, agent = {gpu.handle};
  hotswap_binding *binding = bind(user, library, &info);
  printf("%zu imports, %zu kernels with too little, %zu problems\n", info.imports, info.budgets, info.problems);
  expect("the kernel has too little", info.imports == 2 && info.budgets == 1 && !info.loadable);
  hotswap_status status = hotswap_binding_define(binding, define, to, agent, &delta, 1, &error);
  expect("it is not bound", status == HOTSWAP_REFUSED && strstr(hotswap_error_message(error), "makes it need"));
  hotswap_error_free(error);
  NEED(hotswap_binding_prepare(binding, &output, NULL));
  hotswap_binding_free(binding), hotswap_image_free(user);

  NEED(hotswap_output_bytes(output, &bytes, &size, NULL));
  NEED(hotswap_image_from_memory(bytes, size, &user, NULL));
  binding = bind(user, library, &info);
  expect("a prepared one has enough", info.imports == 2 && info.budgets == 0 && info.loadable);
  expect("one delta for each library", hotswap_binding_define(binding, define, to, agent, &delta, 0, NULL) == HOTSWAP_INVALID_ARGUMENT);
  NEED(hotswap_binding_define(binding, define, to, agent, &delta, 1, NULL));
  expect("a second time HSA refuses", hotswap_binding_define(binding, define, to, agent, &delta, 1, NULL) == HOTSWAP_CANNOT_READ);
  NEED(load(second, bytes, size, NULL));

  arguments = allocate(sizeof *arguments);
  arguments->to = allocate(ITEMS * 4), arguments->words = allocate(WORDS * 4);
  for (uint32_t i = 0; i < WORDS; i++) arguments->words[i] = i * i + 17;
  dispatch(second, arguments);
  int same = 0;
  for (uint32_t i = 0; i < ITEMS; i++) same += arguments->to[i] == (mix(arguments->words, i + 3) ^ twist(i));
  printf("%d of %d values\n", same, ITEMS);
  expect("the result is that of the host", same == ITEMS);
  hsa_executable_destroy(second), hsa_executable_destroy(first);
  hotswap_output_free(output), hotswap_binding_free(binding), hotswap_image_free(user), hotswap_image_free(library);
  NEED(hsa_shut_down());
  return wrong;
}
