// A tools library for HIP programs: a module may call device functions of modules that were loaded before it. HIP defines no imports;
// this library does it when a code object is loaded, if its kernels have the registers that the functions need. It does nothing
// unless the user of the program asks for it:
//
//   HSA_TOOLS_LIB=libhook.so ./program    the runtime passes its table of functions to OnLoad
//   LD_PRELOAD=libhook.so ./program       the functions at the end take the place of the runtime's
#include <dlfcn.h>
#include <hotswap.h>
#include <hsa/hsa.h>
#define AMD_INTERNAL_BUILD // the next header finds the others beside itself
#include <hsa/hsa_api_trace.h>
#include <hsa/hsa_ven_amd_loader.h>

#include <cstdio>
#include <map>
#include <mutex>
#include <vector>

namespace {

// A code object that is loaded.
struct Object {
  hotswap_image *image;
  hsa_executable_t executable;
  hsa_agent_t agent;
  int64_t delta;
};

// Never destroyed: HIP unloads its modules when the process ends, after destructors of libraries.
std::mutex &mutex = *new std::mutex;
auto &readers = *new std::map<uint64_t, hotswap_image *>; // the bytes of each reader, copied: they belong to the program
auto &objects = *new std::vector<Object>;

// The runtime's own functions.
struct {
  decltype(&hsa_code_object_reader_create_from_memory) create;
  decltype(&hsa_code_object_reader_destroy) destroy_reader;
  decltype(&hsa_executable_load_agent_code_object) load;
  decltype(&hsa_executable_destroy) destroy;
} runtime;

template <class Function> void find(Function &function, const char *name) {
  if (!function)
    function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, name));
}

int define(hotswap_hsa_handle executable, hotswap_hsa_handle agent, const char *name, void *address) {
  return hsa_executable_agent_global_variable_define({executable.handle}, {agent.handle}, name, address);
}

// Defines what the image imports. What does not fit is told, and the runtime refuses the code object.
void bind(hsa_executable_t executable, hsa_agent_t agent, const hotswap_image *user) {
  hotswap_image_info info{};
  info.struct_size = sizeof info;
  if (hotswap_image_info_get(user, &info, nullptr) != HOTSWAP_OK || !info.imports)
    return;
  std::vector<const hotswap_image *> libraries;
  std::vector<int64_t> deltas;
  for (const Object &one : objects)
    if (one.agent.handle == agent.handle)
      libraries.push_back(one.image), deltas.push_back(one.delta);
  hotswap_binding *binding = nullptr;
  hotswap_error *error = nullptr;
  hotswap_status status = hotswap_binding_check(user, libraries.data(), libraries.size(), &binding, &error);
  if (status == HOTSWAP_OK)
    status = hotswap_binding_define(binding, define, {executable.handle}, {agent.handle}, deltas.data(), deltas.size(), &error);
  if (status != HOTSWAP_OK)
    fprintf(stderr, "hook: %s\n", hotswap_error_message(error));
  hotswap_error_free(error);
  hotswap_binding_free(binding);
}

int64_t load_delta(hsa_loaded_code_object_t object) {
  hsa_ven_amd_loader_1_01_pfn_t loader{};
  int64_t delta = 0;
  if (hsa_system_get_major_extension_table(HSA_EXTENSION_AMD_LOADER, 1, sizeof loader, &loader) == HSA_STATUS_SUCCESS)
    loader.hsa_ven_amd_loader_loaded_code_object_get_info(object, HSA_VEN_AMD_LOADER_LOADED_CODE_OBJECT_INFO_LOAD_DELTA, &delta);
  return delta;
}

hsa_status_t create(const void *bytes, size_t size, hsa_code_object_reader_t *reader) {
  find(runtime.create, "hsa_code_object_reader_create_from_memory");
  hsa_status_t status = runtime.create(bytes, size, reader);
  hotswap_image *image = nullptr;
  if (status == HSA_STATUS_SUCCESS && hotswap_image_from_memory(bytes, size, &image, nullptr) == HOTSWAP_OK) {
    std::lock_guard<std::mutex> guard(mutex);
    readers[reader->handle] = image;
  }
  return status;
}

hsa_status_t destroy_reader(hsa_code_object_reader_t reader) {
  find(runtime.destroy_reader, "hsa_code_object_reader_destroy");
  {
    std::lock_guard<std::mutex> guard(mutex);
    auto found = readers.find(reader.handle);
    if (found != readers.end())
      hotswap_image_free(found->second), readers.erase(found);
  }
  return runtime.destroy_reader(reader);
}

hsa_status_t load(hsa_executable_t executable, hsa_agent_t agent, hsa_code_object_reader_t reader, const char *options,
                  hsa_loaded_code_object_t *loaded) {
  find(runtime.load, "hsa_executable_load_agent_code_object");
  std::lock_guard<std::mutex> guard(mutex);
  auto found = readers.find(reader.handle);
  hsa_loaded_code_object_t object{};
  if (found != readers.end())
    bind(executable, agent, found->second);
  hsa_status_t status = runtime.load(executable, agent, reader, options, &object);
  if (status == HSA_STATUS_SUCCESS && found != readers.end())
    objects.push_back({hotswap_image_retain(found->second), executable, agent, load_delta(object)});
  if (loaded)
    *loaded = object;
  return status;
}

hsa_status_t destroy(hsa_executable_t executable) {
  find(runtime.destroy, "hsa_executable_destroy");
  {
    std::lock_guard<std::mutex> guard(mutex);
    for (size_t i = objects.size(); i-- > 0;)
      if (objects[i].executable.handle == executable.handle)
        hotswap_image_free(objects[i].image), objects.erase(objects.begin() + i);
  }
  return runtime.destroy(executable);
}

// Puts a function into the table, and keeps the one that was there: another tool's, or the runtime's.
template <class Function> void replace(Function &entry, Function &kept, Function own) {
  kept = entry;
  entry = own;
}

} // namespace

extern "C" bool OnLoad(void *table, uint64_t, uint64_t, const char *const *) {
  CoreApiTable *core = static_cast<HsaApiTable *>(table)->core_;
  replace(core->hsa_code_object_reader_create_from_memory_fn, runtime.create, &create);
  replace(core->hsa_code_object_reader_destroy_fn, runtime.destroy_reader, &destroy_reader);
  replace(core->hsa_executable_load_agent_code_object_fn, runtime.load, &load);
  replace(core->hsa_executable_destroy_fn, runtime.destroy, &destroy);
  return true;
}
extern "C" void OnUnload() {}

extern "C" hsa_status_t hsa_code_object_reader_create_from_memory(const void *bytes, size_t size, hsa_code_object_reader_t *reader) {
  return create(bytes, size, reader);
}
extern "C" hsa_status_t hsa_code_object_reader_destroy(hsa_code_object_reader_t reader) { return destroy_reader(reader); }
extern "C" hsa_status_t hsa_executable_load_agent_code_object(hsa_executable_t executable, hsa_agent_t agent,
                                                             hsa_code_object_reader_t reader, const char *options,
                                                             hsa_loaded_code_object_t *loaded) {
  return load(executable, agent, reader, options, loaded);
}
extern "C" hsa_status_t hsa_executable_destroy(hsa_executable_t executable) { return destroy(executable); }
