/* A Vulkan layer that makes a driver look like another one, lets its calls fail, and records them.
   VKOPS_IMITATED names the device (KINDS below; empty: that of the driver), and VKOPS_HIDDEN_EXTENSIONS
   the extensions that it lacks. Tests call the exported functions through ctypes (__init__.py). */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vulkan/vk_layer.h>
#include <vulkan/vulkan.h>

#define EXPORT __attribute__((visibility("default")))
#define COUNT(array) (sizeof(array) / sizeof(*(array)))

/* -- devices ------------------------------------------------------------------------------------- */

enum { LOCAL = 1, VISIBLE = 2, COHERENT = 4, CACHED = 8 }; /* of VkMemoryPropertyFlagBits */
#define DISCRETE VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU
#define INTEGRATED VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU

#define DISCRETE_TYPES(heap_of_both) \
    4, { { LOCAL, 0 }, { VISIBLE | COHERENT, 1 }, { LOCAL | VISIBLE | COHERENT, heap_of_both }, \
         { VISIBLE | COHERENT | CACHED, 1 } }
#define INTEGRATED_TYPES(coherent) \
    3, { { LOCAL, 0 }, { LOCAL | VISIBLE | COHERENT, 0 }, { LOCAL | VISIBLE | CACHED | coherent, 0 } }

static const struct kind {
    const char *name;
    VkPhysicalDeviceType type;
    uint32_t heap_count;
    VkMemoryHeap heaps[3]; /* 0 bytes: as many as the first heap of the driver */
    uint32_t type_count;
    VkMemoryType types[4];
} KINDS[] = {
    { "discrete", DISCRETE, 2, { { 0, LOCAL }, { 0, 0 } }, DISCRETE_TYPES(0) },
    { "small-bar", DISCRETE, 3, { { 0, LOCAL }, { 0, 0 }, { 256 << 20, LOCAL } }, DISCRETE_TYPES(2) },
    { "integrated", INTEGRATED, 1, { { 0, LOCAL } }, INTEGRATED_TYPES(0) },
    { "integrated-coherent", INTEGRATED, 1, { { 0, LOCAL } }, INTEGRATED_TYPES(COHERENT) },
    { "minimum", DISCRETE, 2, { { 0, LOCAL }, { 0, 0 } }, DISCRETE_TYPES(0) },
};
static const struct kind *kind; /* null: the device of the driver */
static int minimum;
static const char *hidden = "";

__attribute__((constructor)) static void read_environment(void)
{
    const char *name = getenv("VKOPS_IMITATED"), *extensions = getenv("VKOPS_HIDDEN_EXTENSIONS");
    for (size_t i = 0; name && i < COUNT(KINDS); ++i)
        if (!strcmp(KINDS[i].name, name)) kind = &KINDS[i];
    if (name && *name && !kind) fprintf(stderr, "VKOPS_IMITATED: there is no '%s'\n", name), abort();
    minimum = kind && !strcmp(kind->name, "minimum");
    if (extensions) hidden = extensions;
}

/* The required limits of Vulkan 1.1, as far as they concern what is not drawn. */
static void reduce(VkPhysicalDeviceLimits *limits)
{
    const VkPhysicalDeviceLimits required = {
        .maxImageDimension1D = 4096, .maxImageDimension2D = 4096, .maxImageDimension3D = 256,
        .maxImageDimensionCube = 4096, .maxImageArrayLayers = 256, .maxTexelBufferElements = 65536,
        .maxUniformBufferRange = 16384, .maxStorageBufferRange = 1 << 27, .maxPushConstantsSize = 128,
        .maxMemoryAllocationCount = 4096, .maxSamplerAllocationCount = 4000,
        .bufferImageGranularity = 131072, .maxBoundDescriptorSets = 4,
        .maxPerStageDescriptorSamplers = 16, .maxPerStageDescriptorUniformBuffers = 12,
        .maxPerStageDescriptorStorageBuffers = 4, .maxPerStageDescriptorSampledImages = 16,
        .maxPerStageDescriptorStorageImages = 4, .maxPerStageDescriptorInputAttachments = 4,
        .maxPerStageResources = 128, .maxDescriptorSetSamplers = 96,
        .maxDescriptorSetUniformBuffers = 72, .maxDescriptorSetUniformBuffersDynamic = 8,
        .maxDescriptorSetStorageBuffers = 24, .maxDescriptorSetStorageBuffersDynamic = 4,
        .maxDescriptorSetSampledImages = 96, .maxDescriptorSetStorageImages = 24,
        .maxDescriptorSetInputAttachments = 4, .maxComputeSharedMemorySize = 16384,
        .maxComputeWorkGroupCount = { 65535, 65535, 65535 }, .maxComputeWorkGroupInvocations = 128,
        .maxComputeWorkGroupSize = { 128, 128, 64 }, .maxDrawIndirectCount = 1, .maxSamplerLodBias = 2,
        .maxSamplerAnisotropy = 1, .minMemoryMapAlignment = 64, .minTexelBufferOffsetAlignment = 256,
        .minUniformBufferOffsetAlignment = 256, .minStorageBufferOffsetAlignment = 256,
        .minTexelOffset = -8, .maxTexelOffset = 7, .optimalBufferCopyOffsetAlignment = 1,
        .optimalBufferCopyRowPitchAlignment = 1, .nonCoherentAtomSize = 256,
        .sampledImageColorSampleCounts = 1, .sampledImageIntegerSampleCounts = 1,
        .storageImageSampleCounts = 1, .maxSampleMaskWords = 1,
    };
    *limits = required;
}

/* -- what tests ask for -------------------------------------------------------------------------- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of all that is static and changes */
static void lock(void) { pthread_mutex_lock(&mutex); }
static void unlock(void) { pthread_mutex_unlock(&mutex); }

static const char *lost_by; /* the function that reports once that the device is lost */
static int loss_reported, hangs, call_count, recording;
static int64_t slowness; /* nanoseconds */
static struct { char name[64]; int skipped, count; VkResult result; } failing;
static char *text;
static size_t text_size, text_room;

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}
static void sleep_for(int64_t nanoseconds)
{
    const struct timespec time = { nanoseconds / 1000000000, nanoseconds % 1000000000 };
    if (nanoseconds > 0) nanosleep(&time, 0);
}

/* From now on the device runs nothing. The function of that name (vkQueueSubmit ...) reports that once;
   afterwards all report success, as drivers may. */
EXPORT void lose(const char *name) { lost_by = strdup(name); loss_reported = 0; }
EXPORT void mend(void) { lost_by = 0; }
/* The device goes on, and its fences are not signalled until it is released. */
EXPORT void hang(void) { hangs = 1; }
EXPORT void release(void) { hangs = 0; }
/* Submissions from now on take at least so many microseconds. */
EXPORT void slow(int64_t microseconds) { slowness = microseconds * 1000; }
/* After `skipped` more calls of a function ("": of all that can fail), `count` calls do nothing and
   return the result. */
EXPORT void fail(const char *name, int skipped, int count, VkResult result)
{
    lock();
    snprintf(failing.name, sizeof failing.name, "%s", name);
    failing.skipped = skipped, failing.count = count, failing.result = result;
    unlock();
}
EXPORT int still_failing(void) { return failing.count; }
/* Forget the records and begin new ones, or none; count calls from 0. */
EXPORT void record(int on) { lock(), recording = on, text_size = call_count = 0, unlock(); }
/* The calls that can fail, and those that record commands, a line each. */
EXPORT const char *records(void) { return text_size ? text : ""; }
/* The number of calls that can fail. */
EXPORT int calls(void) { return call_count; }

static void note_list(const char *name, const char *format, va_list values)
{
    if (!recording) return;
    if (text_room - text_size < 1024) text = realloc(text, text_room = 2 * text_room + 4096);
    text_size += sprintf(text + text_size, "%s", name);
    text_size += vsnprintf(text + text_size, 512, format, values);
    text_size += sprintf(text + text_size, "\n");
}
static void note(const char *name, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    lock(), note_list(name, format, values), unlock();
    va_end(values);
}
/* A use of Vulkan that is wrong: the call returns this result, and the reason is printed. */
static VkResult misuse(const char *name, const char *reason)
{
    fprintf(stderr, "imitated driver: %s: %s\n", name, reason);
    return VK_ERROR_VALIDATION_FAILED_EXT;
}

/* Count and record a call that can fail. Whether it ends here, with this result. */
static int ends(const char *name, int can_report_loss, VkResult *result, const char *format, ...)
{
    va_list values;
    int ended = 0;
    lock();
    ++call_count;
    if (lost_by && can_report_loss) {
        ended = 1;
        *result = VK_SUCCESS;
        if (!loss_reported && !strcmp(lost_by, name))
            loss_reported = 1, *result = VK_ERROR_DEVICE_LOST;
        else if (!loss_reported && !strcmp("vkGetFenceStatus", name) && !strcmp("vkWaitForFences", lost_by))
            *result = VK_NOT_READY;
    } else if (failing.count && (!*failing.name || !strcmp(failing.name, name))) {
        ended = !failing.skipped;
        if (ended) --failing.count, *result = failing.result;
        else --failing.skipped;
    }
    va_start(values, format);
    note_list(name, format, values);
    va_end(values);
    if (ended && recording) text_size += sprintf(text + text_size - 1, " failed=%d\n", *result) - 1;
    unlock();
    return ended;
}

/* -- objects ------------------------------------------------------------------------------------- */

/* Something that a handle stands for. */
enum { MEMORY = 1, MODULE, CACHE, FENCE };
struct object {
    struct object *next;
    int what;
    uint64_t handle;
    uint64_t size;       /* bytes: of memory, of the data of a cache */
    uint32_t type;       /* of memory */
    int imported;
    char *bytes, *real;  /* non-coherent memory: what the host sees, and the driver's; data of a cache */
    uint64_t hash;       /* of a module's code */
    int64_t ready;       /* when a fence is signalled at the earliest */
};
static struct object *objects[4096];
static uint64_t used[VK_MAX_MEMORY_HEAPS];
static uint32_t allocations;

static struct object **place(int what, uint64_t handle)
{
    struct object **at = &objects[(handle >> 4 ^ handle >> 16) % COUNT(objects)];
    while (*at && ((*at)->what != what || (*at)->handle != handle)) at = &(*at)->next;
    return at;
}
static struct object *find(int what, uint64_t handle)
{
    lock();
    struct object *found = *place(what, handle);
    unlock();
    return found;
}
static struct object *add(int what, uint64_t handle)
{
    lock();
    struct object **at = place(what, handle);
    if (!*at) {
        *at = calloc(1, sizeof **at);
        (*at)->what = what, (*at)->handle = handle;
    }
    struct object *found = *at;
    unlock();
    return found;
}
static void drop(int what, uint64_t handle)
{
    lock();
    struct object **at = place(what, handle), *found = *at;
    if (found) {
        *at = found->next;
        if (what == MEMORY) --allocations;
        if (what == MEMORY && kind && !found->imported) used[kind->types[found->type].heapIndex] -= found->size;
        free(found->bytes);
        free(found);
    }
    unlock();
}
#define KEY(handle) ((uint64_t)(uintptr_t)(handle))

/* -- the functions of the next layer ------------------------------------------------------------- */

/* Functions that make objects of a name: what is refused with the minimum limits, and what is recorded. */
#define CREATED(X) \
    X(Buffer, 0, " bytes=%llu usage=0x%x flags=0x%x", (unsigned long long)i->size, i->usage, i->flags) \
    X(BufferView, 0, " format=%d bytes=%llu", i->format, (unsigned long long)i->range) \
    X(Image, i->extent.width > 4096 || i->extent.height > 4096, \
      " size=%ux%ux%u layers=%u levels=%u format=%d tiling=%d usage=0x%x flags=0x%x", i->extent.width, \
      i->extent.height, i->extent.depth, i->arrayLayers, i->mipLevels, i->format, i->tiling, i->usage, \
      i->flags) \
    X(ImageView, 0, " format=%d", i->format) X(Sampler, 0, "") X(Event, 0, "") \
    X(PipelineLayout, i->setLayoutCount > 4 || push_bytes(i) > 128, " sets=%u push=%u", \
      i->setLayoutCount, push_bytes(i)) \
    X(DescriptorSetLayout, 0, " bindings=%u", i->bindingCount) \
    X(DescriptorPool, 0, " sets=%u", i->maxSets) X(CommandPool, 0, " flags=0x%x", i->flags) \
    X(Fence, 0, "") X(Semaphore, 0, "") X(QueryPool, 0, " queries=%u", i->queryCount)

/* Other functions that can fail: name, whether it can report a loss, parameters, arguments, record. */
#define FALLIBLE(X) \
    X(EnumeratePhysicalDevices, 0, (VkInstance d, uint32_t *n, VkPhysicalDevice *o), (d, n, o), "") \
    X(BindBufferMemory, 0, (VkDevice d, VkBuffer b, VkDeviceMemory m, VkDeviceSize at), (d, b, m, at), \
      " type=%d offset=%llu", type_of(m), (unsigned long long)at) \
    X(BindImageMemory, 0, (VkDevice d, VkImage b, VkDeviceMemory m, VkDeviceSize at), (d, b, m, at), \
      " type=%d offset=%llu", type_of(m), (unsigned long long)at) \
    X(AllocateDescriptorSets, 0, (VkDevice d, const VkDescriptorSetAllocateInfo *i, VkDescriptorSet *o), \
      (d, i, o), " sets=%u", i->descriptorSetCount) \
    X(AllocateCommandBuffers, 0, (VkDevice d, const VkCommandBufferAllocateInfo *i, VkCommandBuffer *o), \
      (d, i, o), " buffers=%u", i->commandBufferCount) \
    X(BeginCommandBuffer, 0, (VkCommandBuffer d, const VkCommandBufferBeginInfo *i), (d, i), \
      " flags=0x%x", i->flags) \
    X(EndCommandBuffer, 0, (VkCommandBuffer d), (d), "") \
    X(ResetCommandBuffer, 0, (VkCommandBuffer d, VkCommandBufferResetFlags f), (d, f), "") \
    X(ResetCommandPool, 0, (VkDevice d, VkCommandPool p, VkCommandPoolResetFlags f), (d, p, f), "") \
    X(ResetFences, 0, (VkDevice d, uint32_t n, const VkFence *f), (d, n, f), "") \
    X(GetQueryPoolResults, 1, (VkDevice d, VkQueryPool p, uint32_t first, uint32_t n, size_t size, \
      void *o, VkDeviceSize stride, VkQueryResultFlags f), (d, p, first, n, size, o, stride, f), "") \
    X(QueueWaitIdle, 1, (VkQueue d), (d), "") \
    X(DeviceWaitIdle, 1, (VkDevice d), (d), "")

/* Functions that record commands. */
#define COMMANDS(X) \
    X(CmdDispatch, (VkCommandBuffer d, uint32_t x, uint32_t y, uint32_t z), (d, x, y, z), \
      " groups=%u,%u,%u", x, y, z) \
    X(CmdDispatchIndirect, (VkCommandBuffer d, VkBuffer b, VkDeviceSize at), (d, b, at), "") \
    X(CmdFillBuffer, (VkCommandBuffer d, VkBuffer b, VkDeviceSize at, VkDeviceSize size, uint32_t word), \
      (d, b, at, size, word), " bytes=%llu", (unsigned long long)size) \
    X(CmdUpdateBuffer, (VkCommandBuffer d, VkBuffer b, VkDeviceSize at, VkDeviceSize size, const void *p), \
      (d, b, at, size, p), " bytes=%llu", (unsigned long long)size) \
    X(CmdCopyBuffer, (VkCommandBuffer d, VkBuffer s, VkBuffer t, uint32_t n, const VkBufferCopy *r), \
      (d, s, t, n, r), " regions=%u bytes=%llu", n, (unsigned long long)r->size) \
    X(CmdCopyImage, (VkCommandBuffer d, VkImage s, VkImageLayout l, VkImage t, VkImageLayout k, uint32_t n, \
      const VkImageCopy *r), (d, s, l, t, k, n, r), " regions=%u", n) \
    X(CmdCopyBufferToImage, (VkCommandBuffer d, VkBuffer s, VkImage t, VkImageLayout l, uint32_t n, \
      const VkBufferImageCopy *r), (d, s, t, l, n, r), " regions=%u", n) \
    X(CmdCopyImageToBuffer, (VkCommandBuffer d, VkImage s, VkImageLayout l, VkBuffer t, uint32_t n, \
      const VkBufferImageCopy *r), (d, s, l, t, n, r), " regions=%u", n) \
    X(CmdPipelineBarrier, (VkCommandBuffer d, VkPipelineStageFlags s, VkPipelineStageFlags t, \
      VkDependencyFlags f, uint32_t n, const VkMemoryBarrier *m, uint32_t k, \
      const VkBufferMemoryBarrier *b, uint32_t j, const VkImageMemoryBarrier *i), \
      (d, s, t, f, n, m, k, b, j, i), \
      " stages=0x%x,0x%x access=0x%x,0x%x memory=%u buffers=%u images=%u", s, t, \
      n ? m->srcAccessMask : k ? b->srcAccessMask : j ? i->srcAccessMask : 0, \
      n ? m->dstAccessMask : k ? b->dstAccessMask : j ? i->dstAccessMask : 0, n, k, j)

/* Functions that are written out below. */
#define OTHERS(X) \
    X(DestroyInstance) X(DestroyDevice) X(CreateDevice) X(EnumerateDeviceExtensionProperties) \
    X(GetPhysicalDeviceProperties) X(GetPhysicalDeviceProperties2) X(GetPhysicalDeviceFeatures) \
    X(GetPhysicalDeviceFeatures2) X(GetPhysicalDeviceMemoryProperties) \
    X(GetPhysicalDeviceMemoryProperties2) X(GetPhysicalDeviceQueueFamilyProperties) \
    X(GetPhysicalDeviceQueueFamilyProperties2) X(GetPhysicalDeviceImageFormatProperties) \
    X(GetBufferMemoryRequirements) X(GetBufferMemoryRequirements2) X(GetImageMemoryRequirements) \
    X(GetImageMemoryRequirements2) X(GetMemoryHostPointerPropertiesEXT) X(AllocateMemory) X(FreeMemory) \
    X(MapMemory) X(UnmapMemory) X(FlushMappedMemoryRanges) X(InvalidateMappedMemoryRanges) \
    X(CreateShaderModule) X(CreateComputePipelines) X(CreatePipelineCache) X(GetPipelineCacheData) X(MergePipelineCaches) X(DestroyPipelineCache) \
    X(DestroyShaderModule) X(DestroyFence) X(QueueSubmit) X(WaitForFences) X(GetFenceStatus)

/* Of an instance or a device, which handles begin with the same pointer as. */
static struct table {
    struct table *next;
    void *key;
    VkPhysicalDevice physical;
    uint32_t real_type; /* the memory type of the driver that all memory has */
    PFN_vkGetInstanceProcAddr instance_function;
    PFN_vkGetDeviceProcAddr device_function;
#define MEMBER(name, ...) PFN_vk##name name;
#define MEMBER_OF_CREATED(name, ...) PFN_vkCreate##name Create##name;
    FALLIBLE(MEMBER) COMMANDS(MEMBER) OTHERS(MEMBER) CREATED(MEMBER_OF_CREATED)
} *tables;

static struct table *table_of(void *handle)
{
    lock();
    struct table *found = tables;
    while (found && found->key != *(void **)handle) found = found->next;
    unlock();
    return found;
}
static struct table *add_table(void *handle, PFN_vkVoidFunction (*function)(void *, const char *))
{
    struct table *made = calloc(1, sizeof *made);
    made->key = *(void **)handle;
#define LOAD(name, ...) made->name = (PFN_vk##name)function(handle, "vk" #name);
#define LOAD_CREATED(name, ...) made->Create##name = (PFN_vkCreate##name)function(handle, "vkCreate" #name);
    FALLIBLE(LOAD) COMMANDS(LOAD) OTHERS(LOAD) CREATED(LOAD_CREATED)
    lock(), made->next = tables, tables = made, unlock();
    return made;
}
static struct table remove_table(void *handle) /* a copy of it */
{
    struct table *found = table_of(handle), copy = *found;
    lock();
    struct table **at = &tables;
    while (*at != found) at = &(*at)->next;
    *at = found->next;
    unlock();
    free(found);
    return copy;
}

/* -- functions that only count, fail or record --------------------------------------------------- */

#define FUNCTION(type, name) static VKAPI_ATTR type VKAPI_CALL layer_##name
#define FIRST(first, ...) first
#define NEXT(handle, name, ...) table_of(handle)->name(handle, __VA_ARGS__)
#define END_IF_IT_FAILS(name, can_report_loss, ...) \
    VkResult result; \
    if (ends("vk" name, can_report_loss, &result, __VA_ARGS__)) return result

static int type_of(VkDeviceMemory memory) { return (int)find(MEMORY, KEY(memory))->type; }

#define DEFINE_FALLIBLE(name, can_report_loss, parameters, arguments, ...) \
    FUNCTION(VkResult, name) parameters \
    { \
        END_IF_IT_FAILS(#name, can_report_loss, __VA_ARGS__); \
        return table_of(FIRST arguments)->name arguments; \
    }
#define DEFINE_COMMAND(name, parameters, arguments, ...) \
    FUNCTION(void, name) parameters \
    { \
        note("vk" #name, __VA_ARGS__); \
        table_of(FIRST arguments)->name arguments; \
    }
#define DEFINE_CREATED(name, refused, ...) \
    FUNCTION(VkResult, Create##name)(VkDevice d, const Vk##name##CreateInfo *i, \
                                     const VkAllocationCallbacks *a, Vk##name *o) \
    { \
        END_IF_IT_FAILS("Create" #name, 0, __VA_ARGS__); \
        if (minimum && (refused)) return misuse("vkCreate" #name, "more than the device allows"); \
        return NEXT(d, Create##name, i, a, o); \
    }
static uint32_t push_bytes(const VkPipelineLayoutCreateInfo *info)
{
    uint32_t end = 0;
    for (uint32_t i = 0; i < info->pushConstantRangeCount; ++i) {
        const VkPushConstantRange *range = &info->pPushConstantRanges[i];
        if (range->offset + range->size > end) end = range->offset + range->size;
    }
    return end;
}
FALLIBLE(DEFINE_FALLIBLE)
COMMANDS(DEFINE_COMMAND)
CREATED(DEFINE_CREATED)

/* -- properties ---------------------------------------------------------------------------------- */

static void *chained(const void *first, VkStructureType type)
{
    const VkBaseInStructure *found = first;
    while (found && found->sType != type) found = found->pNext;
    return (void *)found;
}

static void change(VkPhysicalDeviceProperties *properties)
{
    if (kind) properties->deviceType = kind->type;
    if (kind && kind->type == INTEGRATED) properties->limits.nonCoherentAtomSize = 256;
    if (minimum) properties->apiVersion = VK_API_VERSION_1_1, reduce(&properties->limits);
}
FUNCTION(void, GetPhysicalDeviceProperties)(VkPhysicalDevice d, VkPhysicalDeviceProperties *o)
{
    NEXT(d, GetPhysicalDeviceProperties, o);
    change(o);
}
FUNCTION(void, GetPhysicalDeviceProperties2)(VkPhysicalDevice d, VkPhysicalDeviceProperties2 *o)
{
    NEXT(d, GetPhysicalDeviceProperties2, o);
    change(&o->properties);
    if (!minimum) return;
    VkPhysicalDeviceMaintenance3Properties *sizes =
        chained(o, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_3_PROPERTIES);
    if (sizes) sizes->maxMemoryAllocationSize = 1 << 30, sizes->maxPerSetDescriptors = 1024;
    VkPhysicalDeviceSubgroupProperties *subgroup =
        chained(o, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SUBGROUP_PROPERTIES);
    if (!subgroup) return;
    subgroup->subgroupSize = 1, subgroup->quadOperationsInAllStages = 0;
    subgroup->supportedStages = VK_SHADER_STAGE_COMPUTE_BIT;
    subgroup->supportedOperations = VK_SUBGROUP_FEATURE_BASIC_BIT;
}

FUNCTION(void, GetPhysicalDeviceFeatures)(VkPhysicalDevice d, VkPhysicalDeviceFeatures *o)
{
    NEXT(d, GetPhysicalDeviceFeatures, o);
    if (minimum) *o = (VkPhysicalDeviceFeatures){ .robustBufferAccess = 1 };
}
FUNCTION(void, GetPhysicalDeviceFeatures2)(VkPhysicalDevice d, VkPhysicalDeviceFeatures2 *o)
{
    NEXT(d, GetPhysicalDeviceFeatures2, o);
    if (!minimum) return;
    o->features = (VkPhysicalDeviceFeatures){ .robustBufferAccess = 1 };
    VkPhysicalDevice16BitStorageFeatures *storage =
        chained(o, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_16BIT_STORAGE_FEATURES);
    if (storage)
        storage->storageBuffer16BitAccess = storage->uniformAndStorageBuffer16BitAccess =
            storage->storagePushConstant16 = storage->storageInputOutput16 = 0;
    VkPhysicalDeviceVariablePointersFeatures *pointers =
        chained(o, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VARIABLE_POINTERS_FEATURES);
    if (pointers) pointers->variablePointers = pointers->variablePointersStorageBuffer = 0;
}

FUNCTION(void, GetPhysicalDeviceMemoryProperties)(VkPhysicalDevice d, VkPhysicalDeviceMemoryProperties *o)
{
    NEXT(d, GetPhysicalDeviceMemoryProperties, o);
    if (!kind) return;
    const VkDeviceSize size = o->memoryHeaps[0].size;
    o->memoryHeapCount = kind->heap_count, o->memoryTypeCount = kind->type_count;
    memcpy(o->memoryTypes, kind->types, sizeof kind->types);
    memcpy(o->memoryHeaps, kind->heaps, sizeof kind->heaps);
    for (uint32_t i = 0; i < kind->heap_count; ++i)
        if (!o->memoryHeaps[i].size) o->memoryHeaps[i].size = size;
}
FUNCTION(void, GetPhysicalDeviceMemoryProperties2)(VkPhysicalDevice d, VkPhysicalDeviceMemoryProperties2 *o)
{
    NEXT(d, GetPhysicalDeviceMemoryProperties2, o);
    if (!kind) return;
    layer_GetPhysicalDeviceMemoryProperties(d, &o->memoryProperties);
    VkPhysicalDeviceMemoryBudgetPropertiesEXT *budget =
        chained(o, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MEMORY_BUDGET_PROPERTIES_EXT);
    const VkDeviceSize most = budget ? budget->heapBudget[0] : 0;
    for (uint32_t i = 0; budget && i < kind->heap_count; ++i) {
        const VkDeviceSize size = o->memoryProperties.memoryHeaps[i].size;
        budget->heapBudget[i] = size < most ? size : most, budget->heapUsage[i] = used[i];
    }
}

FUNCTION(void, GetPhysicalDeviceQueueFamilyProperties)(VkPhysicalDevice d, uint32_t *n, VkQueueFamilyProperties *o)
{
    NEXT(d, GetPhysicalDeviceQueueFamilyProperties, n, o);
    for (uint32_t i = 0; minimum && o && i < *n; ++i)
        o[i].queueFlags &= VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT, o[i].timestampValidBits = 0;
}
FUNCTION(void, GetPhysicalDeviceQueueFamilyProperties2)(VkPhysicalDevice d, uint32_t *n, VkQueueFamilyProperties2 *o)
{
    NEXT(d, GetPhysicalDeviceQueueFamilyProperties2, n, o);
    for (uint32_t i = 0; minimum && o && i < *n; ++i) {
        o[i].queueFamilyProperties.queueFlags &= VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT;
        o[i].queueFamilyProperties.timestampValidBits = 0;
    }
}

FUNCTION(VkResult, EnumerateDeviceExtensionProperties)(VkPhysicalDevice d, const char *layer, uint32_t *n, VkExtensionProperties *o)
{
    END_IF_IT_FAILS("EnumerateDeviceExtensionProperties", 0, "");
    if (layer && strstr(layer, "imitated")) return *n = 0, VK_SUCCESS;
    static VkExtensionProperties all[1024]; /* under the lock of the loader */
    uint32_t room = o ? *n : 0, count = COUNT(all), kept = 0;
    result = NEXT(d, EnumerateDeviceExtensionProperties, layer, &count, all);
    if (result) return result;
    for (uint32_t i = 0; i < count && !minimum; ++i) {
        if (strstr(hidden, all[i].extensionName)) continue;
        if (kept < room) o[kept] = all[i];
        ++kept;
    }
    *n = o && kept > room ? room : kept;
    return o && kept > room ? VK_INCOMPLETE : VK_SUCCESS;
}
FUNCTION(VkResult, GetPhysicalDeviceImageFormatProperties)(
    VkPhysicalDevice d, VkFormat format, VkImageType type, VkImageTiling tiling, VkImageUsageFlags usage,
    VkImageCreateFlags flags, VkImageFormatProperties *o)
{
    END_IF_IT_FAILS("GetPhysicalDeviceImageFormatProperties", 0, " format=%d tiling=%d", format, tiling);
    result = NEXT(d, GetPhysicalDeviceImageFormatProperties, format, type, tiling, usage, flags, o);
    if (minimum && o->maxExtent.width > 4096) o->maxExtent.width = 4096;
    if (minimum && o->maxExtent.height > 4096) o->maxExtent.height = 4096;
    return result;
}

/* -- memory -------------------------------------------------------------------------------------- */

static void all_types(VkDevice d, VkMemoryRequirements *o)
{
    if (!kind) return;
    const int fits = o->memoryTypeBits >> table_of(d)->real_type & 1;
    o->memoryTypeBits = fits ? (1u << kind->type_count) - 1 : 0;
    if (minimum && o->alignment < 256) o->alignment = 256, o->size = (o->size + 255) / 256 * 256;
}
#define DEFINE_REQUIREMENTS(name, handle) \
    FUNCTION(void, Get##name##MemoryRequirements)(VkDevice d, Vk##name made, VkMemoryRequirements *o) \
    { \
        NEXT(d, Get##name##MemoryRequirements, made, o); \
        all_types(d, o); \
    } \
    FUNCTION(void, Get##name##MemoryRequirements2)( \
        VkDevice d, const Vk##name##MemoryRequirementsInfo2 *i, VkMemoryRequirements2 *o) \
    { \
        NEXT(d, Get##name##MemoryRequirements2, i, o); \
        all_types(d, &o->memoryRequirements); \
    }
DEFINE_REQUIREMENTS(Buffer, )
DEFINE_REQUIREMENTS(Image, )

FUNCTION(VkResult, GetMemoryHostPointerPropertiesEXT)(VkDevice d, VkExternalMemoryHandleTypeFlagBits handle, const void *p, VkMemoryHostPointerPropertiesEXT *o)
{
    END_IF_IT_FAILS("GetMemoryHostPointerPropertiesEXT", 0, "");
    result = NEXT(d, GetMemoryHostPointerPropertiesEXT, handle, p, o);
    if (!kind || result) return result;
    const int fits = o->memoryTypeBits >> table_of(d)->real_type & 1;
    o->memoryTypeBits = 0;
    for (uint32_t i = 0; fits && i < kind->type_count; ++i) {
        const int flags = kind->types[i].propertyFlags;
        if (flags & COHERENT && (kind->type == INTEGRATED || !(flags & LOCAL))) o->memoryTypeBits |= 1u << i;
    }
    return result;
}

FUNCTION(VkResult, AllocateMemory)(VkDevice d, const VkMemoryAllocateInfo *i, const VkAllocationCallbacks *a, VkDeviceMemory *o)
{
    const uint32_t type = i->memoryTypeIndex;
    const VkMemoryType own = kind ? kind->types[type] : (VkMemoryType){ 0, 0 };
    const int imported = !!chained(i->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
    END_IF_IT_FAILS("AllocateMemory", 0, " type=%u flags=0x%x bytes=%llu imported=%d", type,
                    own.propertyFlags, (unsigned long long)i->allocationSize, imported);
    VkMemoryAllocateInfo info = *i;
    if (kind) {
        const VkDeviceSize size = kind->heaps[own.heapIndex].size;
        if (minimum && allocations >= 4096) return VK_ERROR_TOO_MANY_OBJECTS;
        if (minimum && i->allocationSize > 1 << 30) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
        if (size && used[own.heapIndex] + i->allocationSize > size) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
        info.memoryTypeIndex = table_of(d)->real_type;
    }
    result = NEXT(d, AllocateMemory, &info, a, o);
    if (result) return result;
    struct object *made = add(MEMORY, KEY(*o));
    made->size = i->allocationSize, made->type = type, made->imported = imported;
    lock();
    ++allocations;
    if (!imported) used[own.heapIndex] += i->allocationSize;
    unlock();
    return result;
}
FUNCTION(void, FreeMemory)(VkDevice d, VkDeviceMemory memory, const VkAllocationCallbacks *a)
{
    NEXT(d, FreeMemory, memory, a);
    drop(MEMORY, KEY(memory));
}
/* The host sees non-coherent memory by a copy, which flushes and invalidations update. */
FUNCTION(VkResult, MapMemory)(VkDevice d, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize size, VkMemoryMapFlags f, void **o)
{
    struct object *found = find(MEMORY, KEY(memory));
    END_IF_IT_FAILS("MapMemory", 0, " type=%u bytes=%llu", found->type, (unsigned long long)found->size);
    const int flags = kind ? (int)kind->types[found->type].propertyFlags : VISIBLE | COHERENT;
    if (!(flags & VISIBLE)) return misuse("vkMapMemory", "the host does not see this memory");
    result = NEXT(d, MapMemory, memory, offset, size, f, o);
    if (result || flags & COHERENT) return result;
    if (!found->bytes) {
        found->bytes = aligned_alloc(4096, (found->size + 4095) / 4096 * 4096);
        memset(found->bytes, 0xCD, found->size);
    }
    found->real = (char *)*o - offset;
    *o = found->bytes + offset;
    return result;
}
FUNCTION(void, UnmapMemory)(VkDevice d, VkDeviceMemory memory)
{
    find(MEMORY, KEY(memory))->real = 0;
    table_of(d)->UnmapMemory(d, memory);
}
static VkResult move_ranges(const char *name, uint32_t count, const VkMappedMemoryRange *ranges, int flush)
{
    for (; count--; ++ranges) {
        struct object *found = find(MEMORY, KEY(ranges->memory));
        const VkDeviceSize start = ranges->offset,
            size = ranges->size == VK_WHOLE_SIZE ? found->size - start : ranges->size;
        if (!kind || kind->types[found->type].propertyFlags & COHERENT) continue;
        if (!found->real) return misuse(name, "the memory is not mapped");
        if (start % 256 || (size % 256 && start + size != found->size) || start + size > found->size)
            return misuse(name, "the range is not aligned to nonCoherentAtomSize");
        if (flush) memcpy(found->real + start, found->bytes + start, size);
        else memcpy(found->bytes + start, found->real + start, size);
    }
    return VK_SUCCESS;
}
#define DEFINE_MOVE(name, flush) \
    FUNCTION(VkResult, name)(VkDevice d, uint32_t n, const VkMappedMemoryRange *r) \
    { \
        END_IF_IT_FAILS(#name, 0, " ranges=%u offset=%llu bytes=%llu", n, (unsigned long long)r->offset, \
                        (unsigned long long)r->size); \
        if (!kind) return NEXT(d, name, n, r); \
        return move_ranges("vk" #name, n, r, flush); \
    }
DEFINE_MOVE(FlushMappedMemoryRanges, 1)
DEFINE_MOVE(InvalidateMappedMemoryRanges, 0)

/* -- pipelines ----------------------------------------------------------------------------------- */

/* A pipeline cache has, after the header, an entry for each pipeline: the hash of its shader and filler. */
enum { HEADER = sizeof(VkPipelineCacheHeaderVersionOne), ENTRY = 256 };

static void append(struct object *cache, const void *bytes, size_t count)
{
    cache->bytes = realloc(cache->bytes, cache->size + count);
    memcpy(cache->bytes + cache->size, bytes, count);
    cache->size += count;
}
static int add_entry(struct object *cache, uint64_t hash)
{
    for (uint64_t at = HEADER; at < cache->size; at += ENTRY)
        if (!memcmp(cache->bytes + at, &hash, sizeof hash)) return 0;
    char entry[ENTRY] = { 0 };
    memcpy(entry, &hash, sizeof hash);
    append(cache, entry, ENTRY);
    return 1;
}

FUNCTION(VkResult, CreateShaderModule)(VkDevice d, const VkShaderModuleCreateInfo *i, const VkAllocationCallbacks *a, VkShaderModule *o)
{
    END_IF_IT_FAILS("CreateShaderModule", 0, " bytes=%zu", i->codeSize);
    result = NEXT(d, CreateShaderModule, i, a, o);
    if (result) return result;
    struct object *made = add(MODULE, KEY(*o));
    made->hash = 14695981039346656037u; /* FNV-1a */
    for (size_t k = 0; k < i->codeSize / 4; ++k) made->hash = (made->hash ^ i->pCode[k]) * 1099511628211u;
    return result;
}
FUNCTION(VkResult, CreatePipelineCache)(VkDevice d, const VkPipelineCacheCreateInfo *i, const VkAllocationCallbacks *a, VkPipelineCache *o)
{
    VkPhysicalDeviceProperties about;
    const struct table *table = table_of(d);
    table->GetPhysicalDeviceProperties(table->physical, &about);
    VkPipelineCacheHeaderVersionOne header = { HEADER, 1, about.vendorID, about.deviceID, { 0 } };
    memcpy(header.pipelineCacheUUID, about.pipelineCacheUUID, VK_UUID_SIZE);
    const size_t size = i->initialDataSize;
    const int valid = size >= HEADER && !((size - HEADER) % ENTRY) && !memcmp(i->pInitialData, &header, HEADER);
    END_IF_IT_FAILS("CreatePipelineCache", 0, " bytes=%zu valid=%d", size, valid);
    VkPipelineCacheCreateInfo info = *i;
    info.initialDataSize = 0, info.pInitialData = 0;
    result = NEXT(d, CreatePipelineCache, &info, a, o);
    if (result) return result;
    struct object *made = add(CACHE, KEY(*o));
    if (valid) append(made, i->pInitialData, size);
    else append(made, &header, HEADER);
    return result;
}
FUNCTION(VkResult, CreateComputePipelines)(VkDevice d, VkPipelineCache c, uint32_t n, const VkComputePipelineCreateInfo *i, const VkAllocationCallbacks *a, VkPipeline *o)
{
    struct object *cache = c ? find(CACHE, KEY(c)) : 0;
    int added = 0;
    lock();
    for (uint32_t k = 0; cache && k < n; ++k) added += add_entry(cache, (*place(MODULE, KEY(i[k].stage.module)))->hash);
    unlock();
    END_IF_IT_FAILS("CreateComputePipelines", 0, " pipelines=%u from_cache=%u flags=0x%x", n, cache ? n - added : 0, i->flags);
    return NEXT(d, CreateComputePipelines, c, n, i, a, o);
}
FUNCTION(VkResult, GetPipelineCacheData)(VkDevice d, VkPipelineCache c, size_t *n, void *o)
{
    (void)d;
    struct object *cache = find(CACHE, KEY(c));
    END_IF_IT_FAILS("GetPipelineCacheData", 0, " bytes=%llu", (unsigned long long)cache->size);
    const size_t room = *n;
    *n = o && room < cache->size ? room : cache->size;
    if (o) memcpy(o, cache->bytes, *n);
    return o && room < cache->size ? VK_INCOMPLETE : VK_SUCCESS;
}
FUNCTION(VkResult, MergePipelineCaches)(VkDevice d, VkPipelineCache c, uint32_t n, const VkPipelineCache *from)
{
    END_IF_IT_FAILS("MergePipelineCaches", 0, " caches=%u", n);
    struct object *target = find(CACHE, KEY(c));
    for (uint32_t k = 0; k < n; ++k) {
        const struct object *source = find(CACHE, KEY(from[k]));
        for (uint64_t at = HEADER; at < source->size; at += ENTRY)
            lock(), add_entry(target, *(uint64_t *)(source->bytes + at)), unlock();
    }
    return NEXT(d, MergePipelineCaches, c, n, from);
}
#define DEFINE_DESTROY(name, what) \
    FUNCTION(void, Destroy##name)(VkDevice d, Vk##name made, const VkAllocationCallbacks *a) \
    { \
        NEXT(d, Destroy##name, made, a); \
        drop(what, KEY(made)); \
    }
DEFINE_DESTROY(PipelineCache, CACHE)
DEFINE_DESTROY(ShaderModule, MODULE)
DEFINE_DESTROY(Fence, FENCE)

/* -- submissions --------------------------------------------------------------------------------- */

FUNCTION(VkResult, QueueSubmit)(VkQueue q, uint32_t n, const VkSubmitInfo *i, VkFence f)
{
    END_IF_IT_FAILS("QueueSubmit", 1, " submissions=%u buffers=%u", n, n ? i->commandBufferCount : 0);
    if (f) add(FENCE, KEY(f))->ready = slowness ? now() + slowness : 0;
    return NEXT(q, QueueSubmit, n, i, f);
}
/* The time until a fence may be signalled, in nanoseconds. */
static int64_t remaining(VkFence fence)
{
    const struct object *found = find(FENCE, KEY(fence));
    return found && found->ready ? found->ready - now() : 0;
}
FUNCTION(VkResult, WaitForFences)(VkDevice d, uint32_t n, const VkFence *f, VkBool32 all, uint64_t timeout)
{
    END_IF_IT_FAILS("WaitForFences", 1, " fences=%u", n);
    int64_t wait = hangs ? INT64_MAX : 0, limit = timeout < INT64_MAX ? (int64_t)timeout : INT64_MAX;
    for (uint32_t k = 0; k < n; ++k)
        if (remaining(f[k]) > wait) wait = remaining(f[k]);
    sleep_for(wait < limit ? wait : limit);
    return wait > limit || hangs ? VK_TIMEOUT : NEXT(d, WaitForFences, n, f, all, timeout);
}
FUNCTION(VkResult, GetFenceStatus)(VkDevice d, VkFence f)
{
    END_IF_IT_FAILS("GetFenceStatus", 1, "");
    const int waits_fail = failing.count && !strcmp(failing.name, "vkWaitForFences");
    return hangs || waits_fail || remaining(f) > 0 ? VK_NOT_READY : table_of(d)->GetFenceStatus(d, f);
}

/* -- the layer ----------------------------------------------------------------------------------- */

/* The place in the chain of layers; the next layer finds its own. */
#define NEXT_LINK(Type, info, type) \
    VkLayer##Type##CreateInfo *link = (void *)info->pNext; \
    while (link->sType != VK_STRUCTURE_TYPE_LOADER_##type##_CREATE_INFO || link->function != VK_LAYER_LINK_INFO) \
        link = (void *)link->pNext; \
    const PFN_vkGetInstanceProcAddr function = link->u.pLayerInfo->pfnNextGetInstanceProcAddr

FUNCTION(VkResult, CreateInstance)(const VkInstanceCreateInfo *i, const VkAllocationCallbacks *a, VkInstance *o)
{
    END_IF_IT_FAILS("CreateInstance", 0, "");
    NEXT_LINK(Instance, i, INSTANCE);
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    result = ((PFN_vkCreateInstance)function(0, "vkCreateInstance"))(i, a, o);
    if (!result) add_table(*o, (void *)function)->instance_function = function;
    return result;
}
FUNCTION(VkResult, CreateDevice)(VkPhysicalDevice d, const VkDeviceCreateInfo *i, const VkAllocationCallbacks *a, VkDevice *o)
{
    END_IF_IT_FAILS("CreateDevice", 1, " extensions=%u", i->enabledExtensionCount);
    if (minimum && i->enabledExtensionCount) return VK_ERROR_EXTENSION_NOT_PRESENT;
    NEXT_LINK(Device, i, DEVICE);
    const PFN_vkGetDeviceProcAddr device_function = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    const struct table *instance = table_of(d);
    VkPhysicalDeviceMemoryProperties memory;
    instance->GetPhysicalDeviceMemoryProperties(d, &memory);
    result = ((PFN_vkCreateDevice)function(0, "vkCreateDevice"))(d, i, a, o);
    if (result) return result;
    struct table *made = add_table(*o, (void *)device_function);
    made->device_function = device_function;
    made->GetPhysicalDeviceProperties = instance->GetPhysicalDeviceProperties;
    made->physical = d;
    while ((memory.memoryTypes[made->real_type].propertyFlags & (VISIBLE | COHERENT)) != (VISIBLE | COHERENT))
        ++made->real_type;
    return result;
}
FUNCTION(void, DestroyInstance)(VkInstance d, const VkAllocationCallbacks *a) { remove_table(d).DestroyInstance(d, a); }
FUNCTION(void, DestroyDevice)(VkDevice d, const VkAllocationCallbacks *a) { remove_table(d).DestroyDevice(d, a); }

static PFN_vkVoidFunction own_function(const char *name)
{
    static const struct { const char *name; void *function; } own[] = {
#define ENTRY_OF(name, ...) { "vk" #name, (void *)layer_##name },
#define ENTRY_OF_CREATED(name, ...) { "vkCreate" #name, (void *)layer_Create##name },
        FALLIBLE(ENTRY_OF) COMMANDS(ENTRY_OF) OTHERS(ENTRY_OF) CREATED(ENTRY_OF_CREATED) ENTRY_OF(CreateInstance)
    };
    size_t length = strlen(name); /* vkGetBufferMemoryRequirements2KHR is another name */
    if (length > 3 && !strcmp(name + length - 4, "2KHR")) length -= 3;
    for (size_t i = 0; i < COUNT(own); ++i)
        if (strlen(own[i].name) == length && !strncmp(own[i].name, name, length))
            return (PFN_vkVoidFunction)own[i].function;
    return 0;
}
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char *name)
{
    const PFN_vkVoidFunction next = table_of(device)->device_function(device, name), own = own_function(name);
    return next && own ? own : next;
}
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance instance, const char *name)
{
    const PFN_vkVoidFunction own = own_function(name);
    if (!strcmp(name, "vkGetDeviceProcAddr")) return (PFN_vkVoidFunction)device_function;
    if (!strcmp(name, "vkGetInstanceProcAddr")) return (PFN_vkVoidFunction)instance_function;
    if (own || !instance) return own;
    return table_of(instance)->instance_function(instance, name);
}
EXPORT VkResult vkNegotiateLoaderLayerInterfaceVersion(VkNegotiateLayerInterface *layer)
{
    layer->loaderLayerInterfaceVersion = 2;
    layer->pfnGetInstanceProcAddr = instance_function;
    layer->pfnGetDeviceProcAddr = device_function;
    layer->pfnGetPhysicalDeviceProcAddr = 0;
    return VK_SUCCESS;
}
