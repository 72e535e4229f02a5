// A stand-in for HSA's library (libhsa-runtime64.so.1) on a machine without a GPU, on which the real HIP runtime runs.
//
// STANDIN_DEVICES  processors of the devices, separated by commas: gfx1030,gfx1031
// STANDIN_RECORD   file to which a line is appended for each kernel that is dispatched (record.c has the format)
//
// Nothing is executed except HIP's own kernels that copy and fill memory. All memory is the program's: host and device
// see one address. Functions of HSA that are not here return an error; the test generates them from HIP's imports.
//
//  agents.c        the system, devices and their properties
//  memory.c        pools, pointers, virtual memory
//  copies.c        asynchronous copies, by one thread
//  signals.c       signals and their handlers
//  code_objects.c  the loader: code objects, kernels, variables
//  queues.c        packets, by one thread for each queue
//  record.c        the line for a dispatch
#ifndef STANDIN_H
#define STANDIN_H
#define _GNU_SOURCE
#include <elf.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <hsa/amd_hsa_queue.h>
#include <hsa/amd_hsa_signal.h>
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <hsa/hsa_ven_amd_loader.h>

#define SUCCESS HSA_STATUS_SUCCESS
#define INVALID HSA_STATUS_ERROR_INVALID_ARGUMENT
#define NO_MEMORY HSA_STATUS_ERROR_OUT_OF_RESOURCES

// Handles of agents: the host, and devices by number from the first.
enum { HOST = 0x100, FIRST_DEVICE = 0x1000, MAX_DEVICES = 8 };

// agents.c
int device_of(uint64_t agent); // number of a device, -1 for the host
const char *processor_of(int device);
uint64_t ticks(void); // of 10 ns

// signals.c
amd_signal_t *signal_of(hsa_signal_t handle);
int64_t value_of(hsa_signal_t handle);
bool holds(int64_t value, hsa_signal_condition_t condition, int64_t wanted);
void wake_all(void);
void wait_a_moment(void); // until a signal changes, or a millisecond
void complete(hsa_signal_t handle, uint64_t start); // writes the times and subtracts one; nothing for handle 0
hsa_signal_t new_signal(amd_signal_kind64_t kind, int64_t value);

// code_objects.c
typedef struct {
  int device;
  uint32_t flags;     // e_flags of its code object
  uint64_t hash;      // FNV-1a of its code object
  const char *name;   // without `.kd`
  size_t name_length;
  bool is_empty;      // it ends with its first instruction
} Kernel;
bool find_kernel(uint64_t kernel_object, Kernel *kernel);

// record.c
void record_dispatch(const Kernel *kernel, const hsa_kernel_dispatch_packet_t *packet);
#endif
