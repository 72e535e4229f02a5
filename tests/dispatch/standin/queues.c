// Queues: a thread for each takes its packets, in their order.
#include "standin.h"
#include <sys/mman.h>

typedef struct {
  amd_queue_t queue; // first: HIP's handle is its address
  hsa_signal_t doorbell;
  int is_over;
  pthread_t thread;
} Queue;

// HIP's own kernels that copy and fill. All other kernels are recorded and not executed.
static void execute(const Kernel *kernel, const hsa_kernel_dispatch_packet_t *packet) {
  const uint64_t *arguments = packet->kernarg_address;
  if (!strncmp(kernel->name, "__amd_rocclr_copyBuffer.kd", 26)) { // from, to, size
    memmove((void *)arguments[1], (void *)arguments[0], arguments[2]);
  } else if (!strncmp(kernel->name, "__amd_rocclr_fillBufferAligned.kd", 33)) { // start, pattern, elements and their size, end
    size_t size = (uint32_t)arguments[2] * (arguments[2] >> 32);
    char *end = (char *)arguments[3];
    for (char *at = (char *)arguments[0]; at < end && size; at += size)
      memcpy(at, (char *)arguments[1], (size_t)(end - at) < size ? (size_t)(end - at) : size);
  }
}

static void dispatch(const hsa_kernel_dispatch_packet_t *packet) {
  Kernel kernel;
  if (!find_kernel(packet->kernel_object, &kernel)) abort(); // The test must not pass without the line.
  record_dispatch(&kernel, packet);
  execute(&kernel, packet);
}

static void wait_for_dependencies(const Queue *queue, const hsa_barrier_and_packet_t *packet, bool any) {
  for (;;) {
    int open = 0, met = 0;
    for (int i = 0; i < 5; i++)
      if (packet->dep_signal[i].handle) *(value_of(packet->dep_signal[i]) ? &open : &met) += 1;
    if (!open || (any && met) || __atomic_load_n(&queue->is_over, __ATOMIC_ACQUIRE)) return;
    wait_a_moment();
  }
}

static void wait_for_value(const Queue *queue, const hsa_amd_barrier_value_packet_t *packet) {
  if (packet->header.AmdFormat != HSA_AMD_PACKET_TYPE_BARRIER_VALUE || !packet->signal.handle) return;
  while (!holds(value_of(packet->signal) & packet->mask, packet->cond, packet->value) &&
         !__atomic_load_n(&queue->is_over, __ATOMIC_ACQUIRE))
    wait_a_moment();
}

static void process(const Queue *queue, int type, void *packet) {
  uint64_t start = ticks();
  switch (type) {
  case HSA_PACKET_TYPE_KERNEL_DISPATCH: {
    const hsa_kernel_dispatch_packet_t *kernel = packet;
    dispatch(kernel);
    complete(kernel->completion_signal, start);
    return;
  }
  case HSA_PACKET_TYPE_BARRIER_AND:
  case HSA_PACKET_TYPE_BARRIER_OR: {
    const hsa_barrier_and_packet_t *barrier = packet;
    wait_for_dependencies(queue, barrier, type == HSA_PACKET_TYPE_BARRIER_OR);
    complete(barrier->completion_signal, start);
    return;
  }
  case HSA_PACKET_TYPE_VENDOR_SPECIFIC: {
    const hsa_amd_barrier_value_packet_t *barrier = packet;
    wait_for_value(queue, barrier);
    complete(barrier->completion_signal, start);
    return;
  }
  default: abort();
  }
}

static void *take_packets(void *data) {
  Queue *queue = data;
  char *ring = queue->queue.hsa_queue.base_address;
  for (uint64_t read = 0; !__atomic_load_n(&queue->is_over, __ATOMIC_ACQUIRE);) {
    uint16_t *packet = (uint16_t *)(ring + (read & (queue->queue.hsa_queue.size - 1)) * 64);
    int type = __atomic_load_n(packet, __ATOMIC_ACQUIRE) & 0xff;
    // The header is written last. The doorbell only wakes: threads may store their indices in another order.
    bool is_there = read < __atomic_load_n(&queue->queue.write_dispatch_id, __ATOMIC_ACQUIRE);
    if (!is_there || type == HSA_PACKET_TYPE_INVALID) { wait_a_moment(); continue; }
    char copy[64];
    memcpy(copy, packet, sizeof copy);
    process(queue, type, copy);
    __atomic_store_n(packet, HSA_PACKET_TYPE_INVALID, __ATOMIC_RELEASE);
    __atomic_store_n(&queue->queue.read_dispatch_id, ++read, __ATOMIC_RELEASE);
    wake_all();
  }
  return NULL;
}

hsa_status_t hsa_queue_create(hsa_agent_t agent, uint32_t size, hsa_queue_type32_t type,
                              void (*call)(hsa_status_t, hsa_queue_t *, void *), void *data, uint32_t private_size,
                              uint32_t group_size, hsa_queue_t **out) {
  (void)agent, (void)call, (void)data, (void)private_size, (void)group_size; // No error ever happens.
  static uint64_t next_id;
  Queue *queue = aligned_alloc(64, (sizeof *queue + 63) & ~63ul);
  char *ring = mmap(NULL, size * 64ul, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!queue || ring == MAP_FAILED) return NO_MEMORY;
  for (uint32_t i = 0; i < size; i++) *(uint16_t *)(ring + i * 64ul) = HSA_PACKET_TYPE_INVALID;
  memset(queue, 0, sizeof *queue);
  queue->doorbell = new_signal(AMD_SIGNAL_KIND_DOORBELL, -1);
  queue->queue.hsa_queue = (hsa_queue_t){
      .type = type, .features = HSA_QUEUE_FEATURE_KERNEL_DISPATCH, .base_address = ring, .doorbell_signal = queue->doorbell,
      .size = size, .id = __atomic_fetch_add(&next_id, 1, __ATOMIC_RELAXED)};
  if (pthread_create(&queue->thread, NULL, take_packets, queue)) return NO_MEMORY;
  *out = &queue->queue.hsa_queue;
  return SUCCESS;
}
hsa_status_t hsa_queue_destroy(hsa_queue_t *handle) {
  Queue *queue = (Queue *)handle;
  __atomic_store_n(&queue->is_over, 1, __ATOMIC_RELEASE);
  wake_all();
  pthread_join(queue->thread, NULL);
  munmap(handle->base_address, handle->size * 64ul);
  free(signal_of(queue->doorbell));
  free(queue);
  return SUCCESS;
}

uint64_t hsa_queue_add_write_index_screlease(const hsa_queue_t *queue, uint64_t count) {
  return __atomic_fetch_add(&((Queue *)queue)->queue.write_dispatch_id, count, __ATOMIC_SEQ_CST);
}
uint64_t hsa_queue_load_read_index_relaxed(const hsa_queue_t *queue) {
  return __atomic_load_n(&((Queue *)queue)->queue.read_dispatch_id, __ATOMIC_SEQ_CST);
}
uint64_t hsa_queue_load_read_index_scacquire(const hsa_queue_t *queue) { return hsa_queue_load_read_index_relaxed(queue); }
uint64_t hsa_queue_load_write_index_relaxed(const hsa_queue_t *queue) {
  return __atomic_load_n(&((Queue *)queue)->queue.write_dispatch_id, __ATOMIC_SEQ_CST);
}
hsa_status_t hsa_amd_queue_set_priority(hsa_queue_t *queue, hsa_amd_queue_priority_t priority) {
  return (void)queue, (void)priority, SUCCESS;
}
hsa_status_t hsa_amd_queue_cu_set_mask(const hsa_queue_t *queue, uint32_t count, const uint32_t *mask) {
  return (void)queue, (void)count, (void)mask, SUCCESS;
}
hsa_status_t hsa_amd_profiling_set_profiler_enabled(hsa_queue_t *queue, int is_enabled) {
  return (void)queue, (void)is_enabled, SUCCESS;
}
hsa_status_t hsa_amd_profiling_get_dispatch_time(hsa_agent_t agent, hsa_signal_t signal, hsa_amd_profiling_dispatch_time_t *time) {
  (void)agent;
  *time = (hsa_amd_profiling_dispatch_time_t){signal_of(signal)->start_ts, signal_of(signal)->end_ts};
  return SUCCESS;
}
