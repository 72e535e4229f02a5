/* remake retarget|rewrite|load|best TARGET FLAGS IN OUT: code for another GPU, in memory as a JIT has it; the bytes that a GPU loads from a
 * file; the entry that serves it. */
#include <hotswap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
  FILE *in = argc > 5 ? fopen(argv[4], "rb") : NULL;
  if (!in)
    return 2;
  static unsigned char bytes[4 << 20];
  size_t size = fread(bytes, 1, sizeof bytes, in);
  fclose(in);
  uint32_t flags = (uint32_t)strtoul(argv[3], NULL, 0);
  hotswap_output *output = NULL;
  hotswap_error *error = NULL;
  hotswap_file *file = NULL;
  hotswap_choice choice = {.struct_size = sizeof choice};
  hotswap_status status;
  if (!strcmp(argv[1], "rewrite")) {
    status = hotswap_rewrite(bytes, size, argv[2], flags, &output, &error);
  } else if (!strcmp(argv[1], "retarget")) {
    status = hotswap_retarget(bytes, size, argv[2], flags, &output, &error);
  } else {
    status = hotswap_file_from_memory(bytes, size, &file, &error);
    if (status == HOTSWAP_OK)
      status = strcmp(argv[1], "load") ? hotswap_file_best_entry(file, argv[2], SIZE_MAX, flags, &choice, &error)
                                       : hotswap_bytes_for(file, argv[2], SIZE_MAX, flags, &choice, &output, &error);
  }
  if (status != HOTSWAP_OK) {
    printf("%d %s: %s\n", (int)status, hotswap_error_code(error), hotswap_error_message(error));
    hotswap_error_free(error);
    return 1;
  }
  if (choice.route)
    printf("%s\nroute %u: %s\n", output ? hotswap_output_report(output) : "", choice.route, choice.rule);
  hotswap_file_free(file);
  if (!output)
    return 0;
  const void *made;
  hotswap_output_bytes(output, &made, &size, NULL);
  printf("%s\n", hotswap_output_report(output));
  FILE *out = fopen(argv[5], "wb");
  int done = out && fwrite(made, 1, size, out) == size && fclose(out) == 0;
  hotswap_output_free(output);
  return done ? 0 : 3;
}
