# find_package(HotSwap): finds the tools beside this file, offers them as the HIP compiler when
# HIP is not enabled yet, and defines add_hotswap_target (see HotSwap.cmake).
#
# All paths are relative to this file (PREFIX/share/cmake/HotSwap); it has no paths of the machine that built HotSwap.

# The no-op build of a program with relocatable device code would link again each time: CMake 3.29 and later query the
# linker for its inputs, among them temporary objects that clang has deleted by then. The linker's list is therefore
# switched off for the targets of this directory and below; CMake's own list (objects, libraries, LINK_DEPENDS) stays. Set
# HOTSWAP_KEEP_LINKER_DEPENDS to keep both.
if(NOT HOTSWAP_KEEP_LINKER_DEPENDS)
  set(CMAKE_LINK_DEPENDS_USE_LINKER OFF)
endif()

get_filename_component(HotSwap_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(HotSwap_FOUND TRUE)

function(_hotswap_not_found text)
  set(HotSwap_FOUND FALSE PARENT_SCOPE)
  set(HotSwap_NOT_FOUND_MESSAGE "${text}" PARENT_SCOPE)
endfunction()

foreach(_hotswap_file IN ITEMS bin/hotswap bin/hotswap-clang bin/hotswap-clang++ libexec/hotswap/lld
        lib/hotswap/libhotswap_registry.a)
  if(HotSwap_FOUND AND NOT EXISTS "${HotSwap_PREFIX}/${_hotswap_file}")
    _hotswap_not_found("${HotSwap_PREFIX}/${_hotswap_file} is missing: install HotSwap again.")
  endif()
endforeach()

# Distributions keep libraries in lib64, or in the machine's directory, whose name CMake knows only after a language is enabled.
set(_hotswap_lib lib)
if(EXISTS "${HotSwap_PREFIX}/lib64/libhotswap.so.0")
  set(_hotswap_lib lib64)
endif()
foreach(_hotswap_machine IN ITEMS "${CMAKE_HOST_SYSTEM_PROCESSOR}-linux-gnu" "${CMAKE_LIBRARY_ARCHITECTURE}")
  if(_hotswap_machine AND EXISTS "${HotSwap_PREFIX}/lib/${_hotswap_machine}/libhotswap.so.0")
    set(_hotswap_lib "lib/${_hotswap_machine}")
  endif()
endforeach()
unset(_hotswap_machine)

# Components: parts of the installation that not every package of a distribution has.
set(_hotswap_component_names "lib/hotswap/libhotswap-names.so")
set(_hotswap_component_profile "lib/hotswap/libhotswap-profile-drain.a")
set(_hotswap_component_families "include/hotswap")
set(_hotswap_component_library "include/hotswap.h" "${_hotswap_lib}/libhotswap.so.0" "${_hotswap_lib}/libhotswap.a")
set(_hotswap_package_library " (Debian's package libhotswap-dev)")
foreach(_hotswap_component IN LISTS HotSwap_FIND_COMPONENTS)
  set(HotSwap_${_hotswap_component}_FOUND FALSE)
  if(NOT DEFINED _hotswap_component_${_hotswap_component})
    set(_hotswap_why "there is no component `${_hotswap_component}`: the components are names, profile, families and library.")
  else()
    set(HotSwap_${_hotswap_component}_FOUND TRUE)
    foreach(_hotswap_file IN LISTS _hotswap_component_${_hotswap_component})
      if(NOT EXISTS "${HotSwap_PREFIX}/${_hotswap_file}")
        set(HotSwap_${_hotswap_component}_FOUND FALSE)
        set(_hotswap_why "${HotSwap_PREFIX} is without ${_hotswap_file}, of the component ${_hotswap_component}: install that part of \
HotSwap${_hotswap_package_${_hotswap_component}}.")
      endif()
    endforeach()
  endif()
  if(HotSwap_FOUND AND HotSwap_FIND_REQUIRED_${_hotswap_component} AND NOT HotSwap_${_hotswap_component}_FOUND)
    _hotswap_not_found("${_hotswap_why}")
  endif()
endforeach()

# Where Debian and its descendants keep HIP's CMake files; CMake looks there from 3.27 on.
file(GLOB _hotswap_debian_hip "/usr/lib/*-linux-gnu*/cmake/hip-lang/hip-lang-config.cmake")
get_property(_hotswap_languages GLOBAL PROPERTY ENABLED_LANGUAGES)
if(CMAKE_VERSION VERSION_LESS 3.21.3)
  _hotswap_not_found("CMake ${CMAKE_VERSION} is too old for HIP: use CMake 3.27 or newer.")
elseif(CMAKE_VERSION VERSION_LESS 3.27 AND _hotswap_debian_hip AND NOT "HIP" IN_LIST _hotswap_languages
       AND NOT EXISTS "/opt/rocm/lib/cmake/hip-lang/hip-lang-config.cmake")
  _hotswap_not_found("CMake ${CMAKE_VERSION} does not find HIP in Debian's directories (it would say that the ROCm \
root directory does not contain the HIP runtime CMake package): use CMake 3.27 or newer.")
endif()

# Compiler mode: HotSwap can be the HIP compiler as long as the language is not enabled. A compiler that the user chose
# stays, and add_hotswap_target then starts it through a launcher.
if(HotSwap_FOUND AND NOT "HIP" IN_LIST _hotswap_languages)
  if(CMAKE_HIP_COMPILER MATCHES "^hotswap-clang(\\+\\+)?$")
    set(CMAKE_HIP_COMPILER "${HotSwap_PREFIX}/bin/${CMAKE_HIP_COMPILER}" CACHE FILEPATH "HIP compiler" FORCE)
  elseif(NOT CMAKE_HIP_COMPILER AND NOT DEFINED ENV{HIPCXX})
    set(CMAKE_HIP_COMPILER "${HotSwap_PREFIX}/bin/hotswap-clang++" CACHE FILEPATH "HIP compiler")
  endif()
endif()

if(HotSwap_FOUND AND NOT TARGET HotSwap::registry)
  # The registrars of the patch families; manifest objects refer to them.
  add_library(HotSwap::registry STATIC IMPORTED GLOBAL)
  set_target_properties(HotSwap::registry PROPERTIES
    IMPORTED_LOCATION "${HotSwap_PREFIX}/lib/hotswap/libhotswap_registry.a")
endif()

# The command, for a project's tests and custom commands: add_test(NAME t COMMAND HotSwap::hotswap run --gpu gfx1031 -- app).
if(HotSwap_FOUND AND NOT TARGET HotSwap::hotswap)
  add_executable(HotSwap::hotswap IMPORTED GLOBAL)
  set_target_properties(HotSwap::hotswap PROPERTIES IMPORTED_LOCATION "${HotSwap_PREFIX}/bin/hotswap")
endif()

# Device code for programs in C and C++: include/hotswap.h. The shared library, and the same as an archive, which
# with the header are a package of their own in distributions.
set(_hotswap_header FALSE)
if(HotSwap_FOUND AND EXISTS "${HotSwap_PREFIX}/include/hotswap.h")
  set(_hotswap_header TRUE)
endif()
if(_hotswap_header AND NOT TARGET HotSwap::libhotswap AND EXISTS "${HotSwap_PREFIX}/${_hotswap_lib}/libhotswap.so.0")
  # Before a language is enabled CMake believes that there are no shared libraries.
  get_property(_hotswap_shared GLOBAL PROPERTY TARGET_SUPPORTS_SHARED_LIBS)
  set_property(GLOBAL PROPERTY TARGET_SUPPORTS_SHARED_LIBS TRUE)
  add_library(HotSwap::libhotswap SHARED IMPORTED GLOBAL)
  set_property(GLOBAL PROPERTY TARGET_SUPPORTS_SHARED_LIBS "${_hotswap_shared}")
  unset(_hotswap_shared)
  set_target_properties(HotSwap::libhotswap PROPERTIES
    IMPORTED_LOCATION "${HotSwap_PREFIX}/${_hotswap_lib}/libhotswap.so.0"
    IMPORTED_SONAME libhotswap.so.0
    INTERFACE_INCLUDE_DIRECTORIES "${HotSwap_PREFIX}/include")
endif()
if(_hotswap_header AND NOT TARGET HotSwap::libhotswap_static AND EXISTS "${HotSwap_PREFIX}/${_hotswap_lib}/libhotswap.a")
  add_library(HotSwap::libhotswap_static STATIC IMPORTED GLOBAL)
  set_target_properties(HotSwap::libhotswap_static PROPERTIES
    IMPORTED_LOCATION "${HotSwap_PREFIX}/${_hotswap_lib}/libhotswap.a"
    INTERFACE_INCLUDE_DIRECTORIES "${HotSwap_PREFIX}/include"
    INTERFACE_LINK_LIBRARIES "gcc_s;pthread;dl;m")
endif()

unset(_hotswap_header)
unset(_hotswap_lib)
unset(_hotswap_debian_hip)
unset(_hotswap_languages)
foreach(_hotswap_component IN ITEMS names profile families library)
  unset(_hotswap_component_${_hotswap_component})
endforeach()
unset(_hotswap_component)
unset(_hotswap_package_library)
unset(_hotswap_file)
unset(_hotswap_why)
include("${CMAKE_CURRENT_LIST_DIR}/HotSwap.cmake")
if(HotSwap_FOUND)
  _hotswap_plan_directory_later()
endif()
