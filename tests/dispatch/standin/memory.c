// Pools, pointers and virtual memory. A pool's handle is its agent's, with a kind in the last digit.
#include "standin.h"
#include <sys/mman.h>
#include <unistd.h>

enum { FINE = 1, KERNARG, COARSE, GROUP };
enum { PAGE = 4096 };

static int kind_of(hsa_amd_memory_pool_t pool) { return pool.handle & 15; }
static uint64_t owner_of(hsa_amd_memory_pool_t pool) { return pool.handle / 16; }

hsa_status_t hsa_amd_agent_iterate_memory_pools(hsa_agent_t agent, hsa_status_t (*call)(hsa_amd_memory_pool_t, void *),
                                                void *data) {
  static const int host[] = {FINE, KERNARG, COARSE, 0}, device[] = {COARSE, GROUP, 0};
  hsa_status_t status = SUCCESS;
  for (const int *kind = device_of(agent.handle) < 0 ? host : device; *kind && status == SUCCESS; kind++)
    status = call((hsa_amd_memory_pool_t){agent.handle * 16 + *kind}, data);
  return status;
}

static uint32_t flags_of(int kind) {
  switch (kind) {
  case FINE: return HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED;
  case KERNARG: return HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_FINE_GRAINED | HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT;
  case COARSE: return HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED;
  default: return 0;
  }
}

hsa_status_t hsa_amd_memory_pool_get_info(hsa_amd_memory_pool_t pool, hsa_amd_memory_pool_info_t attribute, void *value) {
  bool is_group = kind_of(pool) == GROUP, is_device = device_of(owner_of(pool)) >= 0;
  switch ((int)attribute) {
  case HSA_AMD_MEMORY_POOL_INFO_SEGMENT:
    *(uint32_t *)value = is_group ? HSA_AMD_SEGMENT_GROUP : HSA_AMD_SEGMENT_GLOBAL;
    return SUCCESS;
  case HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS: *(uint32_t *)value = flags_of(kind_of(pool)); return SUCCESS;
  case HSA_AMD_MEMORY_POOL_INFO_SIZE:
  case HSA_AMD_MEMORY_POOL_INFO_ALLOC_MAX_SIZE: *(size_t *)value = is_group ? 65536 : 8ull << 30; return SUCCESS;
  case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED: *(bool *)value = !is_group; return SUCCESS;
  case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_GRANULE:
  case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALIGNMENT: *(size_t *)value = is_group ? 0 : PAGE; return SUCCESS;
  case HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_REC_GRANULE: *(size_t *)value = is_group ? 0 : 2 << 20; return SUCCESS;
  case HSA_AMD_MEMORY_POOL_INFO_ACCESSIBLE_BY_ALL: *(bool *)value = !is_device; return SUCCESS;
  case HSA_AMD_MEMORY_POOL_INFO_LOCATION:
    *(uint32_t *)value = is_device ? HSA_AMD_MEMORY_POOL_LOCATION_GPU : HSA_AMD_MEMORY_POOL_LOCATION_CPU;
    return SUCCESS;
  }
  return INVALID;
}

hsa_status_t hsa_amd_agent_memory_pool_get_info(hsa_agent_t agent, hsa_amd_memory_pool_t pool,
                                                hsa_amd_agent_memory_pool_info_t attribute, void *value) {
  bool is_own = agent.handle == owner_of(pool);
  switch ((int)attribute) {
  case HSA_AMD_AGENT_MEMORY_POOL_INFO_ACCESS:
    *(uint32_t *)value =
        is_own ? HSA_AMD_MEMORY_POOL_ACCESS_ALLOWED_BY_DEFAULT : HSA_AMD_MEMORY_POOL_ACCESS_DISALLOWED_BY_DEFAULT;
    return SUCCESS;
  case HSA_AMD_AGENT_MEMORY_POOL_INFO_NUM_LINK_HOPS: *(uint32_t *)value = !is_own; return SUCCESS;
  case HSA_AMD_AGENT_MEMORY_POOL_INFO_LINK_INFO:
    *(hsa_amd_memory_pool_link_info_t *)value = (hsa_amd_memory_pool_link_info_t){
        .atomic_support_32bit = true, .atomic_support_64bit = true, .link_type = HSA_AMD_LINK_INFO_TYPE_PCIE,
        .numa_distance = 20};
    return SUCCESS;
  }
  return INVALID;
}

typedef struct Block { struct Block *next; char *start; size_t size; hsa_amd_memory_pool_t pool; bool is_locked; } Block;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static Block *blocks;

static void add_block(void *start, size_t size, hsa_amd_memory_pool_t pool, bool is_locked) {
  Block *block = malloc(sizeof *block);
  if (!block) abort();
  pthread_mutex_lock(&mutex);
  *block = (Block){blocks, start, size, pool, is_locked};
  blocks = block;
  pthread_mutex_unlock(&mutex);
}

// Removes the block that begins there; its size, or 0.
static size_t remove_block(void *start) {
  size_t size = 0;
  pthread_mutex_lock(&mutex);
  for (Block **place = &blocks; *place; place = &(*place)->next) {
    Block *block = *place;
    if (block->start != start) continue;
    size = block->size;
    *place = block->next;
    free(block);
    break;
  }
  pthread_mutex_unlock(&mutex);
  return size;
}

hsa_status_t hsa_amd_memory_pool_allocate(hsa_amd_memory_pool_t pool, size_t size, uint32_t flags, void **out) {
  (void)flags;
  size = (size + PAGE - 1) & ~(size_t)(PAGE - 1);
  *out = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (*out == MAP_FAILED) return NO_MEMORY;
  add_block(*out, size, pool, false);
  return SUCCESS;
}
hsa_status_t hsa_amd_memory_pool_free(void *start) {
  if (!start) return SUCCESS; // HIP does this when it ends.
  size_t size = remove_block(start);
  if (!size) return HSA_STATUS_ERROR_INVALID_ALLOCATION;
  munmap(start, size);
  return SUCCESS;
}
hsa_status_t hsa_amd_agents_allow_access(uint32_t count, const hsa_agent_t *agents, const uint32_t *flags, const void *start) {
  return (void)count, (void)agents, (void)flags, (void)start, SUCCESS;
}
hsa_status_t hsa_amd_memory_lock_to_pool(void *host, size_t size, hsa_agent_t *agents, int count,
                                         hsa_amd_memory_pool_t pool, uint32_t flags, void **device) {
  (void)agents, (void)count, (void)flags;
  add_block(host, size, pool, true);
  *device = host;
  return SUCCESS;
}
hsa_status_t hsa_amd_memory_unlock(void *host) { return remove_block(host), SUCCESS; }

hsa_status_t hsa_amd_pointer_info(const void *pointer, hsa_amd_pointer_info_t *info, void *(*allocate)(size_t),
                                  uint32_t *count, hsa_agent_t **agents) {
  (void)allocate, (void)count, (void)agents;
  uint32_t size = info->size; // of the caller's version of the structure
  memset(info, 0, size);
  info->size = size;
  info->type = HSA_EXT_POINTER_TYPE_UNKNOWN;
  pthread_mutex_lock(&mutex);
  for (Block *block = blocks; block; block = block->next) {
    if ((char *)pointer < block->start || (char *)pointer >= block->start + block->size) continue;
    info->type = block->is_locked ? HSA_EXT_POINTER_TYPE_LOCKED : HSA_EXT_POINTER_TYPE_HSA;
    info->agentBaseAddress = info->hostBaseAddress = block->start;
    info->sizeInBytes = block->size;
    info->agentOwner.handle = owner_of(block->pool);
    info->global_flags = flags_of(kind_of(block->pool));
    break;
  }
  pthread_mutex_unlock(&mutex);
  return SUCCESS;
}
hsa_status_t hsa_memory_register(void *start, size_t size) { return (void)start, (void)size, SUCCESS; }
hsa_status_t hsa_memory_deregister(void *start, size_t size) { return (void)start, (void)size, SUCCESS; }
hsa_status_t hsa_memory_copy(void *to, const void *from, size_t size) { return memmove(to, from, size), SUCCESS; }

// Virtual memory: a handle is a file in memory.
typedef struct { int file; hsa_amd_memory_pool_t pool; } Physical;

hsa_status_t hsa_amd_vmem_address_reserve_align(void **out, size_t size, uint64_t address, uint64_t alignment, uint64_t flags) {
  (void)address, (void)flags;
  if (alignment < PAGE) alignment = PAGE;
  int mode = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  char *start = mmap(NULL, size + alignment, PROT_NONE, mode, -1, 0);
  if (start == MAP_FAILED) return NO_MEMORY;
  *out = (void *)(((uint64_t)start + alignment - 1) & ~(alignment - 1));
  return SUCCESS;
}
hsa_status_t hsa_amd_vmem_address_reserve(void **out, size_t size, uint64_t address, uint64_t flags) {
  return hsa_amd_vmem_address_reserve_align(out, size, address, 2 << 20, flags);
}
hsa_status_t hsa_amd_vmem_address_free(void *start, size_t size) { return munmap(start, size), SUCCESS; }
hsa_status_t hsa_amd_vmem_handle_create(hsa_amd_memory_pool_t pool, size_t size, hsa_amd_memory_type_t type,
                                        uint64_t flags, hsa_amd_vmem_alloc_handle_t *out) {
  (void)type, (void)flags;
  Physical *memory = malloc(sizeof *memory);
  if (!memory) return NO_MEMORY;
  *memory = (Physical){memfd_create("hsa", 0), pool};
  if (memory->file < 0 || ftruncate(memory->file, size)) return NO_MEMORY;
  out->handle = (uint64_t)memory;
  return SUCCESS;
}
hsa_status_t hsa_amd_vmem_handle_release(hsa_amd_vmem_alloc_handle_t handle) {
  Physical *memory = (Physical *)handle.handle;
  close(memory->file);
  free(memory);
  return SUCCESS;
}
hsa_status_t hsa_amd_vmem_map(void *start, size_t size, size_t offset, hsa_amd_vmem_alloc_handle_t handle, uint64_t flags) {
  (void)flags;
  Physical *memory = (Physical *)handle.handle;
  void *mapped = mmap(start, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, memory->file, offset);
  if (mapped == MAP_FAILED) return NO_MEMORY;
  add_block(start, size, memory->pool, false);
  return SUCCESS;
}
hsa_status_t hsa_amd_vmem_unmap(void *start, size_t size) {
  remove_block(start);
  int mode = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  return mmap(start, size, PROT_NONE, mode, -1, 0) == MAP_FAILED ? NO_MEMORY : SUCCESS;
}
hsa_status_t hsa_amd_vmem_set_access(void *start, size_t size, const hsa_amd_memory_access_desc_t *access, size_t count) {
  return (void)start, (void)size, (void)access, (void)count, SUCCESS;
}
hsa_status_t hsa_amd_vmem_get_access(void *start, hsa_access_permission_t *permission, hsa_agent_t agent) {
  (void)start, (void)agent;
  *permission = HSA_ACCESS_PERMISSION_RW;
  return SUCCESS;
}
