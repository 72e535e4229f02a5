// RCCL's all-reduce of sums of floats alone, by its own macros: its file all_reduce.cu makes 56 of them, for minutes.
#include "all_reduce.h"
#include "common.h"
#include "collectives.h"

IMPL_COLL3(AllReduce, Sum, float, ncclFloat32);
