# (iii) -fgpu-rdc in properties of sources.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

copy_sources(static)
add_library(static_library STATIC ${launch} ${twice})
set_source_files_properties(${launch} ${twice} PROPERTIES COMPILE_OPTIONS -fgpu-rdc)
plan(static_library)
program(static static_library)

copy_sources(words)
add_library(words_library STATIC ${launch} ${twice})
set_source_files_properties(${launch} ${twice} PROPERTIES COMPILE_FLAGS "-DUNUSED -fgpu-rdc")
plan(words_library)
program(words words_library)

copy_sources(condition)
add_library(condition_library STATIC ${launch} ${twice})
set_source_files_properties(${launch} ${twice} PROPERTIES COMPILE_OPTIONS "$<$<CONFIG:Release>:-fgpu-rdc>")
plan(condition_library)
program(condition condition_library)

copy_sources(objects)
add_library(objects_kernels OBJECT ${launch} ${twice})
set_source_files_properties(${launch} ${twice} PROPERTIES COMPILE_OPTIONS -fgpu-rdc)
plan(objects_kernels)
shared(objects $<TARGET_OBJECTS:objects_kernels>)

# The program's own sources, one of them after the call.
copy_sources(own)
add_executable(own main.cpp ${launch})
plan(own)
target_sources(own PRIVATE ${twice})
set_source_files_properties(${launch} ${twice} PROPERTIES COMPILE_OPTIONS -fgpu-rdc)
link_device(own)
