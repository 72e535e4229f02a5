// Half precision, one wave, 32 keys at a time, heads of 16 elements.
#include "attention.h"

int main()
{
    return attend<F16, 1, 32, 16, unmasked>("f16", 0.02f) ? 0 : 1;
}
