// rocSPARSE: products, solvers and conversions of a matrix with three entries in a row.
#include <cstdio>
#include <hip/hip_runtime_api.h>
#include <rocsparse/rocsparse.h>
#include <vector>

enum { ROWS = 2000, WIDTH = 8, BYTES = 64 << 20 };
static unsigned calls, refused;
static void count(rocsparse_status status) { calls++, refused += status != rocsparse_status_success; }

struct Matrix {
  std::vector<rocsparse_int> starts{0}, columns, rows;
  std::vector<float> values;
  Matrix() {
    for (int row = 0; row < ROWS; row++) {
      for (int column = row - 1; column <= row + 1; column++)
        if (column >= 0 && column < ROWS) columns.push_back(column), rows.push_back(row), values.push_back(2);
      starts.push_back((rocsparse_int)columns.size());
    }
  }
};

template <typename T> static T *upload(const std::vector<T> &from) {
  T *to = nullptr;
  bool bad = hipMalloc((void **)&to, from.size() * sizeof(T)) || hipMemcpy(to, from.data(), from.size() * sizeof(T), hipMemcpyHostToDevice);
  return bad ? nullptr : to;
}

static int use_device(int device) {
  static const Matrix matrix;
  const int size = (int)matrix.values.size();
  const float one = 1;
  rocsparse_handle handle;
  rocsparse_mat_descr description;
  rocsparse_mat_info info;
  void *space, *a, *b;
  size_t bytes;
  if (hipSetDevice(device) || hipMalloc(&space, BYTES) || hipMalloc(&a, BYTES) || hipMalloc(&b, BYTES)) return 1;
  if (rocsparse_create_handle(&handle) || rocsparse_create_mat_descr(&description) || rocsparse_create_mat_info(&info)) return 2;
  rocsparse_int *starts = upload(matrix.starts), *columns = upload(matrix.columns), *rows = upload(matrix.rows);
  float *values = upload(matrix.values), *x = (float *)a, *y = (float *)b;
  rocsparse_int *numbers = (rocsparse_int *)a;
  if (!starts || !columns || !rows || !values || hipMemset(a, 0, BYTES)) return 3;
  const auto none = rocsparse_operation_none, other = rocsparse_operation_transpose;
  const auto base = rocsparse_index_base_zero;
  calls = refused = 0;
  for (auto way : {none, other})
    count(rocsparse_scsrmv(handle, way, ROWS, ROWS, size, &one, description, values, starts, columns, nullptr, x, &one, y));
  count(rocsparse_scsrmv_analysis(handle, none, ROWS, ROWS, size, description, values, starts, columns, info));
  count(rocsparse_scsrmv(handle, none, ROWS, ROWS, size, &one, description, values, starts, columns, info, x, &one, y));
  for (auto way : {none, other})
    count(rocsparse_scsrmm(handle, none, way, ROWS, WIDTH, ROWS, size, &one, description, values, starts, columns, x,
                           way == none ? ROWS : WIDTH, &one, y, ROWS));
  count(rocsparse_csr2csc_buffer_size(handle, ROWS, ROWS, size, starts, columns, rocsparse_action_numeric, &bytes));
  count(rocsparse_scsr2csc(handle, ROWS, ROWS, size, values, starts, columns, y, numbers, numbers + size,
                           rocsparse_action_numeric, base, space));
  count(rocsparse_csr2coo(handle, starts, size, ROWS, numbers, base));
  count(rocsparse_coo2csr(handle, rows, size, ROWS, numbers, base));
  count(rocsparse_coosort_buffer_size(handle, ROWS, ROWS, size, rows, columns, &bytes));
  count(rocsparse_create_identity_permutation(handle, size, numbers));
  count(rocsparse_coosort_by_row(handle, ROWS, ROWS, size, rows, columns, numbers, space));
  count(rocsparse_scsrsv_buffer_size(handle, none, ROWS, size, description, values, starts, columns, info, &bytes));
  const auto reuse = rocsparse_analysis_policy_reuse;
  const auto solve = rocsparse_solve_policy_auto;
  count(rocsparse_scsrsv_analysis(handle, none, ROWS, size, description, values, starts, columns, info, reuse, solve, space));
  count(rocsparse_scsrsv_solve(handle, none, ROWS, size, &one, description, values, starts, columns, info, x, y, solve, space));
  count(rocsparse_scsrilu0_buffer_size(handle, ROWS, size, description, values, starts, columns, info, &bytes));
  count(rocsparse_scsrilu0_analysis(handle, ROWS, size, description, values, starts, columns, info, reuse, solve, space));
  count(rocsparse_scsrilu0(handle, ROWS, size, description, values, starts, columns, info, solve, space));
  rocsparse_int total;
  count(rocsparse_snnz(handle, rocsparse_direction_row, 100, 100, description, x, 100, (rocsparse_int *)y, &total));
  count(rocsparse_sdense2csr(handle, 100, 100, description, x, 100, (rocsparse_int *)y, values, starts, columns));
  std::printf("%u calls, %u refused\n", calls, refused);
  return hipDeviceSynchronize() ? 4 : 0;
}

int main() {
  int devices;
  if (hipGetDeviceCount(&devices)) return 10;
  for (int device = 0; device < devices; device++)
    if (int failure = use_device(device)) return failure;
  return 0;
}
