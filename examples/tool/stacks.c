/* stacks FILE ISA < SAMPLES: call stacks of a profiler's samples. A line has addresses of the code object: the place of the sample,
 * then return addresses, as a sampler or a debugger finds them in a wave. A running address minus the load delta is one. */
#include <hotswap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CALL_SIZE = 4 }; /* s_swappc_b64 */

static hotswap_error *error;

static void check(hotswap_status status) {
  if (status != HOTSWAP_OK)
    fprintf(stderr, "%s\n", hotswap_error_message(error)), exit(1);
}

/* A name as in the source. */
static const char *readable(const char *name) {
  static char text[4096];
  size_t size = sizeof text;
  return hotswap_demangle(name, text, &size, NULL) == HOTSWAP_OK ? text : name;
}

static int print_frame(const hotswap_frame *frame, void *depth) {
  printf("#%d %s %s:%u%s\n", (*(int *)depth)++, readable(frame->function), *frame->file ? frame->file : "?", frame->line,
         frame->inlined ? " (inlined)" : "");
  return 0;
}

static int note_call(const hotswap_instruction *one, void *is_call) {
  *(int *)is_call = (one->flags & HOTSWAP_INSTRUCTION_CALL) != 0;
  return 0;
}

/* Whether a known call of `caller` leads to `callee`, or one whose target is not known may do so. */
static int may_call(const hotswap_image *image, size_t caller, size_t callee) {
  hotswap_function one = {.struct_size = sizeof one};
  check(hotswap_image_function(image, caller, &one, &error));
  size_t count = one.callees;
  uint32_t *callees = calloc(count + 1, sizeof *callees);
  check(hotswap_function_callees(image, caller, callees, &count, &error));
  int found = one.unknown_calls != 0;
  for (size_t n = 0; n < count; n++)
    found |= callees[n] == callee;
  free(callees);
  return found;
}

/* Prints the frames at one address; returns the number of its function, SIZE_MAX for none. */
static size_t print_place(const hotswap_image *image, uint64_t address, int *depth) {
  size_t function;
  uint64_t offset;
  if (hotswap_image_function_at(image, address, &function, &offset, NULL) != HOTSWAP_OK)
    return printf("#%d %#llx, no function\n", (*depth)++, (unsigned long long)address), SIZE_MAX;
  if (hotswap_image_frames(image, address, print_frame, depth, NULL) == HOTSWAP_OK)
    return function;
  hotswap_function one = {.struct_size = sizeof one};
  check(hotswap_image_function(image, function, &one, &error));
  printf("#%d %s+%#llx\n", (*depth)++, readable(one.name), (unsigned long long)offset);
  return function;
}

/* Walks one stack. A return address is that of the instruction after a call: one that is not, is left out. */
static void walk(const hotswap_image *image, char *line) {
  int depth = 0;
  size_t inner = SIZE_MAX;
  for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
    uint64_t address = strtoull(word, NULL, 0);
    int is_call = 0, is_first = depth == 0;
    if (!is_first)
      hotswap_image_instructions(image, address -= CALL_SIZE, CALL_SIZE, note_call, &is_call, NULL);
    if (!is_first && !is_call) {
      printf("   %s is not after a call\n", word);
      continue;
    }
    size_t outer = print_place(image, address, &depth);
    if (!is_first && outer != SIZE_MAX && inner != SIZE_MAX && !may_call(image, outer, inner))
      printf("   no call there leads to the function above\n");
    inner = outer;
  }
  puts("");
}

int main(int argc, char **argv) {
  hotswap_file *file;
  hotswap_image *image;
  hotswap_choice choice = {.struct_size = sizeof choice};
  char line[4096];
  if (argc != 3)
    return fprintf(stderr, "usage: stacks FILE ISA < SAMPLES\n"), 2;
  check(hotswap_file_open(argv[1], &file, &error));
  check(hotswap_file_best_entry(file, argv[2], SIZE_MAX, 0, &choice, &error));
  check(hotswap_file_image(file, choice.entry, &image, &error));
  while (fgets(line, sizeof line, stdin))
    walk(image, line);
  hotswap_image_free(image), hotswap_file_free(file);
  return 0;
}
