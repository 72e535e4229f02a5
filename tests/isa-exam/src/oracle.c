/* The judge: LLVM's disassembler in a process of its own, for hotswap-isa-exam.
 *
 * Reads frames from standard input and answers on standard output. A frame is: two 32-bit numbers (length of the
 * setting's text, number of words), the text `triple,cpu,features` whose parts end with a newline, then the words
 * of 24 bytes each: the number of bytes, three bytes of nothing, 20 bytes. An answer is, for each word: status,
 * length of the instruction, 16-bit length of the text, the text.
 *
 * LLVM crashes on some words. So each frame is worked on by a forked child which writes into shared memory; when
 * it dies, the word that it died of is marked and the next child goes on behind it. */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/* The part of LLVM's C interface that is used; its header is in no package of the userland. */
extern void LLVMInitializeAMDGPUTargetInfo(void);
extern void LLVMInitializeAMDGPUTarget(void);
extern void LLVMInitializeAMDGPUTargetMC(void);
extern void LLVMInitializeAMDGPUDisassembler(void);
extern void *LLVMCreateDisasmCPUFeatures(const char *triple, const char *cpu, const char *features, void *info,
                                         int tag, void *get_operand, void *look_up);
extern size_t LLVMDisasmInstruction(void *context, uint8_t *bytes, uint64_t size, uint64_t pc, char *text,
                                    size_t capacity);

enum { WORDS = 16384, TEXT = 1020, SETTINGS = 1024, SETTING_TEXT = 512, SECONDS = 10 };
enum { INVALID, VALID, UNDEFINED, CRASHED };

struct word {
    uint8_t size, nothing[3], bytes[20];
};

struct answer {
    uint8_t status, length;
    uint16_t text_length;
    char text[TEXT];
};

struct shared {
    volatile uint32_t done;
    struct answer answers[WORDS];
};

static struct word words[WORDS];
static char settings[SETTINGS][SETTING_TEXT];
static void *contexts[SETTINGS];

static int read_all(void *into, size_t size) {
    return fread(into, 1, size, stdin) == size;
}

/* Whether v_cmpx has no destination in its text; on GFX9 it is written, and may be one that does not exist. */
static int hides_destination;

static void *context_of(const char *setting) {
    hides_destination = !strstr(setting, "\ngfx9");
    int at = 0;
    while (at < SETTINGS && settings[at][0] && strcmp(settings[at], setting))
        ++at;
    if (at == SETTINGS)
        return NULL;
    if (!settings[at][0]) {
        char text[SETTING_TEXT], *rest = text;
        strcpy(text, setting);
        char *triple = strsep(&rest, "\n"), *cpu = strsep(&rest, "\n"), *features = strsep(&rest, "\n");
        strcpy(settings[at], setting);
        contexts[at] = triple && cpu && features
            ? LLVMCreateDisasmCPUFeatures(triple, cpu, features, NULL, 0, NULL, NULL) : NULL;
    }
    return contexts[at];
}

/* Of v_cmpx in the encoding VOP3 the C interface says nothing when the unused destination is not EXEC ("potentially
 * undefined"), where llvm-mc prints it with a warning. */
static size_t without_destination(void *context, const struct word *word, char *text) {
    uint8_t bytes[20];
    memcpy(bytes, word->bytes, sizeof bytes);
    bytes[0] = 0x7e;
    size_t length = LLVMDisasmInstruction(context, bytes, word->size, 0, text, TEXT);
    return length && strncmp(text, "\tv_cmpx_", 8) == 0 && strstr(text, "_e64") ? length : 0;
}

static void judge(void *context, const struct word *word, struct answer *answer) {
    uint8_t bytes[20];
    memcpy(bytes, word->bytes, sizeof bytes);
    answer->text[0] = 0;
    size_t length = LLVMDisasmInstruction(context, bytes, word->size, 0, answer->text, TEXT);
    answer->status = length ? VALID : INVALID;
    if (!length && hides_destination && word->size >= 8 && (length = without_destination(context, word, answer->text)))
        answer->status = UNDEFINED;
    answer->length = (uint8_t)length;
    answer->text_length = length ? (uint16_t)strnlen(answer->text, TEXT - 1) : 0;
}

static void work(struct shared *shared, void *context, uint32_t count) {
    for (uint32_t at = shared->done; at < count; ++at) {
        if (at % 64 == 0)
            alarm(SECONDS);
        judge(context, &words[at], &shared->answers[at]);
        shared->done = at + 1;
    }
}

static int answer_frame(struct shared *shared, void *context, uint32_t count) {
    shared->done = 0;
    while (shared->done < count) {
        pid_t child = fork();
        if (child < 0)
            return 0;
        if (child == 0) {
            work(shared, context, count);
            _exit(0);
        }
        waitpid(child, NULL, 0);
        if (shared->done < count) {
            struct answer *answer = &shared->answers[shared->done];
            answer->status = CRASHED;
            answer->length = 0;
            answer->text_length = 0;
            shared->done += 1;
        }
    }
    for (uint32_t at = 0; at < count; ++at)
        fwrite(&shared->answers[at], 1, 4 + shared->answers[at].text_length, stdout);
    return fflush(stdout) == 0;
}

int main(void) {
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED)
        return 2;
    LLVMInitializeAMDGPUTargetInfo();
    LLVMInitializeAMDGPUTarget();
    LLVMInitializeAMDGPUTargetMC();
    LLVMInitializeAMDGPUDisassembler();
    /* LLVM's report of a crash would fill the log. */
    if (!freopen("/dev/null", "w", stderr))
        return 2;
    uint32_t head[2];
    while (read_all(head, sizeof head)) {
        char setting[SETTING_TEXT] = {0};
        if (head[0] >= SETTING_TEXT || head[1] > WORDS || !read_all(setting, head[0])
            || !read_all(words, head[1] * sizeof *words))
            return 3;
        void *context = context_of(setting);
        if (!context)
            return 4;
        if (!answer_frame(shared, context, head[1]))
            return 5;
    }
    return 0;
}
