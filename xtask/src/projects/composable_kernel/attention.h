// An instance of composable_kernel's attention by products of matrices of a wave (WMMA) with a small tile, compared with
// the same in single precision on the host. A source includes this header once for its instance.
#include "ck/ck.hpp"
#include "ck/tensor_operation/gpu/device/impl/device_batched_gemm_softmax_gemm_permute_wmma_cshuffle.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

using F16 = ck::half_t;
using BF16 = ck::bhalf_t;
using F32 = float;
using Same = ck::tensor_operation::element_wise::PassThrough;
using Scale = ck::tensor_operation::element_wise::Scale;

template <ck::index_t... Is>
using S = ck::Sequence<Is...>;

constexpr auto padded = ck::tensor_operation::device::GemmSpecialization::MNKOPadding;
constexpr auto general = ck::tensor_operation::device::TensorSpecialization::Default;
constexpr auto unmasked = ck::tensor_operation::device::MaskingSpecialization::MaskDisabled;
constexpr auto causal = ck::tensor_operation::device::MaskingSpecialization::MaskOutUpperTriangle;

// Each wave has 16 queries; `Keys` keys at a time, heads of `Head` elements. With all waves, a matrix of the values is read in
// parts of 8 elements for one wave, 4 for two.
template <typename T, int Waves, int Keys, int Head, ck::tensor_operation::device::MaskingSpecialization Mask>
using Attention = ck::tensor_operation::device::DeviceBatchedGemmSoftmaxGemmPermute_Wmma_CShuffle<
    2, 1, 1, 1, 1, T, T, T, T, ck::Tuple<>, F32, ck::Tuple<>, F32, F32, Same, Same, Scale, Same, Same, padded, general,
    general, general, general, 1, 32 * Waves, 16 * Waves, Keys, Head, 8, 8, Head, Keys, 8, 16, 16, 16, 1, Keys / 16,
    Head / 16, S<2, 16 * Waves, 1>, S<1, 0, 2>, S<1, 0, 2>, 2, 8, 8, true, S<2 * Waves, 16, 1>, S<1, 0, 2>, S<1, 0, 2>,
    2, 8, 8, true, S<2, 2 * Waves, 8>, S<0, 2, 1>, S<0, 2, 1>, 1, 8 / Waves, 1, false, 1, 1, S<1, 16 * Waves, 1, 2>, 8,
    Mask>;

float widen(F16 value) { return float(value); }
float widen(BF16 value) { return ck::type_convert<float>(value); }

// Row `query` of the result, in single precision.
template <typename T>
std::vector<float> row_on_host(const T* q, const T* k, const T* v, int keys, int head, int query, float scale)
{
    std::vector<float> weights(keys), row(head);
    float largest = -INFINITY, sum = 0;
    for(int key = 0; key < keys; key++)
    {
        for(int i = 0; i < head; i++)
            weights[key] += scale * widen(q[query * head + i]) * widen(k[key * head + i]);
        largest = std::fmax(largest, weights[key]);
    }
    for(float& weight : weights)
        sum += weight = std::exp(weight - largest);
    for(int key = 0; key < keys; key++)
        for(int i = 0; i < head; i++)
            row[i] += weights[key] / sum * widen(v[key * head + i]);
    return row;
}

// Two blocks of keys, which the kernel reads in turn. `error` is what the type of the elements allows.
template <typename T, int Waves, int Keys, int Head, ck::tensor_operation::device::MaskingSpecialization Mask>
bool attend(const char* name, float error)
{
    constexpr int queries = 16 * Waves, keys = 2 * Keys;
    T *q, *k, *v, *result;
    for(T** matrix : {&q, &k, &v, &result})
        if(hipMallocManaged(matrix, keys * Head * sizeof(T)) != hipSuccess)
            return false;
    for(int i = 0; i < keys * Head; i++)
    {
        q[i] = ck::type_convert<T>((i % 7 - 3) * 0.25f);
        k[i] = ck::type_convert<T>((i % 11 - 5) * 0.125f);
        v[i] = ck::type_convert<T>((i % 13 - 6) * 0.5f);
        result[i] = ck::type_convert<T>(99.0f);
    }
    const float scale = 0.5f;
    using Device = Attention<T, Waves, Keys, Head, Mask>;
    auto argument = Device::MakeArgument(q, k, v, result, queries, keys, Head, Head, 1, 1, scale, false, false);
    if(!Device::IsSupportedArgument(argument))
    {
        std::printf("%s: not supported\n", name);
        return false;
    }
    Device::MakeInvoker().Run(argument, StreamConfig{});
    if(hipDeviceSynchronize() != hipSuccess)
        return false;
    int wrong = 0;
    for(int query = 0; query < queries; query++)
    {
        const int seen = Mask == causal ? query + 1 : keys;
        const std::vector<float> row = row_on_host(q, k, v, seen, Head, query, scale);
        for(int i = 0; i < Head; i++)
            wrong += !(std::fabs(widen(result[query * Head + i]) - row[i]) < error);
    }
    std::printf("%s, %d keys, head %d: %d wrong of %d\n", name, keys, Head, wrong, queries * Head);
    return wrong == 0;
}
