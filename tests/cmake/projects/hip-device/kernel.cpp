#include "../common/kernel.hip"
