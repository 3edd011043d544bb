"""Write the public names of CuPy, PyOpenCL, wgpu and Kompute to tests/public_names.json.

Usage: python scripts/public_names.py LIBRARY..., with a Python that has these libraries; none needs
a device. The names of other libraries in the file stay as they are.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from pkgutil import iter_modules
from types import ModuleType

FILE = Path(__file__).parents[1] / "tests/public_names.json"

LIBRARIES: dict[str, dict[str, str]] = {
    "cupy": {
        "cupy cupy.cuda cupyx cupyx.profiler": "vkops",
        "cupy:ndarray cupy.cuda:MemoryPointer": "Tensor",
        "cupy:RawKernel cupy:RawModule": "CompiledShader",
        "cupy:ElementwiseKernel": "ElementwiseKernel",
        "cupy:ReductionKernel": "ReductionKernel",
        "cupy.cuda:Device cupy.cuda:Stream cupy.cuda:Event cupy.cuda:MemoryPool": "Device",
        "cupy.cuda:Graph": "RecordedProgram",
        "cupy.random cupy.random:Generator": "Philox",
    },
    "pyopencl": {
        "pyopencl pyopencl.array pyopencl.algorithm pyopencl.clmath pyopencl.clrandom": "vkops",
        "pyopencl.elementwise pyopencl.reduction pyopencl.scan pyopencl.tools": "vkops",
        "pyopencl:Device pyopencl:Context pyopencl:CommandQueue pyopencl:Event": "Device",
        "pyopencl:Platform": "DeviceInfo",
        "pyopencl:Program pyopencl:Kernel": "CompiledShader",
        "pyopencl:Buffer pyopencl:MemoryMap pyopencl:SVM": "Buffer",
        "pyopencl:Image": "Image",
        "pyopencl:Sampler": "Sampler",
        "pyopencl.array:Array": "Tensor",
    },
    "wgpu": {
        "wgpu wgpu:GPU wgpu:GPUPromise wgpu:GPUCanvasContext": "vkops",
        "wgpu.utils.compute wgpu.utils.device": "vkops",
        "wgpu:GPUAdapter wgpu:GPUAdapterInfo": "DeviceInfo",
        "wgpu:GPUDevice wgpu:GPUQueue wgpu:GPUCommandEncoder wgpu:GPUComputePassEncoder": "Device",
        "wgpu:GPUQuerySet wgpu:GPURenderPassEncoder wgpu:GPURenderBundleEncoder": "Device",
        "wgpu:GPUBuffer": "Buffer",
        "wgpu:GPUTexture wgpu:GPUTextureView": "Image",
        "wgpu:GPUSampler": "Sampler",
        "wgpu:GPUShaderModule wgpu:GPUComputePipeline wgpu:GPUBindGroup": "CompiledShader",
        "wgpu:GPURenderPipeline": "CompiledShader",
    },
    "kp": {
        "kp": "vkops",
        "kp:Tensor": "Tensor",
        "kp:Manager": "Device",
        "kp:Algorithm": "CompiledShader",
        "kp:Sequence": "RecordedProgram",
    },
}
"""The modules and classes of each library, and where in vkops a user would look for their names."""

_PACKAGES = {"cupy": "cupy-cuda12x"}
_BORROWED = {
    *("__future__", "_warnings", "abc", "collections", "contextlib", "dataclasses", "functools"),
    *("logging", "typing", "typing_extensions", "warnings"),
}


def _names(place: str) -> list[str]:
    """The names of a module or class, without those that it has from other packages."""
    module, _, kind = place.partition(":")
    owner = import_module(module)
    if kind:
        inherited = dir(dict) if issubclass(getattr(owner, kind), dict) else ()
        return [
            name for name in dir(getattr(owner, kind)) if name[0] != "_" and name not in inherited
        ]
    names = [
        each.name for each in iter_modules(getattr(owner, "__path__", ())) if each.name[0] != "_"
    ]
    for name in {*getattr(owner, "__all__", ()), *dir(owner)}:
        value = getattr(owner, name, None)  # __all__ may have what this build has not
        makers = [value] if isinstance(value, type) else [value, type(value)]
        homes = {str(getattr(maker, "__module__", "")).partition(".")[0] for maker in makers}
        own = homes.isdisjoint(_BORROWED)
        if isinstance(value, ModuleType):  # CuPy has modules of cupy_backends
            package, _, own_name = value.__name__.rpartition(".")
            own = package.startswith(module.partition(".")[0]) and own_name == name
        if own and name[0] != "_" and name != "TYPE_CHECKING":
            names.append(name)
    return sorted(set(names))


def read() -> Iterator[tuple[str, str, str, str, list[str]]]:
    """Yield library, version, module or class, place in vkops, and names, of all in the file."""
    for library, entry in json.loads(FILE.read_text("utf-8")).items():
        places = {
            place.replace(":", "."): kind
            for group, kind in LIBRARIES[library].items()
            for place in group.split()
        }
        for place, names in entry["names"].items():
            yield library, entry["version"], place, places[place], names.split()


def main() -> None:
    """Write the names of the libraries that the command line names."""
    known = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
    for library in sys.argv[1:] or LIBRARIES:
        places = {
            place.replace(":", "."): " ".join(_names(place))
            for group in LIBRARIES[library]
            for place in group.split()
        }
        known[library] = {"version": version(_PACKAGES.get(library, library)), "names": places}
    FILE.write_text(json.dumps(dict(sorted(known.items())), indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
