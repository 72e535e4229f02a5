# The self-test of add_hotswap_target: compiles a kernel with the plan and looks for its GPUs in the object. A compiler
# or launcher that bypasses HotSwap is detected now, not when a user starts the program. Done once for each plan and
# compiler; HOTSWAP_SKIP_SELF_TEST leaves it out.
include_guard(GLOBAL)

macro(_hotswap_self_test)
  string(MD5 tested "${hash};${CMAKE_HIP_COMPILER};${CMAKE_HIP_FLAGS};${launcher}")
  # A plan without pairs adds no GPU to look for. The kernel is in the language HIP.
  if(has_language AND sources AND NOT HOTSWAP_SKIP_SELF_TEST AND NOT HOTSWAP_SELF_TEST_${hash} STREQUAL tested)
    _hotswap_run_self_test("${hash}" "${arg_POLICY}" problem)
    if(problem)
      _hotswap_stop("the self-test failed (HOTSWAP_SKIP_SELF_TEST=ON leaves it out): ${problem}")
    endif()
    set(HOTSWAP_SELF_TEST_${hash} "${tested}" CACHE INTERNAL "Set-up with which HotSwap's self-test passed")
  endif()
endmacro()

# Besides its arguments it takes `sources`, `gpus` and `launcher` from the caller.
function(_hotswap_run_self_test hash policy problem)
  get_property(prefix GLOBAL PROPERTY HOTSWAP_PREFIX)
  set(directory "${CMAKE_BINARY_DIR}/.hotswap/self-test")
  # The declarations that clang requires; without HIP's headers it takes a tenth of the time.
  file(WRITE "${directory}/probe.hip" [[
struct dim3 { unsigned x, y, z; };
extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, struct ihipStream_t *);
extern "C" int __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, struct ihipStream_t **);
__attribute__((global)) void hotswap_probe(int *out) { *out = 1; }
]])
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
  set(CMAKE_HIP_ARCHITECTURES "${sources}")
  try_compile(compiled "${directory}" SOURCES "${directory}/probe.hip"
    CMAKE_FLAGS "-DCMAKE_HIP_COMPILER_LAUNCHER=${launcher}"
    COMPILE_DEFINITIONS -nogpuinc -fno-gpu-rdc -Xoffload-linker --hotswap-plan=${hash}
    OUTPUT_VARIABLE said COPY_FILE "${directory}/probe.a")
  if(NOT compiled)
    # Indented lines are shown unchanged.
    string(REPLACE "\n" "\n  " said "\n${said}")
    set(${problem} "a kernel could not be compiled with the plan.${said}" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND "${prefix}/bin/hotswap" list "${directory}/probe.a"
    RESULT_VARIABLE status OUTPUT_VARIABLE list ERROR_VARIABLE list_error)
  foreach(gpu IN LISTS gpus)
    # With another policy than `error` a GPU may rightly be absent.
    if(NOT status EQUAL 0 OR (policy MATCHES "^(error|compile)$" AND NOT list MATCHES "--${gpu}[^0-9a-z:-]"))
      set(${problem} "${gpu} is not in the object that ${CMAKE_HIP_COMPILER} made: something goes around HotSwap.\n\
${list}${list_error}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
endfunction()
