/* remake retarget|rewrite TARGET FLAGS IN OUT: code for another GPU, in memory as a JIT has it. */
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
  hotswap_status status = !strcmp(argv[1], "rewrite") ? hotswap_rewrite(bytes, size, argv[2], flags, &output, &error)
                                                      : hotswap_retarget(bytes, size, argv[2], flags, &output, &error);
  if (status != HOTSWAP_OK) {
    printf("%d %s: %s\n", (int)status, hotswap_error_code(error), hotswap_error_message(error));
    hotswap_error_free(error);
    return 1;
  }
  const void *made;
  hotswap_output_bytes(output, &made, &size, NULL);
  printf("%s\n", hotswap_output_report(output));
  FILE *out = fopen(argv[5], "wb");
  int done = out && fwrite(made, 1, size, out) == size && fclose(out) == 0;
  hotswap_output_free(output);
  return done ? 0 : 3;
}
