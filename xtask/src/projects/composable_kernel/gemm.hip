// An instance of composable_kernel's DeviceGemmDl, with a tile of its own lists, multiplies matrices of small whole numbers.
#include "ck/ck.hpp"
#include "ck/tensor_operation/gpu/device/gemm_specialization.hpp"
#include "ck/tensor_operation/gpu/device/impl/device_gemm_dl.hpp"
#include "ck/tensor_operation/gpu/device/tensor_layout.hpp"

#include <cstdio>

using Row = ck::tensor_layout::gemm::RowMajor;
using Same = ck::tensor_operation::element_wise::PassThrough;

template <ck::index_t... Is>
using S = ck::Sequence<Is...>;

constexpr auto whole_tiles = ck::tensor_operation::device::GemmSpecialization::Default;

// A tile of 8 × 8 with 8 threads.
template <typename T, typename Sum>
using SmallTile = ck::tensor_operation::device::DeviceGemmDl<
    T, T, T, Sum, Row, Row, Row, Same, Same, Same, whole_tiles, 8, 8, 8, 4, 2, 1, 2, 1, S<4, 1>, S<2, 1>,
    S<4, 1, 1, 2>, S<1, 1, 8, 1>, S<0, 3, 1, 2>, S<0, 3, 1, 2>, S<4, 1, 1, 2>, S<0, 3, 1, 2>, S<1, 1, 1, 2>,
    S<1, 1, 4, 2>, S<4, 1, 2, 1>, S<0, 3, 1, 2>, S<0, 3, 1, 2>, S<1, 1, 4, 1>, S<0, 3, 1, 2>, S<1, 1, 4, 2>,
    S<0, 1, 2, 3, 4, 5>, 5, 2>;

constexpr int size = 64;

template <typename Gemm, typename T>
bool multiply(const char* name)
{
    T *a, *b, *c;
    for(T** matrix : {&a, &b, &c})
        if(hipMallocManaged(matrix, size * size * sizeof(T)) != hipSuccess)
            return false;
    for(int i = 0; i < size * size; i++)
    {
        a[i] = T(i % 5 - 2);
        b[i] = T(i % 3 - 1);
        c[i] = T(99);
    }
    Gemm gemm;
    auto argument = gemm.MakeArgument(a, b, c, size, size, size, size, size, size, Same{}, Same{}, Same{});
    if(!gemm.IsSupportedArgument(argument))
        return false;
    gemm.MakeInvoker().Run(argument, StreamConfig{});
    if(hipDeviceSynchronize() != hipSuccess)
        return false;
    int wrong = 0;
    for(int row = 0; row < size; row++)
        for(int column = 0; column < size; column++)
        {
            int sum = 0;
            for(int k = 0; k < size; k++)
                sum += ((row * size + k) % 5 - 2) * ((k * size + column) % 3 - 1);
            wrong += float(c[row * size + column]) != float(sum);
        }
    std::printf("%s: %d wrong of %d\n", name, wrong, size * size);
    return wrong == 0;
}

int main()
{
    return multiply<SmallTile<float, float>, float>("f32, 8 x 8") ? 0 : 1;
}
