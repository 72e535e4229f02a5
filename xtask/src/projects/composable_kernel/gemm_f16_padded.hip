// Half precision with sums in single precision, both matrices by columns, sizes that are not those of whole tiles.
#include "gemm.h"

using Gemm = ck::tensor_operation::device::DeviceGemmDl<
    F16, F16, F16, float, Column, Column, Row, Same, Same, Same, padded, 8, 8, 8, 4, 2, 2, 1, 1, S<2, 1>, S<4, 1>,
    S<1, 1, 4, 2>, S<4, 1, 2, 1>, S<0, 3, 1, 2>, S<0, 3, 1, 2>, S<1, 1, 1, 1>, S<0, 3, 1, 2>, S<1, 1, 4, 2>,
    S<4, 1, 1, 2>, S<1, 1, 8, 1>, S<1, 2, 0, 3>, S<1, 2, 0, 3>, S<4, 1, 1, 2>, S<1, 2, 0, 3>, S<1, 1, 1, 2>,
    S<0, 1, 2, 3, 4, 5>, 5, 1>;

int main()
{
    return multiply<Gemm, F16, Column, Column>("f16, 8 x 8, padded", 61, 43, 64) ? 0 : 1;
}
