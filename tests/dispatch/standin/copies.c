// Asynchronous copies: one thread makes them in their order.
#include "standin.h"

typedef struct Copy {
  struct Copy *next;
  hsa_pitched_ptr_t to, from;
  hsa_dim3_t size; // x in bytes
  size_t length;   // without rows, in bytes
  hsa_signal_t done;
  uint32_t count;
  hsa_signal_t dependencies[];
} Copy;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t added = PTHREAD_COND_INITIALIZER;
static Copy *first, **last = &first;

static void make(const Copy *copy) {
  if (copy->length) memmove(copy->to.base, copy->from.base, copy->length);
  for (uint32_t z = 0; z < copy->size.z; z++)
    for (uint32_t y = 0; y < copy->size.y; y++)
      memmove((char *)copy->to.base + z * copy->to.slice + y * copy->to.pitch,
              (char *)copy->from.base + z * copy->from.slice + y * copy->from.pitch, copy->size.x);
}

static void *make_copies(void *unused) {
  for (;;) {
    pthread_mutex_lock(&mutex);
    while (!first) pthread_cond_wait(&added, &mutex);
    Copy *copy = first;
    if (!(first = copy->next)) last = &first;
    pthread_mutex_unlock(&mutex);
    for (uint32_t i = 0; i < copy->count; i++)
      while (value_of(copy->dependencies[i])) wait_a_moment();
    uint64_t start = ticks();
    make(copy);
    complete(copy->done, start);
    free(copy);
  }
  return unused;
}

// Adds a copy of no bytes, whose fields the caller has set.
static hsa_status_t add(Copy fields, const hsa_signal_t *dependencies) {
  static bool is_started;
  Copy *copy = malloc(sizeof *copy + fields.count * sizeof *dependencies);
  if (!copy) return NO_MEMORY;
  *copy = fields;
  if (fields.count) memcpy(copy->dependencies, dependencies, fields.count * sizeof *dependencies);
  pthread_mutex_lock(&mutex);
  *last = copy;
  last = &copy->next;
  if (!is_started) {
    pthread_t thread;
    is_started = !pthread_create(&thread, NULL, make_copies, NULL) && !pthread_detach(thread);
  }
  pthread_cond_signal(&added);
  pthread_mutex_unlock(&mutex);
  return SUCCESS;
}

hsa_status_t hsa_amd_memory_async_copy(void *to, hsa_agent_t to_agent, const void *from, hsa_agent_t from_agent, size_t size,
                                       uint32_t count, const hsa_signal_t *dependencies, hsa_signal_t done) {
  (void)to_agent, (void)from_agent;
  Copy copy = {.to.base = to, .from.base = (void *)from, .length = size, .done = done, .count = count};
  return add(copy, dependencies);
}
hsa_status_t hsa_amd_memory_async_copy_on_engine(void *to, hsa_agent_t to_agent, const void *from, hsa_agent_t from_agent,
                                                 size_t size, uint32_t count, const hsa_signal_t *dependencies,
                                                 hsa_signal_t done, hsa_amd_sdma_engine_id_t engine, bool force) {
  (void)engine, (void)force;
  return hsa_amd_memory_async_copy(to, to_agent, from, from_agent, size, count, dependencies, done);
}

static hsa_pitched_ptr_t at(const hsa_pitched_ptr_t *block, const hsa_dim3_t *offset) {
  char *base = (char *)block->base + offset->x + offset->y * block->pitch + offset->z * block->slice;
  return (hsa_pitched_ptr_t){base, block->pitch, block->slice};
}
hsa_status_t hsa_amd_memory_async_copy_rect(const hsa_pitched_ptr_t *to, const hsa_dim3_t *to_offset,
                                            const hsa_pitched_ptr_t *from, const hsa_dim3_t *from_offset,
                                            const hsa_dim3_t *range, hsa_agent_t agent, hsa_amd_copy_direction_t direction,
                                            uint32_t count, const hsa_signal_t *dependencies, hsa_signal_t done) {
  (void)agent, (void)direction;
  Copy copy = {.to = at(to, to_offset), .from = at(from, from_offset), .size = *range, .done = done, .count = count};
  return add(copy, dependencies);
}

hsa_status_t hsa_amd_memory_copy_engine_status(hsa_agent_t to, hsa_agent_t from, uint32_t *mask) {
  (void)to, (void)from;
  *mask = 3; // 0 would mean that no engine is free.
  return SUCCESS;
}
hsa_status_t hsa_amd_memory_get_preferred_copy_engine(hsa_agent_t to, hsa_agent_t from, uint32_t *mask) {
  (void)to, (void)from;
  *mask = 1;
  return SUCCESS;
}
hsa_status_t hsa_amd_profiling_async_copy_enable(bool is_enabled) { return (void)is_enabled, SUCCESS; }
hsa_status_t hsa_amd_profiling_get_async_copy_time(hsa_signal_t signal, hsa_amd_profiling_async_copy_time_t *time) {
  *time = (hsa_amd_profiling_async_copy_time_t){signal_of(signal)->start_ts, signal_of(signal)->end_ts};
  return SUCCESS;
}
