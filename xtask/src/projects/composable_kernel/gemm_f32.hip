// Single precision, both matrices by rows, a tile of 8 × 8 with 8 threads.
#include "gemm.h"

using Gemm = ck::tensor_operation::device::DeviceGemmDl<
    float, float, float, float, Row, Row, Row, Same, Same, Same, whole_tiles, 8, 8, 8, 4, 2, 1, 2, 1, S<4, 1>, S<2, 1>,
    S<4, 1, 1, 2>, S<1, 1, 8, 1>, S<0, 3, 1, 2>, S<0, 3, 1, 2>, S<4, 1, 1, 2>, S<0, 3, 1, 2>, S<1, 1, 1, 2>,
    S<1, 1, 4, 2>, S<4, 1, 2, 1>, S<0, 3, 1, 2>, S<0, 3, 1, 2>, S<1, 1, 4, 1>, S<0, 3, 1, 2>, S<1, 1, 4, 2>,
    S<0, 1, 2, 3, 4, 5>, 5, 2>;

int main()
{
    return multiply<Gemm, float, Row, Row>("f32, 8 x 8", 64, 64, 64) ? 0 : 1;
}
