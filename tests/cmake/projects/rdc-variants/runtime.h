// Memory of the device, behind the declarations of tiny.h.
#pragma once

#include "tiny.h"

extern "C" {
int hipMalloc(void **, std::size_t);
int hipMemcpy(void *, const void *, std::size_t, int);
}

constexpr int LANES = 64;
constexpr int TO_HOST = 2;
