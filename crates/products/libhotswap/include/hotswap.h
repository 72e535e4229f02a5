/* libhotswap: reads, queries and changes AMDGPU device code. Plain C99; needs neither LLVM nor ROCm, and no GPU.
 *
 *   #include <hotswap.h>        pkg-config: hotswap        CMake: HotSwap::libhotswap
 *
 * Rules for all functions:
 * - They return a status. `error` may be null; otherwise it receives a description for every status but HOTSWAP_OK, to
 *   be freed with hotswap_error_free, and null for HOTSWAP_OK.
 * - An output that is not filled stays as it was; handles are null then.
 * - Structures that the library fills begin with `struct_size`, which the caller sets to their size: members that a
 *   caller does not know are not written, and members that the library does not know become 0.
 * - Strings are UTF-8 and end with NUL. Strings and arrays in structures live as long as the handle that they come from.
 * - Lists: `*count` is the room of `buffer` before the call and the number of elements after it. Where the room does not
 *   suffice, the first elements are written and the status is HOTSWAP_SHORT_BUFFER. `buffer` may be null with `*count` 0.
 * - Handles do not change: any number of threads may use one at a time. *_retain and *_free count references, so each
 *   thread may own one. All handles may be freed in any order. *_free of null does nothing.
 * - No input, however damaged, ends the process.
 *
 * Versions: functions and members of structures are only added. docs/reference/libhotswap.md is the manual.
 */
#ifndef HOTSWAP_H
#define HOTSWAP_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this header; hotswap_abi_version() is that of the library. */
#define HOTSWAP_ABI_VERSION 0u

typedef struct hotswap_error hotswap_error;   /* why a call failed */
typedef struct hotswap_file hotswap_file;     /* a file with device code: its entries */
typedef struct hotswap_image hotswap_image;   /* a code object: its functions */
typedef struct hotswap_loaded hotswap_loaded; /* a code object laid out at an address, without a GPU */
typedef struct hotswap_binding hotswap_binding; /* a code object with imports, and the ones that provide them */
typedef struct hotswap_output hotswap_output; /* bytes that were made */

typedef enum hotswap_status {
  HOTSWAP_OK = 0,
  HOTSWAP_INVALID_ARGUMENT = 1, /* a null pointer, a number or structure size out of range, text that is not UTF-8, a target
                                   that is not known */
  HOTSWAP_SHORT_BUFFER = 2,     /* see above */
  HOTSWAP_NOT_FOUND = 3,        /* no such name, address or entry */
  HOTSWAP_CANNOT_READ = 4,      /* the file cannot be read */
  HOTSWAP_BAD_INPUT = 5,        /* the bytes are damaged, or of a format that is not known */
  HOTSWAP_REFUSED = 6,          /* what was asked for would not be correct; the message says why */
  HOTSWAP_STOPPED = 7,          /* a callback asked to stop */
  HOTSWAP_INTERNAL = 8          /* a defect of the library */
} hotswap_status;

/* ---- Errors and version ---------------------------------------------------------------------------------------- */

uint32_t hotswap_abi_version(void);
/* The release, for example "0.1.0". */
const char *hotswap_release(void);
/* One line: fact, place, advice. Null for null. */
const char *hotswap_error_message(const hotswap_error *error);
/* The diagnostic's number, for example "HS0302" (`hotswap explain HS0302`); "" where there is none. */
const char *hotswap_error_code(const hotswap_error *error);
void hotswap_error_free(hotswap_error *error);

/* ---- Files: fat binaries, bundles, programs, libraries, objects, archives, code objects ------------------------ */

/* Maps a file. Another process must not write to it meanwhile. */
hotswap_status hotswap_file_open(const char *path, hotswap_file **file, hotswap_error **error);
/* The bytes are copied. */
hotswap_status hotswap_file_from_memory(const void *bytes, size_t size, hotswap_file **file, hotswap_error **error);
hotswap_file *hotswap_file_retain(const hotswap_file *file);
void hotswap_file_free(hotswap_file *file);

typedef enum hotswap_entry_kind {
  HOTSWAP_ENTRY_EMPTY = 0,         /* the host's place in a bundle */
  HOTSWAP_ENTRY_CODE_OBJECT = 1,   /* linked */
  HOTSWAP_ENTRY_DEVICE_OBJECT = 2, /* relocatable */
  HOTSWAP_ENTRY_BITCODE = 3,
  HOTSWAP_ENTRY_SPIRV = 4,
  HOTSWAP_ENTRY_OTHER = 5,
  HOTSWAP_ENTRY_COMPRESSED = 6     /* not decompressed yet; hotswap_file_image tells */
} hotswap_entry_kind;

typedef struct hotswap_entry {
  size_t struct_size;
  uint32_t kind;        /* hotswap_entry_kind */
  uint32_t container;   /* number of its container in the file: a library of several units has several */
  uint64_t size;        /* bytes, without compression */
  uint64_t file_offset; /* of its container */
  const char *id;       /* entry ID in the bundle; "" for a code object without a container */
  const char *target;   /* target ID, for example "gfx90a:xnack-"; "" where nothing states one */
  const char *place;    /* archive members, section, offset of its container */
} hotswap_entry;

hotswap_status hotswap_file_entry_count(const hotswap_file *file, size_t *count, hotswap_error **error);
hotswap_status hotswap_file_entry(const hotswap_file *file, size_t entry, hotswap_entry *info, hotswap_error **error);
/* Containers that could not be read, as messages. */
hotswap_status hotswap_file_problem_count(const hotswap_file *file, size_t *count, hotswap_error **error);
hotswap_status hotswap_file_problem(const hotswap_file *file, size_t problem, const char **message, hotswap_error **error);

typedef enum hotswap_route {
  HOTSWAP_ROUTE_NATIVE = 1,  /* compiled for the agent's processor */
  HOTSWAP_ROUTE_GENERIC = 2, /* compiled for a generic target that covers it */
  HOTSWAP_ROUTE_RELABEL = 3, /* runs after hotswap_retarget: a code object of a sibling with another label */
  HOTSWAP_ROUTE_REWRITE = 4  /* runs after hotswap_retarget: code of another stepping, changed */
} hotswap_route;

typedef struct hotswap_choice {
  size_t struct_size;
  size_t entry;       /* number of the entry */
  uint32_t route;     /* hotswap_route */
  uint32_t reserved;
  const char *source; /* target ID of the entry */
  const char *rule;   /* the rule that chose it, a sentence */
} hotswap_choice;

/* Only pairs that a compiler's output has confirmed are applied, unless this is set. */
#define HOTSWAP_ALLOW_EXPERIMENTAL 1u

/* Libraries such as rocPRIM and rocRAND choose kernels by the GPU's name on the host. Their code is refused for other GPUs (HS0414),
 * since the host part is not in the bytes; with this flag the caller answers for it, as with `--allow names`. */
#define HOTSWAP_ALLOW_NAMES 4u

/* The entry that serves an agent best. `isa` is a target ID or the name of an HSA ISA ("amdgcn-amd-amdhsa--gfx90a:xnack-").
 * `container` limits the choice to one container; SIZE_MAX takes the first container with one that serves. An entry of another
 * GPU is an answer only if hotswap_retarget makes code of it with the same flags. */
hotswap_status hotswap_file_best_entry(const hotswap_file *file, const char *isa, size_t container, uint32_t flags,
                                       hotswap_choice *choice, hotswap_error **error);

/* The code object that an agent loads from a file: that of the best entry, as it is or made for the agent. Arguments as above;
 * `choice` may be null. HOTSWAP_REFUSED says why no source is safe. */
hotswap_status hotswap_bytes_for(const hotswap_file *file, const char *isa, size_t container, uint32_t flags,
                                 hotswap_choice *choice, hotswap_output **output, hotswap_error **error);

/* ---- Images: code objects, linked or relocatable --------------------------------------------------------------- */

hotswap_status hotswap_file_image(const hotswap_file *file, size_t entry, hotswap_image **image, hotswap_error **error);
/* The bytes are copied. */
hotswap_status hotswap_image_from_memory(const void *bytes, size_t size, hotswap_image **image, hotswap_error **error);
hotswap_image *hotswap_image_retain(const hotswap_image *image);
void hotswap_image_free(hotswap_image *image);
hotswap_status hotswap_image_bytes(const hotswap_image *image, const void **bytes, size_t *size, hotswap_error **error);

#define HOTSWAP_IMAGE_LINKED 1u      /* a runtime can load it */
#define HOTSWAP_IMAGE_CLOSED 2u      /* every call is known, and nothing is imported */
#define HOTSWAP_IMAGE_FROM_TABLE 4u  /* the functions come from the table in the file, not from an analysis */

typedef struct hotswap_image_info {
  size_t struct_size;
  uint32_t flags;
  uint32_t reserved;
  const char *target;    /* target ID */
  const char *code_hash; /* SHA-256 of all that is loaded, in hexadecimal */
  uint64_t unclaimed;    /* bytes of code in no function */
  size_t functions;
  size_t kernels;
  size_t imports;
  size_t warnings;
  size_t variables;
  size_t producers;
} hotswap_image_info;

/* The first query about functions analyses the code, or reads the table that `hotswap symbols --write` and
 * -fhotswap-device-symbols put into the file, if it fits the code. */
hotswap_status hotswap_image_info_get(const hotswap_image *image, hotswap_image_info *info, hotswap_error **error);
/* Damaged parts that were left out, a table that does not fit, kernels with fewer registers than their code names. */
hotswap_status hotswap_image_warning(const hotswap_image *image, size_t warning, const char **message,
                                     hotswap_error **error);
/* The compilers and the linker that made it, as they name themselves in the file. */
hotswap_status hotswap_image_producer(const hotswap_image *image, size_t producer, const char **text,
                                      hotswap_error **error);

#define HOTSWAP_VARIABLE_EXPORTED 1u /* a loader sees it by its name */
#define HOTSWAP_VARIABLE_CONSTANT 2u /* in memory that is not written */

typedef struct hotswap_variable {
  size_t struct_size;
  const char *name; /* mangled */
  uint64_t address;
  uint64_t size;
  uint32_t flags;
  uint32_t reserved;
} hotswap_variable;

/* Variables by address; kernel descriptors are none. */
hotswap_status hotswap_image_variable(const hotswap_image *image, size_t variable, hotswap_variable *info,
                                      hotswap_error **error);

/* Where a number comes from, the most reliable first. */
typedef enum hotswap_evidence {
  HOTSWAP_EVIDENCE_COMPILER = 0,    /* a record of the compiler (.amdgpu.info) */
  HOTSWAP_EVIDENCE_ASSEMBLER = 1,   /* a symbol such as NAME.num_vgpr */
  HOTSWAP_EVIDENCE_METADATA = 2,    /* the metadata note */
  HOTSWAP_EVIDENCE_DESCRIPTOR = 3,  /* the kernel descriptor */
  HOTSWAP_EVIDENCE_DISASSEMBLY = 4, /* the instructions */
  HOTSWAP_EVIDENCE_NONE = 5         /* the number is not known */
} hotswap_evidence;

#define HOTSWAP_NUMBER_KNOWN 1u
#define HOTSWAP_NUMBER_AT_LEAST 2u /* it may be more: some code is not known */

typedef struct hotswap_number {
  uint64_t value; /* 0 unless HOTSWAP_NUMBER_KNOWN */
  uint32_t flags;
  uint32_t evidence;
} hotswap_number;

typedef struct hotswap_resources {
  hotswap_number vgprs;   /* one more than the highest; accumulation registers not counted */
  hotswap_number agprs;
  hotswap_number sgprs;
  hotswap_number scratch; /* bytes of a work-item */
  hotswap_number lds;     /* bytes of a work-group */
} hotswap_resources;

typedef enum hotswap_function_kind {
  HOTSWAP_FUNCTION_KERNEL = 0,
  HOTSWAP_FUNCTION_DEVICE = 1,
  HOTSWAP_FUNCTION_ENTRY_STUB = 2, /* only jumps into another function */
  HOTSWAP_FUNCTION_IMPORT_STUB = 3 /* only jumps to one that the file does not define */
} hotswap_function_kind;

typedef enum hotswap_wave_mode {
  HOTSWAP_MODE_UNKNOWN = 0,
  HOTSWAP_MODE_CU = 1, /* a work-group stays on one compute unit */
  HOTSWAP_MODE_WGP = 2 /* it may use both of a work-group processor */
} hotswap_wave_mode;

#define HOTSWAP_FUNCTION_EXPORTED 1u          /* its name is visible to other files */
#define HOTSWAP_FUNCTION_ADDRESS_TAKEN 2u     /* used otherwise than for a known call */
#define HOTSWAP_FUNCTION_RECURSIVE 4u         /* may be on the stack twice */
#define HOTSWAP_FUNCTION_RECURSION_UNKNOWN 8u /* not all that it reaches is known */

typedef struct hotswap_function {
  size_t struct_size;
  const char *name;    /* mangled; "code at ADDRESS" without a symbol */
  const char *section;
  uint64_t address;    /* in a relocatable file the offset in the section */
  uint64_t size;       /* bytes of code */
  uint32_t kind;       /* hotswap_function_kind */
  uint32_t flags;
  uint32_t wave_size;  /* lanes; 0 where the kernels differ, or nothing tells it */
  uint32_t mode;       /* hotswap_wave_mode; not known as above, and before GFX10 */
  hotswap_resources own;
  hotswap_resources total; /* with all that it calls */
  size_t aliases;
  size_t callees;
  size_t imports;        /* functions outside of the file that it calls */
  size_t resolved_calls; /* through registers, with a known target */
  size_t unknown_calls;  /* with an unknown one */
  hotswap_number own_barriers; /* named barriers (gfx12.5): the highest number that the code states */
  hotswap_number total_barriers;
  const char *source; /* the file that it was compiled from, by debug information; "" without */
} hotswap_function;

hotswap_status hotswap_image_function(const hotswap_image *image, size_t function, hotswap_function *info,
                                      hotswap_error **error);
/* By name or alias. */
hotswap_status hotswap_image_function_named(const hotswap_image *image, const char *name, size_t *function,
                                            hotswap_error **error);
/* The function that holds an address. `offset`, which may be null, is the distance from its start. */
hotswap_status hotswap_image_function_at(const hotswap_image *image, uint64_t address, size_t *function, uint64_t *offset,
                                         hotswap_error **error);
hotswap_status hotswap_function_alias(const hotswap_image *image, size_t function, size_t alias, const char **name,
                                      hotswap_error **error);
/* The name of an imported function that it calls. */
hotswap_status hotswap_function_import(const hotswap_image *image, size_t function, size_t import, const char **name,
                                       hotswap_error **error);
/* Numbers of the functions that it calls, or jumps into. */
hotswap_status hotswap_function_callees(const hotswap_image *image, size_t function, uint32_t *buffer, size_t *count,
                                        hotswap_error **error);
/* Addresses of calls whose target is not known, and of other transfers that are not understood. */
hotswap_status hotswap_function_unknown_calls(const hotswap_image *image, size_t function, uint64_t *buffer, size_t *count,
                                              hotswap_error **error);

typedef struct hotswap_kernel {
  size_t struct_size;
  size_t function;             /* its number as a function */
  uint64_t descriptor_address; /* 0 where the file's metadata does not lead to it */
  uint64_t kernarg_size;       /* bytes; 0 as well then */
  size_t reachable;
  uint32_t complete;           /* 1: the functions that it reaches are all */
  uint32_t reserved;
  hotswap_resources needs;     /* by the code alone; `total` of the function is what it is launched with */
} hotswap_kernel;

hotswap_status hotswap_image_kernel(const hotswap_image *image, size_t kernel, hotswap_kernel *info, hotswap_error **error);
/* Numbers of all functions that it reaches by known calls, its own included. */
hotswap_status hotswap_kernel_reachable(const hotswap_image *image, size_t kernel, uint32_t *buffer, size_t *count,
                                        hotswap_error **error);

typedef struct hotswap_import {
  size_t struct_size;
  const char *name;
  size_t slots; /* words that a loader fills with its address */
  size_t users;
} hotswap_import;

hotswap_status hotswap_image_import(const hotswap_image *image, size_t import, hotswap_import *info, hotswap_error **error);
hotswap_status hotswap_import_slots(const hotswap_image *image, size_t import, uint64_t *buffer, size_t *count,
                                    hotswap_error **error);
/* Numbers of the functions that use it. */
hotswap_status hotswap_import_users(const hotswap_image *image, size_t import, uint32_t *buffer, size_t *count,
                                    hotswap_error **error);

/* ---- Instructions and source lines ----------------------------------------------------------------------------- */

typedef enum hotswap_register_file {
  HOTSWAP_REGISTER_VGPR = 0,
  HOTSWAP_REGISTER_AGPR = 1,
  HOTSWAP_REGISTER_SGPR = 2,
  HOTSWAP_REGISTER_TTMP = 3,
  HOTSWAP_REGISTER_SPECIAL = 4 /* by name only: vcc_lo, exec_lo, scc, m0, mode */
} hotswap_register_file;

typedef struct hotswap_register {
  uint16_t file; /* hotswap_register_file */
  uint16_t index;
  uint32_t count; /* consecutive registers */
  const char *name;
} hotswap_register;

#define HOTSWAP_INSTRUCTION_OPAQUE 1u       /* no instruction of the target: only the bytes count */
#define HOTSWAP_INSTRUCTION_BRANCH 2u
#define HOTSWAP_INSTRUCTION_CONDITIONAL 4u  /* a branch that may fall through */
#define HOTSWAP_INSTRUCTION_CALL 8u
#define HOTSWAP_INSTRUCTION_END 16u         /* the wave ends */
#define HOTSWAP_INSTRUCTION_HAS_TARGET 32u  /* it states where it branches to, or what it calls */
#define HOTSWAP_INSTRUCTION_INDIRECT 64u    /* the target is in a register */
#define HOTSWAP_INSTRUCTION_INDEXED 128u    /* M0 selects further registers, which are not in the lists */
#define HOTSWAP_INSTRUCTION_BANK_UNKNOWN 256u /* gfx12.5: vector registers are numbers within an unknown bank */

typedef struct hotswap_instruction {
  size_t struct_size;
  uint64_t address; /* in a relocatable file the offset in the section */
  uint32_t size;
  uint32_t flags;
  uint64_t target;
  const uint8_t *bytes;
  const char *text;     /* as LLVM prints it */
  const char *mnemonic;
  const hotswap_register *reads; /* implicit ones included */
  size_t n_reads;
  const hotswap_register *writes;
  size_t n_writes;
} hotswap_instruction;

/* A value other than 0 stops, with HOTSWAP_STOPPED. The instruction lives until it returns. */
typedef int (*hotswap_instruction_visitor)(const hotswap_instruction *instruction, void *context);

hotswap_status hotswap_function_instructions(const hotswap_image *image, size_t function,
                                             hotswap_instruction_visitor visit, void *context, hotswap_error **error);
/* From an address of a linked file that is the start of an instruction, for `size` bytes. */
hotswap_status hotswap_image_instructions(const hotswap_image *image, uint64_t address, uint64_t size,
                                          hotswap_instruction_visitor visit, void *context, hotswap_error **error);

/* The source line of an address of a linked file: HOTSWAP_NOT_FOUND without line tables. `*size` is the room of `file`
 * before the call, and the bytes of the name with its NUL after it. */
hotswap_status hotswap_image_source_line(const hotswap_image *image, uint64_t address, char *file, size_t *size,
                                         uint32_t *line, hotswap_error **error);

typedef struct hotswap_frame {
  size_t struct_size;
  const char *function; /* mangled, as in the symbol table */
  const char *file;     /* "" where nothing states it */
  uint32_t line;        /* 0 where nothing states it */
  uint32_t inlined;     /* 1: it was inlined into the next one */
} hotswap_frame;

/* A value other than 0 stops, with HOTSWAP_STOPPED. The frame lives until it returns. */
typedef int (*hotswap_frame_visitor)(const hotswap_frame *frame, void *context);

/* The functions at an address of a linked file, the innermost inlined one first, by debug information: HOTSWAP_NOT_FOUND without. */
hotswap_status hotswap_image_frames(const hotswap_image *image, uint64_t address, hotswap_frame_visitor visit, void *context,
                                    hotswap_error **error);
/* A C++ name in the form of the source; other names stay as they are. `*size` as with hotswap_image_source_line. */
hotswap_status hotswap_demangle(const char *name, char *buffer, size_t *size, hotswap_error **error);

/* ---- A loader without a GPU ------------------------------------------------------------------------------------ */

typedef struct hotswap_external {
  const char *name;
  uint64_t address;
} hotswap_external;

/* Lays a linked code object out at an address and applies its relocations, by the rules of ROCr's loader. Relocations
 * against names that neither the file nor `externals` define are deferred: load again when they are known. */
hotswap_status hotswap_image_load(const hotswap_image *image, uint64_t base, const hotswap_external *externals,
                                  size_t n_externals, hotswap_loaded **loaded, hotswap_error **error);
hotswap_loaded *hotswap_loaded_retain(const hotswap_loaded *loaded);
void hotswap_loaded_free(hotswap_loaded *loaded);

typedef struct hotswap_loaded_info {
  size_t struct_size;
  uint64_t base;
  uint64_t size;        /* from base to the end of the last segment */
  size_t segments;
  size_t relocations;
  size_t undefined;     /* names without a definition */
} hotswap_loaded_info;

#define HOTSWAP_SEGMENT_EXECUTE 1u
#define HOTSWAP_SEGMENT_WRITE 2u
#define HOTSWAP_SEGMENT_READ 4u

typedef struct hotswap_segment {
  size_t struct_size;
  uint64_t address; /* as loaded */
  uint64_t size;
  uint32_t flags;
  uint32_t reserved;
  const uint8_t *bytes; /* `size` bytes, with relocations applied */
} hotswap_segment;

typedef struct hotswap_relocation {
  size_t struct_size;
  uint64_t address;   /* of the word, as loaded */
  uint32_t type;      /* R_AMDGPU_* */
  uint32_t applied;   /* 0: deferred */
  uint64_t value;     /* that was written; 0 if deferred */
  const char *symbol; /* "" where it needs none */
} hotswap_relocation;

hotswap_status hotswap_loaded_info_get(const hotswap_loaded *loaded, hotswap_loaded_info *info, hotswap_error **error);
hotswap_status hotswap_loaded_segment(const hotswap_loaded *loaded, size_t segment, hotswap_segment *info,
                                      hotswap_error **error);
hotswap_status hotswap_loaded_relocation(const hotswap_loaded *loaded, size_t relocation, hotswap_relocation *info,
                                         hotswap_error **error);
hotswap_status hotswap_loaded_undefined(const hotswap_loaded *loaded, size_t number, const char **name,
                                        hotswap_error **error);

/* ---- Code for other GPUs, in memory ---------------------------------------------------------------------------- */

/* `target` of these functions is a target ID or the name of an HSA ISA; flags are HOTSWAP_ALLOW_*.
 * Adds code for a processor to a bundle, or makes it of a code object: what `hotswap retarget` does with files.
 * HOTSWAP_REFUSED says why a source is not safe there. Where the target is served already, the output is the input. */
hotswap_status hotswap_retarget(const void *bytes, size_t size, const char *target, uint32_t flags,
                                hotswap_output **output, hotswap_error **error);

/* With hotswap_rewrite: header and note go on naming the source's processor. */
#define HOTSWAP_KEEP_MACHINE 2u

/* Changes the code of a code object, linked or relocatable, until it runs on another stepping: `hotswap rewrite`. */
hotswap_status hotswap_rewrite(const void *bytes, size_t size, const char *target, uint32_t flags,
                               hotswap_output **output, hotswap_error **error);

hotswap_status hotswap_output_bytes(const hotswap_output *output, const void **bytes, size_t *size, hotswap_error **error);
/* What was done, as text; "" where nothing was. */
const char *hotswap_output_report(const hotswap_output *output);
void hotswap_output_free(hotswap_output *output);

/* ---- Code objects that the process has loaded ------------------------------------------------------------------ */

/* HSA's handles, passed by value as hsa_executable_t and hsa_loaded_code_object_t are. */
typedef struct hotswap_hsa_handle {
  uint64_t handle;
} hotswap_hsa_handle;

/* Three functions of hsa_ven_amd_loader_1_03_pfn_t, cast to these types; this library does not link HSA. */
typedef struct hotswap_hsa_loader {
  size_t struct_size;
  int (*iterate_executables)(int (*callback)(hotswap_hsa_handle executable, void *data), void *data);
  int (*executable_iterate_loaded_code_objects)(hotswap_hsa_handle executable,
                                                int (*callback)(hotswap_hsa_handle executable, hotswap_hsa_handle object,
                                                                void *data),
                                                void *data);
  int (*loaded_code_object_get_info)(hotswap_hsa_handle object, int attribute, void *value);
} hotswap_hsa_loader;

typedef struct hotswap_process_object {
  size_t struct_size;
  uint64_t executable;  /* handles */
  uint64_t object;
  uint64_t agent;
  int64_t load_delta;   /* added to an address of the file it is an address of the device */
  uint64_t load_base;
  uint64_t load_size;
  const char *uri;
  const hotswap_image *image; /* a copy of the file; null where its bytes are gone, then `problem` says so */
  const char *problem;
} hotswap_process_object;

/* A value other than 0 stops, with HOTSWAP_STOPPED. The object lives until it returns; hotswap_image_retain keeps the
 * image. */
typedef int (*hotswap_process_visitor)(const hotswap_process_object *object, void *context);

hotswap_status hotswap_process_iterate(const hotswap_hsa_loader *loader, hotswap_process_visitor visit, void *context,
                                       hotswap_error **error);

/* ---- Functions of other code objects --------------------------------------------------------------------------- */

/* A library exports device functions (--hotswap-device-exports), a user imports them (--hotswap-device-imports). Before
 * they are loaded: who provides each import, and whether the user's kernels have the registers that all functions need
 * which they reach. HOTSWAP_OK also where something does not fit; the info tells. */
hotswap_status hotswap_binding_check(const hotswap_image *user, const hotswap_image *const *libraries, size_t n_libraries,
                                     hotswap_binding **binding, hotswap_error **error);
hotswap_binding *hotswap_binding_retain(const hotswap_binding *binding);
void hotswap_binding_free(hotswap_binding *binding);

typedef struct hotswap_binding_info {
  size_t struct_size;
  size_t imports;    /* that one library provides */
  size_t budgets;    /* kernels with fewer registers, less scratch or less LDS than they need */
  size_t problems;   /* everything that does not fit, as messages */
  uint32_t loadable; /* 1: no problem but warnings */
  uint32_t reserved;
} hotswap_binding_info;

typedef struct hotswap_bound_import {
  size_t struct_size;
  const char *symbol;   /* to be defined for the loader */
  const char *function;
  size_t library;       /* number in the call of hotswap_binding_check */
  uint64_t address;     /* of the function in the library's file */
} hotswap_bound_import;

typedef struct hotswap_launch_numbers {
  uint64_t vgprs; /* accumulation registers not counted */
  uint64_t agprs;
  uint64_t sgprs;
  uint64_t scratch; /* bytes of a work-item */
  uint64_t lds;     /* bytes of a work-group */
} hotswap_launch_numbers;

typedef struct hotswap_budget {
  size_t struct_size;
  const char *kernel;
  const char *forced_by; /* the function that needs most of what is short */
  hotswap_launch_numbers has;
  hotswap_launch_numbers needs;
  uint32_t complete; /* 0: it reaches unknown functions, and may need more */
  uint32_t reserved;
  hotswap_launch_numbers granted; /* by the hardware for `has`: registers come in granules */
} hotswap_budget;

hotswap_status hotswap_binding_info_get(const hotswap_binding *binding, hotswap_binding_info *info, hotswap_error **error);
hotswap_status hotswap_binding_import(const hotswap_binding *binding, size_t import, hotswap_bound_import *info,
                                      hotswap_error **error);
hotswap_status hotswap_binding_budget(const hotswap_binding *binding, size_t budget, hotswap_budget *info,
                                      hotswap_error **error);
hotswap_status hotswap_binding_problem(const hotswap_binding *binding, size_t problem, const char **message,
                                       hotswap_error **error);

/* A copy of the user's code object whose kernels have what they need. Check that one again, and load it instead. */
hotswap_status hotswap_binding_prepare(const hotswap_binding *binding, hotswap_output **output, hotswap_error **error);

/* hsa_executable_agent_global_variable_define, cast to this type. */
typedef int (*hotswap_hsa_define)(hotswap_hsa_handle executable, hotswap_hsa_handle agent, const char *name, void *address);

/* Defines each import in an executable that is not frozen; load the user's code object into it afterwards. One load delta
 * for each library: what is added to its file's addresses (hotswap_process_object, HSA's LOAD_DELTA). HOTSWAP_REFUSED
 * unless the binding is loadable. The libraries' executables must live as long as the user's. */
hotswap_status hotswap_binding_define(const hotswap_binding *binding, hotswap_hsa_define define,
                                      hotswap_hsa_handle executable, hotswap_hsa_handle agent, const int64_t *load_deltas,
                                      size_t n_libraries, hotswap_error **error);

#ifdef __cplusplus
}
#endif

#endif
