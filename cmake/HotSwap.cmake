# add_hotswap_target: the device code of targets is retargeted while they are built.
#
#   add_hotswap_target(<target> [<target> ...]
#     [RETARGET gfx1030=>gfx1031,gfx1032 [gfx900=>gfx902 ...]] [COALESCE] [WARM_HEADERS auto|implicit|off]
#     [<option of the plan> ...] [REPORT <file>]
#     [PROFILE generate|coverage|use] [PROFDATA <file> [<gpu>=<file> ...]])
#
# RETARGET  The others are made from the code object of the first GPU; the first one must be in
#           HIP_ARCHITECTURES. A list variable may be given, quoted or not.
# COALESCE  Of the GPUs in HIP_ARCHITECTURES that are identical siblings only the first is compiled,
#           and the others are made from it; sources whose text depends on the GPU are compiled for each.
#           Set HIP_ARCHITECTURES of the target before the call.
# WARM_HEADERS  HIP sources read headers that many of them begin with from precompiled headers in HotSwap's cache, where the
#           objects stay clang's own: auto, or implicit for those alone that clang itself includes. The default is the
#           variable HOTSWAP_WARM_HEADERS where the call is, else off; set before the end of the directory that calls
#           find_package(HotSwap), the variable is also that of targets with device code in it and below that no call names.
# The other options of the plan (PATCHES, POLICY ...) are in HotSwapOptions.cmake.
# REPORT    After each link, `hotswap inspect --format json` of the result is written to this file
#           (relative to the current binary directory). Generator expressions are allowed; with a generator of
#           several configurations the file must depend on $<CONFIG>.
# PROFILE   generate or coverage: host and device code count what they execute, and the program writes
#           raw profiles into <target>.profraw of the current binary directory when it ends; the target
#           <target>-profdata merges them into <target>.profdata; with coverage, <target>-coverage writes
#           <target>-coverage/index.html. use: code is optimised by PROFDATA.
# PROFDATA  With PROFILE use: the merged profile for host and devices; another one for single GPUs.
#
# A plan for a directory: the variable HOTSWAP_RETARGET, set before the end of the directory that calls find_package(HotSwap),
# is the plan of all targets with device code in it and below that have none (HotSwapDirectory.cmake).
#
# Two modes, chosen by the project's HIP compiler:
#   compiler  CMAKE_HIP_COMPILER is hotswap-clang or hotswap-clang++;
#   launcher  it is another clang: this target's commands are started by `hotswap exec --`, before
#             launchers that the target has (ccache).
#
# The plan becomes a hash in the target's command lines, so that a changed plan or a changed HotSwap is a changed
# command for ninja, make, ccache and sccache; so does the toolchain (HotSwapCacheKey.cmake). The file for the hash is in <build>/.hotswap/plans. Properties that can
# still change after the call (sources, architectures, launchers, IPO) are checked when the top directory has been read
# (HotSwapFinish.cmake).
#
# Invariants: targets that were not named stay unchanged; every refusal is one sentence.
# Absent on purpose: deciding which pairs are possible (`hotswap plan` does).
include_guard(GLOBAL)
cmake_policy(VERSION 3.21...4.1)
include("${CMAKE_CURRENT_LIST_DIR}/HotSwapCacheKey.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/HotSwapDeviceCode.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/HotSwapDirectory.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/HotSwapFinish.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/HotSwapOptions.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/HotSwapProfile.cmake")
include("${CMAKE_CURRENT_LIST_DIR}/HotSwapSelfTest.cmake")

get_filename_component(_hotswap_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set_property(GLOBAL PROPERTY HOTSWAP_PREFIX "${_hotswap_prefix}")
unset(_hotswap_prefix)

function(add_hotswap_target target)
  set(targets "${target}")
  set(words ${ARGN})
  # Further targets are names of targets before the first word that is none.
  while(words)
    list(GET words 0 word)
    if(NOT TARGET "${word}")
      break()
    endif()
    list(APPEND targets "${word}")
    list(POP_FRONT words)
  endwhile()
  list(LENGTH targets count)
  if(count GREATER 1 AND "REPORT" IN_LIST words)
    _hotswap_stop("REPORT names one file, but the call names ${count} targets; make a call for each of them.")
  endif()
  foreach(target IN LISTS targets)
    _hotswap_one_target("${target}" ${words})
  endforeach()
endfunction()

function(_hotswap_one_target target)
  _hotswap_plan_options()
  cmake_parse_arguments(PARSE_ARGV 1 arg "${plan_switches};COALESCE" "${plan_values};REPORT;PROFILE;WARM_HEADERS"
    "RETARGET;${plan_lists};PROFDATA")
  get_property(prefix GLOBAL PROPERTY HOTSWAP_PREFIX)
  _hotswap_check_words()
  _hotswap_check_profile()
  _hotswap_check_target()
  _hotswap_check_compiler()
  _hotswap_add_profile()
  _hotswap_make_plan()
  if(hash)
    _hotswap_self_test()
    _hotswap_add_manifest()
  endif()
  if(hash OR warm)
    _hotswap_add_words()
  endif()
  if(hash OR warm OR arg_PROFILE)
    _hotswap_add_report()
    _hotswap_finish_later()
  endif()
endfunction()

# The macros below are the steps of add_hotswap_target and share its variables.

# A function, unlike the steps: a macro would expand the text of other programs in an argument.
function(_hotswap_stop text)
  message(FATAL_ERROR "add_hotswap_target(${target}): ${text}")
endfunction()

macro(_hotswap_check_words)
  # What is asked of device links needs no pair.
  set(_hotswap_links ${arg_DEVICE_LINK} ${arg_DEVICE_SYMBOLS} ${arg_DEVICE_EXPORTS} ${arg_DEVICE_IMPORTS})
  if(arg_UNPARSED_ARGUMENTS)
    list(JOIN plan_switches ", " switches)
    list(JOIN plan_lists ", " lists)
    list(JOIN plan_values ", " values)
    _hotswap_stop("`${arg_UNPARSED_ARGUMENTS}` is not understood; the words are RETARGET, ${switches}, COALESCE, ${lists}, ${values}, \
REPORT, PROFILE, PROFDATA and WARM_HEADERS.")
  elseif("${arg_RETARGET}" MATCHES "\\$<")
    _hotswap_stop("RETARGET is a generator expression, but the plan is made when CMake configures, before there is a \
configuration; use if(), or a target for each plan.")
  elseif(NOT arg_RETARGET AND NOT arg_COALESCE AND NOT arg_PROFILE AND NOT _hotswap_links AND NOT DEFINED arg_WARM_HEADERS)
    _hotswap_stop("RETARGET names no pair; write for example RETARGET gfx1030=>gfx1031.")
  elseif(arg_KEYWORDS_MISSING_VALUES)
    _hotswap_stop("${arg_KEYWORDS_MISSING_VALUES} has no value.")
  endif()
  foreach(keyword IN LISTS plan_values)
    # Not `if(arg_POLICY)`: OFF, 0 and NO are values, too, and as wrong as others.
    if(NOT "${arg_${keyword}}" STREQUAL "" AND NOT "${arg_${keyword}}" IN_LIST words_${keyword})
      list(JOIN words_${keyword} ", " known)
      string(REGEX REPLACE ", ([^,]+)$" " and \\1" known "${known}")
      _hotswap_stop("${keyword} `${arg_${keyword}}` is not known; the values are ${known}.")
    endif()
  endforeach()
  if("${arg_POLICY}" STREQUAL "")
    set(arg_POLICY error)
  endif()
  set(warm "${HOTSWAP_WARM_HEADERS}")
  if(DEFINED arg_WARM_HEADERS)
    set(warm "${arg_WARM_HEADERS}")
  endif()
  if(NOT warm MATCHES "^(auto|implicit|off)?$")
    _hotswap_stop("WARM_HEADERS `${warm}` is not known; the values are auto, implicit and off.")
  elseif(warm STREQUAL "off")
    set(warm "")
  endif()
endmacro()

macro(_hotswap_check_target)
  if(NOT TARGET "${target}")
    _hotswap_stop("there is no such target; call it after add_executable or add_library.")
  endif()
  get_target_property(real "${target}" ALIASED_TARGET)
  if(NOT real)
    set(real "${target}")
  endif()
  get_target_property(type "${real}" TYPE)
  get_target_property(imported "${real}" IMPORTED)
  get_target_property(earlier "${real}" HOTSWAP_PLAN)
  get_target_property(home "${real}" SOURCE_DIR)
  if(imported)
    _hotswap_stop("the target is imported: its code objects are made already (see `hotswap retarget`).")
  elseif(type MATCHES "^(EXECUTABLE|SHARED_LIBRARY|MODULE_LIBRARY)$")
    set(links TRUE)
  elseif(type MATCHES "^(STATIC_LIBRARY|OBJECT_LIBRARY)$")
    set(links FALSE)
  else()
    _hotswap_stop("the target compiles nothing (${type}); name an executable or a library.")
  endif()
  if(earlier)
    _hotswap_stop("the target has a plan already (${earlier}); name all pairs in one call.")
  endif()
  get_property(is_multi GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
  if(arg_REPORT AND is_multi AND NOT arg_REPORT MATCHES "\\$<CONFIG>")
    _hotswap_stop("REPORT names one file for all configurations; write for example REPORT $<CONFIG>/${arg_REPORT}.")
  endif()
  if(arg_REPORT AND type STREQUAL "OBJECT_LIBRARY")
    _hotswap_stop("REPORT needs a target that makes a file; this one is an object library.")
  elseif(arg_REPORT AND NOT home STREQUAL CMAKE_CURRENT_SOURCE_DIR)
    _hotswap_stop("REPORT needs the call to stand in the directory of the target (${home}).")
  endif()
endmacro()

macro(_hotswap_check_compiler)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  set(has_language FALSE)
  if("HIP" IN_LIST languages AND CMAKE_HIP_COMPILER)
    set(has_language TRUE)
  endif()
  # C++ sources that hip::device compiles as HIP need no language HIP.
  _hotswap_sources(${real} hip cxx)
  _hotswap_hip_in_cxx(${real} "${cxx}" hip_in_cxx)
  if(NOT has_language AND NOT hip_in_cxx)
    _hotswap_stop("HIP is not enabled here; write enable_language(HIP) after find_package(HotSwap).")
  elseif(CMAKE_HIP_PLATFORM AND NOT CMAKE_HIP_PLATFORM STREQUAL "amd")
    _hotswap_stop("CMAKE_HIP_PLATFORM is ${CMAKE_HIP_PLATFORM}; only amd has AMDGPU code objects.")
  endif()
  set(launcher "")
  if(has_language)
    _hotswap_launcher(CMAKE_HIP_COMPILER "${CMAKE_HIP_COMPILER}" launcher)
  endif()
endmacro()

# The words that start a compiler with HotSwap; none for hotswap-clang.
function(_hotswap_launcher variable compiler result)
  get_property(prefix GLOBAL PROPERTY HOTSWAP_PREFIX)
  get_filename_component(ours "${prefix}/bin/hotswap-clang" REALPATH)
  get_filename_component(real "${compiler}" REALPATH)
  get_filename_component(name "${real}" NAME)
  if(name MATCHES "^hipcc")
    # It chooses its clang by this variable.
    set(${result} "${CMAKE_COMMAND};-E;env;HIP_CLANG_PATH=${prefix}/lib/hotswap/clang" PARENT_SCOPE)
  elseif(NOT name STREQUAL "hotswap-clang")
    set(${result} "${prefix}/bin/hotswap;exec;--" PARENT_SCOPE)
  elseif(real STREQUAL ours)
    set(${result} "" PARENT_SCOPE)
  else()
    _hotswap_stop("${variable} is ${compiler}, but find_package found the HotSwap in ${prefix}; \
use one of them (HotSwap_DIR, ${variable}) in a new build directory.")
  endif()
endfunction()

# Writes the plan to its file and sets its hash, which is empty for an empty plan; `hotswap plan` refuses impossible
# ones.
macro(_hotswap_make_plan)
  foreach(name IN ITEMS hash words sources gpus plan_file bracketed)
    set(${name} "")
  endforeach()
  set(tools "${prefix}/bin/hotswap" "${prefix}/bin/hotswap-clang" "${prefix}/libexec/hotswap/lld")
  _hotswap_plan_words()
  if(plan_words OR _hotswap_links)
    _hotswap_write_plan()
  endif()
  if(DEFINED arg_WARM_HEADERS)
    set_target_properties(${real} PROPERTIES HOTSWAP_WARM_HEADERS "${arg_WARM_HEADERS}")
  endif()
  if(warm)
    string(APPEND words " -Xoffload-linker --hotswap-warm-headers=${warm}")
  endif()
endmacro()

macro(_hotswap_plan_words)
  set(plan_words "")
  if(arg_COALESCE)
    get_target_property(architectures "${real}" HIP_ARCHITECTURES)
    # Other values (OFF, native, generator expressions) are no list of GPUs: each is compiled for itself.
    if(architectures MATCHES "^gfx[0-9a-z;:+-]+$")
      list(JOIN architectures "," architectures)
      list(APPEND plan_words --coalesce "${architectures}")
    elseif(NOT arg_RETARGET)
      message(STATUS "add_hotswap_target(${target}): HIP_ARCHITECTURES (${architectures}) names no GPUs to coalesce")
    endif()
  endif()
  if(arg_RETARGET)
    # Joined again: an element that was quoted in the call may contain several pairs.
    list(JOIN arg_RETARGET " " pairs)
    list(APPEND plan_words "${pairs}")
  endif()
endmacro()

macro(_hotswap_write_plan)
  foreach(keyword IN LISTS plan_switches plan_values plan_lists)
    # The value `off` is false for if().
    if(arg_${keyword} OR (keyword IN_LIST plan_values AND DEFINED arg_${keyword}))
      list(APPEND plan_words "${option_${keyword}}")
      if(NOT keyword IN_LIST plan_switches)
        list(JOIN arg_${keyword} "," value)
        list(APPEND plan_words "${value}")
      endif()
    endif()
  endforeach()
  execute_process(
    COMMAND "${prefix}/bin/hotswap" plan ${plan_words}
            --out-dir "${CMAKE_BINARY_DIR}/.hotswap/plans" --format json
    RESULT_VARIABLE status OUTPUT_VARIABLE json ERROR_VARIABLE said)
  string(STRIP "${said}" said)
  if(NOT status EQUAL 0)
    _hotswap_stop("${said}")
  elseif(said)
    message(WARNING "add_hotswap_target(${target}): ${said}")
  endif()
  string(JSON count LENGTH "${json}" pairs)
  if(count EQUAL 0 AND NOT _hotswap_links)
    message(STATUS "add_hotswap_target(${target}): no two GPUs of ${architectures} are identical siblings")
  else()
    string(JSON hash GET "${json}" hash)
    set(words "-Xoffload-linker --hotswap-plan=${hash}")
    if(arg_COALESCE)
      string(APPEND words " -Xoffload-linker --hotswap-coalesce=1")
    endif()
    if(has_language)
      _hotswap_toolchain_word("${CMAKE_HIP_COMPILER}" "${CMAKE_HIP_FLAGS}" toolchain_word)
    else()
      _hotswap_toolchain_word("${CMAKE_CXX_COMPILER}" "${CMAKE_CXX_FLAGS}" toolchain_word)
    endif()
    string(APPEND words "${toolchain_word}")
    if(count GREATER 0)
      _hotswap_pairs("${json}" source sources)
      _hotswap_pairs("${json}" target gpus)
    endif()
    set(plan_file "${CMAKE_BINARY_DIR}/.hotswap/plans/${hash}.plan")
    # The hash covers HotSwap's own version, so another HotSwap has another hash.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${plan_file}" ${tools})
  endif()
endmacro()

# One side (source or target) of the pairs that `hotswap plan` printed, each GPU once.
function(_hotswap_pairs json side result)
  string(JSON count LENGTH "${json}" pairs)
  math(EXPR last "${count} - 1")
  set(names "")
  foreach(index RANGE ${last})
    string(JSON name GET "${json}" pairs ${index} ${side})
    list(APPEND names "${name}")
  endforeach()
  list(REMOVE_DUPLICATES names)
  set(${result} "${names}" PARENT_SCOPE)
endfunction()

# The bracket: where a command makes no device link, clang would warn about an unused argument.
macro(_hotswap_add_words)
  set(bracketed "SHELL:--start-no-unused-arguments ${words} --end-no-unused-arguments")
  target_compile_options(${real} PRIVATE "$<$<COMPILE_LANGUAGE:HIP>:${bracketed}>")
  if(links)
    target_link_options(${real} PRIVATE "$<$<LINK_LANGUAGE:HIP>:${bracketed}>")
  endif()
endmacro()

# The manifest is an object on the link line (in an archive it would never be loaded), followed by the archive with the
# registrars. A library without a link of its own passes both on.
macro(_hotswap_add_manifest)
  set(manifest_file "${CMAKE_BINARY_DIR}/.hotswap/${hash}.manifest.o")
  if(NOT EXISTS "${manifest_file}")
    execute_process(COMMAND "${prefix}/bin/hotswap" manifest --plan "${hash}" -o "${manifest_file}"
      WORKING_DIRECTORY "${CMAKE_BINARY_DIR}" RESULT_VARIABLE status ERROR_VARIABLE said)
    if(NOT status EQUAL 0)
      _hotswap_stop("${said}")
    endif()
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${manifest_file}")
  if(NOT TARGET HotSwap::manifest_${hash})
    add_library(HotSwap::manifest_${hash} OBJECT IMPORTED GLOBAL)
    set_target_properties(HotSwap::manifest_${hash} PROPERTIES IMPORTED_OBJECTS "${manifest_file}")
  endif()
  # Properties, since a project may use either form of target_link_libraries, but not both.
  set(items "$<TARGET_OBJECTS:HotSwap::manifest_${hash}>" HotSwap::registry)
  if(links)
    set_property(TARGET ${real} APPEND PROPERTY LINK_LIBRARIES ${items})
  else()
    _hotswap_local_interface(local)
    list(TRANSFORM items REPLACE "(.+)" "$<${local}:\\1>")
    set_property(TARGET ${real} APPEND PROPERTY INTERFACE_LINK_LIBRARIES ${items})
  endif()
endmacro()

# The interface for the targets of this build alone: export(TARGETS) passes BUILD_INTERFACE on to other projects, where
# neither the manifest's target nor the plan exists.
function(_hotswap_local_interface result)
  if(CMAKE_VERSION VERSION_LESS 3.26)
    set(${result} BUILD_INTERFACE PARENT_SCOPE)
  else()
    set(${result} BUILD_LOCAL_INTERFACE PARENT_SCOPE)
  endif()
endfunction()

macro(_hotswap_add_report)
  if(arg_REPORT)
    set(report "${arg_REPORT}")
    cmake_path(IS_ABSOLUTE report is_absolute)
    if(NOT is_absolute)
      set(report "${CMAKE_CURRENT_BINARY_DIR}/${report}")
    endif()
    cmake_path(GET report PARENT_PATH report_directory)
    add_custom_command(TARGET ${real} POST_BUILD BYPRODUCTS "${report}" VERBATIM
      COMMAND "${CMAKE_COMMAND}" -E make_directory "${report_directory}"
      COMMAND "${prefix}/bin/hotswap" inspect --format json "$<TARGET_FILE:${real}>" > "${report}")
  endif()
endmacro()

macro(_hotswap_finish_later)
  set_target_properties(${real} PROPERTIES
    HOTSWAP_PLAN "${hash}${arg_PROFILE}${warm}"
    HOTSWAP_GPUS "${sources}"
    HOTSWAP_POLICY "${arg_POLICY}"
    HOTSWAP_LINKS "${links}"
    HOTSWAP_LAUNCHER "${launcher}"
    HOTSWAP_PROFILE "${arg_PROFILE}"
    HOTSWAP_HIP_IN_CXX "${hip_in_cxx}"
    HOTSWAP_DEPENDS "${plan_file};${tools};${profile_files}"
    HOTSWAP_FLAGS "${CMAKE_HIP_FLAGS}"
    HOTSWAP_WORDS "${bracketed}")
  get_property(scheduled GLOBAL PROPERTY HOTSWAP_TARGETS)
  set_property(GLOBAL APPEND PROPERTY HOTSWAP_TARGETS ${real})
  if(NOT scheduled)
    cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL _hotswap_finish)
  endif()
endmacro()
