"""Litmus tests of Vulkan's memory model in the interpreter: what is ordered, and what is a data race."""

import re
from itertools import product

import numpy as np
import pytest

from vkops.debug.shader_check import Case
from vkops.interpreter.barriers import Barriers
from vkops.interpreter.races import Races
from vkops.interpreter.scheduler import Run
from vkops.interpreter.state import Settings

COHERENT = "layout(std430, binding = 0) devicecoherent buffer Seen { uint seen[]; };"
FENCE, SIGNAL = "memoryBarrierBuffer();", "atomicExchange(flag[0], 1u);"
SEEN = "atomicAdd(flag[0], 0u) == 1u"
HEAD = """#version 450
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
layout(local_size_x = 8) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(std430, binding = 1) buffer Flag { uint flag[]; };
layout(std430, binding = 2) buffer Out { uint result[]; };
shared uint part[8], ready;
void main() { uint own = gl_LocalInvocationIndex, group = gl_WorkGroupID.x;
"""


def passed(write="data[0] = 1u;", release=FENCE, signal=SIGNAL, seen=SEEN, acquire=FENCE):
    """Workgroup 0 passes a message to workgroup 1."""
    return f"""if (group == 0u) {{ if (own == 0u) {{ {write} {release} {signal} }} }}
        else if (own == 0u) {{ if ({seen}) {{ {acquire} result[0] = data[0]; }} }}"""


def fence(scope, storage="Buffer"):
    return (
        f"memoryBarrier(gl_Scope{scope}, gl_StorageSemantics{storage}, gl_SemanticsAcquireRelease);"
    )


def order(semantics):
    """The scope, memory and semantics of an atomic operation; only relaxed ones are of no memory."""
    storage = "0" if semantics == "Relaxed" else "gl_StorageSemanticsBuffer"
    return f"gl_ScopeDevice, {storage}, gl_Semantics{semantics}"


def store(semantics):
    return f"atomicStore(flag[0], 1u, {order(semantics)});"


def load(semantics):
    return f"atomicLoad(flag[0], {order(semantics)}) == 1u"


def control(scope, storage, semantics):
    return f"controlBarrier(gl_ScopeWorkgroup, {scope}, {storage}, {semantics});"


ALL = "data[own] = 1u;"
LEADER = f"if (own == 0u) {{ {FENCE} {SIGNAL} }}"
READ_ALL = (
    f"if (own == 0u && {SEEN}) {{ {FENCE} for (uint k = 0u; k < 8u; ++k) result[k] = data[k]; }}"
)


def by_all(between):
    """All invocations of workgroup 0 write, one of them passes the message."""
    return f"if (group == 0u) {{ {ALL} {between} }} else {{ {READ_ALL} }}"


def shared(release, acquire):
    """Invocation 0 passes a message to invocation 5, in another subgroup of 4."""
    return f"""if (own == 0u) atomicExchange(ready, 0u); barrier();
        if (own == 0u) {{ part[0] = 1u; {release} atomicExchange(ready, 1u); }}
        if (own == 5u && atomicAdd(ready, 0u) == 1u) {{ {acquire} result[0] = part[0]; }}"""


CHAIN = f"""if (own == 0u) {{
    if (group == 0u) {{ data[0] = 1u; {FENCE} atomicExchange(flag[0], 1u); }}
    if (group == 1u && {SEEN}) {{ {FENCE} atomicExchange(flag[1], 1u); }}
    if (group == 2u && atomicAdd(flag[1], 0u) == 1u) {{ {FENCE} result[0] = data[0]; }} }}"""
SEQUENCE = f"""if (own == 0u) {{
    if (group == 0u) {{ data[0] = 1u; {FENCE} {SIGNAL} }}
    if (group == 1u) CHANGE;
    if (group == 2u && atomicAdd(flag[0], 0u) == 1u) {{ {FENCE} result[0] = data[0]; }} }}"""
ONE_READS = f"""if (group == 0u) {{ if (own == 0u) {{ data[0] = 1u; {FENCE} {SIGNAL} }} }}
    else {{ if (own == 0u && {SEEN}) {{ {FENCE} }} BETWEEN if (own == 1u) result[0] = data[0]; }}"""
LOCK = """if (own == 0u) { while (atomicCompSwap(flag[0], 0u, 1u) != 0u); ACQUIRE
    data[0] += group; RELEASE atomicExchange(flag[0], 0u); }"""
TICKETS = """if (own == 0u) { uint turn = atomicAdd(flag[0], 1u);
    while (atomicOr(flag[1], 0u) != turn); ACQUIRE data[0] += group; RELEASE atomicAdd(flag[1], 1u); }"""
LOOK_BACK = """if (own == 0u) { uint before = 1u;
    if (group > 0u) { while (atomicOr(flag[group - 1u], 0u) == 0u); ACQUIRE before = data[group - 1u]; }
    data[group] = before + group; RELEASE atomicExchange(flag[group], 1u); }"""
ONCE = f"""if (own == 0u) {{ if (atomicOr(flag[1], 0u) == 0u) {{
    while (atomicCompSwap(flag[0], 0u, 1u) != 0u); {FENCE}
    if (atomicOr(flag[1], 0u) == 0u) {{ data[0] = 5u; RELEASE atomicExchange(flag[1], 1u); }}
    {FENCE} atomicExchange(flag[0], 0u); }} else {{ ACQUIRE }} result[group] = data[0]; }}"""


def fenced(body, without=""):
    """A program with its fences; without the one named, if any."""
    for name in ("ACQUIRE", "RELEASE"):
        body = body.replace(name, "" if name == without else FENCE)
    return body


def scoped(change, own, scope):
    """Atomic operations of a scope, by invocations of the workgroup or by some of them."""
    first = "if (own == 0u) atomicExchange(ready, 0u); barrier();"
    return f"{first} if (own {own}) atomicAdd({change}, own, gl_Scope{scope}, 0, 0);"


def semantics(flags, name="Buffer"):
    """A barrier of a workgroup for some memory, with these semantics."""
    return control("gl_ScopeWorkgroup", f"gl_StorageSemantics{name}", flags)


def made(release="| gl_SemanticsMakeAvailable", acquire="| gl_SemanticsMakeVisible"):
    """A message with fences of Vulkan's memory model, with flags beside their semantics."""
    fences = [
        f"memoryBarrier(gl_ScopeDevice, gl_StorageSemanticsBuffer, gl_Semantics{flags});"
        for flags in (f"Release {release}", f"Acquire {acquire}")
    ]
    return passed(release=fences[0], acquire=fences[1])


def chained(first="AV", device="AV", seen="VIS", last="VIS", unused=""):
    """A message through four invocations: in a workgroup, to another one, and in that.

    The flags are those of the release and of the acquire of each step which the message needs, and
    of those which it does not need.
    """

    makes = {"AV": " | gl_SemanticsMakeAvailable", "VIS": " | gl_SemanticsMakeVisible", "": ""}

    def flag(name, scope, semantics, made):
        semantics = f"gl_Semantics{semantics}{makes[made]}"
        what = f"{name}, 1u" if "Release" in semantics else name
        call = "atomicStore" if "Release" in semantics else "atomicLoad"
        return f"{call}({what}, gl_Scope{scope}, gl_StorageSemanticsBuffer, {semantics})"

    return f"""if (group == 0u && own == 0u) {{
            data[0] = 1u; {flag("flag[0]", "Workgroup", "Release", first)}; }}
        if (group == 0u && own == 5u && {flag("flag[0]", "Workgroup", "Acquire", unused and "VIS")} == 1u)
            {flag("flag[1]", "Device", "Release", device)};
        if (group == 1u && own == 0u && {flag("flag[1]", "Device", "Acquire", seen)} == 1u)
            {flag("flag[2]", "Workgroup", "Release", unused and "AV")};
        if (group == 1u && own == 5u && {flag("flag[2]", "Workgroup", "Acquire", last)} == 1u)
            result[0] = data[0];"""


def plain_flag(signal, seen, then="result[0] = flag[0];"):
    """Workgroup 1 sees the flag of workgroup 0, and accesses the flag itself."""
    return f"if (group == 0u && own == 0u) {{ {signal} }} if (group == 1u && own == 0u && {seen}) {{ {then} }}"


BUFFER = "data[own] = own; {} result[own] = data[own ^ 1u];"
PART = "part[own] = own; {} result[own] = part[own ^ 1u];"
ACQ_REL = "gl_SemanticsAcquireRelease"

ORDERED = {
    "message passing": passed(),
    "release and acquire": passed(release="", signal=store("Release"), seen=load("Acquire"), acquire=""),
    "fence and acquire": passed(signal=store("Relaxed"), seen=load("Acquire"), acquire=""),
    "release and fence": passed(release="", signal=store("Release"), seen=load("Relaxed")),
    "chain": CHAIN,
    "sequence of changes": SEQUENCE.replace("CHANGE", "atomicOr(flag[0], 1u)"),
    "barrier, one fence": by_all(f"barrier(); {LEADER}"),
    "fences, barrier": by_all(f"{FENCE} barrier(); if (own == 0u) {SIGNAL}"),
    "each passes it": by_all(f"{FENCE} {SIGNAL}"),
    "one reads, barrier": ONE_READS.replace("BETWEEN", "barrier();"),
    "one reads, barrier acquires": ONE_READS.replace(f"{{ {FENCE} }}", "{}").replace("BETWEEN", "barrier();"),
    "shared, workgroup": shared(*[fence("Workgroup", "Shared")] * 2),
    "shared, device": shared(*["memoryBarrierShared();"] * 2),
    "shared, barrier": PART.format("barrier();"),
    "shared, fence and barrier": PART.format(f"memoryBarrierShared(); {control('gl_ScopeWorkgroup', 0, 0)}"),
    "shared, subgroup": PART.format("subgroupBarrier();"),
    "buffer, fence and barrier": BUFFER.format(f"{FENCE} barrier();"),
    "buffer, control barrier": BUFFER.format(control("gl_ScopeWorkgroup", "gl_StorageSemanticsBuffer", ACQ_REL)),
    "buffer, read and write": f"result[own] = data[own ^ 1u]; {FENCE} barrier(); data[own] = own;",
    "buffer, read, barrier of a subgroup, write": "result[own] = data[own ^ 1u]; subgroupBarrier(); data[own] = own;",
    "shared, read and write": "result[own] = part[own ^ 1u]; barrier(); part[own] = own;",
    "buffer, subgroup": BUFFER.format("subgroupBarrier();"),
    "lock": fenced(LOCK),
    "tickets": fenced(TICKETS),
    "look-back": fenced(LOOK_BACK),
    "made once": fenced(ONCE),
    "barrier for the memory of a subgroup": PART.format(control("gl_ScopeSubgroup", "gl_StorageSemanticsShared", ACQ_REL)),
    "release, acquiring barrier": BUFFER.format(fence("Workgroup") + semantics("gl_SemanticsAcquire")),
    "releasing barrier, acquire": BUFFER.format(semantics("gl_SemanticsRelease") + fence("Workgroup")),
    "atomics of a workgroup": scoped("flag[group]", "< 8u", "Workgroup"),
    "the flag itself": plain_flag(store("Release"), load("Acquire")),
    "the flag itself, changed": plain_flag(
        f"atomicOr(flag[0], 1u, {order('Release')});", f"atomicOr(flag[0], 0u, {order('Acquire')}) == 1u", "flag[0] = 0u;"
    ),
    "written, then released": plain_flag(f"flag[0] = 0u; {store('Release')}", load("Acquire")),
    "atomics of subgroups": scoped("ready", "< 4u", "Subgroup") + "barrier();" + scoped("flag[group]", "> 3u", "Subgroup"),
}  # fmt: skip
RACES = {
    "no release": passed(release=""),
    "no acquire": passed(acquire=""),
    "neither": passed(signal=store("Relaxed"), release="", seen=load("Relaxed"), acquire=""),
    "relaxed store": passed(release="", signal=store("Relaxed"), seen=load("Acquire"), acquire=""),
    "relaxed load": passed(release="", signal=store("Release"), seen=load("Relaxed"), acquire=""),
    "flag before data": passed(write="", release=f"{FENCE} {SIGNAL}", signal="data[0] = 1u;"),
    "acquire before flag": passed(seen="true", acquire=f"{FENCE} if ({SEEN})"),
    "release of a workgroup": passed(release=fence("Workgroup")),
    "acquire of a workgroup": passed(acquire=fence("Workgroup")),
    "release of shared memory": passed(release=fence("Device", "Shared")),
    "acquire of shared memory": passed(acquire=fence("Device", "Shared")),
    "another flag": passed(signal="atomicExchange(flag[1], 1u);", seen="atomicAdd(flag[0], 0u) == 0u"),
    "sequence ends": SEQUENCE.replace("CHANGE", store("Relaxed").rstrip(";")),
    "fence by one": by_all(LEADER),
    "fence by one, then barrier": by_all(f"if (own == 0u) {FENCE} {control('gl_ScopeWorkgroup', 0, 0)} if (own == 0u) {SIGNAL}"),
    "one reads": ONE_READS.replace("BETWEEN", ""),
    "shared, subgroup": shared(*[fence("Subgroup", "Shared")] * 2),
    "shared, no release": shared("", "memoryBarrierShared();"),
    "shared, no memory": PART.format(control("gl_ScopeWorkgroup", 0, 0)),
    "shared, of buffers": PART.format(control("gl_ScopeWorkgroup", "gl_StorageSemanticsBuffer", ACQ_REL)),
    "buffer, no memory": BUFFER.format(control("gl_ScopeWorkgroup", 0, 0)),
    "buffer, of one": BUFFER.format(f"if (own == 0u) {FENCE} {control('gl_ScopeWorkgroup', 0, 0)}"),
    "lock, no acquire": fenced(LOCK, "ACQUIRE"),
    "lock, no release": fenced(LOCK, "RELEASE"),
    "tickets, no acquire": fenced(TICKETS, "ACQUIRE"),
    "tickets, no release": fenced(TICKETS, "RELEASE"),
    "look-back, no acquire": fenced(LOOK_BACK, "ACQUIRE"),
    "look-back, no release": fenced(LOOK_BACK, "RELEASE"),
    "made once, no acquire": fenced(ONCE, "ACQUIRE"),
    "barrier for the memory of a subgroup": PART.replace("1u]", "4u]").format(control("gl_ScopeSubgroup", "gl_StorageSemanticsShared", ACQ_REL)),
    "releasing barrier": BUFFER.format(semantics("gl_SemanticsRelease")),
    "releasing barrier, acquire of shared memory": BUFFER.format(semantics("gl_SemanticsRelease") + "memoryBarrierShared();"),
    "acquiring barrier": PART.format(semantics("gl_SemanticsAcquire", "Shared")),
    "atomics of a workgroup": scoped("flag[0]", "+ group < 8u", "Workgroup"),
    "atomics of a subgroup": scoped("ready", "< 8u", "Subgroup"),
    "atomics of an invocation": scoped("ready", "< 2u", "Invocation"),
    "atomics of two scopes": scoped("flag[0]", "+ group == 0u", "Workgroup") + scoped("flag[0]", "+ group == 1u", "Device"),
    "the flag itself, relaxed": plain_flag(FENCE + store("Relaxed"), load("Acquire")),
    "the flag itself, not acquired": plain_flag(store("Release"), load("Relaxed")),
    "a relaxed store behind a release": passed(release=store("Release").replace("flag[0]", "flag[1]"), signal=store("Relaxed"), seen=load("Acquire"), acquire=""),
    "an acquire behind a relaxed load": passed(release="", signal=store("Release"), seen=load("Relaxed"), acquire=load("Acquire").replace("flag[0]", "flag[1]") + ";"),
    "atomic and plain": "if (own == 0u) flag[0] = 2u; if (own == 5u) atomicAdd(flag[0], 1u);",
}  # fmt: skip
DECLARED_ORDERED = {
    "available and visible": ("nonprivate", made()),
    "coherent": ("coherent", made("", "")),
    "coherent, fences": ("coherent", passed()),
    "barrier": ("nonprivate", BUFFER.format(semantics(f"{ACQ_REL} | gl_SemanticsMakeAvailable | gl_SemanticsMakeVisible"))),
    "barrier, coherent for a workgroup": ("workgroupcoherent", BUFFER.format(semantics(ACQ_REL))),
    "read, then written": ("nonprivate", f"result[own] = data[own ^ 1u]; {semantics(ACQ_REL)} data[own] = own;"),
    "shared": ("", PART.format("barrier();")),
    "chain": ("nonprivate", chained()),
    "chain, with more flags": ("nonprivate", chained(unused="both")),
    "chain, a read for the device": ("nonprivate", chained(last="").replace("= data", "= seen")),
    "chain, a write for the workgroup": ("workgroupcoherent", chained(first="")),
    "by one": ("", "data[own] = own; result[own] = data[own];"),
}  # fmt: skip
DECLARED_RACES = {
    "private": ("", made()),
    "private, barrier": ("", DECLARED_ORDERED["barrier"][1]),
    "not available": ("nonprivate", made(release="")),
    "not visible": ("nonprivate", made(acquire="")),
    "fences of GLSL": ("nonprivate", passed()),
    "coherent for a workgroup": ("workgroupcoherent", made("", "")),
    "barrier": ("nonprivate", BUFFER.format(semantics(ACQ_REL))),
    "plain barrier": ("nonprivate", BUFFER.format("barrier();")),
    "chain, first not available": ("nonprivate", chained(first="")),
    "chain, not available to the device": ("nonprivate", chained(device="")),
    "chain, device not visible": ("nonprivate", chained(seen="")),
    "chain, not visible at last": ("nonprivate", chained(last="", unused="both")),
}  # fmt: skip
PLAIN = {
    "plain barrier": BUFFER.format("barrier();"),
    "fence after it": BUFFER.format(f"barrier(); {FENCE}"),
    "written again": "data[own] = own; barrier(); data[own ^ 1u] = own;",
    "read, then written": "result[own] = data[own ^ 1u]; barrier(); data[own] = own;",
    "read, then written in another subgroup": "result[own] = data[own ^ 4u]; barrier(); data[own] = own;",
    "read by all, then written by one": "result[own] = data[0]; barrier(); if (own == 5u) data[0] = own;",
    "read, then changed atomically": "result[own] = data[own ^ 4u]; barrier(); atomicAdd(data[own], 1u);",
}


def kinds(body, head=HEAD, **options):
    if isinstance(body, tuple):
        qualifier, body = body
        head = head.replace("450\n", "450\n#pragma use_vulkan_memory_model\n")
        head = head.replace("buffer Data", f"{qualifier} buffer Data")
        head = head.replace("shared", f"{COHERENT}\nshared")
    buffers = {"Data": np.zeros(8, np.uint32), "Flag": np.zeros(3, np.uint32), "Out": 32}
    groups = 3 if "group == 2u" in body else 2 if re.search(r"\bgroup\b", body) else 1
    case = Case.of(head + body + "}", buffers, groups=groups, subgroup_size=4)
    observers = [Barriers(), Races(**options)]
    Run(case.shader, case.memory(), case.groups, case.push, Settings(4), observers=observers).run()
    return {finding.kind for finding in observers[0].machine.findings}


@pytest.mark.parametrize("name", ORDERED)
def test_no_correct_program_is_accused(name):
    assert kinds(ORDERED[name]) == set()


@pytest.mark.parametrize("name", RACES)
def test_data_races_are_found(name):
    assert kinds(RACES[name]) == {"data race"}


@pytest.mark.parametrize("name", DECLARED_ORDERED)
def test_no_correct_program_that_declares_the_memory_model_is_accused(name):
    assert kinds(DECLARED_ORDERED[name]) == set()


@pytest.mark.parametrize("name", DECLARED_RACES)
def test_data_races_by_the_declared_memory_model_are_found(name):
    assert kinds(DECLARED_RACES[name]) == {"data race"}


@pytest.mark.parametrize("is_barrier", [False, True], ids=["message", "barrier"])
def test_each_side_that_is_not_coherent_needs_its_own_semantics(is_barrier):
    """All combinations of a write and a read that are coherent or not, with flags or without."""
    for write, read, available, visible in product((False, True), repeat=4):
        flags = " | gl_SemanticsMakeAvailable" * available, " | gl_SemanticsMakeVisible" * visible
        barrier = BUFFER.format(semantics(ACQ_REL + "".join(flags)))
        body = barrier if is_barrier else made(*flags)
        body = re.sub(r"data(?=\[\w+\] =)", "seen" if write else "data", body)
        body = re.sub(r"(?<== )data", "seen" if read else "data", body)
        is_ordered = (write or available) and (read or visible)
        expected = set() if is_ordered else {"data race"}
        assert kinds(("nonprivate", body)) == expected, (write, read, available, visible)


@pytest.mark.parametrize("name", PLAIN)
def test_buffers_across_plain_barriers_are_findings_of_their_own(name):
    assert kinds(PLAIN[name]) == {"plain barrier"}
    assert kinds(PLAIN[name], plain_barriers=False) == set()
