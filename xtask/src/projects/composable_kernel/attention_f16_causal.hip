// Half precision, two waves, a query sees the keys up to its own.
#include "attention.h"

int main()
{
    return attend<F16, 2, 32, 32, causal>("f16, causal", 0.02f) ? 0 : 1;
}
