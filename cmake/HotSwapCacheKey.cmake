# The toolchain in the commands of compiler caches. A cache sees the file hotswap-clang++ and not the clang behind it, so the
# identity of the toolchain (hotswap-clang++ --hotswap-identity) is a word of the command: of targets with a plan always, and of others that
# HotSwap's compiler compiles through a launcher (ccache, sccache). The word has no other effect.
#
# Where clang or one of its tools changes, CMake configures again (if their files are newer than the build tree's), and commands with another
# identity compile again.
include_guard(GLOBAL)

# The word for a command of that compiler; empty where HotSwap cannot tell.
function(_hotswap_toolchain_word compiler flags result)
  get_property(prefix GLOBAL PROPERTY HOTSWAP_PREFIX)
  get_filename_component(real "${compiler}" REALPATH)
  get_filename_component(name "${real}" NAME)
  set(clang "")
  if(NOT name MATCHES "^(hotswap-clang$|hipcc)")
    # Started by `hotswap exec --`, which takes this clang.
    set(clang "${compiler}")
  endif()
  # The options that name a ROCm or its device libraries.
  string(REGEX MATCHALL "-[-a-z]+(path|dir)=[^ ]+" paths "${flags}")
  string(MAKE_C_IDENTIFIER "HOTSWAP_IDENTITY_${clang}${paths}" key)
  get_property(identity GLOBAL PROPERTY "${key}")
  if(NOT identity)
    _hotswap_ask_identity("${clang}" "${paths}" identity)
    set_property(GLOBAL PROPERTY "${key}" "${identity}")
  endif()
  set(word "")
  if(NOT identity STREQUAL "none")
    set(word " -Xoffload-linker --hotswap-toolchain=${identity}")
  endif()
  set(${result} "${word}" PARENT_SCOPE)
endfunction()

# Asks the wrapper with that clang (empty for its own choice): the identity, or `none`. CMake configures again after a change of the
# programs that it names.
function(_hotswap_ask_identity clang paths result)
  get_property(prefix GLOBAL PROPERTY HOTSWAP_PREFIX)
  set(command "${prefix}/bin/hotswap-clang++" --hotswap-identity=files ${paths})
  if(clang)
    list(PREPEND command "${CMAKE_COMMAND}" -E env "HOTSWAP_CLANG=${clang}")
  endif()
  execute_process(COMMAND ${command}
    RESULT_VARIABLE status OUTPUT_VARIABLE lines ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  if(NOT status EQUAL 0)
    set(${result} none PARENT_SCOPE)
    return()
  endif()
  string(REPLACE "\n" ";" lines "${lines}")
  list(POP_FRONT lines identity)
  set(${result} "${identity}" PARENT_SCOPE)
  foreach(path IN LISTS lines)
    if(IS_ABSOLUTE "${path}" AND EXISTS "${path}")
      set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
    endif()
  endforeach()
endfunction()

# The targets of a directory and below that have no plan.
function(_hotswap_key_directory directory)
  get_property(targets DIRECTORY "${directory}" PROPERTY BUILDSYSTEM_TARGETS)
  foreach(target IN LISTS targets)
    get_target_property(type ${target} TYPE)
    get_target_property(planned ${target} HOTSWAP_PLAN)
    if(type MATCHES "^(EXECUTABLE|(STATIC|SHARED|MODULE|OBJECT)_LIBRARY)$" AND NOT planned)
      _hotswap_key_target(${target} "${directory}")
    endif()
  endforeach()
  get_property(below DIRECTORY "${directory}" PROPERTY SUBDIRECTORIES)
  foreach(subdirectory IN LISTS below)
    _hotswap_key_directory("${subdirectory}")
  endforeach()
endfunction()

function(_hotswap_key_target target directory)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  foreach(language IN ITEMS C CXX HIP)
    get_directory_property(compiler DIRECTORY "${directory}" DEFINITION CMAKE_${language}_COMPILER)
    get_directory_property(flags DIRECTORY "${directory}" DEFINITION CMAKE_${language}_FLAGS)
    get_target_property(launcher ${target} ${language}_COMPILER_LAUNCHER)
    get_filename_component(name "${compiler}" REALPATH)
    get_filename_component(name "${name}" NAME)
    if(language IN_LIST languages AND launcher AND name STREQUAL "hotswap-clang")
      _hotswap_toolchain_word("${compiler}" "${flags}" word)
      if(word)
        set_property(TARGET ${target} APPEND PROPERTY COMPILE_OPTIONS "$<$<COMPILE_LANGUAGE:${language}>:SHELL:\
--start-no-unused-arguments${word} --end-no-unused-arguments>")
      endif()
    endif()
  endforeach()
endfunction()
