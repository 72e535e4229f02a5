# A toolchain file: hotswap-clang++ of this installation is the HIP compiler.
#
#   cmake -DCMAKE_TOOLCHAIN_FILE=PREFIX/share/cmake/HotSwap/HotSwapToolchain.cmake ...
#
# find_package(HotSwap) finds the same installation. Another toolchain file can include this one.
get_filename_component(_hotswap_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT CMAKE_HIP_COMPILER)
  set(CMAKE_HIP_COMPILER "${_hotswap_prefix}/bin/hotswap-clang++")
endif()
list(APPEND CMAKE_PREFIX_PATH "${_hotswap_prefix}")
unset(_hotswap_prefix)
