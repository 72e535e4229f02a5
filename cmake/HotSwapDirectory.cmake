# Plans for directories: at the end of each directory that calls find_package(HotSwap), the targets in it and below that have device
# code (HotSwapDeviceCode.cmake) and no plan get that of the variable HOTSWAP_RETARGET, as it is in the directory of the target.
#
#   set(HOTSWAP_RETARGET "gfx1030=>gfx1031,gfx1032")      or -DHOTSWAP_RETARGET=...
#   set(HOTSWAP_OPTIONS POLICY warn)                       further words of add_hotswap_target
#   set(HOTSWAP_WARM_HEADERS auto)                         with a plan or without; a property of targets as well
#   set_target_properties(<target> PROPERTIES HOTSWAP_RETARGET OFF)   or a plan of its own
include_guard(GLOBAL)

# Called by find_package, in its directory.
macro(_hotswap_plan_directory_later)
  get_property(_hotswap_scheduled DIRECTORY PROPERTY HOTSWAP_SCHEDULED)
  if(NOT _hotswap_scheduled)
    set_property(DIRECTORY PROPERTY HOTSWAP_SCHEDULED TRUE)
    cmake_language(DEFER CALL _hotswap_plan_directory "${CMAKE_CURRENT_SOURCE_DIR}")
    cmake_language(DEFER CALL _hotswap_key_directory "${CMAKE_CURRENT_SOURCE_DIR}")
  endif()
  unset(_hotswap_scheduled)
endmacro()

function(_hotswap_plan_directory directory)
  get_property(targets DIRECTORY "${directory}" PROPERTY BUILDSYSTEM_TARGETS)
  get_directory_property(default DIRECTORY "${directory}" DEFINITION HOTSWAP_RETARGET)
  get_directory_property(options DIRECTORY "${directory}" DEFINITION HOTSWAP_OPTIONS)
  get_directory_property(warm DIRECTORY "${directory}" DEFINITION HOTSWAP_WARM_HEADERS)
  foreach(target IN LISTS targets)
    get_target_property(own ${target} HOTSWAP_RETARGET)
    get_target_property(planned ${target} HOTSWAP_PLAN)
    set(pairs "${default}")
    if(NOT own MATCHES "-NOTFOUND$")
      set(pairs "${own}")
    endif()
    set(words "")
    if(pairs)
      list(APPEND words RETARGET ${pairs} ${options})
    endif()
    get_target_property(own_warm ${target} HOTSWAP_WARM_HEADERS)
    if(own_warm MATCHES "-NOTFOUND$")
      set(own_warm "${warm}")
    endif()
    # `off` needs a call only where there is a plan.
    if(own_warm OR (words AND NOT own_warm STREQUAL ""))
      list(APPEND words WARM_HEADERS ${own_warm})
    endif()
    if(words AND NOT planned)
      _hotswap_has_hip(${target} has_hip)
      if(has_hip)
        _hotswap_one_target(${target} ${words})
      elseif(pairs)
        _hotswap_warn_of_unseen(${target})
      endif()
    endif()
  endforeach()
  get_property(below DIRECTORY "${directory}" PROPERTY SUBDIRECTORIES)
  foreach(subdirectory IN LISTS below)
    _hotswap_plan_directory("${subdirectory}")
  endforeach()
endfunction()
