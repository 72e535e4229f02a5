// A line for each dispatch: device, its processor, e_flags and hash of the code object, 1 for an empty kernel, grid in
// work-items, work-group, name. Fields are separated by blanks; the name is whole, however long it is.
#include "standin.h"
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

void record_dispatch(const Kernel *kernel, const hsa_kernel_dispatch_packet_t *packet) {
  static int file = -1;
  static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
  const char *path = getenv("STANDIN_RECORD");
  if (!path) return;
  char *line;
  int length = asprintf(&line, "%d %s %x %016lx %d %u,%u,%u %u,%u,%u %.*s\n", kernel->device, processor_of(kernel->device),
                        kernel->flags, kernel->hash, kernel->is_empty, packet->grid_size_x, packet->grid_size_y,
                        packet->grid_size_z, packet->workgroup_size_x, packet->workgroup_size_y,
                        packet->workgroup_size_z, (int)kernel->name_length, kernel->name);
  if (length < 0) abort();
  pthread_mutex_lock(&mutex);
  if (file < 0) file = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (file < 0 || write(file, line, length) != length) abort();
  pthread_mutex_unlock(&mutex);
  free(line);
}
