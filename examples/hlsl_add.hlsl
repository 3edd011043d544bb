// Adds two buffers. The model hlsl_add.json defines T and NUM_THREADS.

StructuredBuffer<T> inputA;
StructuredBuffer<T> inputB;
RWStructuredBuffer<T> output;

cbuffer constants
{
    uint elementCount;
};

[numthreads(NUM_THREADS, 1, 1)]
void CSMain(uint3 id : SV_DispatchThreadID)
{
    if (id.x < elementCount)
        output[id.x] = inputA[id.x] + inputB[id.x];
}
