# The self-test of add_hotswap_target: compiles a kernel with the plan and looks for its GPUs in the object. A compiler
# or launcher that bypasses HotSwap is detected now, not when a user starts the program. Done once for each plan and
# compiler; HOTSWAP_SKIP_SELF_TEST leaves it out.
include_guard(GLOBAL)

macro(_hotswap_self_test)
  _hotswap_probe_launcher(${real} "${launcher}" probe_launcher)
  string(MD5 tested "${hash};${CMAKE_HIP_COMPILER};${CMAKE_HIP_COMPILE_OBJECT};${CMAKE_HIP_FLAGS};${probe_launcher}")
  # A plan without pairs adds no GPU to look for. The kernel is in the language HIP.
  if(has_language AND sources AND NOT HOTSWAP_SKIP_SELF_TEST AND NOT HOTSWAP_SELF_TEST_${hash} STREQUAL tested)
    _hotswap_run_self_test("${hash}" "${arg_POLICY}" "${probe_launcher}" problem)
    if(problem)
      _hotswap_stop("the self-test failed (HOTSWAP_SKIP_SELF_TEST=ON leaves it out): ${problem}")
    endif()
    set(HOTSWAP_SELF_TEST_${hash} "${tested}" CACHE INTERNAL "Set-up with which HotSwap's self-test passed")
  endif()
endmacro()

# HotSwap's launcher with the one that the target has. Left out are compiler caches, which would answer for the probe and count it, and
# programs that are not there yet.
function(_hotswap_probe_launcher target launcher result)
  get_target_property(own ${target} HIP_COMPILER_LAUNCHER)
  set(words ${launcher})
  if(own AND NOT own MATCHES "[$]<")
    list(GET own 0 program)
    find_program(found "${program}" NO_CACHE)
    get_filename_component(name "${program}" NAME)
    if(found AND NOT name MATCHES "ccache|buildcache|cachepot")
      list(APPEND words ${own})
    endif()
  endif()
  set(${result} "${words}" PARENT_SCOPE)
endfunction()

# Besides its arguments it takes `sources` and `gpus` from the caller.
function(_hotswap_run_self_test hash policy launcher problem)
  get_property(prefix GLOBAL PROPERTY HOTSWAP_PREFIX)
  set(directory "${CMAKE_BINARY_DIR}/.hotswap/self-test")
  # The declarations that clang requires; without HIP's headers it takes a tenth of the time, and its code needs no device library.
  # Without directives HotSwap sees that it is the same for all GPUs without asking the preprocessor.
  file(WRITE "${directory}/probe.hip" [[
struct dim3 { unsigned x, y, z; };
extern "C" int hipLaunchKernel(const void *, dim3, dim3, void **, unsigned long, struct ihipStream_t *);
extern "C" int __hipPopCallConfiguration(dim3 *, dim3 *, unsigned long *, struct ihipStream_t **);
__attribute__((global)) void hotswap_probe(int *out) { *out = 1; }
]])
  file(REMOVE "${directory}/probe.o")
  set(options -nogpuinc -nogpulib -fno-gpu-rdc -Xoffload-linker --hotswap-plan=${hash})
  _hotswap_probe_command("${directory}" "${options}" command)
  if(command)
    execute_process(COMMAND ${command} WORKING_DIRECTORY "${directory}"
      RESULT_VARIABLE status OUTPUT_VARIABLE said ERROR_VARIABLE said)
  else()
    _hotswap_try_probe("${directory}" "${options}" status said)
  endif()
  if(NOT status EQUAL 0)
    # Indented lines are shown unchanged.
    string(REPLACE "\n" "\n  " said "\n${said}")
    set(${problem} "a kernel could not be compiled with the plan.${said}" PARENT_SCOPE)
    return()
  endif()
  execute_process(COMMAND "${prefix}/bin/hotswap" list "${directory}/probe.o"
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

# The command by which CMake would compile the probe: its rule for objects with the launcher and the project's flags. Empty where only
# CMake can write it, because a variable adds to the rule, or a shell would change the words.
function(_hotswap_probe_command directory options result)
  set(${result} "" PARENT_SCOPE)
  string(TOUPPER "${CMAKE_BUILD_TYPE}" configuration)
  set(flags "${CMAKE_HIP_FLAGS} ${CMAKE_HIP_FLAGS_${configuration}}")
  string(REGEX REPLACE "<(CMAKE_HIP_COMPILER|DEFINES|INCLUDES|FLAGS|OBJECT|SOURCE)>" "" text "${CMAKE_HIP_COMPILE_OBJECT}")
  if(NOT CMAKE_HIP_COMPILE_OBJECT MATCHES "<CMAKE_HIP_COMPILER> .*<FLAGS>" OR "${text}${flags}" MATCHES "[][<>$`;&|*?(){}~#\n]"
     OR CMAKE_HIP_COMPILER_ARG1 OR CMAKE_HIP_COMPILER_TARGET OR CMAKE_HIP_COMPILER_EXTERNAL_TOOLCHAIN
     OR CMAKE_SYSROOT OR CMAKE_SYSROOT_COMPILE OR NOT "${CMAKE_HIP_COMPILER_ID}" STREQUAL "Clang")
    return()
  endif()
  separate_arguments(flags UNIX_COMMAND "${flags}")
  list(TRANSFORM sources PREPEND "--offload-arch=" OUTPUT_VARIABLE gpus)
  separate_arguments(rule UNIX_COMMAND "${CMAKE_HIP_COMPILE_OBJECT}")
  # The host's code has nothing to say here, and takes a third of the time.
  list(APPEND options --offload-device-only --gpu-bundle-output)
  set(command ${launcher})
  foreach(word IN LISTS rule)
    if(word STREQUAL "<FLAGS>")
      list(APPEND command ${flags} ${gpus} ${options})
    elseif(NOT word MATCHES "^<(DEFINES|INCLUDES)>$")
      string(REPLACE "<CMAKE_HIP_COMPILER>" "${CMAKE_HIP_COMPILER}" word "${word}")
      string(REPLACE "<OBJECT>" "${directory}/probe.o" word "${word}")
      string(REPLACE "<SOURCE>" "${directory}/probe.hip" word "${word}")
      list(APPEND command "${word}")
    endif()
  endforeach()
  set(${result} "${command}" PARENT_SCOPE)
endfunction()

# Lets CMake compile the probe in a project of its own, which takes longer than the probe.
function(_hotswap_try_probe directory options status said)
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
  set(CMAKE_HIP_ARCHITECTURES "${sources}")
  try_compile(compiled "${directory}" SOURCES "${directory}/probe.hip"
    CMAKE_FLAGS "-DCMAKE_HIP_COMPILER_LAUNCHER=${launcher}"
    COMPILE_DEFINITIONS ${options}
    OUTPUT_VARIABLE output COPY_FILE "${directory}/probe.o")
  set(${status} 1 PARENT_SCOPE)
  if(compiled)
    set(${status} 0 PARENT_SCOPE)
  endif()
  set(${said} "${output}" PARENT_SCOPE)
endfunction()
