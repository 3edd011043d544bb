"""The reference of what shaders can use, docs/capabilities.md.

It prints the page, which scripts/docs writes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vkops.shaders.features import CAPABILITIES, MODES, SUBGROUP

_HEAD = """\
# Capabilities of shaders

These are the capabilities and execution modes of SPIR-V that vkops accepts, and what a device
must have for them: `vkops.Device().features` has the names. A shader that declares another one is
refused when it is loaded, and one that needs what the device does not have when it is compiled,
both by name (SH-02). Some instructions need a feature without a capability: operations of
subgroups with numbers that are not of 32 bits or `double` need `shaderSubgroupExtendedTypes`, and
shared memory with an initial value `shaderZeroInitializeWorkgroupMemory`. A mode for numbers of
16, 32 or 64 bits needs the feature for that width.

No driver that vkops was tried with has cooperative matrices, maximal reconvergence,
`shaderQuadControl`, `shaderSubgroupRotate` or partitioned subgroups: they were tested only with
an imitated driver. The interpreter (`vkops debug check`) does not run cooperative matrices.
`device.cooperative_matrices` lists their shapes.
"""
_PLACES = {"Int64Atomics": ("Buffer", "Shared"), "ShaderClockKHR": ("Subgroup", "Device")}


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join([_HEAD, *_table("Capability", CAPABILITIES), "", *_table("Mode", MODES), ""])


def _table(kind: str, needs: Mapping[str, str]) -> Iterator[str]:
    yield f"| {kind} | needs |"
    yield "|---|---|"
    for name, template in needs.items():
        if name in SUBGROUP:
            needed = f"operations of subgroups: {SUBGROUP[name]}"
        elif kind == "Mode":
            needed = " or ".join(sorted({f"`{template.format(bits)}`" for bits in (16, 32, 64)}))
        else:
            places = _PLACES.get(name, ("Buffer", "Shared"))
            needed = " or ".join(dict.fromkeys(f"`{template.format(place)}`" for place in places))
        yield f"| {name} | {needed if template or name in SUBGROUP else 'nothing'} |"


if __name__ == "__main__":
    print(page(), end="")
