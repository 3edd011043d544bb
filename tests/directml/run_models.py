"""Run models by ONNX Runtime's DirectML provider, in Windows' Python. Usage: run_models.py MODELS RESULTS FIRST

provider.py writes MODELS, a pickled list of models and their inputs, and reads RESULTS. This begins at model number
FIRST, and appends two pickled values for each: None before the model runs, and then a list of its outputs, or a text
that says why the provider does not run it. Every other model runs without ONNX Runtime's optimizations of graphs.
"""

import ctypes
import pickle
import sys
from uuid import UUID

import numpy as np
import onnxruntime

ID3D12DEVICE5 = UUID("8b4f173b-2fea-4b80-8f58-4307191ab95d").bytes_le
FEATURE_LEVEL_11_0 = 0xB000
ENUMERATE_META_COMMANDS = 59  # in the table of virtual functions of ID3D12Device5
PAGE_EXECUTE_READWRITE = 0x40
MOVE_TO_RAX, JUMP_TO_RAX = b"\x48\xb8", b"\xff\xe0"

DEVICE_REMOVED = "887A0005"

LEVELS = [
    onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL,
    onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL,
]
kept = []  # what Direct3D uses until the process ends


Pointer = ctypes.c_void_p
Create = ctypes.WINFUNCTYPE(ctypes.c_long, Pointer, ctypes.c_int, Pointer, Pointer)
Query = ctypes.WINFUNCTYPE(ctypes.c_long, Pointer, Pointer, Pointer)
Enumerate = ctypes.WINFUNCTYPE(ctypes.c_long, Pointer, ctypes.POINTER(ctypes.c_uint), Pointer)


def make_direct3d_fit():
    """Change two functions of Wine's Direct3D 12.

    D3D12CreateDevice always returns one device, as it does under Windows: Wine's would take half a gigabyte for each
    session. And its EnumerateMetaCommands reports none: DirectML does not take Wine's E_NOTIMPL for none.
    """
    device, create = Pointer(), ctypes.WinDLL("d3d12.dll").D3D12CreateDevice
    if create(None, FEATURE_LEVEL_11_0, ID3D12DEVICE5, ctypes.byref(device)):
        raise OSError("Direct3D 12 has no device")
    table = Pointer.from_address(device.value).value
    query = Query(Pointer.from_address(table).value)

    @Create
    def return_device(adapter, level, interface, made):
        return query(device, interface, made) if made else 1  # S_FALSE: it could be made

    @Enumerate
    def report_none(self, count, descriptions):
        count[0] = 0
        return 0

    kept.extend((device, return_device, report_none))
    jump = MOVE_TO_RAX + bytes(ctypes.cast(return_device, Pointer)) + JUMP_TO_RAX
    overwrite(ctypes.cast(create, Pointer).value, jump)
    overwrite(table + ENUMERATE_META_COMMANDS * 8, bytes(ctypes.cast(report_none, Pointer)))


def overwrite(address, data):
    protect, old = ctypes.windll.kernel32.VirtualProtect, ctypes.c_ulong()
    where, size = Pointer(address), ctypes.c_size_t(len(data))
    if not protect(where, size, PAGE_EXECUTE_READWRITE, ctypes.byref(old)):
        raise OSError("Direct3D 12 cannot be changed")
    ctypes.memmove(address, data, len(data))


def run(model, inputs, level):
    """The outputs, as types, sizes and bytes; or why the provider does not run all nodes of the model."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.enable_mem_pattern = False  # the provider cannot have it
    options.log_severity_level = 4
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    disabled = ["ConstantFolding"]  # which the CPU would do
    try:
        session = onnxruntime.InferenceSession(
            model,
            options,
            providers=[("DmlExecutionProvider", {"device_id": "0"})],  # by DXGI: Wine has no DXCore
            disabled_optimizers=disabled,
            enable_fallback=0,
        )
        given = {
            name: np.frombuffer(data, dtype).reshape(shape)
            for name, (dtype, shape, data) in inputs.items()
        }
        outputs = session.run(None, given)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return [(each.dtype.str, each.shape, each.tobytes()) for each in outputs]


def main(models, results, first):
    make_direct3d_fit()
    with open(models, "rb") as file:
        cases = pickle.load(file)
    with open(results, "ab", buffering=0) as file:
        for number in range(int(first), len(cases)):
            file.write(pickle.dumps(None))
            answer = run(*cases[number], LEVELS[number % 2])
            is_lost = isinstance(answer, str) and DEVICE_REMOVED in answer
            if not is_lost or number == int(first):
                file.write(pickle.dumps(answer))
            if is_lost:  # perhaps by an earlier model; nothing runs in this process any more
                return


if __name__ == "__main__":
    main(*sys.argv[1:])
