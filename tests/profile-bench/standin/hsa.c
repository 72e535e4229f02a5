// Stand-in for libhsa-runtime64.so.1: loads real code objects and executes nothing.
//
// The "memory of a GPU" is mapped twice: without any right where the program sees it, so that only the interface
// can copy from it, and readable and writable for the stand-in. Agent 1 is a processor of the host.
//
// STANDIN_AGENTS     number of GPUs (1)
// STANDIN_PROCESSOR  their names, separated by commas, the last one for the rest (gfx90a)
// STANDIN_LOG        1: every call on standard error
// STANDIN_FAIL       NAME[#N]=STATUS,...  the Nth call (or each call) of the function fails
// STANDIN_FAIL_AFTER launches before that, from which calls are counted (1)
// STANDIN_PATCH      SYMBOL+OFFSET[/BYTES](=|+=)VALUE,...  changes memory when an object is loaded; also `*`
// STANDIN_STORAGE    gone: the file's memory is unmapped after loading; none: the loader knows no file;
//                    stripped: it has no section headers; short: the loader knows only its first half
#define _GNU_SOURCE
#include "standin.h"
#include <elf.h>
#include <hsa/hsa_ven_amd_loader.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define FIRST_GPU 0x1000
#define R_AMDGPU_RELATIVE64 13
#define LOG(...) (logs ? (void)(fprintf(stderr, "[hsa] " __VA_ARGS__), fputc('\n', stderr)) : (void)0)
#define ENTER(name) do { LOG("%s", name); hsa_status_t failed = injected(name); if (failed) return failed; } while (0)
#define NEED_UP() do { if (!references) return HSA_STATUS_ERROR_NOT_INITIALIZED; } while (0)

typedef struct Object {
  struct Object *next;
  hsa_agent_t agent;
  char *device, *host;
  size_t size;
  const char *file;
  size_t file_size;
  int is_prepared; // STANDIN_STORAGE was applied
  const Elf64_Sym *symbols;
  size_t symbol_count;
  const char *names;
} Object;

typedef struct Executable {
  struct Executable *next;
  Object *objects;
} Executable;

typedef struct { const char *start; size_t size; } Reader;
typedef struct { Object *object; const Elf64_Sym *symbol; } Symbol;

static int references, agents = 1, logs, launches, failing_after = 1;
static Executable *executables, *nearby;

__attribute__((constructor)) static void begin(void) {
  const char *text = getenv("STANDIN_AGENTS");
  if (text) agents = atoi(text);
  logs = getenv("STANDIN_LOG") != 0;
  if ((text = getenv("STANDIN_FAIL_AFTER"))) failing_after = atoi(text);
}

// The Nth item of a variable with the form KEY[#N]=VALUE,...
static hsa_status_t injected(const char *name) {
  static struct { const char *name; unsigned long calls; } counts[64];
  const char *rules = getenv("STANDIN_FAIL");
  if (!rules || launches < failing_after) return HSA_STATUS_SUCCESS;
  int slot = 0;
  while (counts[slot].name && strcmp(counts[slot].name, name)) slot++;
  counts[slot].name = name;
  unsigned long call = ++counts[slot].calls;
  size_t length = strlen(name);
  for (const char *rule = rules; rule && *rule; rule = strchr(rule, ',') ? strchr(rule, ',') + 1 : 0) {
    if (strncmp(rule, name, length)) continue;
    char *end = (char *)rule + length;
    unsigned long wanted = *end == '#' ? strtoul(end + 1, &end, 0) : call;
    if (*end == '=' && wanted == call) return (hsa_status_t)strtoul(end + 1, 0, 0);
  }
  return HSA_STATUS_SUCCESS;
}

static void processor(int gpu, char *into) {
  const char *list = getenv("STANDIN_PROCESSOR");
  if (!list) list = "gfx90a";
  while (gpu-- && strchr(list, ',')) list = strchr(list, ',') + 1;
  memset(into, 0, 64);
  memcpy(into, list, strcspn(list, ",") < 63 ? strcspn(list, ",") : 63);
}

static void unload(Object *object) {
  munmap(object->device, object->size);
  munmap(object->host, object->size);
  free(object);
}

static void destroy(Executable *executable) {
  nearby = 0;
  for (Executable **place = &executables; *place; place = &(*place)->next)
    if (*place == executable) { *place = executable->next; break; }
  for (Object *object = executable->objects, *next; object; object = next) { next = object->next; unload(object); }
  free(executable);
}

hsa_status_t hsa_init(void) {
  ENTER("hsa_init");
  references++;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_shut_down(void) {
  ENTER("hsa_shut_down");
  NEED_UP();
  if (!--references) while (executables) destroy(executables);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_system_get_info(hsa_system_info_t what, void *value) {
  ENTER("hsa_system_get_info");
  NEED_UP();
  if (what != HSA_SYSTEM_INFO_VERSION_MAJOR) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  *(uint16_t *)value = 1;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_iterate_agents(hsa_status_t (*call)(hsa_agent_t, void *), void *data) {
  ENTER("hsa_iterate_agents");
  NEED_UP();
  for (int index = -1; index < agents; index++) {
    hsa_agent_t agent = {index < 0 ? 1 : FIRST_GPU + (uint64_t)index};
    hsa_status_t status = call(agent, data);
    if (status) return status;
  }
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_agent_get_info(hsa_agent_t agent, hsa_agent_info_t what, void *value) {
  ENTER("hsa_agent_get_info");
  NEED_UP();
  int gpu = agent.handle >= FIRST_GPU ? (int)(agent.handle - FIRST_GPU) : -1;
  switch ((int)what) {
  case HSA_AGENT_INFO_NAME: if (gpu < 0) strcpy(value, "host"); else processor(gpu, value); return HSA_STATUS_SUCCESS;
  case HSA_AGENT_INFO_NODE: *(uint32_t *)value = (uint32_t)(gpu + 1); return HSA_STATUS_SUCCESS;
  case HSA_AGENT_INFO_DEVICE:
    *(uint32_t *)value = gpu < 0 ? HSA_DEVICE_TYPE_CPU : HSA_DEVICE_TYPE_GPU;
    return HSA_STATUS_SUCCESS;
  default: return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}

hsa_status_t hsa_code_object_reader_create_from_memory(const void *file, size_t size, hsa_code_object_reader_t *made) {
  ENTER("hsa_code_object_reader_create_from_memory");
  NEED_UP();
  Reader *reader = malloc(sizeof *reader);
  *reader = (Reader){file, size};
  made->handle = (uint64_t)reader;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_code_object_reader_destroy(hsa_code_object_reader_t reader) {
  free((void *)reader.handle);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_executable_create_alt(hsa_profile_t profile, hsa_default_float_rounding_mode_t mode, const char *options,
                                       hsa_executable_t *made) {
  (void)profile, (void)mode, (void)options;
  ENTER("hsa_executable_create_alt");
  NEED_UP();
  Executable *executable = calloc(1, sizeof *executable);
  executable->next = executables;
  executables = executable;
  made->handle = (uint64_t)executable;
  return HSA_STATUS_SUCCESS;
}

static void apply_patches(Object *object) {
  for (const char *rule = getenv("STANDIN_PATCH"); rule && *rule; rule = strchr(rule, ',') ? strchr(rule, ',') + 1 : 0) {
    size_t length = strcspn(rule, "+");
    for (size_t index = 0; index < object->symbol_count; index++) {
      const Elf64_Sym *symbol = &object->symbols[index];
      const char *name = object->names + symbol->st_name;
      if (strlen(name) != length || strncmp(name, rule, length) || !symbol->st_shndx) continue;
      char *end;
      unsigned long offset = strtoul(rule + length + 1, &end, 0), bytes = 8;
      if (*end == '/') bytes = strtoul(end + 1, &end, 0);
      int adds = *end == '+';
      uint64_t value = strtoull(end + 1 + adds, 0, 0), old = 0;
      char *place = object->host + symbol->st_value + offset;
      memcpy(&old, place, bytes);
      value += adds ? old : 0;
      memcpy(place, &value, bytes);
    }
  }
}

static void relocate(Object *object, const Elf64_Shdr *sections, int count) {
  for (int index = 0; index < count; index++) {
    const Elf64_Shdr *section = &sections[index];
    if (section->sh_type == SHT_SYMTAB || (section->sh_type == SHT_DYNSYM && !object->symbols)) {
      object->symbols = (const void *)(object->file + section->sh_offset);
      object->symbol_count = section->sh_size / sizeof(Elf64_Sym);
      object->names = object->file + sections[section->sh_link].sh_offset;
    }
    if (section->sh_type != SHT_RELA) continue;
    const Elf64_Rela *relocation = (const void *)(object->file + section->sh_offset);
    for (size_t at = 0; at < section->sh_size / sizeof *relocation; at++, relocation++)
      if (ELF64_R_TYPE(relocation->r_info) == R_AMDGPU_RELATIVE64)
        *(uint64_t *)(object->host + relocation->r_offset) = (uint64_t)object->device + (uint64_t)relocation->r_addend;
  }
}

// A copy of the file that the loader may lose.
static const char *storage(const Reader *reader, const char *kind) {
  size_t size = (reader->size + 4095) & ~4095ul;
  char *copy = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(copy, reader->start, reader->size);
  if (!strcmp(kind, "gone")) munmap(copy, size);
  if (!strcmp(kind, "stripped")) memset(copy + 0x28, 0, 8), memset(copy + 0x3c, 0, 4);
  return copy;
}

hsa_status_t hsa_executable_load_agent_code_object(hsa_executable_t executable, hsa_agent_t agent,
                                                   hsa_code_object_reader_t from, const char *options,
                                                   hsa_loaded_code_object_t *made) {
  (void)options;
  ENTER("hsa_executable_load_agent_code_object");
  NEED_UP();
  const Reader *reader = (void *)from.handle;
  const Elf64_Ehdr *header = (const void *)reader->start;
  if (memcmp(header->e_ident, ELFMAG, SELFMAG)) return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
  const Elf64_Phdr *segment = (const void *)(reader->start + header->e_phoff);
  size_t end = 0;
  for (int index = 0; index < header->e_phnum; index++)
    if (segment[index].p_type == PT_LOAD && segment[index].p_vaddr + segment[index].p_memsz > end)
      end = segment[index].p_vaddr + segment[index].p_memsz;
  Object *object = calloc(1, sizeof *object);
  object->size = (end + 4095) & ~4095ul;
  object->agent = agent;
  object->file = reader->start;
  object->file_size = reader->size;
  object->host = mmap(0, object->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  object->device = mremap(object->host, 0, object->size, MREMAP_MAYMOVE); // the same pages again
  if (object->device == MAP_FAILED || mprotect(object->device, object->size, PROT_NONE)) abort();
  for (int index = 0; index < header->e_phnum; index++)
    if (segment[index].p_type == PT_LOAD)
      memcpy(object->host + segment[index].p_vaddr, reader->start + segment[index].p_offset, segment[index].p_filesz);
  relocate(object, (const void *)(reader->start + header->e_shoff), header->e_shnum);
  apply_patches(object);
  Executable *owner = (void *)executable.handle;
  object->next = owner->objects;
  owner->objects = object;
  if (made) made->handle = (uint64_t)object;
  LOG("loaded %zu bytes at %p on %#lx", object->size, (void *)object->device, agent.handle);
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_executable_freeze(hsa_executable_t executable, const char *options) {
  (void)executable, (void)options;
  ENTER("hsa_executable_freeze");
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_executable_destroy(hsa_executable_t executable) {
  ENTER("hsa_executable_destroy");
  NEED_UP();
  destroy((void *)executable.handle);
  return HSA_STATUS_SUCCESS;
}

static int is_variable(const Elf64_Sym *symbol) {
  return ELF64_ST_BIND(symbol->st_info) != STB_LOCAL && symbol->st_shndx && ELF64_ST_TYPE(symbol->st_info) == STT_OBJECT;
}

static hsa_executable_symbol_t handle(Object *object, const Elf64_Sym *symbol) {
  Symbol *made = malloc(sizeof *made); // as long as the process, like the runtime's
  *made = (Symbol){object, symbol};
  return (hsa_executable_symbol_t){(uint64_t)made};
}

hsa_status_t hsa_executable_iterate_agent_symbols(hsa_executable_t executable, hsa_agent_t agent,
    hsa_status_t (*call)(hsa_executable_t, hsa_agent_t, hsa_executable_symbol_t, void *), void *data) {
  ENTER("hsa_executable_iterate_agent_symbols");
  NEED_UP();
  for (Object *object = ((Executable *)executable.handle)->objects; object; object = object->next)
    for (size_t index = 0; index < object->symbol_count && object->agent.handle == agent.handle; index++)
      if (is_variable(&object->symbols[index])) {
        hsa_status_t status = call(executable, agent, handle(object, &object->symbols[index]), data);
        if (status) return status;
      }
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_executable_get_symbol_by_name(hsa_executable_t executable, const char *name, const hsa_agent_t *agent,
                                               hsa_executable_symbol_t *made) {
  ENTER("hsa_executable_get_symbol_by_name");
  NEED_UP();
  for (Object *object = ((Executable *)executable.handle)->objects; object; object = object->next)
    for (size_t index = 0; index < object->symbol_count && object->agent.handle == agent->handle; index++) {
      const Elf64_Sym *symbol = &object->symbols[index];
      if (!is_variable(symbol) || strcmp(object->names + symbol->st_name, name)) continue;
      *made = handle(object, symbol);
      return HSA_STATUS_SUCCESS;
    }
  return HSA_STATUS_ERROR_INVALID_SYMBOL_NAME;
}

hsa_status_t hsa_executable_symbol_get_info(hsa_executable_symbol_t of, hsa_executable_symbol_info_t what, void *value) {
  ENTER("hsa_executable_symbol_get_info");
  NEED_UP();
  const Symbol *own = (void *)of.handle;
  const char *name = own->object->names + own->symbol->st_name;
  switch ((int)what) {
  case HSA_EXECUTABLE_SYMBOL_INFO_TYPE: *(uint32_t *)value = HSA_SYMBOL_KIND_VARIABLE; return HSA_STATUS_SUCCESS;
  case HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH: *(uint32_t *)value = (uint32_t)strlen(name); return HSA_STATUS_SUCCESS;
  case HSA_EXECUTABLE_SYMBOL_INFO_NAME: memcpy(value, name, strlen(name)); return HSA_STATUS_SUCCESS;
  case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE:
    *(uint32_t *)value = (uint32_t)own->symbol->st_size;
    return HSA_STATUS_SUCCESS;
  case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS:
    *(uint64_t *)value = (uint64_t)own->object->device + own->symbol->st_value;
    return HSA_STATUS_SUCCESS;
  default: return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  }
}

// Begins where the last one was found: programs read objects in the order of the list, and the runtime's own search is
// not what the bench measures.
static Object *object_at(const void *address) {
  for (int pass = 0; pass < 2; pass++)
    for (Executable *executable = pass ? executables : nearby; executable; executable = executable->next)
      for (Object *object = executable->objects; object; object = object->next)
        if ((char *)address >= object->device && (char *)address < object->device + object->size) {
          nearby = executable;
          return object;
        }
  return 0;
}

hsa_status_t hsa_memory_copy(void *into, const void *from, size_t size) {
  ENTER("hsa_memory_copy");
  NEED_UP();
  Object *object = object_at(from);
  if (!object) { memcpy(into, from, size); return HSA_STATUS_SUCCESS; }
  size_t offset = (size_t)((char *)from - object->device);
  if (size > object->size - offset) return HSA_STATUS_ERROR_INVALID_ARGUMENT;
  memcpy(into, object->host + offset, size);
  return HSA_STATUS_SUCCESS;
}

static hsa_status_t query_segment_descriptors(hsa_ven_amd_loader_segment_descriptor_t *into, size_t *count) {
  ENTER("query_segment_descriptors");
  NEED_UP();
  const char *kind = getenv("STANDIN_STORAGE") ? getenv("STANDIN_STORAGE") : "";
  size_t there = 0;
  for (Executable *executable = executables; executable; executable = executable->next)
    for (Object *object = executable->objects; object; object = object->next, there++) {
      if (!into || there >= *count) continue;
      if (*kind && !object->is_prepared) {
        Reader reader = {object->file, object->file_size};
        object->file = storage(&reader, kind);
        object->is_prepared = 1;
      }
      memset(&into[there], 0, sizeof *into);
      into[there].agent = object->agent;
      into[there].executable.handle = (uint64_t)executable;
      into[there].segment_base = object->device;
      into[there].segment_size = object->size;
      if (!strcmp(kind, "none")) continue;
      into[there].code_object_storage_type = HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_MEMORY;
      into[there].code_object_storage_base = object->file;
      into[there].code_object_storage_size = object->file_size / (strcmp(kind, "short") ? 1 : 2);
    }
  if (into && there != *count) return HSA_STATUS_ERROR_INCOMPATIBLE_ARGUMENTS;
  *count = there;
  return HSA_STATUS_SUCCESS;
}

hsa_status_t hsa_system_get_major_extension_table(uint16_t extension, uint16_t version, size_t size, void *table) {
  ENTER("hsa_system_get_major_extension_table");
  NEED_UP();
  if (extension != HSA_EXTENSION_AMD_LOADER || version != 1) return HSA_STATUS_ERROR;
  hsa_ven_amd_loader_1_03_pfn_t functions = {0};
  functions.hsa_ven_amd_loader_query_segment_descriptors = query_segment_descriptors;
  memcpy(table, &functions, size < sizeof functions ? size : sizeof functions);
  return HSA_STATUS_SUCCESS;
}

void *standin_host_address(const void *device) {
  Object *object = object_at(device);
  return object ? object->host + ((char *)device - object->device) : 0;
}

static void grow(Object *object, const Elf64_Sym *symbol, uint64_t first, uint64_t step) {
  uint64_t *counter = (void *)(object->host + symbol->st_value);
  for (size_t index = 0; index < symbol->st_size / 8; index++) counter[index] += first + step * index;
}

void standin_launch(hsa_executable_t executable, hsa_agent_t agent) {
  launches++;
  for (Object *object = ((Executable *)executable.handle)->objects; object; object = object->next)
    for (size_t index = 0; index < object->symbol_count && object->agent.handle == agent.handle; index++) {
      const Elf64_Sym *symbol = &object->symbols[index];
      const char *name = object->names + symbol->st_name;
      if (!strncmp(name, "__profc_", 8)) grow(object, symbol, 100, 1);
      if (!strncmp(name, "__llvm_prf_unifcnt_", 19)) grow(object, symbol, 100, 0);
      // Version 11: device code notes the size of its waves.
      if (!strncmp(name, "__profd_", 8) && symbol->st_size == 72) *(uint16_t *)(object->host + symbol->st_value + 66) = 64;
    }
}
