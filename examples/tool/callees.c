/* callees FILE ISA KERNEL: the functions that a kernel may call, with their registers. */
#include <hotswap.h>
#include <stdio.h>
#include <stdlib.h>

static hotswap_error *error;

/* Ends the program unless a call has succeeded. */
static void check(hotswap_status status) {
  if (status != HOTSWAP_OK) {
    fprintf(stderr, "%s\n", hotswap_error_message(error));
    exit(1);
  }
}

/* The functions that kernel number `number` of the image reaches. */
static void show(const hotswap_image *image, size_t number, const hotswap_kernel *kernel) {
  size_t count = kernel->reachable;
  uint32_t *functions = calloc(count, sizeof *functions);
  check(hotswap_kernel_reachable(image, number, functions, &count, &error));
  for (size_t n = 0; n < count; n++) {
    hotswap_function one = {.struct_size = sizeof one};
    check(hotswap_image_function(image, functions[n], &one, &error));
    printf("%#8llx %4llu VGPRs  %s\n", (unsigned long long)one.address, (unsigned long long)one.own.vgprs.value, one.name);
  }
  free(functions), puts(kernel->complete ? "these are all" : "and functions that are not known");
}

int main(int argc, char **argv) {
  hotswap_file *file;
  hotswap_entry last = {.struct_size = sizeof last};
  size_t entries, found = 0;
  if (argc != 4)
    return fprintf(stderr, "usage: callees FILE ISA KERNEL\n"), 2;
  check(hotswap_file_open(argv[1], &file, &error)), check(hotswap_file_entry_count(file, &entries, &error));
  if (!entries)
    return fprintf(stderr, "%s has no device code\n", argv[1]), 1;
  check(hotswap_file_entry(file, entries - 1, &last, &error));
  /* A library has a container for each of its units, and in each an entry that serves the agent best. */
  for (size_t container = 0; container <= last.container && !found; container++) {
    hotswap_choice choice = {.struct_size = sizeof choice};
    hotswap_image_info info = {.struct_size = sizeof info};
    hotswap_image *image;
    size_t wanted;
    hotswap_error_free(error), error = NULL;
    if (hotswap_file_best_entry(file, argv[2], container, 0, &choice, &error) != HOTSWAP_OK)
      continue;
    check(hotswap_file_image(file, choice.entry, &image, &error));
    check(hotswap_image_info_get(image, &info, &error));
    if (hotswap_image_function_named(image, argv[3], &wanted, NULL) == HOTSWAP_OK)
      for (size_t i = 0; i < info.kernels; i++) {
        hotswap_kernel kernel = {.struct_size = sizeof kernel};
        check(hotswap_image_kernel(image, i, &kernel, &error));
        if (kernel.function == wanted)
          show(image, i, &kernel), found = 1;
      }
    hotswap_image_free(image);
  }
  return found ? 0 : (fprintf(stderr, "%s\n", error ? hotswap_error_message(error) : "there is no kernel of that name"), 1);
}
