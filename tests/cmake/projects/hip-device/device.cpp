#include "../common/device.hip"
