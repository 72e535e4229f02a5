/* frames FILE ADDRESS: the functions at an address, inlined ones first, in the form of the source. */
#include <hotswap.h>
#include <stdio.h>
#include <stdlib.h>

static int print(const hotswap_frame *frame, void *context) {
  char name[512];
  size_t size = sizeof name;
  (void)context;
  if (hotswap_demangle(frame->function, name, &size, NULL) != HOTSWAP_OK)
    return 1;
  printf("%s%s %s:%u\n", frame->inlined ? "inlined " : "", name, frame->file, frame->line);
  return 0;
}

int main(int argc, char **argv) {
  hotswap_file *file;
  hotswap_image *image;
  if (argc != 3 || hotswap_file_open(argv[1], &file, NULL) != HOTSWAP_OK ||
      hotswap_file_image(file, 0, &image, NULL) != HOTSWAP_OK)
    return 2;
  hotswap_status status = hotswap_image_frames(image, strtoull(argv[2], NULL, 0), print, NULL, NULL);
  hotswap_image_free(image);
  hotswap_file_free(file);
  return (int)status;
}
