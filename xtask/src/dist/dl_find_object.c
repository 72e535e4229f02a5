// _dl_find_object for programs that run with a glibc before 2.35, which does not have it: the static unwinder of gcc 12 and
// newer asks it for the unwind table of an address. Each program and library gets its own copy, which no other sees.

#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <stdint.h>

struct search {
  uintptr_t address;
  struct dl_find_object *found;
};

static int visit_object(struct dl_phdr_info *info, size_t size, void *data) {
  struct search *search = data;
  uintptr_t start = UINTPTR_MAX, end = 0, table = 0;
  int is_in_segment = 0;
  (void)size;
  for (int index = 0; index < info->dlpi_phnum; index++) {
    const ElfW(Phdr) *segment = &info->dlpi_phdr[index];
    uintptr_t first = info->dlpi_addr + segment->p_vaddr, last = first + segment->p_memsz;
    if (segment->p_type == PT_GNU_EH_FRAME)
      table = first;
    if (segment->p_type != PT_LOAD)
      continue;
    start = first < start ? first : start;
    end = last > end ? last : end;
    is_in_segment |= search->address >= first && search->address < last;
  }
  if (!is_in_segment || !table)
    return 0;
  search->found->dlfo_map_start = (void *)start;
  search->found->dlfo_map_end = (void *)end;
  search->found->dlfo_eh_frame = (void *)table;
  return 1;
}

__attribute__((visibility("hidden"))) int _dl_find_object(void *address, struct dl_find_object *found) {
  struct search search = {(uintptr_t)address, found};
  *found = (struct dl_find_object){0};
  return dl_iterate_phdr(visit_object, &search) ? 0 : -1;
}
