// Bytes with sums of 32 bits by products of four pairs, the first matrix by columns, a tile of 8 × 8.
#include "gemm.h"

using Gemm = ck::tensor_operation::device::DeviceGemmDl<
    int8_t, int8_t, int8_t, int32_t, Column, Row, Row, Same, Same, Same, whole_tiles, 8, 8, 8, 4, 4, 1, 2, 1, S<4, 1>,
    S<2, 1>, S<1, 1, 4, 4>, S<4, 1, 2, 1>, S<0, 3, 1, 2>, S<0, 3, 1, 2>, S<1, 1, 4, 1>, S<0, 3, 1, 2>, S<1, 1, 4, 4>,
    S<1, 1, 4, 4>, S<4, 1, 2, 1>, S<0, 3, 1, 2>, S<0, 3, 1, 2>, S<1, 1, 4, 1>, S<0, 3, 1, 2>, S<1, 1, 4, 4>,
    S<0, 1, 2, 3, 4, 5>, 5, 2>;

int main()
{
    return multiply<Gemm, int8_t, Column, Row>("i8, 8 x 8", 64, 64, 64) ? 0 : 1;
}
