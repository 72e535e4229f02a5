// Half precision with sums in single precision, the second matrix by columns, a tile of 16 × 16 with 16 threads.
#include "gemm.h"

using Gemm = ck::tensor_operation::device::DeviceGemmDl<
    F16, F16, F16, float, Row, Column, Row, Same, Same, Same, whole_tiles, 16, 16, 16, 16, 2, 2, 2, 1, S<2, 2>, S<2, 2>,
    S<4, 1, 4, 2>, S<4, 1, 4, 1>, S<1, 2, 0, 3>, S<1, 2, 0, 3>, S<4, 1, 1, 2>, S<1, 2, 0, 3>, S<1, 1, 1, 2>,
    S<4, 1, 4, 2>, S<4, 1, 4, 1>, S<1, 2, 0, 3>, S<1, 2, 0, 3>, S<4, 1, 1, 2>, S<1, 2, 0, 3>, S<1, 1, 1, 2>,
    S<0, 1, 2, 3, 4, 5>, 5, 2>;

int main()
{
    return multiply<Gemm, F16, Row, Column>("f16, 16 x 16", 64, 64, 64) ? 0 : 1;
}
