# What all projects share: where the sources are, and the plan that the runner may change.
set(COMMON ${CMAKE_CURRENT_LIST_DIR})
set(RETARGET "gfx1030=>gfx1031" CACHE STRING "Plan of the project")
include_directories(${COMMON})
add_compile_options($<$<COMPILE_LANGUAGE:HIP>:-nogpuinc>)
