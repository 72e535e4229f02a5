// Stand-in for libamdhip64.so.7, on top of the stand-in of HSA: registers fat binaries, loads code objects at the
// first launch, and tears everything down in its destructor, as the real one does.
//
// STANDIN_ASYNC  1: launches count only when the device is waited for
// STANDIN_CLOCK  1: says when the library is torn down
#define _GNU_SOURCE
#include "standin.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOG(...) (getenv("STANDIN_LOG") ? (void)(fprintf(stderr, "[hip] " __VA_ARGS__), fputc('\n', stderr)) : (void)0)
enum { OK = 0, INVALID_VALUE = 1, NO_BINARY = 209, FILE_NOT_FOUND = 301, NOT_FOUND = 500, INVALID_SYMBOL = 13, BAD_FUNCTION = 98 };
enum { DEVICES = 128, PROPERTIES_SIZE = 1472, PROPERTIES_PROCESSOR = 1160 };

typedef struct { hsa_executable_t executable; hsa_agent_t agent; int is_loaded; } Module;
typedef struct Binary { struct Binary *next; const char *file; Module modules[DEVICES]; } Binary;
typedef struct Name { struct Name *next; const void *host; Binary *binary; char *name; } Name;

static int is_up, current, device_count;
static hsa_agent_t devices[DEVICES];
static Name *functions, *variables;
static struct { Module *module; int launches; } pending[256];

static hsa_status_t add_device(hsa_agent_t agent, void *data) {
  (void)data;
  uint32_t kind = 0;
  hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &kind);
  if (kind == HSA_DEVICE_TYPE_GPU && device_count < DEVICES) devices[device_count++] = agent;
  return HSA_STATUS_SUCCESS;
}

static int up(void) {
  if (!is_up && !hsa_init()) is_up = 1, hsa_iterate_agents(add_device, 0);
  return is_up;
}

__attribute__((destructor)) static void tear_down(void) {
  LOG("teardown");
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  if (getenv("STANDIN_CLOCK")) fprintf(stderr, "[clock] %ld.%09ld teardown\n", time.tv_sec, time.tv_nsec);
  if (is_up) hsa_shut_down();
}

static void finish(Module *module) {
  for (int index = 0; index < 256; index++)
    if (pending[index].module == module)
      for (; pending[index].launches; pending[index].launches--) standin_launch(module->executable, module->agent);
}

static void launch(Module *module) {
  if (!getenv("STANDIN_ASYNC")) { standin_launch(module->executable, module->agent); return; }
  int index = 0;
  while (pending[index].module && pending[index].module != module) index++;
  pending[index].module = module;
  pending[index].launches++;
}

// The code object of a device in a fat binary; a bare one is itself.
static const char *pick(const char *file, int device, size_t *size) {
  if (!memcmp(file, "\177ELF", 4)) { *size = 1u << 30; return file; }
  if (memcmp(file, "__CLANG_OFFLOAD_BUNDLE__", 24)) return 0;
  char processor[64];
  hsa_agent_get_info(devices[device], HSA_AGENT_INFO_NAME, processor);
  uint64_t count, entry[3];
  memcpy(&count, file + 24, 8);
  const char *at = file + 32;
  for (; count; count--, at += 24 + entry[2]) {
    memcpy(entry, at, 24);
    if (!memmem(at + 24, entry[2], processor, strlen(processor))) continue;
    *size = entry[1];
    return file + entry[0];
  }
  return 0;
}

static int load(Module *module, const char *file, int device) {
  if (module->is_loaded) return OK;
  size_t size;
  const char *object = up() ? pick(file, device, &size) : 0;
  if (!object) return NO_BINARY;
  hsa_code_object_reader_t reader;
  module->agent = devices[device];
  if (hsa_code_object_reader_create_from_memory(object, size, &reader)) return INVALID_VALUE;
  if (hsa_executable_create_alt(HSA_PROFILE_FULL, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, 0, &module->executable) ||
      hsa_executable_load_agent_code_object(module->executable, module->agent, reader, 0, 0) ||
      hsa_executable_freeze(module->executable, 0)) return INVALID_VALUE;
  hsa_code_object_reader_destroy(reader);
  module->is_loaded = 1;
  return OK;
}

static void unload(Module *module) {
  if (!module->is_loaded) return;
  finish(module);
  hsa_executable_destroy(module->executable);
  module->is_loaded = 0;
}

void **__hipRegisterFatBinary(const void *wrapper) {
  Binary *binary = calloc(1, sizeof *binary);
  memcpy(&binary->file, (const char *)wrapper + 8, sizeof binary->file);
  LOG("register %p", (void *)binary->file);
  return (void **)binary;
}

void __hipUnregisterFatBinary(void **handle) {
  LOG("unregister");
  for (int device = 0; device < DEVICES; device++) unload(&((Binary *)handle)->modules[device]);
}

static void add_name(Name **list, void **handle, const void *host, const char *text) {
  Name *name = malloc(sizeof *name);
  *name = (Name){*list, host, (Binary *)handle, strdup(text)};
  *list = name;
}

void __hipRegisterFunction(void **handle, const void *host, char *device, const char *name, unsigned limit, void *a,
                           void *b, void *c, void *d, int *e) {
  (void)device, (void)limit, (void)a, (void)b, (void)c, (void)d, (void)e;
  add_name(&functions, handle, host, name);
}

void __hipRegisterVar(void **handle, void *host, char *device, char *name, int external, size_t size, int constant,
                      int global) {
  (void)device, (void)external, (void)size, (void)constant, (void)global;
  add_name(&variables, handle, host, name);
}

static Name *find(Name *list, const void *host) {
  while (list && list->host != host) list = list->next;
  return list;
}

int __hipPushCallConfiguration(void) { return OK; }

int __hipPopCallConfiguration(void *grid, void *block, size_t *shared, void **stream) {
  (void)grid, (void)block;
  *shared = 0, *stream = 0;
  return OK;
}

int hipLaunchKernel(const void *function) {
  Name *name = find(functions, function);
  if (!name || !up()) return BAD_FUNCTION;
  Module *module = &name->binary->modules[current];
  int error = load(module, name->binary->file, current);
  if (!error) launch(module);
  return error;
}

int hipGetDeviceCount(int *count) { *count = up() ? device_count : 0; return is_up ? OK : 100; }
int hipGetDevice(int *device) { *device = current; return OK; }
int hipSetDevice(int device) { if (!up() || device >= device_count) return 101; current = device; return OK; }
int hipGetLastError(void) { return OK; }
int hipMalloc(void **memory, size_t size) { up(); *memory = malloc(size); return OK; }
int hipFree(void *memory) { free(memory); return OK; }
const char *hipGetErrorString(int error) { return error ? "failed" : "success"; }
int hipStreamGetDevice(void *stream, int *device) { (void)stream; *device = current; return OK; }

int hipDeviceSynchronize(void) {
  for (int index = 0; index < 256 && pending[index].module; index++)
    if (pending[index].module->agent.handle == devices[current].handle) finish(pending[index].module);
  return OK;
}

int hipMemcpy(void *into, const void *from, size_t size, int kind) {
  (void)kind;
  const void *host = standin_host_address(from);
  memcpy(into, host ? host : from, size);
  return OK;
}

int hipGetDevicePropertiesR0600(char *properties, int device) {
  memset(properties, 0, PROPERTIES_SIZE);
  hsa_agent_get_info(devices[device], HSA_AGENT_INFO_NAME, properties + PROPERTIES_PROCESSOR);
  strcat(properties + PROPERTIES_PROCESSOR, ":sramecc+:xnack-");
  return OK;
}

static int variable(Module *module, const char *name, void **address, size_t *size) {
  hsa_executable_symbol_t symbol;
  uint32_t bytes = 0;
  uint64_t at = 0;
  if (hsa_executable_get_symbol_by_name(module->executable, name, &module->agent, &symbol)) return NOT_FOUND;
  hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE, &bytes);
  hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS, &at);
  if (address) *address = (void *)at;
  if (size) *size = bytes;
  return OK;
}

static int symbol(const void *host, void **address, size_t *size) {
  Name *name = find(variables, host);
  if (!name || !up()) return INVALID_SYMBOL;
  Module *module = &name->binary->modules[current];
  int error = load(module, name->binary->file, current);
  return error ? error : variable(module, name->name, address, size);
}

int hipGetSymbolAddress(void **address, const void *host) { return symbol(host, address, 0); }
int hipGetSymbolSize(size_t *size, const void *host) { return symbol(host, 0, size); }

int hipModuleLoadData(void **made, const void *file) {
  Module *module = calloc(1, sizeof *module);
  int error = up() ? load(module, file, current) : INVALID_VALUE;
  if (error) free(module); else *made = module;
  return error;
}

int hipModuleLoadDataEx(void **made, const void *file, unsigned count, void **options, void **values) {
  (void)count, (void)options, (void)values;
  return hipModuleLoadData(made, file);
}

int hipModuleLoad(void **made, const char *path) {
  FILE *file = fopen(path, "rb");
  if (!file) return FILE_NOT_FOUND;
  fseek(file, 0, SEEK_END);
  long size = ftell(file);
  rewind(file);
  char *bytes = malloc((size_t)size);
  size_t got = fread(bytes, 1, (size_t)size, file);
  fclose(file);
  return got == (size_t)size ? hipModuleLoadData(made, bytes) : INVALID_VALUE;
}

int hipModuleUnload(void *module) { LOG("hipModuleUnload"); unload(module); free(module); return OK; }
int hipLibraryLoadData(void **made, const void *file, void *a, void *b, unsigned c, void *d, void *e, unsigned f) {
  (void)a, (void)b, (void)c, (void)d, (void)e, (void)f;
  return hipModuleLoadData(made, file);
}
int hipLibraryUnload(void *library) { LOG("hipLibraryUnload"); unload(library); free(library); return OK; }
int hipModuleGetFunction(void **function, void *module, const char *name) { (void)name; *function = module; return OK; }
int hipModuleLaunchKernel(void *function) { launch(function); return OK; }
int hipModuleGetGlobal(void **address, size_t *size, void *module, const char *name) {
  return variable(module, name, address, size);
}
