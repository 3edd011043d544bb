"""Shaders with one planted fault each; ``//!`` marks the lines of which the report must name one."""

from __future__ import annotations

from typing import NamedTuple

HEAD = """#version 450
#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(std430, binding = 1) buffer Out { uint result[]; };
shared uint part[64];
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
"""
RACE, BARRIER, BOUNDS, UNWRITTEN = "data race", "barrier", "out of bounds", "never written"


class Case(NamedTuple):
    name: str
    kind: str
    body: str
    options: dict = {}  # noqa: RUF012
    head: str = HEAD

    @property
    def text(self):
        return self.head + self.body

    @property
    def lines(self):
        return [n for n, line in enumerate(self.text.splitlines(), 1) if "//!" in line]


def one(name, kind, line, before="", **options):
    """A shader of one line with a fault, and what comes before it."""
    return Case(name, kind, f"void main() {{ {before}\n  {line} //!\n}}", options)


TWO = {"groups": 2}
FOUR = {"groups": 4, "buffers": {"Counter": "zeros:4"}}
LAST = """layout(std430, binding = 2) buffer Counter { uint counter; };
shared uint last;
void main() { result[i] = data[i]; //!
  FENCE; barrier();
  if (own == 0) last = atomicAdd(counter, 1u);
  barrier(); if (last != gl_NumWorkGroups.x - 1) return;
  uint sum = 0;
  for (uint k = 0; k < gl_NumWorkGroups.x; ++k) sum += result[k * 64 + own]; //!
  part[own] = sum; }"""
CASES = [
    # -- data races --------------------------------------------------------------------------------
    Case("reduction_without_barrier", RACE, """void main() { part[own] = data[i]; barrier();
  for (uint s = 32; s > 0; s /= 2) {
    if (own < s) part[own] += part[own + s]; //!
  }
  if (own == 0) result[0] = part[0]; }"""),
    Case("tile_without_second_barrier", RACE, """void main() { uint sum = 0;
  for (uint t = 0; t < 4; ++t) {
    part[own] = data[t * 64 + own]; //!
    barrier();
    sum += part[(own + 1) % 64]; //!
  }
  result[i] = sum; }""", {"buffers": {"Data": 1024}, "fill": True}),
    Case("histogram_read_too_early", RACE, """void main() { part[own] = 0; barrier();
  atomicAdd(part[data[i] % 16], 1u);
  if (own < 16) result[own] = part[own]; //!
}"""),
    Case("histogram_cleared_too_late", RACE, """void main() {
  part[own] = 0; //!
  atomicAdd(part[(data[i] + 7) % 16], 1u); //!
  barrier(); if (own < 16) result[own] = part[own]; }"""),
    Case("neighbours_of_other_workgroups", RACE, """void main() {
  uint left = data[max(i, 1u) - 1]; //!
  memoryBarrierBuffer(); barrier();
  data[i] += left; //!
}""", TWO),
    Case("memory_barrier_only", RACE, """void main() { part[own] = data[i]; //!
  memoryBarrierShared();
  result[i] = part[own ^ 1]; //!
}"""),
    Case("subgroup_barrier_only", RACE, """#extension GL_KHR_shader_subgroup_basic : require
void main() { part[own] = data[i]; //!
  subgroupBarrier();
  result[i] = part[63 - own]; //!
}"""),
    one("same_slot_of_two_workgroups", RACE, "result[own] = data[i];", **TWO),
    one("flag_by_all", RACE, "if (data[i] > 10) result[0] = i;"),
    one("bytes_of_one_word", RACE, "result[i / 4] |= (data[i] & 255u) << (i % 4 * 8);"),
    Case("overlapping_vectors", RACE, """layout(std430, binding = 2) buffer Pairs { uvec2 pairs[]; };
void main() {
  pairs[i / 2] = uvec2(i, data[i]); //!
}"""),
    Case("last_workgroup_without_fence", RACE, """layout(std430, binding = 2) buffer Counter { uint counter; };
shared uint last;
void main() {
  if (own == 0) { result[gl_WorkGroupID.x] = data[i]; //!
    last = atomicAdd(counter, 1u); }
  barrier();
  if (last == gl_NumWorkGroups.x - 1 && own == 0) { uint sum = 0;
    for (uint k = 0; k < gl_NumWorkGroups.x; ++k) sum += result[k]; //!
    result[100] = sum; } }""", {"groups": 4, "buffers": {"Counter": "zeros:4"}}),
    Case("last_workgroup_with_fence_for_shared_memory", RACE, LAST.replace("FENCE", "memoryBarrierShared()"), FOUR),
    Case("last_workgroup_with_fence_for_its_workgroup", RACE, LAST.replace("FENCE", "groupMemoryBarrier()"), FOUR),
    Case("last_workgroup_with_barrier_only", RACE, LAST.replace("FENCE", "barrier()"), FOUR),
    Case("flag_before_what_it_announces", RACE, """layout(std430, binding = 2) buffer Flag { uint flag; };
void main() { if (own != 0) return;
  if (gl_WorkGroupID.x == 0) { atomicExchange(flag, 1u); memoryBarrierBuffer();
    result[0] = data[0]; } //!
  else if (atomicAdd(flag, 0u) == 1) { memoryBarrierBuffer();
    result[1] = result[0]; } //!
}""", {"groups": 2, "buffers": {"Flag": "zeros:4"}}),
    Case("subgroup_memory_barrier_only", RACE, """#extension GL_KHR_shader_subgroup_basic : require
void main() { part[own] = data[i]; //!
  subgroupMemoryBarrierShared();
  result[i] = part[own ^ 1]; //!
}"""),
    Case("shared_flag", RACE, """shared bool found;
void main() {
  if (own == 0) found = false;
  barrier();
  if (data[i] == 7) found = true;
  if (found) result[i] = 1; //!
}"""),
    Case("race_in_a_function", RACE, """void put(uint at, uint value) {
  part[at] = value; //!
}
void main() { put(own / 2, data[i]); barrier(); result[i] = part[own / 2]; }"""),
    # -- barriers ----------------------------------------------------------------------------------
    Case("barrier_after_return", BARRIER, """void main() { if (i >= 50) return;
  part[own] = data[i];
  barrier(); //!
  result[i] = part[(own + 1) % 50]; }"""),
    Case("barrier_in_branch", BARRIER, """void main() { part[own] = data[i];
  if (own < 32) {
    barrier(); //!
    result[i] = part[own]; } }"""),
    Case("barrier_in_loop_of_own_length", BARRIER, """void main() {
  for (uint k = 0; k < own % 4; ++k) {
    part[own] = k;
    barrier(); //!
  }
  result[i] = own; }"""),
    Case("barrier_after_break", BARRIER, """void main() { part[own] = 0;
  for (uint k = 0; k < 8; ++k) { if (data[i] == k) break;
    barrier(); //!
  } }"""),
    Case("barrier_in_called_function", BARRIER, """void meet() {
  barrier(); //!
}
void main() { if (data[i] > 5) meet(); result[i] = 1; }"""),
    # -- bounds ------------------------------------------------------------------------------------
    one("no_comparison_with_length", BOUNDS, "result[i] = data[i];", buffers={"Data": "range:50"}),
    one("next_element", BOUNDS, "result[i] = data[i + 1];"),
    one("previous_element", BOUNDS, "result[i] = data[i - 1];"),
    Case("shared_array_too_small", BOUNDS, """shared uint small[32];
void main() {
  small[own] = data[i]; //!
  barrier(); result[i] = small[own % 32]; }"""),
    Case("row_of_a_table", BOUNDS, """shared uint table[8][8];
void main() { table[own / 8][own % 8] = data[i]; barrier();
  result[i] = table[own % 8][own / 8 + 1]; //!
}"""),
    one("local_array", BOUNDS, "result[i] = a[data[i] % 5];", "uint a[4] = uint[4](1, 2, 3, 4);"),
    one("negative_index", BOUNDS, "result[i] = data[at];", "int at = int(own) - 3;"),
    one("index_from_a_buffer", BOUNDS, "result[at] = 1;", "uint at = data[i] * 2;"),
    one("atomic_out_of_bounds", BOUNDS, "atomicAdd(result[data[i] + 1], 1u);"),
    one("component_of_a_vector", BOUNDS, "result[i] = v[data[i] % 4];", "uvec3 v = uvec3(own);"),
    # -- never written -----------------------------------------------------------------------------
    one("local_variable", UNWRITTEN, "result[i] = x;", "uint x; if (own > 9) x = 3;"),
    Case("branch_on_local_variable", UNWRITTEN, """void main() { bool b;
  if (data[i] == 3) b = true;
  if (b) result[i] = 1; //!
}"""),
    Case("shared_without_start", UNWRITTEN, """void main() {
  atomicAdd(part[data[i] % 16], 1u); //!
  barrier(); if (own < 16) result[own] = part[own]; }"""),
    Case("half_of_shared_memory", UNWRITTEN, """void main() { if (own < 32) part[own] = data[i];
  barrier();
  result[i] = part[63 - own]; //!
}"""),
    one("output_as_input", UNWRITTEN, "result[i] += data[i];", buffers={"Out": 256}),
    one("component", UNWRITTEN, "result[i] = v.x + v.y;", "uvec2 v; v.x = data[i];"),
    Case("output_parameter", UNWRITTEN, """bool get(out uint x) { if (own > 5) return false; x = own; return true; }
void main() { uint x; get(x);
  result[i] = x; //!
}"""),
    one("element_of_local_array", UNWRITTEN, "result[i] = a[own % 4];", "uint a[4]; for (uint k = 1; k < 4; ++k) a[k] = k;"),
    Case("member_of_struct", UNWRITTEN, """struct S { uint a, b; };
void main() { S s; s.a = data[i];
  S t = s; //!
  result[i] = t.b; }"""),
    Case("shuffle_from_an_inactive_invocation", UNWRITTEN, """#extension GL_KHR_shader_subgroup_shuffle_relative : require
void main() { uint x = data[i];
  if (own % 4 == 3) x += subgroupShuffleUp(x, 1u); //!
  result[i] = x; //!
}"""),
    # -- others ------------------------------------------------------------------------------------
    one("division", "division by zero", "result[i] = 100 / data[i];"),
    one("remainder", "division by zero", "result[i] = i % (data[i] & 3u);"),
    one("shift", "shift", "result[i] = 1u << data[i];"),
    one("shift_64", "shift", "result[i] = uint(x >> (own + 1u));", "uint64_t x = data[i];"),
    one("bit_field", "shift", "result[i] = bitfieldExtract(data[i], 28, int(own & 7u));"),
    *(Case(name, "undefined result", f"""void main() {{ int n = int(own) - 3; float x = float(n);
  result[i] = uint({use}); //!
}}""") for name, use in {
        "remainder_of_a_negative_number": "n % 5", "smallest_integer": "(n == 0 ? 1 << 31 : n) / -1 >> 31",
        "float_to_integer": "x", "power_of_a_negative_number": "floatBitsToUint(pow(x, 2.0))",
        "power_of_zero": "floatBitsToUint(pow(max(x, 0.0), -x))", "arc_tangent": "floatBitsToUint(atan(x, x * 2.0))",
        "minimum_of_no_number": "floatBitsToUint(min(x, x / 0.0 * 0.0))", "limits": "clamp(own, 9u, i)",
        "limits_of_floats": "floatBitsToUint(clamp(x, 2.0, x))", "no_direction": "floatBitsToUint(normalize(vec2(x, 0)).x)",
        **{f"outside_of_{name}": f"floatBitsToUint({name}(x))" for name in (
            "sqrt", "inversesqrt", "log", "log2", "asin", "acos", "acosh", "atanh")},
        "edges_of_a_step": "floatBitsToUint(smoothstep(2.0, x, 0.5))", "exponent": "floatBitsToUint(ldexp(x, n + 127))",
        "product_that_is_too_large": "floatBitsToUint(ldexp(3e38, n))", "modulus_of_zero": "floatBitsToUint(mod(1.0, x))",
        "mantissa_of_infinity": "floatBitsToUint(frexp(1.0 / x, n))", "exponent_of_infinity": "frexp(1.0 / x, n) * 0.0 + n",
        "no_inverse": "floatBitsToUint(inverse(mat2(x, 0, 0, 1))[1][1])", "empty_ballot": "subgroupBallotFindLSB(uvec4(0))",
        "bit_beyond_a_ballot": "subgroupBallotBitExtract(uvec4(1), 128u + own)",
        "ballots_that_differ": "subgroupInverseBallot(uvec4(own)) ? 5u : 5u",
    }.items()),
    Case("endless_loop", "loop", """void main() { uint n = data[i];
  while (n != 1000u) //!
    n = n * 2u;
  result[i] = n; }""", {"buffers": {"Data": "zeros:256"}}),
    Case("barrier_of_all_workgroups", "forward progress", """layout(std430, binding = 2) buffer Counter { uint counter; };
void main() { if (own != 0) return;
  atomicAdd(counter, 1u);
  while (atomicAdd(counter, 0u) < gl_NumWorkGroups.x); //!
}""", FOUR),
    Case("order_of_workgroups", "order of workgroups", """layout(std430, binding = 2) buffer Counter { uint counter; };
void main() { if (own != 0) return; uint turn = atomicAdd(counter, 1u);
  result[gl_WorkGroupID.x] = turn * 3 + gl_WorkGroupID.x; //!
}""", {"groups": 4, "buffers": {"Counter": "zeros:4"}}),
    one("winner", "order of workgroups", "atomicExchange(result[0], gl_WorkGroupID.x + 5);", groups=3),
    one("subgroup_sum", "subgroup size", "result[i] = subgroupAdd(data[i]);"),
    one("subgroup_number", "subgroup size", "if (own == 0) result[0] = sum;", "uint sum = subgroupAdd(1u);"),
    Case("clusters", "subgroup size", """#extension GL_KHR_shader_subgroup_clustered : require
void main() {
  result[i] = subgroupClusteredMax(7u, 16); //!
}"""),
    one("exponential", "floats", "result[i] = floatBitsToUint(exp(float(data[i]) * 100.0));", floats=True),
    one("quotient", "floats", "result[i] = floatBitsToUint(x / (x - 4.0));", "float x = float(data[i]);", floats=True),
]  # fmt: skip
