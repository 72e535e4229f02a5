// The header of csmith's programs, without a C library: each checksum goes to memory, so that the first difference is seen.
#pragma once
#include <float.h>
#include <limits.h>
#include <stddef.h>
#include <stdint.h>

#define STATIC static
#define LOG_INDEX
#define LOG_EXEC
#define UNDEFINED(value) (value)
#define FUNC_NAME(name) (safe_##name)
#define fabs __builtin_fabs
#define fabsf __builtin_fabsf
#define ldexp __builtin_ldexp
#define ldexpf __builtin_ldexpf
#include "safe_math.h"

#define RESULTS 1024
static uint32_t *results, result_count, checksum;

static void transparent_crc(uint64_t value, const char *name, int flag) {
    (void)name, (void)flag;
    checksum = (checksum ^ (uint32_t)value ^ (uint32_t)(value >> 32)) * 0x9e3779b1u + (checksum >> 17);
    if (result_count < RESULTS) results[result_count++] = checksum;
}

static void transparent_crc_bytes(const char *bytes, int count, const char *name, int flag) {
    for (int i = 0; i < count; ++i) transparent_crc((uint8_t)bytes[i], name, flag);
}

#define crc32_gentab()
#define crc32_context checksum
#define platform_main_begin()
#define platform_main_end(crc, flag) ((void)(crc), (void)(flag))
#define printf(...)
