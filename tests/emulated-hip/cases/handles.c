// The interface of HSA with wrong handles, damaged code objects and undefined symbols: a status for each call.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <hsa/hsa_ven_amd_loader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int wrong;
static hsa_agent_t gpu;

static void expect(const char *text, int found, int expected) {
  if (found == expected) printf("right %s\n", text);
  else printf("WRONG %s: 0x%x, not 0x%x\n", text, found, expected), wrong++;
  fflush(stdout);
}
#define EXPECT(status, call) expect(#call, call, status)

static hsa_status_t find_gpu(hsa_agent_t agent, void *data) {
  hsa_device_type_t type;
  (void)data;
  if (!hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type) && type == HSA_DEVICE_TYPE_GPU) gpu = agent;
  return HSA_STATUS_SUCCESS;
}

static char *read_file(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file) exit(20);
  char *bytes = malloc(1 << 20);
  *size = fread(bytes, 1, 1 << 20, file);
  fclose(file);
  return bytes;
}

// Loads bytes into an executable of their own.
static hsa_status_t load(const char *bytes, size_t size, const char *define, void *address) {
  hsa_code_object_reader_t reader;
  hsa_executable_t executable;
  hsa_status_t status = hsa_code_object_reader_create_from_memory(bytes, size, &reader);
  if (status) return status;
  hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &executable);
  if (define) hsa_executable_agent_global_variable_define(executable, gpu, define, address);
  status = hsa_executable_load_agent_code_object(executable, gpu, reader, NULL, NULL);
  if (!status) status = hsa_executable_freeze(executable, NULL);
  hsa_executable_destroy(executable);
  hsa_code_object_reader_destroy(reader);
  return status;
}

static void handles(void) {
  hsa_signal_t signal;
  void *pointer;
  uint32_t number;
  EXPECT(HSA_STATUS_ERROR_INVALID_AGENT, hsa_agent_get_info((hsa_agent_t){77}, HSA_AGENT_INFO_DEVICE, &number));
  EXPECT(HSA_STATUS_ERROR_INVALID_ARGUMENT, hsa_agent_get_info(gpu, 0x7777, &number));
  EXPECT(HSA_STATUS_ERROR_INVALID_ARGUMENT, hsa_agent_get_info(gpu, HSA_AGENT_INFO_DEVICE, NULL));
  EXPECT(HSA_STATUS_ERROR_INVALID_ARGUMENT, hsa_iterate_agents(NULL, NULL));
  EXPECT(HSA_STATUS_ERROR_INVALID_SIGNAL, hsa_signal_destroy((hsa_signal_t){12345}));
  EXPECT(HSA_STATUS_ERROR_INVALID_ARGUMENT, hsa_signal_destroy((hsa_signal_t){0}));
  EXPECT(HSA_STATUS_SUCCESS, hsa_signal_create(1, 0, NULL, &signal));
  EXPECT(HSA_STATUS_SUCCESS, hsa_signal_destroy(signal));
  EXPECT(HSA_STATUS_ERROR_INVALID_SIGNAL, hsa_signal_destroy(signal));
  expect("load of a wrong signal", hsa_signal_load_relaxed((hsa_signal_t){0xdead0000}), 0);
  EXPECT(HSA_STATUS_ERROR_INVALID_MEMORY_POOL, hsa_amd_memory_pool_allocate((hsa_amd_memory_pool_t){9}, 10, 0, &pointer));
  EXPECT(HSA_STATUS_ERROR_INVALID_ALLOCATION, hsa_amd_memory_pool_free(&number));
  EXPECT(HSA_STATUS_SUCCESS, hsa_amd_memory_pool_free(NULL));
  EXPECT(HSA_STATUS_ERROR_INVALID_QUEUE, hsa_queue_destroy((hsa_queue_t *)&number));
  EXPECT(HSA_STATUS_ERROR_INVALID_EXECUTABLE, hsa_executable_freeze((hsa_executable_t){5}, NULL));
  EXPECT(HSA_STATUS_ERROR_INVALID_CODE_OBJECT_READER, hsa_code_object_reader_destroy((hsa_code_object_reader_t){5}));
  EXPECT(HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL,
         hsa_executable_symbol_get_info((hsa_executable_symbol_t){5}, HSA_EXECUTABLE_SYMBOL_INFO_TYPE, &number));
  EXPECT(HSA_STATUS_ERROR_INVALID_ISA_NAME, hsa_isa_from_name("gfx1", (hsa_isa_t *)&pointer));
  EXPECT(HSA_STATUS_ERROR_NOT_SUPPORTED, hsa_ext_image_create(gpu, NULL, NULL, HSA_ACCESS_PERMISSION_RW, NULL));
  hsa_queue_t *queue;
  EXPECT(HSA_STATUS_ERROR_INVALID_ARGUMENT,
         hsa_queue_create(gpu, 100, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
  EXPECT(HSA_STATUS_SUCCESS,
         hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
  EXPECT(HSA_STATUS_SUCCESS, hsa_queue_destroy(queue));
  EXPECT(HSA_STATUS_ERROR_INVALID_QUEUE, hsa_queue_destroy(queue));
  const char *text;
  EXPECT(HSA_STATUS_SUCCESS, hsa_status_string(HSA_STATUS_ERROR_FROZEN_EXECUTABLE, &text));
  expect("text of a status", !!strstr(text, "FROZEN"), 1);
}

// Barriers and the loader's extension, without a kernel.
static void packets(void) {
  hsa_queue_t *queue;
  hsa_signal_t first, done;
  hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue);
  hsa_signal_create(1, 0, NULL, &first);
  hsa_signal_create(1, 0, NULL, &done);
  hsa_barrier_and_packet_t *packet = queue->base_address;
  memset((char *)packet + 2, 0, 62);
  packet->dep_signal[1] = first;
  packet->completion_signal = done;
  __atomic_store_n(&packet->header, HSA_PACKET_TYPE_BARRIER_AND, __ATOMIC_RELEASE);
  hsa_signal_store_screlease(queue->doorbell_signal, hsa_queue_add_write_index_screlease(queue, 1));
  expect("a barrier waits", hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, 2000000, HSA_WAIT_STATE_BLOCKED), 1);
  hsa_signal_store_screlease(first, 0);
  expect("a barrier ends", hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, UINT64_MAX, HSA_WAIT_STATE_BLOCKED), 0);
  expect("the queue has read it", hsa_queue_load_read_index_scacquire(queue), 1);
  hsa_amd_profiling_dispatch_time_t time;
  hsa_amd_profiling_get_dispatch_time(gpu, done, &time);
  expect("times are taken", time.start > 0 && time.end > time.start, 1);
  hsa_signal_destroy(first), hsa_signal_destroy(done), hsa_queue_destroy(queue);
}

static void objects(const char *path) {
  size_t size;
  char *bytes = read_file(path, &size);
  EXPECT(HSA_STATUS_SUCCESS, load(bytes, size, NULL, NULL));
  EXPECT(HSA_STATUS_ERROR_INVALID_ARGUMENT, load(NULL, size, NULL, NULL));
  EXPECT(HSA_STATUS_ERROR_INVALID_CODE_OBJECT, load("\177ELF", 4, NULL, NULL));
  // Every length, and every byte of the header and of the tables changed: a status, never a crash.
  int refused = 0, all = 0;
  for (size_t length = 1; length < size; length += 97, all++) refused += load(bytes, length, NULL, NULL) != 0;
  expect("short files are refused", refused, all);
  int other = 0;
  for (size_t at = 0; at < size; at += at < 1024 ? 1 : 61) {
    char kept = bytes[at];
    bytes[at] ^= 0x55;
    other += load(bytes, size, NULL, NULL) != 0;
    bytes[at] = kept;
  }
  expect("some damage is seen", other > 20, 1);
  hsa_ven_amd_loader_1_01_pfn_t table;
  EXPECT(HSA_STATUS_SUCCESS, hsa_system_get_major_extension_table(HSA_EXTENSION_AMD_LOADER, 1, sizeof table, &table));
  size_t count = 7;
  EXPECT(HSA_STATUS_SUCCESS, table.hsa_ven_amd_loader_query_segment_descriptors(NULL, &count));
  expect("nothing stays loaded", (int)count, 0);
}

static hsa_status_t count_symbols(hsa_executable_t executable, hsa_agent_t agent, hsa_executable_symbol_t symbol, void *data) {
  (void)executable, (void)agent, (void)symbol;
  ++*(int *)data;
  return HSA_STATUS_SUCCESS;
}

static void symbols(const char *path) {
  size_t size;
  char *bytes = read_file(path, &size);
  static int outside = 5;
  EXPECT(HSA_STATUS_ERROR_VARIABLE_UNDEFINED, load(bytes, size, NULL, NULL));
  EXPECT(HSA_STATUS_SUCCESS, load(bytes, size, "outside", &outside));
  hsa_executable_t executable;
  hsa_code_object_reader_t reader;
  hsa_executable_symbol_t symbol;
  hsa_code_object_reader_create_from_memory(bytes, size, &reader);
  hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &executable);
  hsa_executable_agent_global_variable_define(executable, gpu, "outside", &outside);
  EXPECT(HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED,
         hsa_executable_agent_global_variable_define(executable, gpu, "outside", &outside));
  EXPECT(HSA_STATUS_SUCCESS, hsa_executable_load_agent_code_object(executable, gpu, reader, NULL, NULL));
  EXPECT(HSA_STATUS_ERROR_VARIABLE_ALREADY_DEFINED,
         hsa_executable_load_agent_code_object(executable, gpu, reader, NULL, NULL));
  EXPECT(HSA_STATUS_SUCCESS, hsa_executable_freeze(executable, NULL));
  EXPECT(HSA_STATUS_ERROR_FROZEN_EXECUTABLE, hsa_executable_freeze(executable, NULL));
  EXPECT(HSA_STATUS_ERROR_FROZEN_EXECUTABLE,
         hsa_executable_agent_global_variable_define(executable, gpu, "more", &outside));
  EXPECT(HSA_STATUS_ERROR_INVALID_SYMBOL_NAME, hsa_executable_get_symbol_by_name(executable, "none", &gpu, &symbol));
  EXPECT(HSA_STATUS_SUCCESS, hsa_executable_get_symbol_by_name(executable, "inside", &gpu, &symbol));
  uint64_t address = 0;
  hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS, &address);
  // `inside` holds the address of the variable that the program defined.
  expect("the relocation is applied", *(int **)address == &outside, 1);
  EXPECT(HSA_STATUS_SUCCESS, hsa_executable_get_symbol_by_name(executable, "kernel.kd", &gpu, &symbol));
  uint32_t kind = 0, kernarg = 0;
  hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_TYPE, &kind);
  hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE, &kernarg);
  expect("it is a kernel with an argument", kind == HSA_SYMBOL_KIND_KERNEL && kernarg == 8, 1);
  int count = 0;
  hsa_executable_iterate_agent_symbols(executable, gpu, count_symbols, &count);
  expect("symbols of the agent", count, 4);
  hsa_code_object_reader_destroy(reader);
  EXPECT(HSA_STATUS_SUCCESS, hsa_executable_destroy(executable));
  EXPECT(HSA_STATUS_ERROR_INVALID_EXECUTABLE_SYMBOL,
         hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_TYPE, &kind));
}

static volatile int calls;
static hsa_signal_t left;
static bool count_call(hsa_signal_value_t value, void *data) {
  (void)value, (void)data;
  calls++;
  return false;
}

static void wait_for_calls(void) {
  for (int wait = 0; wait < 100 && !calls; wait++) usleep(1000);
}

// A handler belongs to its signal, not to the signal that takes its place.
static void handlers(void) {
  hsa_signal_t old, new = {0};
  EXPECT(HSA_STATUS_SUCCESS, hsa_signal_create(1, 0, NULL, &old));
  EXPECT(HSA_STATUS_SUCCESS, hsa_amd_signal_async_handler(old, HSA_SIGNAL_CONDITION_LT, 1, count_call, NULL));
  EXPECT(HSA_STATUS_SUCCESS, hsa_signal_destroy(old));
  for (int number = 0; number < 1 << 16 && new.handle != old.handle; number++) hsa_signal_create(0, 0, NULL, &new);
  expect("the place is used again", new.handle == old.handle, 1);
  wait_for_calls();
  expect("calls for a signal that is destroyed", calls, 0);
  EXPECT(HSA_STATUS_SUCCESS, hsa_amd_signal_async_handler(new, HSA_SIGNAL_CONDITION_LT, 1, count_call, NULL));
  wait_for_calls();
  expect("calls for a signal that is there", calls, 1);
  calls = 0;
  EXPECT(HSA_STATUS_SUCCESS, hsa_signal_create(1, 0, NULL, &left));
  EXPECT(HSA_STATUS_SUCCESS, hsa_amd_signal_async_handler(left, HSA_SIGNAL_CONDITION_LT, 1, count_call, NULL));
}

// What is stated about shared memory is answered later, page by page.
static void shared_memory(void) {
  const hsa_agent_t nothing = {0}, other = {77};
  char *start = aligned_alloc(4096, 4 * 4096);
  hsa_amd_svm_attribute_pair_t read_mostly = {HSA_AMD_SVM_ATTRIB_READ_MOSTLY, 1};
  hsa_amd_svm_attribute_pair_t preferred = {HSA_AMD_SVM_ATTRIB_PREFERRED_LOCATION, gpu.handle};
  hsa_amd_svm_attribute_pair_t accessible = {HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE, gpu.handle};
  hsa_amd_svm_attribute_pair_t of_other = {HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE, other.handle};
  hsa_amd_svm_attribute_pair_t query = {HSA_AMD_SVM_ATTRIB_ACCESS_QUERY, gpu.handle};
  hsa_amd_svm_attribute_pair_t found[] = {{HSA_AMD_SVM_ATTRIB_READ_MOSTLY, 7},
                                          {HSA_AMD_SVM_ATTRIB_PREFERRED_LOCATION, 7},
                                          {HSA_AMD_SVM_ATTRIB_PREFETCH_LOCATION, 7},
                                          {HSA_AMD_SVM_ATTRIB_ACCESS_QUERY, gpu.handle}};
  EXPECT(HSA_STATUS_SUCCESS, hsa_amd_svm_attributes_set(start, 2 * 4096, &read_mostly, 1));
  EXPECT(HSA_STATUS_SUCCESS, hsa_amd_svm_attributes_set(start, 4 * 4096, &preferred, 1));
  EXPECT(HSA_STATUS_ERROR_INVALID_ARGUMENT, hsa_amd_svm_attributes_set(start, 4096, &query, 1));
  EXPECT(HSA_STATUS_ERROR_INVALID_AGENT, hsa_amd_svm_attributes_set(start, 4096, &of_other, 1));
  EXPECT(HSA_STATUS_SUCCESS, hsa_amd_svm_attributes_get(start, 4 * 4096, found, 4));
  expect("one half is not read mostly", (int)found[0].value, 0);
  expect("preferred location", (int)found[1].value, (int)gpu.handle);
  expect("no prefetch location", (int)found[2].value, (int)nothing.handle);
  expect("no access before it is stated", (int)found[3].attribute, HSA_AMD_SVM_ATTRIB_AGENT_NO_ACCESS);
  EXPECT(HSA_STATUS_SUCCESS, hsa_amd_svm_attributes_set(start, 4096, &accessible, 1));
  hsa_signal_t done;
  EXPECT(HSA_STATUS_SUCCESS, hsa_signal_create(1, 0, NULL, &done));
  EXPECT(HSA_STATUS_SUCCESS, hsa_amd_svm_prefetch_async(start, 4096, gpu, 0, NULL, done));
  hsa_signal_wait_relaxed(done, HSA_SIGNAL_CONDITION_EQ, 0, UINT64_MAX, HSA_WAIT_STATE_BLOCKED);
  hsa_signal_destroy(done);
  found[3] = query;
  EXPECT(HSA_STATUS_SUCCESS, hsa_amd_svm_attributes_get(start + 8, 8, found, 4));
  expect("read mostly", (int)found[0].value, 1);
  expect("prefetch location", (int)found[2].value, (int)gpu.handle);
  expect("access after it was stated", (int)found[3].attribute, HSA_AMD_SVM_ATTRIB_AGENT_ACCESSIBLE);
  EXPECT(HSA_STATUS_ERROR_INVALID_ARGUMENT, hsa_amd_svm_attributes_get(start, 4096, &accessible, 1));
}

int main(int count, char **words) {
  EXPECT(HSA_STATUS_ERROR_NOT_INITIALIZED, hsa_iterate_agents(find_gpu, NULL));
  EXPECT(HSA_STATUS_SUCCESS, hsa_init());
  EXPECT(HSA_STATUS_SUCCESS, hsa_init());
  EXPECT(HSA_STATUS_SUCCESS, hsa_iterate_agents(find_gpu, NULL));
  handles();
  packets();
  objects(words[1]);
  symbols(words[count - 1]);
  handlers();
  shared_memory();
  EXPECT(HSA_STATUS_SUCCESS, hsa_shut_down());
  EXPECT(HSA_STATUS_SUCCESS, hsa_iterate_agents(find_gpu, NULL));
  EXPECT(HSA_STATUS_SUCCESS, hsa_shut_down());
  EXPECT(HSA_STATUS_ERROR_NOT_INITIALIZED, hsa_shut_down());
  // The handler that handlers() has left waits no more.
  EXPECT(HSA_STATUS_SUCCESS, hsa_init());
  hsa_signal_store_relaxed(left, 0);
  wait_for_calls();
  expect("calls for a user who has left", calls, 0);
  EXPECT(HSA_STATUS_SUCCESS, hsa_shut_down());
  return wrong;
}
