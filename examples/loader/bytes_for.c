/* bytes_for FILE GPU OUT: writes the code object that a GPU loads from the first container of a file with code for it. The file is in
 * memory, as a loader has it that unpacks or receives it. Exit code 1 and a line where nothing in it is safe for the GPU. */
#include <hotswap.h>
#include <stdint.h>
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

/* The bytes of a file, which the caller frees; null where it cannot be read. */
static void *read_bytes(const char *path, size_t *size) {
  FILE *file = fopen(path, "rb");
  long end = file && !fseek(file, 0, SEEK_END) ? ftell(file) : -1;
  void *bytes = end < 0 ? NULL : malloc((size_t)end + 1);
  if (bytes) {
    rewind(file);
    *size = fread(bytes, 1, (size_t)end, file);
  }
  if (file)
    fclose(file);
  return bytes;
}

/* Whether all bytes are written. */
static int write_bytes(const char *path, const void *bytes, size_t size) {
  FILE *file = fopen(path, "wb");
  int is_written = file && fwrite(bytes, 1, size, file) == size;
  return file && fclose(file) == 0 && is_written;
}

int main(int argc, char **argv) {
  hotswap_file *file;
  hotswap_output *output;
  hotswap_choice choice = {.struct_size = sizeof choice};
  const void *code;
  size_t size = 0;
  if (argc != 4)
    return fprintf(stderr, "usage: bytes_for FILE GPU OUT\n"), 2;
  void *bytes = read_bytes(argv[1], &size);
  if (!bytes)
    return perror(argv[1]), 1;
  check(hotswap_file_from_memory(bytes, size, &file, &error));
  free(bytes); /* the library has a copy */
  check(hotswap_bytes_for(file, argv[2], SIZE_MAX, 0, &choice, &output, &error));
  check(hotswap_output_bytes(output, &code, &size, &error));
  if (!write_bytes(argv[3], code, size))
    return perror(argv[3]), 1;
  puts(choice.rule);
  hotswap_output_free(output), hotswap_file_free(file);
  return 0;
}
