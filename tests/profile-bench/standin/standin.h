// What the stand-in of HIP uses of the stand-in of HSA beside its interface.
#pragma once
#include <hsa/hsa.h>

// Runs "a kernel": every counter of every function of the executable grows. Counter k of a function grows
// by 100 + k, counters of uniform waves by 100.
void standin_launch(hsa_executable_t executable, hsa_agent_t agent);
// Where the host can read and write what the GPU has at this address; null for memory of the host.
void *standin_host_address(const void *device);
