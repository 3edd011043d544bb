"""Sources in WGSL, OpenCL C, CUDA and Metal: one error, which says how to translate them."""

import pytest
import shader_programs
from processes import ROOT, outcome

from vkops import shaders
from vkops.errors import ShaderCompileError
from vkops.shaders import foreign

SOURCES = {
    "WGSL": """
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
    y[id.x] = 2.0 * x[id.x];
}
""",
    "OpenCL C": """
__kernel void twice(__global const float *x, __global float *y) {
    int i = get_global_id(0);
    y[i] = 2 * x[i];
}
""",
    "CUDA": """
extern "C" __global__ void twice(const float* x, float* y, int n) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i < n) y[i] = 2 * x[i];
}
""",
    "Metal": """
kernel void twice(device float* x [[buffer(0)]], uint i [[thread_position_in_grid]]) {
    x[i] *= 2;
}
""",
}
SUFFIXES = {"WGSL": ".wgsl", "OpenCL C": ".cl", "CUDA": ".cu", "Metal": ".metal"}


def _languages():
    return {language.name: language for language in foreign.LANGUAGES}


@pytest.mark.parametrize("name", SOURCES)
@pytest.mark.parametrize("language", ["glsl", "hlsl"])
def test_texts(name, language):
    source = f"// #version 450, numthreads\n/* __global__ */\n{SOURCES[name]}"
    with pytest.raises(ShaderCompileError) as raised:
        shaders.load(source, language=language, name="twice")
    advice = _languages()[name].advice
    assert raised.value.message == f"twice: vkops does not compile {name}; {advice}"
    assert raised.value.file == "twice"
    assert raised.value.log


@pytest.mark.parametrize("name", SOURCES)
def test_files(name, tmp_path):
    """The suffix is enough; a file with another one is compiled first."""
    message = f"vkops does not compile {name}; {_languages()[name].advice}"
    for suffix in (SUFFIXES[name], ".comp"):
        file = tmp_path / f"twice{suffix}"
        file.write_text(SOURCES[name])
        with pytest.raises(ShaderCompileError) as raised:
            shaders.load(file)
        assert message in raised.value.message
    with pytest.raises(ShaderCompileError, match=r"must be a pathlib\.Path if it is a file"):
        shaders.load(f"twice{SUFFIXES[name]}")
    with pytest.raises(ShaderCompileError) as raised:
        shaders.load(SOURCES[name], language=name.split()[0].lower())
    assert raised.value.message.endswith(f"; for {name}, {_languages()[name].advice}")


def test_messages(message):
    for name in SOURCES:
        with pytest.raises(ShaderCompileError) as raised:
            shaders.load(SOURCES[name], name="twice")
        message(raised.value, name)


@pytest.mark.parametrize(
    "command", ["shader disasm", "shader run", "debug check", "debug validate"]
)
def test_commands(command, tmp_path):
    file = tmp_path / "twice.cl"
    file.write_text(SOURCES["OpenCL C"])
    status, output, errors = outcome("-m", "vkops", *command.split(), file)
    assert status == 1
    assert "vkops does not compile OpenCL C; translate it with `clspv" in " ".join(errors.split())
    assert "Traceback" not in errors
    assert not output


def test_no_false_alarms():
    """No shader of the repository is taken for one of these languages, with or without a fault."""
    files = [
        file
        for folder in ("shaders", "examples", "tests/broken_models", "tests/checked_shaders")
        for suffix in (".comp", ".glsl", ".hlsl", ".slang")
        for file in (ROOT / folder).rglob(f"*{suffix}")
    ]
    texts = [file.read_bytes() for file in files]
    texts += [value.encode() for value in vars(shader_programs).values() if isinstance(value, str)]
    assert len(texts) > 30
    assert not [text for text in texts if foreign.recognised(text)]


def test_own_errors_stay():
    """A shader of GLSL or HLSL with words of other languages keeps its own error."""
    glsl = "#version 450\nint get_global_id(int n) { return missing; }\nvoid main() {}"
    hlsl = "[numthreads(1, 1, 1)] void main() { int threadIdx = missing; }"
    for language, source in (("glsl", glsl), ("hlsl", hlsl)):
        with pytest.raises(ShaderCompileError, match="missing") as raised:
            shaders.load(source, language=language)
        assert "vkops does not compile" not in raised.value.message
