// Half precision, one wave, 64 keys at a time, heads of 64 elements: a tile of CK's own example.
#include "attention.h"

int main()
{
    return attend<F16, 1, 64, 64, unmasked>("f16", 0.02f) ? 0 : 1;
}
