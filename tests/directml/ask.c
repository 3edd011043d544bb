/* Asks a DirectML.dll about operators and graphs, and executes them. dll.py writes CASES and reads RESULTS.

   ask.exe DLL CASES RESULTS FIRST: asks from case number FIRST on, and appends the results.

   All numbers are little-endian. A case is a Case, then for each operator a Node with its relocations and bytes,
   the Edges of a graph, a Slot for each input and output, and the bytes of the slots, padded to 8. A relocation is
   the place of a pointer and of what it points to. A graph without edges is its single operator.
   A result is a Result. If the stage is DONE, the number of outputs follows, their sizes (32 bits each), and their bytes.
   Before a case is asked, a Result of the stage BEGUN is written, which stays the last one if the program ends there. */
#define WIDL_EXPLICIT_AGGREGATE_RETURNS
#define COBJMACROS
#include <windows.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <initguid.h>
#include <d3d12.h>

typedef struct { uint32_t execute, nodes, edges, inputs, outputs, unused; } Case;
typedef struct { uint32_t type, relocations, bytes, unused; } Node;
typedef struct { uint32_t type, numbers[4], unused; } Edge; /* DML_GRAPH_EDGE_TYPE, and the numbers of its structure */
typedef struct { uint32_t bound, input; uint64_t size; } Slot; /* bound: NONE, BUFFER, OWNED, or SHARED with an input */
typedef struct { uint32_t stage, hresult, changed, level; } Result;
enum { NONE, BUFFER, OWNED, SHARED };
enum { BEGUN, CREATE, COMPILE, INITIALIZE, EXECUTE, DONE };
enum { OUTSIDE = 1, INPUTS = 2 }; /* what changed and should not: bytes around the tensors, or of inputs */
enum { POOL = 32 << 20, GUARD = 256, DESCRIPTORS = 8192, MAX = 128 };

/* --- DirectML's interfaces and structures, of which MinGW has no header ------------------------------------------ */

DEFINE_GUID(IID_Dml, 0x6dbd6437, 0x96fd, 0x423f, 0xa9, 0x8c, 0xae, 0x5e, 0x7c, 0x2a, 0x57, 0x3f);
DEFINE_GUID(IID_Dml1, 0xa0884f9a, 0xd2be, 0x4355, 0xaa, 0x5d, 0x59, 0x01, 0x28, 0x1a, 0xd1, 0xd2);
DEFINE_GUID(IID_Operator, 0x26caae7a, 0x3081, 0x4633, 0x95, 0x81, 0x22, 0x6f, 0xbe, 0x57, 0x69, 0x5d);
DEFINE_GUID(IID_Compiled, 0x6b15e56a, 0xbf5c, 0x4902, 0x92, 0xd8, 0xda, 0x3a, 0x65, 0x0a, 0xfe, 0xa4);
DEFINE_GUID(IID_Initializer, 0x427c1113, 0x435c, 0x469c, 0x86, 0x76, 0x4d, 0x5d, 0xd0, 0x72, 0xf8, 0x13);
DEFINE_GUID(IID_Table, 0x29c687dc, 0xde74, 0x4e3b, 0xab, 0x00, 0x11, 0x68, 0xf2, 0xfc, 0x3c, 0xfc);
DEFINE_GUID(IID_Recorder, 0xe6857a76, 0x2e3e, 0x4fdd, 0xbf, 0xf4, 0x5d, 0x2b, 0xa1, 0x0f, 0xb4, 0x53);
DEFINE_GUID(IID_D3D12Device5, 0x8b4f173b, 0x2fea, 0x4b80, 0x8f, 0x58, 0x43, 0x07, 0x19, 0x1a, 0xb9, 0x5d);

typedef struct { int type; const void *desc; } Typed; /* DML_OPERATOR_DESC, DML_BINDING_DESC, graphs' nodes and edges */
typedef struct { ID3D12Resource *buffer; UINT64 offset, size; } Range; /* DML_BUFFER_BINDING */
typedef struct { UINT count; const Range *ranges; } Ranges;            /* DML_BUFFER_ARRAY_BINDING */
typedef struct { UINT descriptors; UINT64 temporary, persistent; } Needs; /* DML_BINDING_PROPERTIES */
typedef struct { /* DML_BINDING_TABLE_DESC */
    void *dispatchable;
    D3D12_CPU_DESCRIPTOR_HANDLE cpu;
    D3D12_GPU_DESCRIPTOR_HANDLE gpu;
    UINT count;
} TableDesc;
typedef struct { void *op; const char *name; } OperatorNode;
typedef struct { UINT numbers[4]; const char *name; } OtherEdge; /* from, its output, to, its input */
typedef struct { UINT numbers[3]; const char *name; } OuterEdge; /* of the graph's inputs and outputs */
typedef struct { /* DML_GRAPH_DESC */
    UINT inputs, outputs, node_count;
    const Typed *nodes;
    UINT input_count;
    const Typed *input_edges;
    UINT output_count;
    const Typed *output_edges;
    UINT between_count;
    const Typed *between_edges;
} GraphDesc;

#define SLOT(object, slot) ((*(void ***)(object))[slot])
#define CALL(object, slot, result, ...) ((result(WINAPI *)(void *, __VA_ARGS__))SLOT(object, slot))
enum { /* methods by their places in the tables of virtual functions */
    CHECK_FEATURE_SUPPORT = 7, CREATE_OPERATOR, COMPILE_OPERATOR, CREATE_INITIALIZER, CREATE_RECORDER, CREATE_TABLE,
    REMOVED_REASON = 15, COMPILE_GRAPH = 17, /* IDMLDevice1 */
    BINDING_PROPERTIES = 8,                  /* IDMLDispatchable */
    BIND_INPUTS = 8, BIND_OUTPUTS, BIND_TEMPORARY, BIND_PERSISTENT, /* IDMLBindingTable */
    RECORD_DISPATCH = 8,                     /* IDMLCommandRecorder */
};

static void release(void **object) {
    if (*object) ((ULONG(WINAPI *)(void *))SLOT(*object, 2))(*object);
    *object = 0;
}
static void fail(const char *what, unsigned long code) {
    printf("error: %s: %08lx\n", what, code);
    ExitProcess(9);
}
static void need(HRESULT hresult, const char *what) {
    if (FAILED(hresult)) fail(what, hresult);
}

/* --- what Wine's Direct3D lacks, and faults of DirectML on descriptors that are wrong ----------------------------- */

static HRESULT WINAPI no_meta_commands(void *self, UINT *count, void *descs) {
    if (count) *count = 0;
    return S_OK;
}
static void have_no_meta_commands(void *device) { /* DirectML does not take Wine's E_NOTIMPL for none */
    void **table = malloc(90 * sizeof(void *));
    memcpy(table, *(void ***)device, 90 * sizeof(void *));
    table[59] = no_meta_commands; /* ID3D12Device5::EnumerateMetaCommands */
    *(void ***)device = table;
}
static void *landing[5];
static volatile int guarded;
static volatile DWORD fault;
static void land(void) { __builtin_longjmp(landing, 1); }
static LONG WINAPI on_exception(EXCEPTION_POINTERS *e) {
    DWORD code = e->ExceptionRecord->ExceptionCode;
    if (!guarded || (code & 0xf0000000) != 0xc0000000) return EXCEPTION_CONTINUE_SEARCH;
    guarded = 0;
    fault = code;
    e->ContextRecord->Rip = (DWORD64)land;
    e->ContextRecord->Rsp = (e->ContextRecord->Rsp & ~(DWORD64)15) - 8;
    return EXCEPTION_CONTINUE_EXECUTION;
}
static void raise_for_fast_fail(HMODULE module) { /* "mov ecx, CODE; int 0x29" ends a process; "ud2" raises */
    char *base = (char *)module;
    IMAGE_NT_HEADERS *headers = (IMAGE_NT_HEADERS *)(base + ((IMAGE_DOS_HEADER *)base)->e_lfanew);
    IMAGE_SECTION_HEADER *section = IMAGE_FIRST_SECTION(headers);
    for (int i = 0; i < headers->FileHeader.NumberOfSections; i++, section++) {
        unsigned char *p = (unsigned char *)base + section->VirtualAddress, *end = p + section->Misc.VirtualSize - 7;
        DWORD old;
        if (!(section->Characteristics & IMAGE_SCN_MEM_EXECUTE)) continue;
        need(VirtualProtect(p, section->Misc.VirtualSize, PAGE_EXECUTE_READWRITE, &old) ? S_OK : E_FAIL, "VirtualProtect");
        for (; p < end; p++)
            if (p[0] == 0xb9 && !p[2] && !p[3] && !p[4] && p[5] == 0xcd && p[6] == 0x29) p[5] = 0x0f, p[6] = 0x0b;
    }
}

/* --- the device -------------------------------------------------------------------------------------------------- */

static ID3D12Device *device;
static ID3D12CommandQueue *queue;
static ID3D12CommandAllocator *allocator;
static ID3D12GraphicsCommandList *list;
static ID3D12Fence *fence;
static ID3D12DescriptorHeap *heap;
static ID3D12Resource *pool, *upload, *readback;
static unsigned char *sent, *received;
static D3D12_RESOURCE_STATES state = D3D12_RESOURCE_STATE_COPY_DEST; /* of the pool */
static UINT64 submitted;
static void *dml, *dml1, *recorder;

static ID3D12Resource *buffer(D3D12_HEAP_TYPE type, D3D12_RESOURCE_STATES begin, D3D12_RESOURCE_FLAGS flags, unsigned char **mapped) {
    D3D12_HEAP_PROPERTIES properties = {type};
    D3D12_RESOURCE_DESC desc = {D3D12_RESOURCE_DIMENSION_BUFFER, 0, POOL, 1, 1, 1, DXGI_FORMAT_UNKNOWN, {1, 0},
                                D3D12_TEXTURE_LAYOUT_ROW_MAJOR, flags};
    ID3D12Resource *made = 0;
    need(ID3D12Device_CreateCommittedResource(device, &properties, 0, &desc, begin, 0, &IID_ID3D12Resource, (void **)&made), "buffer");
    if (mapped) need(ID3D12Resource_Map(made, 0, 0, (void **)mapped), "Map");
    return made;
}
static void open_device(HMODULE module, uint32_t *level) {
    typedef HRESULT(WINAPI *Create12)(IUnknown *, D3D_FEATURE_LEVEL, REFIID, void **);
    typedef HRESULT(WINAPI *CreateDml)(ID3D12Device *, int, REFIID, void **);
    Create12 create12 = (Create12)(void *)GetProcAddress(LoadLibraryA("d3d12.dll"), "D3D12CreateDevice");
    need(create12(0, D3D_FEATURE_LEVEL_11_0, &IID_ID3D12Device, (void **)&device), "D3D12CreateDevice");
    void *device5 = 0;
    ID3D12Device_QueryInterface(device, &IID_D3D12Device5, &device5);
    have_no_meta_commands(device);
    if (device5 && device5 != (void *)device) have_no_meta_commands(device5);
    CreateDml create = (CreateDml)(void *)GetProcAddress(module, "DMLCreateDevice");
    need(create(device, 0, &IID_Dml, &dml), "DMLCreateDevice");
    ((HRESULT(WINAPI *)(void *, REFIID, void **))SLOT(dml, 0))(dml, &IID_Dml1, &dml1);
    int levels[] = {0x1000, 0x2000, 0x2100, 0x3000, 0x3100, 0x4000, 0x4100, 0x5000, 0x5100, 0x5200,
                    0x6000, 0x6100, 0x6200, 0x6300, 0x6400};
    struct { UINT count; const int *levels; } asked = {sizeof levels / sizeof *levels, levels};
    need(CALL(dml, CHECK_FEATURE_SUPPORT, HRESULT, int, UINT, const void *, UINT, void *)(dml, 1, sizeof asked, &asked, 4, level), "levels");

    D3D12_COMMAND_QUEUE_DESC queue_desc = {D3D12_COMMAND_LIST_TYPE_DIRECT};
    D3D12_DESCRIPTOR_HEAP_DESC heap_desc = {D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV, DESCRIPTORS, D3D12_DESCRIPTOR_HEAP_FLAG_SHADER_VISIBLE, 0};
    need(CALL(dml, CREATE_RECORDER, HRESULT, REFIID, void **)(dml, &IID_Recorder, &recorder), "CreateCommandRecorder");
    need(ID3D12Device_CreateCommandQueue(device, &queue_desc, &IID_ID3D12CommandQueue, (void **)&queue), "queue");
    need(ID3D12Device_CreateCommandAllocator(device, D3D12_COMMAND_LIST_TYPE_DIRECT, &IID_ID3D12CommandAllocator, (void **)&allocator), "allocator");
    need(ID3D12Device_CreateCommandList(device, 0, D3D12_COMMAND_LIST_TYPE_DIRECT, allocator, 0, &IID_ID3D12GraphicsCommandList, (void **)&list), "list");
    need(ID3D12Device_CreateFence(device, 0, 0, &IID_ID3D12Fence, (void **)&fence), "fence");
    need(ID3D12Device_CreateDescriptorHeap(device, &heap_desc, &IID_ID3D12DescriptorHeap, (void **)&heap), "heap");
    pool = buffer(D3D12_HEAP_TYPE_DEFAULT, state, D3D12_RESOURCE_FLAG_ALLOW_UNORDERED_ACCESS, 0);
    upload = buffer(D3D12_HEAP_TYPE_UPLOAD, D3D12_RESOURCE_STATE_GENERIC_READ, 0, &sent);
    readback = buffer(D3D12_HEAP_TYPE_READBACK, D3D12_RESOURCE_STATE_COPY_DEST, 0, &received);
}
static void become(D3D12_RESOURCE_STATES next) {
    D3D12_RESOURCE_BARRIER barrier = {next == state ? D3D12_RESOURCE_BARRIER_TYPE_UAV : D3D12_RESOURCE_BARRIER_TYPE_TRANSITION};
    if (next == state) {
        if (next != D3D12_RESOURCE_STATE_UNORDERED_ACCESS) return;
        barrier.UAV.pResource = pool;
    } else {
        barrier.Transition.pResource = pool;
        barrier.Transition.StateBefore = state;
        barrier.Transition.StateAfter = next;
    }
    ID3D12GraphicsCommandList_ResourceBarrier(list, 1, &barrier);
    state = next;
}
static HRESULT submit(void) {
    HRESULT hresult = ID3D12GraphicsCommandList_Close(list);
    if (FAILED(hresult)) return hresult;
    ID3D12CommandList *lists[] = {(ID3D12CommandList *)list};
    ID3D12CommandQueue_ExecuteCommandLists(queue, 1, lists);
    need(ID3D12CommandQueue_Signal(queue, fence, ++submitted), "Signal");
    need(ID3D12Fence_SetEventOnCompletion(fence, submitted, 0), "wait"); /* without an event, it waits */
    hresult = ID3D12Device_GetDeviceRemovedReason(device);
    need(ID3D12CommandAllocator_Reset(allocator), "allocator");
    need(ID3D12GraphicsCommandList_Reset(list, allocator, 0), "list");
    return SUCCEEDED(hresult) ? ((HRESULT(WINAPI *)(void *))SLOT(dml, REMOVED_REASON))(dml) : hresult;
}

/* --- a case ------------------------------------------------------------------------------------------------------ */

static HRESULT create(void *desc, void **made) { /* a function of its own: a fault returns into it with any registers */
    if (__builtin_setjmp(landing)) return fault;
    guarded = 1;
    HRESULT hresult = CALL(dml, CREATE_OPERATOR, HRESULT, const void *, REFIID, void **)(dml, desc, &IID_Operator, made);
    guarded = 0;
    return hresult;
}
static HRESULT compile(const Case *c, void **operators, const Edge *edges, void **compiled) {
    if (!c->edges)
        return CALL(dml, COMPILE_OPERATOR, HRESULT, void *, int, REFIID, void **)(dml, operators[0], 0, &IID_Compiled, compiled);
    OperatorNode nodes[MAX];
    Typed typed[MAX], sorted[4][MAX];
    OtherEdge others[MAX];
    OuterEdge outers[MAX];
    UINT counts[4] = {0};
    for (UINT i = 0; i < c->nodes; i++) {
        nodes[i] = (OperatorNode){operators[i], 0};
        typed[i] = (Typed){1, &nodes[i]};
    }
    for (UINT i = 0; i < c->edges; i++) { /* 1: of an input, 2: of an output, 3: between operators */
        const uint32_t *n = edges[i].numbers;
        UINT type = edges[i].type;
        others[i] = (OtherEdge){{n[0], n[1], n[2], n[3]}, 0};
        outers[i] = (OuterEdge){{n[0], n[1], n[2]}, 0};
        sorted[type][counts[type]++] = (Typed){type, type == 3 ? (void *)&others[i] : (void *)&outers[i]};
    }
    GraphDesc desc = {c->inputs, c->outputs, c->nodes, typed, counts[1], sorted[1], counts[2], sorted[2], counts[3], sorted[3]};
    return CALL(dml1, COMPILE_GRAPH, HRESULT, const void *, int, REFIID, void **)(dml1, &desc, 0, &IID_Compiled, compiled);
}
static Needs needs(void *dispatchable) {
    Needs result;
    memset(&result, 0, sizeof result);
    CALL(dispatchable, BINDING_PROPERTIES, void, Needs *)(dispatchable, &result);
    return result;
}
static void *table_of(void *dispatchable, UINT first, UINT count, HRESULT *hresult) {
    D3D12_CPU_DESCRIPTOR_HANDLE cpu;
    D3D12_GPU_DESCRIPTOR_HANDLE gpu;
    UINT64 step = ID3D12Device_GetDescriptorHandleIncrementSize(device, D3D12_DESCRIPTOR_HEAP_TYPE_CBV_SRV_UAV);
    heap->lpVtbl->GetCPUDescriptorHandleForHeapStart(heap, &cpu);
    heap->lpVtbl->GetGPUDescriptorHandleForHeapStart(heap, &gpu);
    TableDesc desc = {dispatchable, {cpu.ptr + first * step}, {gpu.ptr + first * step}, count ? count : 1};
    void *table = 0;
    *hresult = CALL(dml, CREATE_TABLE, HRESULT, const TableDesc *, REFIID, void **)(dml, &desc, &IID_Table, &table);
    return table;
}
static void bind_one(void *table, int slot, const Range *range) {
    Typed desc = {1, range};
    if (range->size) CALL(table, slot, void, const Typed *)(table, &desc);
}
static void bind_all(void *table, int slot, UINT count, const Typed *descs) {
    CALL(table, slot, void, UINT, const Typed *)(table, count, descs);
}
static void record(void *dispatchable, void *table) {
    ID3D12GraphicsCommandList_SetDescriptorHeaps(list, 1, &heap);
    CALL(recorder, RECORD_DISPATCH, void, void *, void *, void *)(recorder, list, dispatchable, table);
    become(D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
}
static Range place(UINT64 *end, UINT64 size) { /* with guards before and behind it */
    Range range = {pool, *end + GUARD, size};
    *end = (range.offset + size + 255) / 256 * 256;
    if (*end + GUARD > POOL) fail("a case is larger than the pool", POOL);
    return range;
}
static void execute(const Case *c, void *compiled, const Slot *slots, unsigned char **bytes, Range *ranges, Result *result) {
    HRESULT hresult;
    void *initializer = 0, *first_table = 0, *table = 0;
    result->stage = INITIALIZE;
    result->hresult = CALL(dml, CREATE_INITIALIZER, HRESULT, UINT, void **, REFIID, void **)(dml, 1, &compiled, &IID_Initializer, &initializer);
    if (FAILED((HRESULT)result->hresult)) return;
    Needs first = needs(initializer), own = needs(compiled);
    UINT count = c->inputs + c->outputs;
    Range owned[MAX] = {{0}};
    Typed bound[MAX] = {{0}};
    UINT64 end = 0;
    for (UINT i = 0; i < count; i++) {
        if (slots[i].bound == NONE) continue;
        ranges[i] = slots[i].bound == SHARED ? ranges[slots[i].input] : place(&end, slots[i].size);
        if (slots[i].bound == OWNED) owned[i] = ranges[i];
        else bound[i] = (Typed){1, &ranges[i]};
    }
    Range scratch = place(&end, first.temporary), temporary = place(&end, own.temporary), persistent = place(&end, own.persistent);
    end += GUARD;
    memset(sent, 0xA5, end);
    for (UINT i = 0; i < count; i++)
        if (slots[i].bound == BUFFER || slots[i].bound == OWNED) memcpy(sent + ranges[i].offset, bytes[i], slots[i].size);
    become(D3D12_RESOURCE_STATE_COPY_DEST);
    ID3D12GraphicsCommandList_CopyBufferRegion(list, pool, 0, upload, 0, end);
    become(D3D12_RESOURCE_STATE_UNORDERED_ACCESS);
    first_table = table_of(initializer, 0, first.descriptors, &hresult);
    if (SUCCEEDED(hresult)) {
        Ranges array = {c->inputs, owned}; /* it crashes on no array, also if DirectML owns no input */
        Typed inputs = {2, &array}, output = {own.persistent ? 1 : 0, own.persistent ? &persistent : 0};
        bind_all(first_table, BIND_INPUTS, 1, &inputs);
        bind_one(first_table, BIND_TEMPORARY, &scratch);
        bind_all(first_table, BIND_OUTPUTS, 1, &output);
        record(initializer, first_table);
        table = table_of(compiled, first.descriptors + 1, own.descriptors, &hresult);
    }
    if (SUCCEEDED(hresult)) {
        result->stage = EXECUTE;
        bind_one(table, BIND_TEMPORARY, &temporary);
        bind_one(table, BIND_PERSISTENT, &persistent);
        bind_all(table, BIND_INPUTS, c->inputs, bound);
        bind_all(table, BIND_OUTPUTS, c->outputs, bound + c->inputs);
        record(compiled, table);
        become(D3D12_RESOURCE_STATE_COPY_SOURCE);
        ID3D12GraphicsCommandList_CopyBufferRegion(list, readback, 0, pool, 0, end);
    }
    HRESULT ended = submit();
    result->hresult = FAILED(hresult) ? hresult : ended;
    if (SUCCEEDED((HRESULT)result->hresult)) {
        result->stage = DONE;
        for (UINT i = 0; i < count; i++) {
            if (slots[i].bound == NONE) continue;
            unsigned char *begin = received + ranges[i].offset, *behind = begin + slots[i].size;
            for (int k = 0; k < 64; k++)
                if (begin[-1 - k] != 0xA5 || behind[k] != 0xA5) result->changed |= OUTSIDE;
            if (i < c->inputs && slots[i].bound != SHARED && memcmp(begin, sent + ranges[i].offset, slots[i].size))
                result->changed |= INPUTS;
        }
    }
    release(&table), release(&first_table), release(&initializer);
}

int main(int argc, char **argv) {
    setvbuf(stdout, 0, _IONBF, 0);
    HMODULE module = LoadLibraryA(argv[1]);
    if (!module) fail(argv[1], GetLastError());
    FILE *in = fopen(argv[2], "rb"), *out = fopen(argv[3], "ab");
    UINT first = strtoul(argv[4], 0, 10);
    uint32_t level = 0;
    fseek(in, 0, SEEK_END);
    size_t length = ftell(in);
    rewind(in);
    unsigned char *data = malloc(length), *p = data;
    if (fread(data, 1, length, in) != length) fail("the cases cannot be read", 0);
    raise_for_fast_fail(module);
    open_device(module, &level);
    AddVectoredExceptionHandler(1, on_exception);
    for (UINT number = 0; p < data + length; number++) {
        Case *c = (Case *)p;
        void *operators[MAX] = {0}, *compiled = 0;
        Typed descs[MAX];
        p += sizeof *c;
        for (UINT i = 0; i < c->nodes; i++) {
            Node *node = (Node *)p;
            uint32_t *pairs = (uint32_t *)(p + sizeof *node);
            unsigned char *bytes = (unsigned char *)(pairs + 2 * node->relocations);
            for (UINT k = 0; k < node->relocations; k++) *(uint64_t *)(bytes + pairs[2 * k]) = (uint64_t)(bytes + pairs[2 * k + 1]);
            descs[i] = (Typed){node->type, bytes};
            p = bytes + node->bytes;
        }
        Edge *edges = (Edge *)p;
        Slot *slots = (Slot *)(edges + c->edges);
        unsigned char *bytes[MAX];
        Range ranges[MAX];
        p = (unsigned char *)(slots + c->inputs + c->outputs);
        for (UINT i = 0; i < c->inputs + c->outputs; i++) {
            bytes[i] = p;
            if (slots[i].bound == BUFFER || slots[i].bound == OWNED) p += (slots[i].size + 7) / 8 * 8;
        }
        if (number < first) continue;
        Result result = {BEGUN, 0, 0, level};
        fwrite(&result, sizeof result, 1, out);
        fflush(out);
        result.stage = CREATE;
        for (UINT i = 0; i < c->nodes && SUCCEEDED((HRESULT)result.hresult); i++) result.hresult = create(&descs[i], &operators[i]);
        if (c->execute && SUCCEEDED((HRESULT)result.hresult)) {
            result.stage = COMPILE;
            result.hresult = compile(c, operators, edges, &compiled);
            if (SUCCEEDED((HRESULT)result.hresult)) execute(c, compiled, slots, bytes, ranges, &result);
        }
        fwrite(&result, sizeof result, 1, out);
        if (result.stage == DONE) {
            uint32_t numbers[1 + MAX] = {c->outputs};
            for (UINT i = 0; i < c->outputs; i++) numbers[1 + i] = slots[c->inputs + i].bound == NONE ? 0 : slots[c->inputs + i].size;
            fwrite(numbers, 4, 1 + c->outputs, out);
            for (UINT i = 0; i < c->outputs; i++)
                if (numbers[1 + i]) fwrite(received + ranges[c->inputs + i].offset, 1, numbers[1 + i], out);
        }
        fflush(out);
        if (result.stage >= INITIALIZE && FAILED((HRESULT)result.hresult)) fail("the device is removed", result.hresult);
        release(&compiled);
        for (UINT i = 0; i < c->nodes; i++) release(&operators[i]);
    }
    fclose(out);
    printf("end\n");
    ExitProcess(0);
}
