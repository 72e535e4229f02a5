# The options of a plan as keywords of add_hotswap_target.
#
# Printed from the table in crates/base/plan/src/options.rs:
#   HOTSWAP_BLESS=1 cargo test -p hotswap-plan --test cmake
#
#   [RETARGET …]
#   [PATCHES …]
#   [POLICY error|warn|keep|compile]
#   [NAMES compile|error|warn|derive]
#   [ALLOW_EXPERIMENTAL]
#   [DEVICE_LINK check|fix|off]
#   [DEVICE_LINK_STACK BYTES]
#   [DEVICE_SYMBOLS]
#   [DEVICE_EXPORTS …]
#   [DEVICE_IMPORTS …]
#
# RETARGET           one or more SOURCE=>TARGET[,TARGET…]; the sources must be in CMAKE_HIP_ARCHITECTURES.
# PATCHES            patch families to apply beyond those that the route needs.
# POLICY             when a target cannot be made: error (default) stops the build, warn omits it with a
#                    warning, keep omits it and notes that in the record, compile compiles the source for it.
# NAMES              when a source's text depends on the name of the GPU: compile (default) compiles it for
#                    the target as well, error stops the build, warn derives with a warning, derive does not
#                    check.
# ALLOW_EXPERIMENTAL also apply experimental pairs.
# DEVICE_LINK        kernels that are launched with fewer registers than the functions need that they call:
#                    check stops the build, fix raises the numbers, off ignores it; by default checked where a
#                    device link has several separately compiled objects.
# DEVICE_LINK_STACK  scratch of a work-item, at least, where a kernel reaches a recursion, a call through a
#                    pointer or a frame of unknown size.
# DEVICE_SYMBOLS     put a table of the device functions into each code object.
# DEVICE_EXPORTS     device functions for other code objects, mangled names: they are kept, and named in the
#                    table of functions.
# DEVICE_IMPORTS     device functions of other code objects, mangled names: calls go through words that are
#                    filled when the code is loaded.
include_guard(GLOBAL)

# Sets the lists of keywords, and for each the option of `hotswap plan` and its words.
macro(_hotswap_plan_options)
  set(plan_switches ALLOW_EXPERIMENTAL DEVICE_SYMBOLS)
  set(plan_values POLICY NAMES DEVICE_LINK DEVICE_LINK_STACK)
  set(plan_lists PATCHES DEVICE_EXPORTS DEVICE_IMPORTS)
  set(option_PATCHES --patches)
  set(option_POLICY --policy)
  set(words_POLICY error warn keep compile)
  set(option_NAMES --names)
  set(words_NAMES compile error warn derive)
  set(option_ALLOW_EXPERIMENTAL --allow-experimental)
  set(option_DEVICE_LINK --device-link)
  set(words_DEVICE_LINK check fix off)
  set(option_DEVICE_LINK_STACK --device-link-stack)
  set(words_DEVICE_LINK_STACK BYTES)
  set(option_DEVICE_SYMBOLS --device-symbols)
  set(option_DEVICE_EXPORTS --device-exports)
  set(option_DEVICE_IMPORTS --device-imports)
endmacro()
