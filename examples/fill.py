"""Let a library in C++ write to a tensor.

g++ -shared -fPIC fill.cpp -o fill.so -lvulkan && python fill.py ./fill.so
"""

import sys
from ctypes import CDLL, c_int, c_uint32, c_uint64, c_void_p

import vkops

library = CDLL(sys.argv[1])
library.fill.argtypes = [c_void_p, c_void_p, c_uint32, c_uint64, c_uint64, c_uint64, c_uint32]
library.fill.restype = c_int

device = vkops.Device()
x = vkops.zeros(8, "uint32", device=device)
handles, memory = device.handles, x[2:5].handles
with handles.locked():
    failed = library.fill(handles.device, handles.queue, handles.queue_family, *memory, 7)
print(failed, vkops.flip(x).tolist())
