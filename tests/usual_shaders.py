"""Correct shaders of many kinds, in which there is nothing to find."""

from faulty_shaders import Case

_HEAD = """#version 450
#extension GL_KHR_shader_subgroup_arithmetic : require
#extension GL_KHR_shader_subgroup_ballot : require
#extension GL_KHR_shader_subgroup_shuffle : require
#extension GL_KHR_shader_subgroup_shuffle_relative : require
"""


def _buffers(*declared):
    return "".join(
        f"layout(std430, binding = {n}) buffer B{n} {{ {text}; }};\n"
        for n, text in enumerate(declared)
    )


_64 = """layout(local_size_x = 64) in;
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
"""
_IN_OUT = _64 + _buffers("uint data[]", "uint result[]")
_FLOATS = _64 + _buffers("float x[]", "float y[]")


def _case(name, body, **options):
    return Case(name, "", body, options, _HEAD)


CASES = [
    _case("sum_and_count_in_one_block", _64 + """#extension GL_EXT_shader_atomic_float : require
layout(std430, binding = 0) buffer B0 { uint count; float sum; };
void main() { atomicAdd(count, 1u); atomicAdd(sum, 1.0 / float(i + 3)); }""", groups=8, buffers={"B0": "zeros:8"}),
    _case("reduction_by_shuffles", _IN_OUT + """shared uint part[64];
void main() { uint sum = data[i], lane = gl_SubgroupInvocationID;
  for (uint s = gl_SubgroupSize / 2; s > 0; s /= 2) sum += subgroupShuffleDown(sum, s);
  if (lane == 0) part[gl_SubgroupID] = sum;
  barrier();
  if (own == 0) { for (uint k = 1; k < gl_NumSubgroups; ++k) sum += part[k]; result[gl_WorkGroupID.x] = sum; } }""", groups=2),
    _case("scan_by_shuffles", _IN_OUT + """
void main() { uint sum = data[i] + 1, lane = gl_SubgroupInvocationID;
  for (uint s = 1; s < 4; s *= 2) { uint left = subgroupShuffleUp(sum, s); sum += lane % 4 >= s ? left : 0u; }
  result[i] = sum; }"""),
    _case("last_workgroup_adds_with_all_invocations",
          _64 + _buffers("uint data[]", "uint result[]", "uint counter", "uint sums[]") + """shared uint last;
void main() { result[i] = data[i];
  memoryBarrierBuffer(); barrier();
  if (own == 0) last = atomicAdd(counter, 1u);
  barrier(); if (last != gl_NumWorkGroups.x - 1) return;
  uint sum = 0;
  for (uint k = 0; k < gl_NumWorkGroups.x; ++k) sum += result[k * 64 + own];
  sums[own] = sum; }""", groups=4, buffers={"B2": "zeros:4"}),
    _case("reduction", _IN_OUT + """shared uint part[64];
void main() { part[own] = i < data.length() ? data[i] : 0; barrier();
  for (uint s = 32; s > 0; s >>= 1) { if (own < s) part[own] += part[own + s]; barrier(); }
  if (own == 0) result[gl_WorkGroupID.x] = part[0]; }""", groups=3, buffers={"B0": "range:150"}),
    _case("reduction_by_subgroups", _IN_OUT + """shared uint part[64];
void main() { uint sum = subgroupAdd(data[i]);
  if (subgroupElect()) part[gl_SubgroupID] = sum;
  barrier();
  if (own == 0) { uint total = 0; for (uint k = 0; k < gl_NumSubgroups; ++k) total += part[k];
    result[gl_WorkGroupID.x] = total; } }""", groups=2),
    _case("last_workgroup_adds", _64 + _buffers("uint data[]", "uint sums[]", "uint counter") + """
shared uint part[64]; shared bool last;
void main() { part[own] = data[i]; barrier();
  for (uint s = 32; s > 0; s /= 2) { if (own < s) part[own] += part[own + s]; barrier(); }
  if (own == 0) { sums[gl_WorkGroupID.x + 1] = part[0]; memoryBarrierBuffer();
    last = atomicAdd(counter, 1u) == gl_NumWorkGroups.x - 1; }
  barrier();
  if (last && own == 0) { uint sum = 0;
    for (uint k = 1; k <= gl_NumWorkGroups.x; ++k) sum += sums[k];
    sums[0] = sum; } }""", groups=5, buffers={"B2": "zeros:4"}),
    _case("scan_with_two_arrays", _IN_OUT + """shared uint part[2][64];
void main() { uint now = 0; part[0][own] = data[i]; barrier();
  for (uint s = 1; s < 64; s *= 2) { part[1 - now][own] = part[now][own] + (own >= s ? part[now][own - s] : 0u);
    now = 1 - now; barrier(); }
  result[i] = part[now][own]; }"""),
    _case("scan_with_a_tree", _IN_OUT + """shared uint t[64];
void main() { t[own] = data[i]; uint step = 1;
  for (uint d = 32; d > 0; d >>= 1) { barrier();
    if (own < d) t[step * (2 * own + 2) - 1] += t[step * (2 * own + 1) - 1]; step *= 2; }
  if (own == 0) t[63] = 0;
  for (uint d = 1; d < 64; d *= 2) { step >>= 1; barrier();
    if (own < d) { uint a = step * (2 * own + 1) - 1, b = step * (2 * own + 2) - 1;
      uint kept = t[a]; t[a] = t[b]; t[b] += kept; } }
  barrier(); result[i] = t[own]; }""", groups=2),
    _case("scan_with_look_back", _64 + _buffers("uint data[]", "uint result[]", "uint flags[]", "uint sums[]", "uint tickets") + """
shared uint part[64]; shared uint before, ticket;
void main() { if (own == 0) ticket = atomicAdd(tickets, 1u); barrier(); uint group = ticket; i = group * 64 + own;
  part[own] = data[i]; barrier();
  for (uint s = 1; s < 64; s *= 2) { uint v = own >= s ? part[own - s] : 0u; barrier(); part[own] += v; barrier(); }
  if (own == 0) { uint sum = 0;
    if (group > 0) { while (atomicAdd(flags[group - 1], 0u) == 0u) {} memoryBarrierBuffer(); sum = sums[group - 1]; }
    sums[group] = sum + part[63]; memoryBarrierBuffer(); atomicExchange(flags[group], 1u); before = sum; }
  barrier(); result[i] = before + part[own]; }""", groups=6, buffers={"B2": "zeros:24", "B4": "zeros:4"}),
    _case("histogram", _IN_OUT + """shared uint bins[16];
void main() { if (own < 16) bins[own] = 0; barrier();
  atomicAdd(bins[data[i] % 16], 1u); barrier();
  if (own < 16) atomicAdd(result[own], bins[own]); }""", groups=4),
    _case("append", _64 + _buffers("uint data[]", "uint result[]", "uint count") + """
void main() { if (data[i] % 3 == 1) result[atomicAdd(count, 1u)] = data[i]; }""", groups=4, buffers={"B2": "zeros:4"}),
    _case("append_by_subgroups", _64 + _buffers("uint data[]", "uint result[]", "uint count") + """
void main() { bool wanted = data[i] % 3 == 1; uvec4 votes = subgroupBallot(wanted); uint first = 0;
  if (subgroupElect()) first = atomicAdd(count, subgroupBallotBitCount(votes));
  first = subgroupBroadcastFirst(first);
  if (wanted) result[first + subgroupBallotExclusiveBitCount(votes)] = data[i]; }""", groups=4, buffers={"B2": "zeros:4"}),
    _case("float_sum_by_exchange", _64 + _buffers("float x[]", "uint total") + """
void main() { uint old = total, assumed;
  do { assumed = old; old = atomicCompSwap(total, assumed, floatBitsToUint(uintBitsToFloat(assumed) + x[i])); } while (old != assumed); }""",
          groups=2, buffers={"B1": "zeros:4"}),
    _case("bytes_with_atomic_or", _64 + _buffers("uint data[]", "uint result[]") + """
void main() { atomicAnd(result[i / 4], ~(255u << (i % 4 * 8))); atomicOr(result[i / 4], (data[i] & 255u) << (i % 4 * 8)); }""", groups=2),
    _case("tiled_product", """layout(local_size_x = 8, local_size_y = 8) in;
""" + _buffers("float a[]", "float b[]", "float c[]") + """layout(push_constant) uniform Push { uint n, m, k; };
shared float ta[8][8], tb[8][9];
void main() { uvec2 l = gl_LocalInvocationID.xy, g = gl_GlobalInvocationID.xy; float sum = 0.0;
  for (uint t = 0; t < k; t += 8) {
    ta[l.y][l.x] = g.y < n && t + l.x < k ? a[g.y * k + t + l.x] : 0.0;
    tb[l.y][l.x] = t + l.y < k && g.x < m ? b[(t + l.y) * m + g.x] : 0.0;
    barrier();
    for (uint j = 0; j < 8; ++j) sum += ta[l.y][j] * tb[j][l.x];
    barrier(); }
  if (g.y < n && g.x < m) c[g.y * m + g.x] = sum; }""", threads=(20, 13), push={"n": 13, "m": 20, "k": 11}),
    _case("transpose_by_tiles", """layout(local_size_x = 16, local_size_y = 4) in;
""" + _buffers("float a[]", "float b[]") + """shared float tile[16][17];
void main() { uvec2 group = gl_WorkGroupID.xy * 16, l = gl_LocalInvocationID.xy; uint n = gl_NumWorkGroups.x * 16;
  for (uint k = 0; k < 16; k += 4) tile[l.y + k][l.x] = a[(group.y + l.y + k) * n + group.x + l.x];
  barrier();
  for (uint k = 0; k < 16; k += 4) b[(group.x + l.y + k) * n + group.y + l.x] = tile[l.x][l.y + k]; }""",
          groups=(2, 2), buffers={"B0": "range:1024", "B1": 4096}),
    _case("game_of_life", """layout(local_size_x = 8, local_size_y = 8) in;
""" + _buffers("uint now[]", "uint next[]") + """void main() { ivec2 g = ivec2(gl_GlobalInvocationID.xy); int n = 0;
  for (int dy = -1; dy <= 1; ++dy) for (int dx = -1; dx <= 1; ++dx) {
    if (dx == 0 && dy == 0) continue;
    ivec2 at = (g + ivec2(dx, dy) + 16) % 16; n += int(now[at.y * 16 + at.x] & 1u); }
  uint self = now[g.y * 16 + g.x] & 1u; next[g.y * 16 + g.x] = n == 3 || (n == 2 && self == 1u) ? 1u : 0u; }""", groups=(2, 2)),
    _case("bitonic_sort", _IN_OUT + """shared uint part[64];
void main() { part[own] = data[63 - own] * 7919u % 101u; barrier();
  for (uint k = 2; k <= 64; k *= 2) for (uint j = k / 2; j > 0; j /= 2) { uint other = own ^ j;
    if (other > own) { uint a = part[own], b = part[other]; if ((a > b) == ((own & k) == 0)) { part[own] = b; part[other] = a; } }
    barrier(); }
  result[own] = part[own]; }"""),
    _case("fft", _64 + _buffers("vec2 x[]", "vec2 y[]") + """shared vec2 t[64];
void main() { t[own] = x[bitfieldReverse(own) >> 26]; barrier();
  for (uint h = 1; h < 64; h *= 2) { uint low = own & ~h; float angle = -3.14159265 * float(own & (h - 1)) / float(h);
    vec2 w = vec2(cos(angle), sin(angle)), a = t[low], b = t[low | h]; vec2 p = vec2(b.x * w.x - b.y * w.y, b.x * w.y + b.y * w.x);
    barrier(); t[own] = (own & h) == 0 ? a + p : a - p; barrier(); }
  y[own] = t[own]; }"""),
    _case("softmax", _FLOATS + """shared float part[64];
float all_(float v, bool largest) { part[own] = v; barrier();
  for (uint s = 32; s > 0; s /= 2) { if (own < s) part[own] = largest ? max(part[own], part[own + s]) : part[own] + part[own + s]; barrier(); }
  float found = part[0]; barrier(); return found; }
void main() { float most = all_(x[i], true), e = exp(x[i] - most); y[i] = e / all_(e, false); }""", groups=2, floats=True),
    _case("binary_search", _IN_OUT + """void main() { uint low = 0, high = data.length();
  while (low < high) { uint middle = (low + high) / 2; if (data[middle] < i) low = middle + 1; else high = middle; }
  result[i] = low; }"""),
    _case("matrices_and_structs", _64 + """struct Body { vec3 position; uint kind; mat3 turn; };
layout(std430, binding = 0) buffer Bodies { Body bodies[]; };
layout(std140, binding = 1) uniform Parameters { mat3 turn; vec3 shift; float scale; };
void main() { Body b = bodies[i]; if (b.kind % 2 == 0) { b.turn = turn * b.turn; b.position = b.turn * b.position + shift; }
  b.position.y *= scale; bodies[i] = b; }"""),
    _case("optional_result", _IN_OUT + """bool find(uint wanted, out uint at) { for (uint k = 0; k < 8; ++k) if (data[k] == wanted) { at = k; return true; } return false; }
void main() { uint at; bool found = find(i, at); if (found && at > 2) result[i] = at; else result[i] = 0; }"""),
    _case("random_numbers", _IN_OUT + """uint state; uint next() { state = state * 747796405u + 2891336453u; uint w = ((state >> ((state >> 28) + 4)) ^ state) * 277803737u; return (w >> 22) ^ w; }
void main() { state = i; uint inside = 0; for (uint k = 0; k < 20; ++k) { vec2 p = vec2(next(), next()) * 2.3283064e-10; if (dot(p, p) < 1.0) ++inside; } result[i] = inside; }"""),
    _case("half_and_bytes", """#extension GL_EXT_shader_explicit_arithmetic_types : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_8bit_storage : require
""" + _64 + _buffers("uint8_t data[]", "float16_t h[]", "int64_t w[]") + "void main() { h[i] += float16_t(data[i]) * 0.5hf; w[i] -= int64_t(data[i]) << 40; data[i] ^= uint8_t(3); }", groups=3),
    _case("shuffle_reduction", _IN_OUT + """void main() { uint v = data[i];
  for (uint s = 4; s > 0; s /= 2) v += subgroupShuffleXor(v, s);
  result[i] = v; }"""),
    _case("lock", _64 + _buffers("uint data[]", "uint lock[]", "uint most[]") + """void main() { bool done = false;
  while (!done) { if (atomicCompSwap(lock[0], 0u, 1u) == 0u) {
    memoryBarrierBuffer(); if (data[i] > most[0]) { most[0] = data[i]; most[1] = i; } memoryBarrierBuffer();
    atomicExchange(lock[0], 0u); done = true; } } }""", groups=2, buffers={"B1": "zeros:4", "B2": "zeros:8"}),
    _case("memory_in_two_types", "#extension GL_EXT_shader_8bit_storage : require\n" + """layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer A { uint words[]; }; layout(std430, binding = 0) buffer B { uint8_t bytes[]; };
void main() { uint i = gl_GlobalInvocationID.x; bytes[4 * i + 1] = uint8_t(7u); uint w = words[i]; words[i] = w * 3; }"""),
    _case("persistent_workgroups", _64 + _buffers("uint data[]", "uint result[]", "uint next") + """shared uint item;
void main() { for (uint k = 0; k < 64; ++k) { if (own == 0) item = atomicAdd(next, 1u); barrier(); uint mine = item; barrier();
    if (mine >= 6) break; result[mine * 64 + own] = data[mine * 64 + own] * 2; } }""", groups=4, buffers={"B0": "range:384", "B1": 1536, "B2": "zeros:4"}),
]  # fmt: skip
