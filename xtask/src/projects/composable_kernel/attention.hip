// An instance of composable_kernel's attention by products of matrices of a wave (WMMA) with a small tile, compared with
// the same in single precision on the host.
#include "ck/ck.hpp"
#include "ck/tensor_operation/gpu/device/impl/device_batched_gemm_softmax_gemm_permute_wmma_cshuffle.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

using F16 = ck::half_t;
using F32 = float;
using Same = ck::tensor_operation::element_wise::PassThrough;
using Scale = ck::tensor_operation::element_wise::Scale;

template <ck::index_t... Is>
using S = ck::Sequence<Is...>;

constexpr auto padded = ck::tensor_operation::device::GemmSpecialization::MNKOPadding;
constexpr auto general = ck::tensor_operation::device::TensorSpecialization::Default;
constexpr auto unmasked = ck::tensor_operation::device::MaskingSpecialization::MaskDisabled;

// One wave: 16 queries, `Keys` keys at a time, heads of `Head` elements.
template <int Keys, int Head>
using Attention = ck::tensor_operation::device::DeviceBatchedGemmSoftmaxGemmPermute_Wmma_CShuffle<
    2, 1, 1, 1, 1, F16, F16, F16, F16, ck::Tuple<>, F32, ck::Tuple<>, F32, F32, Same, Same, Scale, Same, Same, padded,
    general, general, general, general, 1, 32, 16, Keys, Head, 8, 8, Head, Keys, 8, 16, 16, 16, 1, Keys / 16, Head / 16,
    S<2, 16, 1>, S<1, 0, 2>, S<1, 0, 2>, 2, 8, 8, true, S<2, 16, 1>, S<1, 0, 2>, S<1, 0, 2>, 2, 8, 8, true,
    S<2, 2, 8>, S<0, 2, 1>, S<0, 2, 1>, 1, 8, 1, false, 1, 1, S<1, 16, 1, 2>, 8, unmasked>;

// Row `query` of the result, in single precision.
std::vector<float> row_on_host(const F16* q, const F16* k, const F16* v, int keys, int head, int query, float scale)
{
    std::vector<float> weights(keys), row(head);
    float largest = -INFINITY, sum = 0;
    for(int key = 0; key < keys; key++)
    {
        for(int i = 0; i < head; i++)
            weights[key] += scale * float(q[query * head + i]) * float(k[key * head + i]);
        largest = std::fmax(largest, weights[key]);
    }
    for(float& weight : weights)
        sum += weight = std::exp(weight - largest);
    for(int key = 0; key < keys; key++)
        for(int i = 0; i < head; i++)
            row[i] += weights[key] / sum * float(v[key * head + i]);
    return row;
}

template <int Keys, int Head>
bool attend()
{
    constexpr int queries = 16, keys = 2 * Keys;
    F16 *q, *k, *v, *result;
    for(F16** matrix : {&q, &k, &v, &result})
        if(hipMallocManaged(matrix, keys * Head * sizeof(F16)) != hipSuccess)
            return false;
    for(int i = 0; i < keys * Head; i++)
    {
        q[i] = F16((i % 7 - 3) * 0.25f);
        k[i] = F16((i % 11 - 5) * 0.125f);
        v[i] = F16((i % 13 - 6) * 0.5f);
        result[i] = F16(99);
    }
    const float scale = 0.5f;
    using Device = Attention<Keys, Head>;
    auto argument = Device::MakeArgument(q, k, v, result, queries, keys, Head, Head, 1, 1, scale, false, false);
    if(!Device::IsSupportedArgument(argument))
    {
        std::printf("%d keys, head %d: not supported\n", keys, Head);
        return false;
    }
    Device::MakeInvoker().Run(argument, StreamConfig{});
    if(hipDeviceSynchronize() != hipSuccess)
        return false;
    int wrong = 0;
    for(int query = 0; query < queries; query++)
    {
        const std::vector<float> row = row_on_host(q, k, v, keys, Head, query, scale);
        for(int i = 0; i < Head; i++)
            wrong += !(std::fabs(float(result[query * Head + i]) - row[i]) < 0.02f);
    }
    std::printf("%d keys, head %d: %d wrong of %d\n", keys, Head, wrong, queries * Head);
    return wrong == 0;
}

int main()
{
    return attend<32, 16>() ? 0 : 1;
}
