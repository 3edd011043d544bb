"""Messages of the Khronos validation layer, in the formats of 1.3.239, 1.4.309 and 1.4.363."""

import os

import pytest

from vkops.debug import layer, printf
from vkops.debug.layer import KNOWN, faults, printed
from vkops.errors import DeviceError
from vkops.gpu.adapters import layer_messages
from vkops.gpu.adapters.layer_messages import dispatch_line, parse

SPEC = "(https://example.org/vkspec.html#{id})"


def old(kind, id, text, objects=1):
    """A message as version 1.3.239 logs it."""
    severity = {"Error": "ERROR", "Warning": "WARN", "Information": "INFO"}[kind]
    listed = "".join(f"        [{n}] 0x55d0c0de, type: 4, name: NULL\n" for n in range(objects))
    return (
        f"{id}({severity} / SPEC): msgNum: -1841738615 - Validation {kind}: [ {id} ] Object 0: "
        "handle = 0x55d0c0de, type = VK_OBJECT_TYPE_QUEUE; | MessageID = 0x92394c89 | "
        f"{text}\n    Objects: {objects}\n{listed}"
    )


def new(kind, id, text):
    """A message as version 1.4.309 logs it."""
    listed = "".join(f"    [{n}] VkQueue 0x2638e0b0\n" for n in range(2))
    head = f"Validation {kind}: [ {id} ] | MessageID = 0x4fe1fef9\n"
    return f"{head}{text}\nObjects: 2\n{listed}\n"


def old_printed(text, x=0, line=11, index=94, file="./a.comp"):
    place = f" Debug shader printf message generated in file {file} at line {line}." if line else ""
    hint = "Unable to find suitable #line directive in SPIR-V OpSource." if line else ""
    return old(
        "Information",
        "UNASSIGNED-DEBUG-PRINTF",
        "Command buffer (0x55d0). Compute Dispatch Index 0. Pipeline (0x11). Shader Module (0xe). "
        f"Shader Instruction Index = {index}.  Stage = Compute.  Global invocation ID (x, y, z) = "
        f"({x}, 0, 0 ) {text}{place}{hint}",
    )


def new_printed(text, x=0, line=11, file="./a.comp"):
    place = f"\nDebug shader printf message generated at {file}:{line}\n\n    the line;\n"
    return new(
        "Information",
        "VVL-DEBUG-PRINTF",
        f"vkQueueSubmit(): pSubmits[0] DebugPrintf:\n{text}\nStage = Compute.  Global invocation "
        f"ID (x, y, z) = ({x}, 0, 0)\nCommand buffer (0x27f8)\n\tCompute Dispatch Index 0\nPipeline "
        f"(1e)\nShader Module (1a) (internal ID 1)\nSPIR-V Instruction Index = 85{place if line else ''}",
    )


OUT_OF_BOUNDS = [
    old(
        "Error",
        "VUID-vkCmdDispatch-None-02706",
        "Descriptor index 0 access out of bounds. Descriptor size is 16 and highest byte accessed "
        "was 4011 Command buffer (0x56). Compute Dispatch Index 0. Pipeline (0x14). Shader Module "
        "(0x11). Shader Instruction Index = 100.  Stage = Compute.  Global invocation ID (x, y, z) "
        "= (2, 0, 0 ) Shader validation error occurred in file ./oob.comp at line 11.Unable to find "
        "suitable #line directive in SPIR-V OpSource. The Vulkan spec states: it must not access "
        "values outside of the range of the buffer " + SPEC,
    ),
    new(
        "Error",
        "VUID-vkCmdDispatch-storageBuffers-06936",
        "vkCmdDispatch(): (set = 0, binding = 1, index 0)  access out of bounds. The descriptor "
        "buffer (VkBuffer 0xe000000000e) size is 16 bytes, 16 bytes were bound, and the highest out "
        "of bounds access was at [4011] bytes\nStage = Compute.  Global invocation ID (x, y, z) = "
        "(2, 0, 0)\nCommand buffer (0x194b1900)\n\tCompute Dispatch Index 0\nPipeline (22)\nShader "
        "Module (1e) (internal ID 1)\nSPIR-V Instruction Index = 88\nShader validation error "
        "occurred at ./oob.comp:9\n\n        b[i + 1000u] = x;\nThe Vulkan spec states: it must not "
        "access values outside of the range of the buffer " + SPEC,
    ),
]


@pytest.mark.parametrize(
    ("log", "line", "exact"), [(OUT_OF_BOUNDS[0], 11, False), (OUT_OF_BOUNDS[1], 9, True)]
)
def test_an_access_out_of_bounds(log, line, exact):
    (found,) = parse(dispatch_line("my\nshader") + log)
    assert (found.severity, found.dispatch, found.invocation) == ("Error", "my shader", (2, 0, 0))
    assert (found.file, found.line, found.exact) == ("oob.comp", line, exact)
    assert found.id.startswith("VUID-vkCmdDispatch-")
    assert "4011" in found.text
    assert "Objects" not in found.text
    assert found.printed is None


PRINTED = [
    "n 1",
    "",
    "a | b, (c) [d] 100%",
    "two\nlines",
    "\nObjects: 3 found\n",
    "generated at other.comp:99 in file b at line 7",
    "Validation is fun: [ x ]",
]


@pytest.mark.parametrize("text", PRINTED)
@pytest.mark.parametrize("form", [old_printed, new_printed])
@pytest.mark.parametrize("line", [0, 12])
def test_printed_texts_are_unchanged(form, text, line):
    first, second = parse(
        dispatch_line("one") + form(text, 3, line) + dispatch_line("two") + form("n")
    )
    assert (first.dispatch, second.dispatch) == ("one", "two")
    assert first.printed is not None
    assert first.printed.strip() == text.strip()
    assert first.invocation == (3, 0, 0)
    if line:
        assert (first.file, first.line) == ("a.comp", line)
    assert second.printed == "n"


@pytest.mark.parametrize("form", [old_printed, new_printed])
def test_files_with_spaces_and_folders(form):
    (found,) = parse(form("n", file="/a folder/b.comp"))
    assert (found.file, found.line) == ("/a folder/b.comp", 11)


def test_severities_and_other_lines():
    log = "noise\n" + old("Warning", "A", "one") + new("Performance Warning", "B", "two")
    log += "Validation Layer Info - Logging validation error to /x\n"
    log += old("Error", "C", "three", 0)
    assert [(m.severity, m.id, m.text) for m in parse(log)][:2] == [
        ("Warning", "A", "one"),
        ("Performance Warning", "B", "two\nObjects: 2\n    [0] VkQueue 0x2638e0b0\n    [1] VkQueue "
         "0x2638e0b0\n\nValidation Layer Info - Logging validation error to /x"),
    ]  # fmt: skip
    assert list(parse("")) == []
    assert list(parse(dispatch_line("only"))) == []


def test_a_long_log():
    """Twenty thousand messages, with as many dispatches, take seconds at most."""
    log = "".join(dispatch_line(str(n)) + old_printed("n", n) for n in range(20_000))
    messages = list(parse(log))
    assert (len(messages), messages[-1].dispatch) == (20_000, "19999")


@pytest.fixture
def told(monkeypatch):
    """Let a program run, and the layer write a log."""

    def told(log):
        outcome = layer.Outcome(0, tuple(parse(log)))
        monkeypatch.setattr(layer, "run", lambda *_: outcome)
        return outcome

    return told


# -- lines -----------------------------------------------------------------------------------------

SHADER = r"""#version 450
#extension GL_EXT_debug_printf : require
// debugPrintfEXT("x %u", i);  /* debugPrintfEXT("x %u", i);
#define SHOW(x) \
    debugPrintfEXT("shown %u", x)
void main() {
    debugPrintfEXT("x %u", i);
    debugPrintfEXT("x %u", i + 1u);
    for (;;) debugPrintfEXT("loop (%d), %f 100%% \"%v3u\"\n", i, f, v);
    debugPrintfEXT(
        "x %u and %u",
        i, i);
    SHOW(i);
}
"""


@pytest.fixture(params=["\n", "\r\n"], ids=["LF", "CRLF"])
def lines(request, tmp_path, monkeypatch, told):
    """Return the locations for texts of SHADER, given as (text, line of the layer, file, more)."""
    (tmp_path / "a.comp").write_text(SHADER, newline=request.param)
    (tmp_path / "b.glsl").write_text('void f() { debugPrintfEXT("included %x", 1); }\n')
    monkeypatch.chdir(tmp_path)

    def lines(form, *texts, source=""):
        told("".join(form(text, line=line, file=file, **more) for text, line, file, more in texts))
        return [m.location for m in printf.printf(["it"], source=source).messages]

    return lines


@pytest.mark.posix("named pipes", tests_only=True)
def test_pipes_and_devices_that_a_shader_names_are_not_read(lines):
    """Neither a pipe nor a device without an end: ``#line`` can name them."""
    os.mkfifo("pipe")
    told = [("x 5", 9, file, {"index": 90}) for file in ("pipe", "/dev/zero", ".", "none")]
    assert lines(old_printed, *told) == [f"{told[n][2]}:9 or shortly before" for n in range(4)]


def test_version_1_3_names_a_later_line(lines):
    told = [
        ("x 5", 9, "a.comp", {"index": 90}),
        ("x 6", 9, "a.comp", {"index": 94}),
        ("x 7", 9, "a.comp", {"index": 90}),
        ('loop (-3), 1.5e+20 100% "1, 2, 3"', 1, "b.glsl", {"index": 100}),
        ("x 1 and 2", 13, "a.comp", {"index": 110}),
        ("included ff", 1, "b.glsl", {"index": 120}),
        ("shown 3", 1, "b.glsl", {"index": 115}),
    ]
    *exact, last = lines(old_printed, *told)
    assert exact == [*(f"a.comp:{n}" for n in (7, 8, 7, 9, 10)), "b.glsl:1"]
    assert last == "b.glsl:1 or shortly before"


def test_a_line_stays_inexact_if_not_all_calls_were_reached(lines):
    told = [("x 5", 9, "a.comp", {"index": 90})]
    assert lines(old_printed, *told) == ["a.comp:9 or shortly before"]


def test_calls_are_searched_in_the_shader_itself(lines):
    told = [('loop (1), 2.0 100% "1, 2, 3"', 1, "b.glsl", {})]
    assert lines(old_printed, *told) == ["b.glsl:1 or shortly before"]
    assert lines(old_printed, *told, source="a.comp") == ["a.comp:9"]


def test_lines_of_version_1_4_are_exact(lines):
    told = [("x 5", 8, "a.comp", {}), ("x 6", 3, "gone.comp", {})]
    assert lines(new_printed, *told) == ["a.comp:8", "gone.comp:3"]


def test_lost_messages(told):
    said = old("Warning", "UNASSIGNED-DEBUG-PRINTF", "WARNING - Debug Printf message was truncated, likely due to a buffer size that was too small for the message")  # fmt: skip
    for log, lost in ((said, True), (old_printed("Debug Printf message was truncated"), False)):
        told(log)
        assert printf.printf(["it"]).lost is lost


# -- verdicts --------------------------------------------------------------------------------------


GPU_AV = "WARNING-GPU-Assisted-Validation"
ADJUSTED = "WARNING-Setting-Limit-Adjusted"
CREATE = "vkCreateDevice(): Internal Warning: "


def test_only_known_messages_are_ignored(told):
    log = (
        new("Warning", GPU_AV, f"{CREATE}Forcing shaderInt64 to VK_TRUE") * 3
        + new("Warning", GPU_AV, f"{CREATE}Adding a VkPhysicalDevice8BitStorageFeatures to pNext")
        + new("Warning", GPU_AV, "vkCreateComputePipelines(): Forcing nothing")
        + new("Error", GPU_AV, "vkCreateDevice(): Out of memory")
        + new("Warning", "OTHER", f"{CREATE}Forcing shaderInt64 to VK_TRUE")
        + new(
            "Warning",
            ADJUSTED,
            "vkCreateDevice(): Warning that validation is adjusting settings:\n"
            "\tForcing shaderInt16 to VK_TRUE\n",
        )
        + new("Warning", ADJUSTED, "vkCreateInstance(): a setting is too large")
        + new("Information", "ANY", "chatter")
    )
    told(log)
    validation = layer.validate(["it"])
    assert sorted(validation.known.values()) == [1, 1, 3]
    assert [(m.severity, m.id) for m in validation.unexpected] == [
        ("Warning", GPU_AV),
        ("Error", GPU_AV),
        ("Warning", "OTHER"),
        ("Warning", ADJUSTED),
    ]


def test_errors_are_never_known(told):
    for entry in KNOWN:
        told(new("Error", entry.id, entry.part))
        assert len(layer.validate(["it"]).unexpected) == 1
        assert entry.reason


def test_the_settings_disable_no_messages():
    for file in layer_messages.FOLDER.iterdir():
        text = file.read_text()
        assert "message_id_filter" not in text
        assert "disables" not in text
        assert "enable_message_limit = false" in text


# -- tables ----------------------------------------------------------------------------------------


def shown(*renderables):
    from rich.console import Console

    console = Console(width=100, color_system=None)
    with console.capture() as capture:
        console.print(*renderables, sep="\n")
    return capture.get()


def test_equal_messages_are_described_once():
    text = shown(*faults([*parse(OUT_OF_BOUNDS[1] * 4 + OUT_OF_BOUNDS[0])]))
    assert "VUID-vkCmdDispatch-storageBuffers-06936 at oob.comp:9 by invocation 2, 0, 0 (4 times)" in " ".join(text.split())  # fmt: skip
    assert "at oob.comp:11 or shortly before by invocation 2, 0, 0" in " ".join(text.split())
    assert text.count("access out of bounds") == 2


def test_control_characters_and_markup_are_escaped():
    text = shown(printed([*parse(new_printed("[bold]x[/] \x1b[31m [/nothing]"))]))
    assert "[bold]x[/] \\x1b[31m [/nothing]" in text
    assert "Dispatch" not in text
    both = dispatch_line("a") + new_printed("1") + dispatch_line("b") + new_printed("2")
    assert "Dispatch" in shown(printed([*parse(both)]))


NEEDS = "GPU Shader Instrumentation requires bufferDeviceAddress."
NEW = f"vkCreateDevice(): Internal Error, {{}} is being disabled. Details:\n{NEEDS}"
OLD = f"Setup Error. Detail: ({NEEDS}  {{}} disabled.)"


@pytest.mark.parametrize(
    ("id", "text"),
    [
        ("GPU-Assisted-Validation", NEW.format("GPU-AV")),
        ("DEBUG-PRINTF", NEW.format("DebugPrintf")),
        ("GPU-Assisted-Validation", OLD.format("GPU-Assisted Validation")),
        ("DEBUG-PRINTF", OLD.format("Debug Printf")),
    ],
)
def test_a_driver_whose_shaders_the_layer_cannot_instrument(told, id, text):
    """Nothing that a shader prints would be a wrong answer."""
    assert told(new("Error", f"UNASSIGNED-{id}", text)).refusal == NEEDS
    with pytest.raises(
        DeviceError, match=f"^the validation layer cannot look into this driver's shaders: {NEEDS}$"
    ):
        printf.printf(["a program"])
    assert len(layer.validate(["a program"]).unexpected) == 1
