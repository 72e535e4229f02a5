"""libhotswap from Python: the code object that a GPU loads from a file. HOTSWAP_LIBRARY is its path where the loader finds none."""
import ctypes, os
from ctypes import byref, c_char_p, c_size_t, c_uint32, c_uint64, c_void_p

library = ctypes.CDLL(os.environ.get("HOTSWAP_LIBRARY", "libhotswap.so.0"))
library.hotswap_error_code.restype = library.hotswap_error_message.restype = c_char_p
ROUTES = {1: "native", 2: "generic", 3: "relabelled", 4: "rewritten"}
ALLOW_EXPERIMENTAL, ALLOW_NAMES = 1, 4

class Entry(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("kind", c_uint32), ("container", c_uint32), ("size", c_uint64),
                ("file_offset", c_uint64), ("id", c_char_p), ("target", c_char_p), ("place", c_char_p)]
class Choice(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("entry", c_size_t), ("route", c_uint32), ("reserved", c_uint32),
                ("source", c_char_p), ("rule", c_char_p)]

def call(function, *arguments):
    error = c_void_p()
    if getattr(library, "hotswap_" + function)(*arguments, byref(error)) != 0:
        code, line = library.hotswap_error_code(error).decode(), library.hotswap_error_message(error).decode()
        library.hotswap_error_free(error)
        raise OSError(code, line)

class File:
    def __init__(self, path):
        self.handle, count, last = c_void_p(), c_size_t(), Entry(ctypes.sizeof(Entry))
        call("file_open", os.fsencode(path), byref(self.handle))
        call("file_entry_count", self.handle, byref(count))
        if count.value:
            call("file_entry", self.handle, c_size_t(count.value - 1), byref(last))
        self.containers = last.container + 1 if count.value else 0
    def __del__(self):
        library.hotswap_file_free(self.handle)
    def bytes_for(self, gpu, container, flags=0):
        choice, output, start, size = Choice(ctypes.sizeof(Choice)), c_void_p(), c_void_p(), c_size_t()
        call("bytes_for", self.handle, gpu.encode(), c_size_t(container), c_uint32(flags), byref(choice), byref(output))
        call("output_bytes", output, byref(start), byref(size))
        code = ctypes.string_at(start.value, size.value)
        library.hotswap_output_free(output)
        return code, ROUTES[choice.route], choice.source.decode()
