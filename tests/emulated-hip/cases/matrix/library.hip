// A host library that finds its code as rocBLAS does: its own fat binaries by HIP, and files by the name of the GPU that it sees.
// It adds what its kernels and files are worth: 40 and 3 for its own two units, 5 for the helper kernels, 7 and 11 for the code of
// the two indices that the lazy one names.
#include <hip/hip_runtime.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <set>
#include <string>

extern "C" int run_generic(int *);

__global__ void own(int *p) { *p += 40; }

static bool read_file(const std::string &path, std::string &content) {
  std::ifstream file(path, std::ios::binary);
  if (!file)
    return false;
  content.assign(std::istreambuf_iterator<char>(file), {});
  return true;
}

static int start(const std::string &path, const char *kernel, int *value) {
  std::string content;
  hipModule_t module;
  hipFunction_t function;
  if (!read_file(path, content)) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    return 11;
  }
  if (hipModuleLoadData(&module, content.data()) != hipSuccess || hipModuleGetFunction(&function, module, kernel) != hipSuccess) {
    std::fprintf(stderr, "cannot load %s\n", path.c_str());
    return 12;
  }
  void *arguments[] = {&value};
  return hipModuleLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments, nullptr) == hipSuccess ? 0 : 13;
}

// The texts of the index that begin as names of indices do.
static std::set<std::string> placeholders(const std::string &index) {
  std::set<std::string> names;
  const std::string prefix = "TensileLibrary_";
  for (size_t at = index.find(prefix); at != std::string::npos; at = index.find(prefix, at + 1)) {
    size_t end = at;
    while (end < index.size() && (std::isalnum(static_cast<unsigned char>(index[end])) || index[end] == '_'))
      ++end;
    names.insert(index.substr(at, end - at));
  }
  return names;
}

extern "C" int rocblas_create_handle(int *value) {
  hipDeviceProp_t properties;
  Dl_info self;
  struct stat state;
  if (hipGetDeviceProperties(&properties, 0) != hipSuccess || !dladdr(reinterpret_cast<void *>(&rocblas_create_handle), &self))
    return 1;
  const std::string shown = properties.gcnArchName, gpu = shown.substr(0, shown.find(':'));
  const char *given = std::getenv("ROCBLAS_TENSILE_LIBPATH");
  const std::string file = self.dli_fname;
  std::string directory = given ? given : file.substr(0, file.rfind('/')) + "/rocblas/library";
  if (stat((directory + "/" + gpu).c_str(), &state) == 0)
    directory += "/" + gpu;
  directory += "/";
  std::string index, inner;
  if (!read_file(directory + "TensileLibrary_lazy_" + gpu + ".dat", index)) {
    std::fprintf(stderr, "Cannot read %sTensileLibrary.dat for GPU arch : %s\n", directory.c_str(), gpu.c_str());
    return 10;
  }
  own<<<1, 1>>>(value);
  if (hipGetLastError() != hipSuccess || run_generic(value) != 0)
    return 2;
  if (int status = start(directory + "Kernels.so-000-" + gpu + ".hsaco", "helper", value))
    return status;
  for (const std::string &name : placeholders(index)) {
    const bool is_fallback = name.find("fallback") != std::string::npos;
    if (!read_file(directory + name + ".dat", inner)) {
      std::fprintf(stderr, "cannot read %s\n", name.c_str());
      return 14;
    }
    const std::string code = is_fallback ? name + "_" + gpu + ".hsaco" : name + ".co";
    if (int status = start(directory + code, is_fallback ? "fallback" : "tuned", value))
      return status;
  }
  return 0;
}
