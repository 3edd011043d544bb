#version 450
// Transposes a matrix of words, one invocation an element. One line is wrong:
// docs/tutorials/debugging.md finds out which.
#ifdef PRINT
#extension GL_EXT_debug_printf : require
#endif
layout(local_size_x = 8, local_size_y = 8) in;

layout(std430, binding = 0) readonly buffer Source { uint source[]; };
layout(std430, binding = 1) writeonly buffer Target { uint target[]; };
layout(push_constant) uniform Push { uint rows; uint columns; };

void main() {
    uint column = gl_GlobalInvocationID.x;
    uint row = gl_GlobalInvocationID.y;
    if (column >= columns || row >= rows) return;
    uint from = row * columns + column;
    uint to = column * columns + row;
#ifdef PRINT
    debugPrintfEXT("row %u, column %u: %u from %u to %u", row, column, source[from], from, to);
#endif
    target[to] = source[from];
}
