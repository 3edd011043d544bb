#version 450
#extension GL_KHR_shader_subgroup_ballot : require
layout(local_size_x = 64) in;
layout(std430, binding = 0) buffer Data { uint data[]; };
layout(std430, binding = 1) buffer Out { uint result[]; };
shared uint part[64];
uint i = gl_GlobalInvocationID.x, own = gl_LocalInvocationIndex;
void main() { int n = int(own) - 3; float x = float(n);
  result[i] = uint(n % 5); //! undefined result
  result[i] = uint((n == 0 ? 1 << 31 : n) / -1 >> 31); //! undefined result
  result[i] = uint(x); //! undefined result
  result[i] = uint(floatBitsToUint(pow(x, 2.0))); //! undefined result
  result[i] = uint(floatBitsToUint(pow(max(x, 0.0), -x))); //! undefined result
  result[i] = uint(floatBitsToUint(atan(x, x * 2.0))); //! undefined result
  result[i] = uint(floatBitsToUint(min(x, x / 0.0 * 0.0))); //! undefined result
  result[i] = uint(clamp(own, 9u, i)); //! undefined result
  result[i] = uint(floatBitsToUint(clamp(x, 2.0, x))); //! undefined result
  result[i] = uint(floatBitsToUint(normalize(vec2(x, 0)).x)); //! undefined result
  result[i] = uint(floatBitsToUint(sqrt(x))); //! undefined result
  result[i] = uint(floatBitsToUint(inversesqrt(x))); //! undefined result
  result[i] = uint(floatBitsToUint(log(x))); //! undefined result
  result[i] = uint(floatBitsToUint(log2(x))); //! undefined result
  result[i] = uint(floatBitsToUint(asin(x))); //! undefined result
  result[i] = uint(floatBitsToUint(acos(x))); //! undefined result
  result[i] = uint(floatBitsToUint(acosh(x))); //! undefined result
  result[i] = uint(floatBitsToUint(atanh(x))); //! undefined result
  result[i] = uint(floatBitsToUint(smoothstep(2.0, x, 0.5))); //! undefined result
  result[i] = uint(floatBitsToUint(ldexp(x, n + 127))); //! undefined result
  result[i] = uint(floatBitsToUint(ldexp(3e38, n))); //! undefined result
  result[i] = uint(floatBitsToUint(mod(1.0, x))); //! undefined result
  result[i] = uint(floatBitsToUint(frexp(1.0 / x, n))); //! undefined result
  result[i] = uint(frexp(1.0 / x, n) * 0.0 + n); //! undefined result
  result[i] = uint(floatBitsToUint(inverse(mat2(x, 0, 0, 1))[1][1])); //! undefined result
  result[i] = uint(subgroupBallotFindLSB(uvec4(0))); //! undefined result
  result[i] = uint(subgroupBallotBitExtract(uvec4(1), 128u + own)); //! undefined result
  result[i] = uint(subgroupInverseBallot(uvec4(own)) ? 5u : 5u); //! undefined result
}
