// Real kernels for a GPU of which no library is packaged: rocPRIM's sorts, scans and reductions.
#include <cstring> // rocPRIM 7.2 uses memset without it
#include <hip/hip_runtime.h>
#include <rocprim/rocprim.hpp>

template <class T>
void all(void *storage, size_t &bytes, T *in, T *out, size_t count)
{
    (void)rocprim::radix_sort_keys(storage, bytes, in, out, count);
    (void)rocprim::merge_sort(storage, bytes, in, out, count);
    (void)rocprim::inclusive_scan(storage, bytes, in, out, count, rocprim::plus<T>());
    (void)rocprim::reduce(storage, bytes, in, out, count, rocprim::plus<T>());
}

template void all<int>(void *, size_t &, int *, int *, size_t);
template void all<double>(void *, size_t &, double *, double *, size_t);
