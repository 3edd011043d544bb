#version 450
// Multiplies words by a factor: what a shader of your own looks like to vkops.
layout(local_size_x = 64) in;
layout(constant_id = 0) const uint OFFSET = 0u;

layout(std430, binding = 0) readonly buffer Source { uint source[]; };
layout(std430, binding = 1) writeonly buffer Target { uint target[]; };
layout(push_constant) uniform Push { uint factor; };

void main() {
    uint count = min(source.length(), target.length());
    for (uint i = gl_GlobalInvocationID.x; i < count; i += gl_NumWorkGroups.x * gl_WorkGroupSize.x)
        target[i] = factor * source[i] + OFFSET;
}
