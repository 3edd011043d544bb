"""Builds of the kernels that write down each access to a tensor: of which address, by whom.

They are made from the text of the shaders: every index of a buffer is given to a function that
records it, and every loop counts its rounds. So no access can be forgotten.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
import pytest

from vkops.gpu.kernels.layout import TABLE_BYTES
from vkops.gpu.run.stores import run_with_table
from vkops.shaders import VARIANTS
from vkops.shaders.variants import source_dir

MAX_ACCESSES = 1 << 17
"""Accesses of a dispatch that can be recorded."""

FIRST = TABLE_BYTES // 16
COUNTERS = 14
FIRST_LOOP = {"region.glsl": 0, "edges.glsl": 3, "indices.glsl": 5}
MAIN_LOOP = 7
"""The numbers of the loops of a file: those of the kernel itself come last."""

LOG = f"""
#extension GL_EXT_shader_explicit_arithmetic_types_int64 : enable
uint log_loop[{COUNTERS}] = uint[]({", ".join(["0u"] * COUNTERS)});
uint bytes_of(uint v) {{ return 4u; }}
uint bytes_of(uvec2 v) {{ return 8u; }}
uint bytes_of(uvec4 v) {{ return 16u; }}
uint logged(uint site, uint number, uint nbytes) {{
    uint at = atomicAdd(table[{FIRST}].x, 1u);
    if (at >= {MAX_ACCESSES}u) return number;
    at = {FIRST + 1}u + at * 3u;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint pairs[7];
    for (uint k = 0u; k < 7u; ++k) pairs[k] = log_loop[2u * k] | log_loop[2u * k + 1u] << 16u;
    table[at] = uvec4(group * gl_WorkGroupSize.x + gl_LocalInvocationIndex, site, number, nbytes);
    table[at + 1u] = uvec4(pairs[0], pairs[1], pairs[2], pairs[3]);
    table[at + 2u] = uvec4(pairs[4], pairs[5], pairs[6], 0u);
    return number;
}}
uint logged_word(uint site, uint number, uint word) {{
    logged(site, number * 4u + word, 4u);
    return number;
}}
"""


class Site(NamedTuple):
    """An access in the text of a shader."""

    file: str
    is_store: bool
    exchanges: bool


class LoggedAccess(NamedTuple):
    """What an invocation did: the access is executed with those that have an equal ``moment``."""

    invocation: int
    moment: tuple
    is_store: bool
    address: int
    nbytes: int


class LoggedKernels:
    """Compiles such builds, and runs dispatches with them."""

    def __init__(self, executor, folder):
        self._executor, self._folder = executor, folder
        self._sites, self._pipelines = [], {}
        for path in source_dir().glob("*.*"):
            text = path.read_text()
            if path.name != "layout.glsl":
                text = self._with_counted_loops(path.name, self._with_sites(path.name, text))
            (folder / path.name).write_text(text)
        size = TABLE_BYTES + 16 * (1 + 3 * MAX_ACCESSES)
        self._heap = executor.host_heap(size)

    def run(self, dispatch):
        """Run a dispatch, and return its accesses."""
        name = dispatch.kernel.name
        if name not in self._pipelines:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("VKOPS_SHADER_DIR", str(self._folder))
                spirv = VARIANTS[name].compile()
            bindings = [(number, False) for number in range(dispatch.kernel.bindings)]
            self._pipelines[name] = self._executor.queue.kompute.pipeline(spirv, [bindings])
        words = self._heap.view.view(np.uint32)
        words[: dispatch.words.size] = dispatch.words
        log = words[TABLE_BYTES // 4 :]
        log[:4] = 0
        run_with_table(self._executor, dispatch, self._heap, self._pipelines[name])
        count = int(log[0])
        assert 0 < count <= MAX_ACCESSES
        return list(self._accesses(log[4 : 4 + 12 * count].reshape(count, 12).tolist()))

    def _accesses(self, rows):
        seen = {}
        for invocation, number, index, nbytes, *loops, _ in rows:
            site = self._sites[number]
            if site.exchanges and loops[MAIN_LOOP // 2] >> 16 * (MAIN_LOOP % 2) & 0xFFFF > 1:
                continue  # it was repeated, because others have changed the word meanwhile
            # A function that is called several times has an access at each of the places.
            key = (invocation, number, *loops)
            seen[key] = seen.get(key, 0) + 1
            moment = (number, *loops, seen[key])
            yield LoggedAccess(invocation, moment, site.is_store, index * nbytes, nbytes)

    def _with_sites(self, file, text):
        declaration = r"(buffer \w+ \{ (\w+) (?!table)(\w+)\[\]; \};.*\n)"
        text = re.sub(declaration, r"\1#define BYTES_OF_\3 bytes_of(\2(0))\n", text)
        found = re.compile(r"\b(source\d?|target|target_words|indices)\[(?!\])")
        done = ""
        while match := found.search(text):
            end = _closing(text, match.end() - 1)
            index, rest = text[match.end() : end - 1], text[end:]
            before = text[: match.start()]
            word = rest[1 : _closing(rest, 0) - 1] if rest[0] == "[" else None
            after = rest[_closing(rest, 0) :] if word else rest
            atomic = before.endswith(("atomicAnd(", "atomicOr(", "atomicCompSwap("))
            stores = atomic or re.match(r" = ", after) is not None
            number = f"{len(self._sites)}u"
            self._sites.append(Site(file, stores, before.endswith("atomicCompSwap(")))
            name = match[1]
            call = f"logged({number}, uint({index}), BYTES_OF_{name})"
            if word:
                call = f"logged_word({number}, uint({index}), {word})"
            done += f"{before}{name}[{call}]"
            text = rest
        text = done + text
        if file == "region.glsl":
            text = text.replace("#define TABLE_ACCESS readonly", "#define TABLE_ACCESS")
            table = "buffer Table { uvec4 table[]; };\n"
            assert table in text
            text = text.replace(table, table + LOG)
        return text

    @staticmethod
    def _with_counted_loops(file, text):
        number, start = FIRST_LOOP.get(file, MAIN_LOOP), 0
        if file == "region.glsl":
            start = text.index("// n / size")
        while match := re.compile(r"\b(for|while) \(").search(text, start):
            assert number < COUNTERS
            counter = f"log_loop[{number}]"
            end = _closing(text, match.end() - 1)
            head = text[match.end() : end - 1]
            first, condition, last = head.split(";") if match[1] == "for" else ("", head, "")
            condition = f" ++{counter} > 0u && ({condition.strip()})"
            head = f"{first};{condition};{last}" if match[1] == "for" else condition
            at = end + re.match(r"\s*", text[end:]).end()
            stop = _closing(text, at) if text[at] == "{" else text.index(";", at) + 1
            body = text[end:stop].replace("return;", f"{{ {counter} = 0u; return; }}")
            before = f"{text[: match.start()]}{counter} = 0u; {match[1]} ("
            text = f"{before}{head}){body} {counter} = 0u;{text[stop:]}"
            start, number = len(before), number + 1
        return text


def _closing(text, start):
    """The place behind the bracket that closes the one at ``start``."""
    depth = 0
    for at in range(start, len(text)):
        depth += (text[at] in "([{") - (text[at] in ")]}")
        if depth == 0:
            return at + 1
    raise AssertionError(f"nothing closes {text[start : start + 40]!r}")
