/* callees FILE ISA KERNEL: the functions that a kernel may call, with their registers. */
#include <hotswap.h>
#include <stdio.h>
#include <stdlib.h>

static hotswap_error *error;

/* Ends the program unless a call has succeeded. */
static void check(hotswap_status status) {
  if (status != HOTSWAP_OK) {
    fprintf(stderr, "%s\n", hotswap_error_message(error));
    hotswap_error_free(error);
    exit(1);
  }
}

int main(int argc, char **argv) {
  if (argc != 4)
    return fprintf(stderr, "usage: callees FILE ISA KERNEL\n"), 2;

  /* The code object that serves the agent best; the image keeps what it needs of the file. */
  hotswap_file *file;
  hotswap_image *image;
  hotswap_choice choice = {.struct_size = sizeof choice};
  check(hotswap_file_open(argv[1], &file, &error));
  check(hotswap_file_best_entry(file, argv[2], SIZE_MAX, 0, &choice, &error));
  check(hotswap_file_image(file, choice.entry, &image, &error));
  hotswap_file_free(file);

  hotswap_image_info info = {.struct_size = sizeof info};
  size_t wanted;
  check(hotswap_image_info_get(image, &info, &error));
  check(hotswap_image_function_named(image, argv[3], &wanted, &error));
  for (size_t i = 0; i < info.kernels; i++) {
    hotswap_kernel kernel = {.struct_size = sizeof kernel};
    check(hotswap_image_kernel(image, i, &kernel, &error));
    if (kernel.function != wanted)
      continue;
    size_t count = kernel.reachable;
    uint32_t *functions = calloc(count, sizeof *functions);
    check(hotswap_kernel_reachable(image, i, functions, &count, &error));
    for (size_t n = 0; n < count; n++) {
      hotswap_function one = {.struct_size = sizeof one};
      check(hotswap_image_function(image, functions[n], &one, &error));
      printf("%#8llx %4llu VGPRs  %s\n", (unsigned long long)one.address, (unsigned long long)one.own.vgprs.value,
             one.name);
    }
    puts(kernel.complete ? "these are all" : "and functions that are not known");
    free(functions);
  }
  hotswap_image_free(image);
  return 0;
}
