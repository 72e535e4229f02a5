# PROFILE and PROFDATA of add_hotswap_target: counters in host and device code, and their use.
#
# Additional arguments for the device code (its profile runtime, the drain that writes the counters) are added by
# hotswap-clang below compiler caches. The argument --hotswap-drain=1 requests them: where HotSwap was bypassed, the
# real device linker fails on it.
#
# Invariant: only arguments that compiler caches keep are written here; ccache drops `-Xarch_…` with the following
# argument, so a profile for a single GPU is refused together with ccache.
# Absent on purpose: merging (`hotswap profile merge` does).
include_guard(GLOBAL)

macro(_hotswap_check_profile)
  if(arg_PROFILE AND NOT arg_PROFILE MATCHES "^(generate|coverage|use)$")
    _hotswap_stop("PROFILE `${arg_PROFILE}` is not known; write generate, coverage or use.")
  elseif(arg_PROFILE STREQUAL "use" AND NOT arg_PROFDATA)
    _hotswap_stop("PROFILE use needs PROFDATA <file>; the target <target>-profdata of a build with PROFILE generate makes one.")
  elseif(arg_PROFDATA AND NOT arg_PROFILE STREQUAL "use")
    _hotswap_stop("PROFDATA is for PROFILE use.")
  endif()
endmacro()

# Sets `profile_files`, on which the build outputs depend.
macro(_hotswap_add_profile)
  set(profile_files "")
  if(arg_PROFILE STREQUAL "use")
    _hotswap_use_profile()
  elseif(arg_PROFILE)
    _hotswap_generate_profile()
  endif()
endmacro()

macro(_hotswap_generate_profile)
  set(raw "${CMAKE_CURRENT_BINARY_DIR}/${target}.profraw")
  set(profile_files "${prefix}/lib/hotswap/libhotswap-profile-drain.a")
  if(NOT EXISTS "${profile_files}")
    _hotswap_stop("${profile_files} is missing: install HotSwap again.")
  endif()
  if(arg_PROFILE STREQUAL "coverage")
    set(counters "-fprofile-instr-generate=${raw}/default_%m.profraw" -fcoverage-mapping)
  else()
    set(counters "-fprofile-generate=${raw}")
  endif()
  set(drain "SHELL:--start-no-unused-arguments -Xoffload-linker --hotswap-drain=1 --end-no-unused-arguments")
  _hotswap_profile_languages(languages)
  target_compile_options(${real} PRIVATE "$<$<COMPILE_LANGUAGE:${languages}>:${counters}>"
    "$<$<COMPILE_LANGUAGE:HIP>:${drain}>")
  if(links)
    target_link_options(${real} PRIVATE "$<$<LINK_LANGUAGE:HIP>:${counters};${drain}>")
  else()
    # Every program that links the library must have the drain; a launcher for the library alone would leave it out.
    # Without a HIP source of its own a program's link is HIP's only by --hip-link.
    set(required "LINKER:--require-defined=hotswap_profile_drain")
    set_property(TARGET ${real} APPEND PROPERTY INTERFACE_LINK_OPTIONS
      "$<BUILD_INTERFACE:$<$<LINK_LANGUAGE:HIP>:--hip-link;${counters};${drain};${required}>>")
  endif()
  execute_process(COMMAND "${CMAKE_HIP_COMPILER}" -print-prog-name=llvm-profdata
    OUTPUT_VARIABLE profdata OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  get_filename_component(profdata "${profdata}" DIRECTORY)
  if(profdata)
    set(profdata --llvm-bin "${profdata}")
  endif()
  add_custom_target(${target}-profdata VERBATIM
    COMMAND "${prefix}/bin/hotswap" profile merge ${profdata} -o "${CMAKE_CURRENT_BINARY_DIR}/${target}.profdata" "${raw}"
    COMMENT "Merging the profiles of ${target}")
  if(arg_PROFILE STREQUAL "coverage" AND links)
    add_custom_target(${target}-coverage VERBATIM
      COMMAND "${prefix}/bin/hotswap" profile report ${profdata} "$<TARGET_FILE:${real}>" --profile "${raw}"
        --html "${CMAKE_CURRENT_BINARY_DIR}/${target}-coverage"
      COMMENT "Reporting the coverage of ${target}")
  endif()
endmacro()

macro(_hotswap_use_profile)
  set(single "")
  foreach(entry IN LISTS arg_PROFDATA)
    if(entry MATCHES "^(gfx[0-9a-z:+-]+)=(.+)$")
      set(gpu "${CMAKE_MATCH_1}")
      get_filename_component(file "${CMAKE_MATCH_2}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
      get_target_property(architectures ${real} HIP_ARCHITECTURES)
      if(NOT gpu IN_LIST architectures)
        _hotswap_stop("PROFDATA names ${gpu}, but HIP_ARCHITECTURES is ${architectures}.")
      endif()
      list(APPEND single "SHELL:-Xarch_${gpu} \"-fprofile-use=${file}\"")
    else()
      get_filename_component(file "${entry}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")
      list(APPEND general "-fprofile-use=${file}")
    endif()
    if(NOT EXISTS "${file}")
      _hotswap_stop("PROFDATA ${file} is not there; the target <target>-profdata of a build with PROFILE generate makes it.")
    endif()
    list(APPEND profile_files "${file}")
  endforeach()
  list(LENGTH general count)
  if(count GREATER 1)
    _hotswap_stop("PROFDATA names ${count} files for all; merge them (`hotswap profile merge`), or write <gpu>=<file>.")
  endif()
  get_target_property(caches ${real} HIP_COMPILER_LAUNCHER)
  if(single AND "${caches}" MATCHES "ccache")
    _hotswap_stop("PROFDATA for a single GPU does not work with ${caches}, which drops -Xarch_<gpu> and the word behind it; \
give one file for all GPUs, or no launcher to this target.")
  endif()
  _hotswap_profile_languages(languages)
  target_compile_options(${real} PRIVATE "$<$<COMPILE_LANGUAGE:${languages}>:${general}>" "$<$<COMPILE_LANGUAGE:HIP>:${single}>")
endmacro()

# HIP, and those languages of the host whose compiler is the same LLVM: only it can share profiles.
function(_hotswap_profile_languages result)
  set(list HIP)
  string(REGEX MATCH "^[0-9]+" major "${CMAKE_HIP_COMPILER_VERSION}")
  foreach(language IN ITEMS C CXX)
    if(CMAKE_${language}_COMPILER_ID STREQUAL "Clang" AND CMAKE_${language}_COMPILER_VERSION MATCHES "^${major}[.]")
      list(APPEND list ${language})
    endif()
  endforeach()
  list(JOIN list "," list)
  set(${result} "${list}" PARENT_SCOPE)
endfunction()
