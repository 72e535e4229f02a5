// Operators of ggml's back end for HIP on small shapes, against the host's own loops. The back end's translation units are
// linked as they are; the few functions of its main file that they need are here.
#include "check.h"
#include "acc.cuh"
#include "argmax.cuh"
#include "binbcast.cuh"
#include "clamp.cuh"
#include "concat.cuh"
#include "cumsum.cuh"
#include "diagmask.cuh"
#include "norm.cuh"
#include "scale.cuh"
#include "softmax.cuh"
#include "sumrows.cuh"
#include "unary.cuh"
#include <cmath>
#include <functional>
#include <vector>

static ggml_cuda_device_info described() {
  ggml_cuda_device_info info{};
  hipDeviceProp_t device;
  DONE(hipGetDeviceProperties(&device, 0));
  info.device_count = info.physical_device_count = 1;
  auto &own = info.devices[0];
  // gfx1031: the last two digits are hexadecimal, as in the back end.
  std::string name = std::string(device.gcnArchName).substr(3);
  name = name.substr(0, name.find(':'));
  own.cc = GGML_CUDA_CC_OFFSET_AMD + std::stoi(name.substr(0, name.size() - 2)) * 0x100 + std::stoi(name.substr(name.size() - 2), nullptr, 16);
  own.nsm = device.multiProcessorCount;
  own.smpb = own.smpbo = device.sharedMemPerBlock;
  own.warp_size = device.warpSize;
  own.physical_share_count = 1;
  return info;
}
const ggml_cuda_device_info &ggml_cuda_info() {
  static const ggml_cuda_device_info info = described();
  return info;
}
void ggml_cuda_set_device(int) {}
int ggml_cuda_get_device() { return 0; }
void ggml_cuda_error(const char *what, const char *, const char *, int, const char *message) {
  judge(false, what, message);
  exit(wrong);
}
struct PlainPool : ggml_cuda_pool {
  void *alloc(size_t size, size_t *actual) override {
    void *bytes;
    *actual = size;
    DONE(hipMalloc(&bytes, size));
    return bytes;
  }
  void free(void *bytes, size_t) override { DONE(hipFree(bytes)); }
};
std::unique_ptr<ggml_cuda_pool> ggml_backend_cuda_context::new_pool_for_device(int, int) { return std::make_unique<PlainPool>(); }
ggml_backend_cuda_context::~ggml_backend_cuda_context() {}

const int W = 67, H = 9;
typedef std::vector<float> Values;
typedef std::function<ggml_tensor *(ggml_context *, ggml_tensor *, ggml_tensor *)> Build;

static Values input(int count, int seed) {
  Values all(count);
  for (int i = 0; i < count; i++) all[i] = ((i * 7919 + seed * 104729) % 2003 - 1001) / 256.f;
  return all;
}

// Runs an operator on a W x H matrix and a second one of the same shape.
static void operate(const char *name, const Build &build, void (*run)(ggml_backend_cuda_context &, ggml_tensor *),
                    const std::function<Values(const Values &, const Values &)> &host, bool is_exact) {
  static ggml_backend_cuda_context context(0);
  ggml_context *tensors = ggml_init({ggml_tensor_overhead() * 16, nullptr, true});
  ggml_tensor *a = ggml_new_tensor_2d(tensors, GGML_TYPE_F32, W, H), *b = ggml_new_tensor_2d(tensors, GGML_TYPE_F32, W, H);
  ggml_tensor *result = build(tensors, a, b);
  Values x = input(W * H, 1), y = input(W * H, 2);
  for (ggml_tensor *one : {a, b, result}) DONE(hipMalloc(&one->data, ggml_nbytes(one)));
  DONE(hipMemcpy(a->data, x.data(), ggml_nbytes(a), hipMemcpyHostToDevice));
  DONE(hipMemcpy(b->data, y.data(), ggml_nbytes(b), hipMemcpyHostToDevice));
  run(context, result);
  DONE(hipStreamSynchronize(context.stream()));
  Values expected = host(x, y), found(ggml_nelements(result));
  DONE(hipMemcpy(found.data(), result->data, found.size() * 4, hipMemcpyDeviceToHost));
  bool is_right = found.size() == expected.size();
  for (size_t i = 0; is_right && i < found.size(); i++) {
    float e = expected[i], f = found[i];
    is_right = e == f || (!is_exact && std::fabs(e - f) <= 2e-5f * (1 + std::fabs(e)));
  }
  judge(is_right, name, "other values than the host's");
  for (ggml_tensor *one : {a, b, result}) DONE(hipFree(one->data));
  ggml_free(tensors);
}

template <class F> static std::function<Values(const Values &, const Values &)> each(F f) {
  return [f](const Values &x, const Values &y) {
    Values all(x.size());
    for (size_t i = 0; i < x.size(); i++) all[i] = f(x[i], y[i]);
    return all;
  };
}
// A function of a row, which it gets as its begin in the input and in the result.
template <class F> static std::function<Values(const Values &, const Values &)> rows(F f) {
  return [f](const Values &x, const Values &) {
    Values all(x.size());
    for (int row = 0; row < H; row++) f(&x[row * W], &all[row * W]);
    return all;
  };
}

int main() {
  operate("scale", [](ggml_context *c, ggml_tensor *a, ggml_tensor *) { return ggml_scale(c, a, 1.75f); }, ggml_cuda_op_scale, each([](float x, float) { return x * 1.75f; }), true);
  operate("clamp", [](ggml_context *c, ggml_tensor *a, ggml_tensor *) { return ggml_clamp(c, a, -1, 2); }, ggml_cuda_op_clamp, each([](float x, float) { return x < -1 ? -1 : x > 2 ? 2 : x; }), true);
  operate("add", [](ggml_context *c, ggml_tensor *a, ggml_tensor *b) { return ggml_add(c, a, b); }, ggml_cuda_op_add, each([](float x, float y) { return x + y; }), true);
  operate("mul", [](ggml_context *c, ggml_tensor *a, ggml_tensor *b) { return ggml_mul(c, a, b); }, ggml_cuda_op_mul, each([](float x, float y) { return x * y; }), true);
  operate("div", [](ggml_context *c, ggml_tensor *a, ggml_tensor *b) { return ggml_div(c, a, b); }, ggml_cuda_op_div, each([](float x, float y) { return x / y; }), false);
  operate("silu", [](ggml_context *c, ggml_tensor *a, ggml_tensor *) { return ggml_silu(c, a); }, ggml_cuda_op_silu, each([](float x, float) { return x / (1 + std::exp(-x)); }), false);
  operate("gelu", [](ggml_context *c, ggml_tensor *a, ggml_tensor *) { return ggml_gelu(c, a); }, ggml_cuda_op_gelu, each([](float x, float) { return 0.5f * x * (1 + std::tanh(0.79788456080286535588f * x * (1 + 0.044715f * x * x))); }), false);
  operate("norm", [](ggml_context *c, ggml_tensor *a, ggml_tensor *) { return ggml_norm(c, a, 1e-5f); }, ggml_cuda_op_norm, rows([](const float *x, float *out) {
    double sum = 0, squares = 0; for (int i = 0; i < W; i++) sum += x[i], squares += double(x[i]) * x[i]; double mean = sum / W, scale = 1 / std::sqrt(squares / W - mean * mean + 1e-5); for (int i = 0; i < W; i++) out[i] = (x[i] - mean) * scale; }), false);
  operate("rms_norm", [](ggml_context *c, ggml_tensor *a, ggml_tensor *) { return ggml_rms_norm(c, a, 1e-5f); }, ggml_cuda_op_rms_norm, rows([](const float *x, float *out) {
    double squares = 0; for (int i = 0; i < W; i++) squares += double(x[i]) * x[i]; double scale = 1 / std::sqrt(squares / W + 1e-5); for (int i = 0; i < W; i++) out[i] = x[i] * scale; }), false);
  operate("soft_max", [](ggml_context *c, ggml_tensor *a, ggml_tensor *b) { return ggml_soft_max_ext(c, a, b, 0.5f, 0.f); }, ggml_cuda_op_soft_max, [](const Values &x, const Values &y) {
    Values all(x.size()); for (int row = 0; row < H; row++) { double most = -1e30, sum = 0; for (int i = 0; i < W; i++) most = std::fmax(most, x[row * W + i] * 0.5 + y[row * W + i]); for (int i = 0; i < W; i++) sum += std::exp(x[row * W + i] * 0.5 + y[row * W + i] - most);
    for (int i = 0; i < W; i++) all[row * W + i] = std::exp(x[row * W + i] * 0.5 + y[row * W + i] - most) / sum; } return all; }, false);
  operate("sum_rows", [](ggml_context *c, ggml_tensor *a, ggml_tensor *) { return ggml_sum_rows(c, a); }, ggml_cuda_op_sum_rows, [](const Values &x, const Values &) {
    Values all(H); for (int row = 0; row < H; row++) for (int i = 0; i < W; i++) all[row] += x[row * W + i]; return all; }, false);
  operate("cumsum", [](ggml_context *c, ggml_tensor *a, ggml_tensor *) { return ggml_cumsum(c, a); }, ggml_cuda_op_cumsum, rows([](const float *x, float *out) { double sum = 0; for (int i = 0; i < W; i++) out[i] = sum += x[i]; }), false);
  operate("argmax", [](ggml_context *c, ggml_tensor *a, ggml_tensor *) { return ggml_argmax(c, a); }, ggml_cuda_argmax, [](const Values &x, const Values &) {
    Values all(H); for (int row = 0; row < H; row++) { int best = 0; for (int i = 1; i < W; i++) if (x[row * W + i] > x[row * W + best]) best = i; memcpy(&all[row], &best, 4); } return all; }, true);
  operate("diag_mask_inf", [](ggml_context *c, ggml_tensor *a, ggml_tensor *) { return ggml_diag_mask_inf(c, a, 3); }, ggml_cuda_op_diag_mask_inf, [](const Values &x, const Values &) {
    Values all = x; for (int row = 0; row < H; row++) for (int i = row + 4; i < W; i++) all[row * W + i] -= FLT_MAX; return all; }, true);
  operate("concat", [](ggml_context *c, ggml_tensor *a, ggml_tensor *b) { return ggml_concat(c, a, b, 1); }, ggml_cuda_op_concat, [](const Values &x, const Values &y) { Values all = x; all.insert(all.end(), y.begin(), y.end()); return all; }, true);
  return wrong;
}
