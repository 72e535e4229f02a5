#include "../common/calls_device.hip"
