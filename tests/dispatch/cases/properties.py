# The name of device 0, as Python programs ask for it.
import ctypes

hip = ctypes.CDLL("libamdhip64.so.7")
properties = ctypes.create_string_buffer(4096)
status = hip.hipGetDevicePropertiesR0600(properties, 0)
print(status, properties.raw[1160:].split(b"\0")[0].decode())
