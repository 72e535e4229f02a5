// An instance of composable_kernel's DeviceGemmDl, taken from its own lists, multiplies matrices of small whole numbers. A source
// includes this header once for its instance.
#include "ck/ck.hpp"
#include "ck/tensor_operation/gpu/device/gemm_specialization.hpp"
#include "ck/tensor_operation/gpu/device/impl/device_gemm_dl.hpp"
#include "ck/tensor_operation/gpu/device/tensor_layout.hpp"

#include <cstdio>
#include <type_traits>

using Row = ck::tensor_layout::gemm::RowMajor;
using Column = ck::tensor_layout::gemm::ColumnMajor;
using Same = ck::tensor_operation::element_wise::PassThrough;
using F16 = ck::half_t;

template <ck::index_t... Is>
using S = ck::Sequence<Is...>;

constexpr auto whole_tiles = ck::tensor_operation::device::GemmSpecialization::Default;
constexpr auto padded = ck::tensor_operation::device::GemmSpecialization::MNPadding;

// Position of an element in a matrix whose rows, or columns, have this length.
template <typename Layout>
int position(int row, int column, int length)
{
    return std::is_same_v<Layout, Row> ? row * length + column : column * length + row;
}

int a_value(int row, int k) { return (row * 3 + k) % 5 - 2; }
int b_value(int k, int column) { return (k * 2 + column) % 3 - 1; }

// Multiplies `rows` × `depth` by `depth` × `columns`.
template <typename Gemm, typename T, typename ALayout, typename BLayout>
bool multiply(const char* name, int rows, int columns, int depth)
{
    T *a, *b, *c;
    for(T** matrix : {&a, &b, &c})
        if(hipMallocManaged(matrix, 64 * 64 * sizeof(T)) != hipSuccess)
            return false;
    const int a_length = std::is_same_v<ALayout, Row> ? depth : rows;
    const int b_length = std::is_same_v<BLayout, Row> ? columns : depth;
    for(int k = 0; k < depth; k++)
    {
        for(int row = 0; row < rows; row++)
            a[position<ALayout>(row, k, a_length)] = T(a_value(row, k));
        for(int column = 0; column < columns; column++)
            b[position<BLayout>(k, column, b_length)] = T(b_value(k, column));
    }
    for(int i = 0; i < 64 * 64; i++)
        c[i] = T(99);
    Gemm gemm;
    auto argument =
        gemm.MakeArgument(a, b, c, rows, columns, depth, a_length, b_length, columns, Same{}, Same{}, Same{});
    if(!gemm.IsSupportedArgument(argument))
    {
        std::printf("%s: not supported\n", name);
        return false;
    }
    gemm.MakeInvoker().Run(argument, StreamConfig{});
    if(hipDeviceSynchronize() != hipSuccess)
        return false;
    int wrong = 0;
    for(int row = 0; row < rows; row++)
        for(int column = 0; column < columns; column++)
        {
            int sum = 0;
            for(int k = 0; k < depth; k++)
                sum += a_value(row, k) * b_value(k, column);
            wrong += float(c[row * columns + column]) != float(sum);
        }
    // Those beyond the result stay as they were.
    for(int i = rows * columns; i < 64 * 64; i++)
        wrong += float(c[i]) != 99;
    std::printf("%s: %d wrong of %d\n", name, wrong, 64 * 64);
    return wrong == 0;
}
