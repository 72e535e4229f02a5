// Multiplies two matrices with both kernels and compares with the host's product.
#include "gemm.h"

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

namespace {

using Matrix = std::vector<float>;
using Kernel = hipError_t (*)(const GemmShape &, const float *, const float *, float *, hipStream_t);

// No multiples of the tile: the edges are part of the check.
constexpr GemmShape SHAPE{130, 70, 90, 1.5f, 0.5f};

Matrix random_matrix(size_t count, std::mt19937 &random) {
  std::uniform_real_distribution<float> values(-1.0f, 1.0f);
  Matrix matrix(count);
  for (float &value : matrix)
    value = values(random);
  return matrix;
}

Matrix on_host(const Matrix &a, const Matrix &b, const Matrix &c) {
  Matrix out(c.size());
  for (size_t row = 0; row < SHAPE.rows; ++row) {
    for (size_t column = 0; column < SHAPE.columns; ++column) {
      double sum = 0.0;
      for (size_t k = 0; k < SHAPE.inner; ++k)
        sum += double(a[row * SHAPE.inner + k]) * b[k * SHAPE.columns + column];
      const size_t i = row * SHAPE.columns + column;
      out[i] = float(SHAPE.alpha * sum + SHAPE.beta * c[i]);
    }
  }
  return out;
}

/// Device memory of a matrix; freed with the object.
class Device {
public:
  explicit Device(const Matrix &matrix) : bytes_(matrix.size() * sizeof(float)) {
    status_ = hipMalloc(reinterpret_cast<void **>(&data_), bytes_);
    if (status_ == hipSuccess)
      status_ = hipMemcpy(data_, matrix.data(), bytes_, hipMemcpyHostToDevice);
  }
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;
  ~Device() {
    if (data_)
      (void)hipFree(data_); // nothing is left to do when it fails
  }
  hipError_t status() const { return status_; }
  float *data() const { return data_; }
  hipError_t read(Matrix &matrix) const { return hipMemcpy(matrix.data(), data_, bytes_, hipMemcpyDeviceToHost); }

private:
  float *data_ = nullptr;
  size_t bytes_;
  hipError_t status_;
};

hipError_t on_device(Kernel kernel, const Matrix &a, const Matrix &b, Matrix &c) {
  const Device da(a), db(b), dc(c);
  for (const Device *matrix : {&da, &db, &dc})
    if (matrix->status() != hipSuccess)
      return matrix->status();
  const hipError_t status = kernel(SHAPE, da.data(), db.data(), dc.data(), nullptr);
  return status == hipSuccess ? dc.read(c) : status;
}

float largest_difference(const Matrix &one, const Matrix &other) {
  float largest = 0.0f;
  for (size_t i = 0; i < one.size(); ++i)
    largest = std::fmax(largest, std::fabs(one[i] - other[i]));
  return largest;
}

} // namespace

int main() {
  std::mt19937 random(1);
  const Matrix a = random_matrix(size_t(SHAPE.rows) * SHAPE.inner, random);
  const Matrix b = random_matrix(size_t(SHAPE.inner) * SHAPE.columns, random);
  const Matrix c = random_matrix(size_t(SHAPE.rows) * SHAPE.columns, random);
  const Matrix expected = on_host(a, b, c);
  struct {
    const char *name;
    Kernel run;
  } const kernels[] = {{"naive", gemm_naive}, {"tiled", gemm_tiled}};
  for (const auto &kernel : kernels) {
    Matrix result = c;
    if (const hipError_t status = on_device(kernel.run, a, b, result); status != hipSuccess) {
      std::fprintf(stderr, "gemm: %s: %s\n", kernel.name, hipGetErrorString(status));
      return 1;
    }
    const float difference = largest_difference(result, expected);
    std::printf("%s: largest difference %g\n", kernel.name, double(difference));
    if (!(difference < 1e-3f))
      return 2;
  }
}
