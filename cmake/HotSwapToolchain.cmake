# A toolchain file: hotswap-clang++ of this installation is the HIP compiler.
#
#   cmake -DCMAKE_TOOLCHAIN_FILE=PREFIX/share/cmake/HotSwap/HotSwapToolchain.cmake [-DHOTSWAP_RETARGET=...] ...
#
# find_package(HotSwap) finds the same installation. Where the top directory does not call it but has a plan (HOTSWAP_RETARGET) or warm
# headers (HOTSWAP_WARM_HEADERS), it is called at the end of that directory. Another toolchain file can include this one.
get_filename_component(_hotswap_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT CMAKE_HIP_COMPILER)
  set(CMAKE_HIP_COMPILER "${_hotswap_prefix}/bin/hotswap-clang++")
endif()
list(APPEND CMAKE_PREFIX_PATH "${_hotswap_prefix}")

# The file is read again by each project() and in each try_compile.
function(_hotswap_toolchain_finish)
  get_property(scheduled DIRECTORY PROPERTY HOTSWAP_SCHEDULED)
  if((HOTSWAP_RETARGET OR HOTSWAP_WARM_HEADERS) AND NOT scheduled)
    find_package(HotSwap REQUIRED PATHS "${CMAKE_CURRENT_FUNCTION_LIST_DIR}" NO_DEFAULT_PATH NO_CMAKE_FIND_ROOT_PATH)
  endif()
endfunction()
get_property(_hotswap_try GLOBAL PROPERTY IN_TRY_COMPILE)
get_property(_hotswap_deferred GLOBAL PROPERTY HOTSWAP_TOOLCHAIN)
if(NOT _hotswap_try AND NOT _hotswap_deferred AND NOT CMAKE_SCRIPT_MODE_FILE)
  set_property(GLOBAL PROPERTY HOTSWAP_TOOLCHAIN TRUE)
  cmake_language(DEFER DIRECTORY "${CMAKE_SOURCE_DIR}" CALL _hotswap_toolchain_finish)
endif()
unset(_hotswap_deferred)
unset(_hotswap_try)
unset(_hotswap_prefix)
