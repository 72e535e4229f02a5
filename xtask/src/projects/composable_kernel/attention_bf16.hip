// The short form of single precision (bfloat16), one wave.
#include "attention.h"

int main()
{
    return attend<BF16, 1, 32, 32, unmasked>("bf16", 0.1f) ? 0 : 1;
}
