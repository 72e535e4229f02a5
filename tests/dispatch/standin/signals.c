// Signals. A handle is the address of the structure that HIP and kernels know.
#include "standin.h"
#include <time.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

amd_signal_t *signal_of(hsa_signal_t handle) { return (amd_signal_t *)handle.handle; }
int64_t value_of(hsa_signal_t handle) { return __atomic_load_n(&signal_of(handle)->value, __ATOMIC_SEQ_CST); }

void wake_all(void) {
  pthread_mutex_lock(&mutex);
  pthread_cond_broadcast(&changed);
  pthread_mutex_unlock(&mutex);
}
void wait_a_moment(void) {
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  if ((until.tv_nsec += 1000000) >= 1000000000) until.tv_nsec -= 1000000000, until.tv_sec++;
  pthread_mutex_lock(&mutex);
  pthread_cond_timedwait(&changed, &mutex, &until);
  pthread_mutex_unlock(&mutex);
}

bool holds(int64_t value, hsa_signal_condition_t condition, int64_t wanted) {
  switch (condition) {
  case HSA_SIGNAL_CONDITION_EQ: return value == wanted;
  case HSA_SIGNAL_CONDITION_NE: return value != wanted;
  case HSA_SIGNAL_CONDITION_LT: return value < wanted;
  default: return value >= wanted;
  }
}

void complete(hsa_signal_t handle, uint64_t start) {
  if (handle.handle) {
    signal_of(handle)->start_ts = start;
    signal_of(handle)->end_ts = ticks();
    __atomic_sub_fetch(&signal_of(handle)->value, 1, __ATOMIC_SEQ_CST);
  }
  wake_all();
}

hsa_signal_t new_signal(amd_signal_kind64_t kind, int64_t value) {
  amd_signal_t *signal = aligned_alloc(64, sizeof *signal);
  if (!signal) abort();
  memset(signal, 0, sizeof *signal);
  signal->kind = kind;
  signal->value = value;
  return (hsa_signal_t){(uint64_t)signal};
}

hsa_status_t hsa_signal_create(hsa_signal_value_t value, uint32_t count, const hsa_agent_t *agents, hsa_signal_t *out) {
  (void)count, (void)agents;
  *out = new_signal(AMD_SIGNAL_KIND_USER, value);
  return SUCCESS;
}
hsa_status_t hsa_amd_signal_create(hsa_signal_value_t value, uint32_t count, const hsa_agent_t *agents,
                                   uint64_t attributes, hsa_signal_t *out) {
  (void)attributes;
  return hsa_signal_create(value, count, agents, out);
}
hsa_status_t hsa_signal_destroy(hsa_signal_t signal) { return free(signal_of(signal)), SUCCESS; }
hsa_status_t hsa_amd_signal_value_pointer(hsa_signal_t signal, volatile hsa_signal_value_t **value) {
  *value = &signal_of(signal)->value;
  return SUCCESS;
}

hsa_signal_value_t hsa_signal_load_relaxed(hsa_signal_t signal) { return value_of(signal); }
void hsa_signal_silent_store_relaxed(hsa_signal_t signal, hsa_signal_value_t value) {
  __atomic_store_n(&signal_of(signal)->value, value, __ATOMIC_SEQ_CST);
}
void hsa_signal_store_relaxed(hsa_signal_t signal, hsa_signal_value_t value) {
  hsa_signal_silent_store_relaxed(signal, value);
  wake_all();
}
void hsa_signal_store_screlease(hsa_signal_t signal, hsa_signal_value_t value) { hsa_signal_store_relaxed(signal, value); }
void hsa_signal_add_relaxed(hsa_signal_t signal, hsa_signal_value_t value) {
  __atomic_add_fetch(&signal_of(signal)->value, value, __ATOMIC_SEQ_CST);
  wake_all();
}
void hsa_signal_subtract_relaxed(hsa_signal_t signal, hsa_signal_value_t value) { hsa_signal_add_relaxed(signal, -value); }

hsa_signal_value_t hsa_signal_wait_scacquire(hsa_signal_t signal, hsa_signal_condition_t condition,
                                             hsa_signal_value_t wanted, uint64_t timeout, hsa_wait_state_t state) {
  (void)state;
  uint64_t until = timeout > UINT64_MAX / 2 ? UINT64_MAX : ticks() + timeout;
  int64_t value;
  while (!holds(value = value_of(signal), condition, wanted) && ticks() < until) wait_a_moment();
  return value;
}

typedef struct Handler {
  struct Handler *next;
  hsa_signal_t signal;
  hsa_signal_condition_t condition;
  int64_t wanted;
  hsa_amd_signal_handler call;
  void *data;
} Handler;
static pthread_mutex_t handlers_mutex = PTHREAD_MUTEX_INITIALIZER;
static Handler *handlers;

// Takes the first handler whose condition holds from the list.
static Handler *take_due(int64_t *value) {
  for (Handler **place = &handlers; *place; place = &(*place)->next) {
    Handler *handler = *place;
    *value = value_of(handler->signal);
    if (holds(*value, handler->condition, handler->wanted)) return *place = handler->next, handler;
  }
  return NULL;
}

static void *call_handlers(void *unused) {
  for (;;) {
    int64_t value;
    pthread_mutex_lock(&handlers_mutex);
    Handler *due = take_due(&value);
    pthread_mutex_unlock(&handlers_mutex);
    if (!due) { wait_a_moment(); continue; }
    if (!due->call(value, due->data)) { free(due); continue; } // It may register handlers: no lock is held.
    pthread_mutex_lock(&handlers_mutex);
    due->next = handlers;
    handlers = due;
    pthread_mutex_unlock(&handlers_mutex);
  }
  return unused;
}

hsa_status_t hsa_amd_signal_async_handler(hsa_signal_t signal, hsa_signal_condition_t condition,
                                          hsa_signal_value_t wanted, hsa_amd_signal_handler call, void *data) {
  static bool is_started;
  Handler *handler = malloc(sizeof *handler);
  if (!handler) return NO_MEMORY;
  pthread_mutex_lock(&handlers_mutex);
  *handler = (Handler){handlers, signal, condition, wanted, call, data};
  handlers = handler;
  if (!is_started) {
    pthread_t thread;
    is_started = !pthread_create(&thread, NULL, call_handlers, NULL) && !pthread_detach(thread);
  }
  pthread_mutex_unlock(&handlers_mutex);
  wake_all();
  return SUCCESS;
}
