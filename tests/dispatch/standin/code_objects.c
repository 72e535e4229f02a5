// The loader. A code object's segments are copied to memory and relocated; its symbols are those of its dynamic table.
#include "standin.h"
#include <sys/mman.h>

typedef struct { const char *start; size_t size; } Reader;
typedef struct Object {
  struct Object *next;
  int device;
  char *base;
  size_t size;
  char *copy; // of its file: HIP may free that
  size_t copy_size;
  const char *file; // HIP's
  const Elf64_Sym *symbols;
  size_t symbol_count;
  const char *names;
  uint64_t hash;
} Object;
typedef struct Executable { struct Executable *next; Object *objects; } Executable;
typedef struct { const Object *object; const Elf64_Sym *symbol; } Symbol;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static Executable *executables;

hsa_status_t hsa_code_object_reader_create_from_memory(const void *start, size_t size, hsa_code_object_reader_t *out) {
  Reader *reader = malloc(sizeof *reader);
  if (!reader) return NO_MEMORY;
  *reader = (Reader){start, size};
  out->handle = (uint64_t)reader;
  return SUCCESS;
}
hsa_status_t hsa_code_object_reader_destroy(hsa_code_object_reader_t reader) { return free((void *)reader.handle), SUCCESS; }

hsa_status_t hsa_executable_create_alt(hsa_profile_t profile, hsa_default_float_rounding_mode_t mode, const char *options,
                                       hsa_executable_t *out) {
  (void)profile, (void)mode, (void)options;
  Executable *executable = calloc(1, sizeof *executable);
  if (!executable) return NO_MEMORY;
  pthread_mutex_lock(&mutex);
  executable->next = executables;
  executables = executable;
  pthread_mutex_unlock(&mutex);
  out->handle = (uint64_t)executable;
  return SUCCESS;
}
hsa_status_t hsa_executable_freeze(hsa_executable_t executable, const char *options) {
  return (void)executable, (void)options, SUCCESS;
}
hsa_status_t hsa_executable_destroy(hsa_executable_t handle) {
  Executable *executable = (Executable *)handle.handle;
  pthread_mutex_lock(&mutex);
  Executable **place = &executables;
  while (*place && *place != executable) place = &(*place)->next;
  if (*place) *place = executable->next;
  pthread_mutex_unlock(&mutex);
  for (Object *object = executable->objects, *next; object; object = next) {
    next = object->next;
    munmap(object->base, object->size);
    free(object->copy);
    free(object);
  }
  free(executable);
  return SUCCESS;
}

static bool is_within(const Object *object, uint64_t offset, uint64_t size) {
  return offset <= object->copy_size && size <= object->copy_size - offset;
}

static bool load_segments(Object *object) {
  const Elf64_Ehdr *header = (Elf64_Ehdr *)object->copy;
  const Elf64_Phdr *segments = (Elf64_Phdr *)(object->copy + header->e_phoff);
  if (!is_within(object, header->e_phoff, header->e_phnum * sizeof *segments)) return false;
  for (int i = 0; i < header->e_phnum; i++)
    if (segments[i].p_type == PT_LOAD && segments[i].p_vaddr + segments[i].p_memsz > object->size)
      object->size = segments[i].p_vaddr + segments[i].p_memsz;
  object->base = mmap(NULL, object->size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (object->base == MAP_FAILED) return false;
  for (int i = 0; i < header->e_phnum; i++) {
    if (segments[i].p_type != PT_LOAD) continue;
    if (!is_within(object, segments[i].p_offset, segments[i].p_filesz)) return false;
    memcpy(object->base + segments[i].p_vaddr, object->copy + segments[i].p_offset, segments[i].p_filesz);
  }
  return true;
}

// R_AMDGPU_ABS64 and R_AMDGPU_RELATIVE64 are the ones of linked code objects.
static bool relocate(Object *object, const Elf64_Shdr *section) {
  const Elf64_Rela *rows = (Elf64_Rela *)(object->copy + section->sh_offset);
  for (size_t i = 0; i < section->sh_size / sizeof *rows; i++) {
    uint64_t *place = (uint64_t *)(object->base + rows[i].r_offset);
    uint32_t type = ELF64_R_TYPE(rows[i].r_info), symbol = ELF64_R_SYM(rows[i].r_info);
    if (rows[i].r_offset + 8 > object->size || symbol >= object->symbol_count) return false;
    if (type == 13) *place = (uint64_t)object->base + rows[i].r_addend;
    else if (type == 3) *place = (uint64_t)object->base + object->symbols[symbol].st_value + rows[i].r_addend;
    else return false;
  }
  return true;
}

static bool read_sections(Object *object) {
  const Elf64_Ehdr *header = (Elf64_Ehdr *)object->copy;
  const Elf64_Shdr *sections = (Elf64_Shdr *)(object->copy + header->e_shoff);
  if (!is_within(object, header->e_shoff, header->e_shnum * sizeof *sections)) return false;
  for (int i = 0; i < header->e_shnum; i++) {
    if (sections[i].sh_type != SHT_DYNSYM) continue;
    object->symbols = (Elf64_Sym *)(object->copy + sections[i].sh_offset);
    object->symbol_count = sections[i].sh_size / sizeof *object->symbols;
    object->names = object->copy + sections[sections[i].sh_link].sh_offset;
  }
  for (int i = 0; i < header->e_shnum; i++)
    if (sections[i].sh_type == SHT_RELA && (sections[i].sh_flags & SHF_ALLOC) && !relocate(object, &sections[i])) return false;
  return object->symbols != NULL;
}

static uint64_t hash_of(const char *bytes, size_t size) {
  uint64_t hash = 0xcbf29ce484222325;
  for (size_t i = 0; i < size; i++) hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3;
  return hash;
}

hsa_status_t hsa_executable_load_agent_code_object(hsa_executable_t handle, hsa_agent_t agent, hsa_code_object_reader_t from,
                                                   const char *options, hsa_loaded_code_object_t *out) {
  (void)options;
  Reader *reader = (Reader *)from.handle;
  Executable *executable = (Executable *)handle.handle;
  Object *object = calloc(1, sizeof *object);
  if (!object || !(object->copy = malloc(reader->size))) return NO_MEMORY;
  memcpy(object->copy, reader->start, reader->size);
  object->copy_size = reader->size;
  object->file = reader->start;
  object->device = device_of(agent.handle);
  bool is_elf = reader->size > sizeof(Elf64_Ehdr) && !memcmp(object->copy, ELFMAG, SELFMAG);
  if (!is_elf || !load_segments(object) || !read_sections(object)) return HSA_STATUS_ERROR_INVALID_CODE_OBJECT;
  object->hash = hash_of(object->copy, object->copy_size);
  pthread_mutex_lock(&mutex);
  object->next = executable->objects;
  executable->objects = object;
  pthread_mutex_unlock(&mutex);
  if (out) out->handle = (uint64_t)object;
  return SUCCESS;
}

static const char *name_of(const Object *object, const Elf64_Sym *symbol) { return object->names + symbol->st_name; }

hsa_status_t hsa_executable_get_symbol_by_name(hsa_executable_t handle, const char *name, const hsa_agent_t *agent,
                                               hsa_executable_symbol_t *out) {
  (void)agent;
  for (Object *object = ((Executable *)handle.handle)->objects; object; object = object->next)
    for (size_t i = 1; i < object->symbol_count; i++) {
      if (object->symbols[i].st_shndx == SHN_UNDEF || strcmp(name_of(object, &object->symbols[i]), name)) continue;
      Symbol *symbol = malloc(sizeof *symbol); // HSA's symbols live as long as their executable; these are never freed.
      if (!symbol) return NO_MEMORY;
      *symbol = (Symbol){object, &object->symbols[i]};
      out->handle = (uint64_t)symbol;
      return SUCCESS;
    }
  return HSA_STATUS_ERROR_INVALID_SYMBOL_NAME;
}

hsa_status_t hsa_executable_symbol_get_info(hsa_executable_symbol_t handle, hsa_executable_symbol_info_t attribute, void *value) {
  const Symbol *symbol = (Symbol *)handle.handle;
  const char *name = name_of(symbol->object, symbol->symbol);
  const char *start = symbol->object->base + symbol->symbol->st_value;
  const uint32_t *descriptor = (const uint32_t *)start; // of a kernel
  size_t length = strlen(name);
  bool is_kernel = length > 3 && !strcmp(name + length - 3, ".kd");
  switch ((int)attribute) {
  case HSA_EXECUTABLE_SYMBOL_INFO_TYPE:
    *(uint32_t *)value = is_kernel ? HSA_SYMBOL_KIND_KERNEL : HSA_SYMBOL_KIND_VARIABLE;
    return SUCCESS;
  case HSA_EXECUTABLE_SYMBOL_INFO_NAME_LENGTH: *(uint32_t *)value = length; return SUCCESS;
  case HSA_EXECUTABLE_SYMBOL_INFO_NAME: memcpy(value, name, length); return SUCCESS;
  case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT:
  case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_ADDRESS: *(uint64_t *)value = (uint64_t)start; return SUCCESS;
  case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_SIZE: *(uint32_t *)value = symbol->symbol->st_size; return SUCCESS;
  case HSA_EXECUTABLE_SYMBOL_INFO_VARIABLE_IS_CONST: *(bool *)value = false; return SUCCESS;
  case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE: *(uint32_t *)value = descriptor[0]; return SUCCESS;
  case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE: *(uint32_t *)value = descriptor[1]; return SUCCESS;
  case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_SIZE: *(uint32_t *)value = descriptor[2]; return SUCCESS;
  case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_KERNARG_SEGMENT_ALIGNMENT: *(uint32_t *)value = 16; return SUCCESS;
  case HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_DYNAMIC_CALLSTACK: *(bool *)value = descriptor[14] >> 11 & 1; return SUCCESS;
  }
  return INVALID;
}

// Whether the code that a kernel descriptor refers to ends at once. The symbol's size does not tell: Tensile's kernels have
// symbols of size 0. s_endpgm is 0xbf810000 up to gfx10 and 0xbfb00000 from gfx11 on; the hint in its lower half is free.
static bool is_empty(const Object *object, uint64_t descriptor) {
  int64_t offset;
  memcpy(&offset, object->base + descriptor + 16, sizeof offset);
  uint64_t entry = descriptor + offset;
  uint32_t instruction;
  if (entry > object->size || object->size - entry < sizeof instruction) return false;
  memcpy(&instruction, object->base + entry, sizeof instruction);
  return instruction >> 16 == 0xbf81 || instruction >> 16 == 0xbfb0;
}

static bool kernel_in(const Object *object, uint64_t kernel_object, Kernel *kernel) {
  uint64_t descriptor = kernel_object - (uint64_t)object->base;
  if (kernel_object < (uint64_t)object->base || descriptor >= object->size) return false;
  for (size_t i = 1; i < object->symbol_count; i++) {
    const char *name = name_of(object, &object->symbols[i]);
    size_t length = strlen(name);
    if (object->symbols[i].st_value != descriptor || length < 3 || strcmp(name + length - 3, ".kd")) continue;
    uint32_t flags = ((Elf64_Ehdr *)object->copy)->e_flags;
    *kernel = (Kernel){object->device, flags, object->hash, name, length - 3, is_empty(object, descriptor)};
    return true;
  }
  return false;
}

bool find_kernel(uint64_t kernel_object, Kernel *kernel) {
  bool is_found = false;
  pthread_mutex_lock(&mutex);
  for (Executable *executable = executables; executable && !is_found; executable = executable->next)
    for (Object *object = executable->objects; object && !is_found; object = object->next)
      is_found = kernel_in(object, kernel_object, kernel);
  pthread_mutex_unlock(&mutex);
  return is_found;
}

static hsa_status_t query_segment_descriptors(hsa_ven_amd_loader_segment_descriptor_t *to, size_t *count) {
  size_t found = 0;
  pthread_mutex_lock(&mutex);
  for (Executable *executable = executables; executable; executable = executable->next)
    for (Object *object = executable->objects; object; object = object->next, found++)
      if (to && found < *count)
        to[found] = (hsa_ven_amd_loader_segment_descriptor_t){
            {FIRST_DEVICE + object->device}, {(uint64_t)executable}, HSA_VEN_AMD_LOADER_CODE_OBJECT_STORAGE_TYPE_MEMORY,
            object->file, object->copy_size, 0, object->base, object->size};
  pthread_mutex_unlock(&mutex);
  *count = found;
  return SUCCESS;
}

hsa_status_t hsa_system_get_major_extension_table(uint16_t extension, uint16_t version, size_t size, void *table) {
  (void)version;
  memset(table, 0, size);
  if (extension != HSA_EXTENSION_AMD_LOADER) return INVALID;
  if (size >= 2 * sizeof(void *)) ((void **)table)[1] = (void *)query_segment_descriptors;
  return SUCCESS;
}
