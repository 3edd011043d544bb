/* A Vulkan layer that makes a driver look like another one, lets its calls fail, and records them.
   VKOPS_IMITATED names the device (KINDS in devices.h; empty: that of the driver), and VKOPS_HIDDEN_EXTENSIONS
   the extensions that it lacks; VKOPS_ADDED adds those of ADDED, VKOPS_EXPORTED_SEMAPHORES those of semaphores as
   files, and VKOPS_TRANSFER_FAMILY a family of queues for transfers to discrete devices. Tests call the exported functions through ctypes (__init__.py). */
#include "calls.h"
#include "semaphores.h"

#include <sys/mman.h>

/* -- properties ---------------------------------------------------------------------------------- */

static void *chained(const void *first, VkStructureType type)
{
    const VkBaseInStructure *found = first;
    while (found && found->sType != type) found = found->pNext;
    return (void *)found;
}

/* No driver takes the data of an imitated pipeline cache for its own. */
static const char CACHE_ID[VK_UUID_SIZE] = "imitated caches";

static void change(VkPhysicalDeviceProperties *properties)
{
    if (kind) properties->deviceType = kind->type;
    if (kind && kind->type == INTEGRATED) properties->limits.nonCoherentAtomSize = 256;
    if (minimum) properties->apiVersion = VK_API_VERSION_1_1, reduce(&properties->limits);
    memcpy(properties->pipelineCacheUUID, CACHE_ID, VK_UUID_SIZE);
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
    VkPhysicalDeviceMaintenance4Properties *newer = /* than its version of Vulkan */
        chained(o, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_MAINTENANCE_4_PROPERTIES);
    if (newer) newer->maxBufferSize = 0;
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
    for (size_t i = 0; i < COUNT(ADDED) && getenv("VKOPS_ADDED"); ++i) {
        VkBool32 *found = ADDED[i].type ? chained(o, ADDED[i].type) : 0;
        for (int k = 0; found && k < ADDED[i].members; ++k)
            ((VkBool32 *)((char *)found + sizeof(VkBaseOutStructure)))[k] = 1;
    }
    if (!minimum) return;
    o->features = (VkPhysicalDeviceFeatures){ .robustBufferAccess = 1 };
#define CLEAR(name, type) \
    { \
        char *found = chained(o, VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_##type##_FEATURES); \
        const size_t head = sizeof(VkBaseOutStructure); \
        if (found) memset(found + head, 0, sizeof(VkPhysicalDevice##name##Features) - head); \
    }
    CLEAR(16BitStorage, 16BIT_STORAGE)
    CLEAR(VariablePointers, VARIABLE_POINTERS)
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

#define DEFINE_FAMILIES(name, properties) \
    FUNCTION(void, Get##name)(VkPhysicalDevice d, uint32_t *n, Vk##name##_ *o) \
    { \
        const uint32_t room = *n; \
        NEXT(d, Get##name, n, 0); /* SwiftShader gives as many families as there is room for */ \
        if (o && room < *n) *n = room; \
        if (o) NEXT(d, Get##name, n, o); \
        if (has_transfers() && !o) ++*n; \
        if (has_transfers() && o && *n < room) { \
            memset(&o[*n] properties, 0, sizeof o[*n] properties); \
            o[*n] properties.queueFlags = VK_QUEUE_TRANSFER_BIT; \
            o[*n] properties.minImageTransferGranularity = (VkExtent3D){ 1, 1, 1 }; \
            o[(*n)++] properties.queueCount = 1; \
        } \
        for (uint32_t i = 0; minimum && o && i < *n; ++i) { \
            o[i] properties.queueFlags &= VK_QUEUE_COMPUTE_BIT | VK_QUEUE_TRANSFER_BIT; \
            o[i] properties.timestampValidBits = 0; \
        } \
    }
typedef VkQueueFamilyProperties VkPhysicalDeviceQueueFamilyProperties_;
typedef VkQueueFamilyProperties2 VkPhysicalDeviceQueueFamilyProperties2_;
DEFINE_FAMILIES(PhysicalDeviceQueueFamilyProperties, )
DEFINE_FAMILIES(PhysicalDeviceQueueFamilyProperties2, .queueFamilyProperties)

#define EXPORTED_SEMAPHORES VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME
FUNCTION(void, GetPhysicalDeviceExternalSemaphoreProperties)(
    VkPhysicalDevice d, const VkPhysicalDeviceExternalSemaphoreInfo *i, VkExternalSemaphoreProperties *o)
{
    NEXT(d, GetPhysicalDeviceExternalSemaphoreProperties, i, o);
    const VkSemaphoreTypeCreateInfo *type = chained(i->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
    if (exports && i->handleType == VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT && type &&
        type->semaphoreType == VK_SEMAPHORE_TYPE_TIMELINE)
        o->externalSemaphoreFeatures = VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT;
}
FUNCTION(VkResult, EnumerateDeviceExtensionProperties)(
    VkPhysicalDevice d, const char *layer, uint32_t *n, VkExtensionProperties *o)
{
    END_IF_IT_FAILS(d, "EnumerateDeviceExtensionProperties", 0, "");
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
    for (size_t i = 0; i < COUNT(ADDED) && getenv("VKOPS_ADDED"); ++i, ++kept)
        if (kept < room) o[kept].specVersion = 1, strcpy(o[kept].extensionName, ADDED[i].extension);
    if (exports && kept++ < room)
        o[kept - 1].specVersion = 1, strcpy(o[kept - 1].extensionName, EXPORTED_SEMAPHORES);
    *n = o && kept > room ? room : kept;
    return o && kept > room ? VK_INCOMPLETE : VK_SUCCESS;
}
FUNCTION(VkResult, GetPhysicalDeviceImageFormatProperties)(
    VkPhysicalDevice d, VkFormat format, VkImageType type, VkImageTiling tiling, VkImageUsageFlags usage,
    VkImageCreateFlags flags, VkImageFormatProperties *o)
{
    END_IF_IT_FAILS(d, "GetPhysicalDeviceImageFormatProperties", 0, " format=%d tiling=%d", format, tiling);
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

FUNCTION(VkResult, GetMemoryHostPointerPropertiesEXT)(
    VkDevice d, VkExternalMemoryHandleTypeFlagBits handle, const void *p, VkMemoryHostPointerPropertiesEXT *o)
{
    END_IF_IT_FAILS(d, "GetMemoryHostPointerPropertiesEXT", 0, "");
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

FUNCTION(VkResult, AllocateMemory)(
    VkDevice d, const VkMemoryAllocateInfo *i, const VkAllocationCallbacks *a, VkDeviceMemory *o)
{
    const uint32_t type = i->memoryTypeIndex;
    const VkMemoryType own = kind ? kind->types[type] : (VkMemoryType){ 0, 0 };
    const int imported = !!chained(i->pNext, VK_STRUCTURE_TYPE_IMPORT_MEMORY_HOST_POINTER_INFO_EXT);
    END_IF_IT_FAILS(d, "AllocateMemory", 0, " type=%u flags=0x%x bytes=%llu imported=%d", type,
                    own.propertyFlags, (LL)i->allocationSize, imported);
    VkMemoryAllocateInfo info = *i;
    struct table *table = table_of(d);
    if (kind) {
        const VkDeviceSize size = kind->heaps[own.heapIndex].size;
        if (minimum && table->allocations >= 4096) return VK_ERROR_TOO_MANY_OBJECTS;
        if (minimum && i->allocationSize > 1 << 30) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
        if (size && used[own.heapIndex] + i->allocationSize > size) return VK_ERROR_OUT_OF_DEVICE_MEMORY;
        info.memoryTypeIndex = table->real_type;
    }
    result = NEXT(d, AllocateMemory, &info, a, o);
    if (result) return result;
    struct object *made = object(MEMORY, KEY(*o), 1);
    made->size = i->allocationSize, made->type = type, made->imported = imported;
    lock();
    ++table->allocations;
    if (!imported) used[own.heapIndex] += i->allocationSize;
    unlock();
    return result;
}
FUNCTION(void, FreeMemory)(VkDevice d, VkDeviceMemory memory, const VkAllocationCallbacks *a)
{
    note_command("vkFreeMemory", "");
    struct table *table = table_of(d);
    table->FreeMemory(d, memory, a);
    drop(MEMORY, KEY(memory));
    lock(), table->allocations -= memory != 0, unlock();
}
/* The host sees non-coherent memory by a copy, which flushes and invalidations update. */
FUNCTION(VkResult, MapMemory)(
    VkDevice d, VkDeviceMemory memory, VkDeviceSize offset, VkDeviceSize size, VkMemoryMapFlags f, void **o)
{
    struct object *found = object(MEMORY, KEY(memory), 0);
    END_IF_IT_FAILS(d, "MapMemory", 0, " type=%u bytes=%llu", found->type, (LL)found->size);
    const int flags = kind ? (int)kind->types[found->type].propertyFlags : VISIBLE | COHERENT;
    if (!(flags & VISIBLE)) return misuse("MapMemory", "the host does not see this memory");
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
    object(MEMORY, KEY(memory), 0)->real = 0;
    table_of(d)->UnmapMemory(d, memory);
}
static VkResult move_ranges(const char *name, uint32_t count, const VkMappedMemoryRange *ranges, int flush)
{
    for (; count--; ++ranges) {
        struct object *found = object(MEMORY, KEY(ranges->memory), 0);
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
        END_IF_IT_FAILS(d, #name, 0, " ranges=%u offset=%llu bytes=%llu", n, (LL)r->offset, \
                        (LL)r->size); \
        if (!kind) return NEXT(d, name, n, r); \
        return move_ranges(#name, n, r, flush); \
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

FUNCTION(VkResult, CreateShaderModule)(
    VkDevice d, const VkShaderModuleCreateInfo *i, const VkAllocationCallbacks *a, VkShaderModule *o)
{
    END_IF_IT_FAILS(d, "CreateShaderModule", 0, " bytes=%zu", i->codeSize);
    result = NEXT(d, CreateShaderModule, i, a, o);
    if (result) return result;
    struct object *made = object(MODULE, KEY(*o), 1);
    made->hash = 14695981039346656037u; /* FNV-1a */
    for (size_t k = 0; k < i->codeSize / 4; ++k) made->hash = (made->hash ^ i->pCode[k]) * 1099511628211u;
    return result;
}
FUNCTION(VkResult, CreatePipelineCache)(
    VkDevice d, const VkPipelineCacheCreateInfo *i, const VkAllocationCallbacks *a, VkPipelineCache *o)
{
    VkPhysicalDeviceProperties about;
    const struct table *table = table_of(d);
    table->GetPhysicalDeviceProperties(table->physical, &about);
    VkPipelineCacheHeaderVersionOne header = { HEADER, 1, about.vendorID, about.deviceID, { 0 } };
    memcpy(header.pipelineCacheUUID, CACHE_ID, VK_UUID_SIZE);
    const size_t size = i->initialDataSize;
    const int valid = size >= HEADER && !((size - HEADER) % ENTRY) && !memcmp(i->pInitialData, &header, HEADER);
    END_IF_IT_FAILS(d, "CreatePipelineCache", 0, " bytes=%zu valid=%d", size, valid);
    VkPipelineCacheCreateInfo info = *i;
    info.initialDataSize = 0, info.pInitialData = 0;
    result = NEXT(d, CreatePipelineCache, &info, a, o);
    if (result) return result;
    struct object *made = object(CACHE, KEY(*o), 1);
    if (valid) append(made, i->pInitialData, size);
    else append(made, &header, HEADER);
    return result;
}
FUNCTION(VkResult, CreateComputePipelines)(
    VkDevice d, VkPipelineCache c, uint32_t n, const VkComputePipelineCreateInfo *i,
    const VkAllocationCallbacks *a, VkPipeline *o)
{
    struct object *cache = c ? object(CACHE, KEY(c), 0) : 0;
    int added = 0;
    lock();
    for (uint32_t k = 0; cache && k < n; ++k)
        added += add_entry(cache, (*place(MODULE, KEY(i[k].stage.module)))->hash);
    unlock();
    END_IF_IT_FAILS(d, "CreateComputePipelines", 0, " pipelines=%u from_cache=%u flags=0x%x", n,
                    cache ? n - added : 0, i->flags);
    return NEXT(d, CreateComputePipelines, c, n, i, a, o);
}
FUNCTION(VkResult, GetPipelineCacheData)(VkDevice d, VkPipelineCache c, size_t *n, void *o)
{
    (void)d;
    struct object *cache = object(CACHE, KEY(c), 0);
    END_IF_IT_FAILS(d, "GetPipelineCacheData", 0, " bytes=%llu", (LL)cache->size);
    const size_t room = *n;
    *n = o && room < cache->size ? room : cache->size;
    if (o) memcpy(o, cache->bytes, *n);
    return o && room < cache->size ? VK_INCOMPLETE : VK_SUCCESS;
}
FUNCTION(VkResult, MergePipelineCaches)(VkDevice d, VkPipelineCache c, uint32_t n, const VkPipelineCache *from)
{
    END_IF_IT_FAILS(d, "MergePipelineCaches", 0, " caches=%u", n);
    struct object *target = object(CACHE, KEY(c), 0);
    for (uint32_t k = 0; k < n; ++k) {
        const struct object *source = object(CACHE, KEY(from[k]), 0);
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

/* A queue for transfers, which the driver does not have: its submissions go to the queue that the driver has.
   The first member is as in all dispatchable handles. */
static struct { void *dispatch; } transfers;
static VkQueue real_queue;
#define IS_TRANSFERS(queue) ((void *)(queue) == (void *)&transfers)

/* Submissions that are held back, in the order of each queue. The driver has one queue, which runs what it gets
   in order: what is held here runs after submissions that came later, unless these wait for it. */
static struct held {
    struct held *next;
    VkCommandBuffer buffer;
    VkFence fence;
    VkSemaphore wait, signal;
    uint64_t waits, signals;
} *held[2];
static unsigned chance;
static int held_back; /* submissions, in all */
static int holds;     /* whether all are held back until something waits for them */
/* From now on hold submissions back by chance. */
EXPORT void reorder(unsigned seed) { chance = seed; }
EXPORT int reordered(void) { return held_back; }
/* Hold each submission back until something waits for it; or by chance again. */
EXPORT void hold(int on) { holds = on, chance = 1; }
/* Ignore what submissions wait for, which programs must notice. */
static int forgets;
EXPORT void forget_waits(int on) { forgets = on; }

static VkResult submit_first(int lane);
/* Submit what signals exactly a value of a semaphore, or a fence, and all before it; whether that is held. What
   signals a greater value may wait for this. */
static int submit_until(VkSemaphore semaphore, uint64_t value, VkFence fence)
{
    for (int lane = 0; lane < 2; ++lane)
        for (struct held *each = held[lane]; each; each = each->next) {
            if (fence ? each->fence != fence : each->signal != semaphore || each->signals != value) continue;
            while (held[lane] != each) submit_first(lane);
            submit_first(lane);
            return 1;
        }
    return 0;
}
static VkResult submit_first(int lane)
{
    struct held *first = held[lane];
    if (first->wait) submit_until(first->wait, first->waits, 0);
    held[lane] = first->next;
    const VkTimelineSemaphoreSubmitInfo values = { VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO, 0,
        !!first->wait, &first->waits, !!first->signal, &first->signals };
    const VkPipelineStageFlags stages = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    const VkSubmitInfo info = { VK_STRUCTURE_TYPE_SUBMIT_INFO, &values, !!first->wait, &first->wait, &stages, 1,
        &first->buffer, !!first->signal, &first->signal };
    const VkResult result = NEXT(real_queue, QueueSubmit, 1, &info, first->fence);
    free(first);
    return result;
}
static pthread_mutex_t queues = PTHREAD_MUTEX_INITIALIZER;
static void submit_all(VkFence fence) /* of no fence: all */
{
    pthread_mutex_lock(&queues);
    if (fence) submit_until(0, 0, fence);
    for (int lane = 0; lane < 2 && !fence; ++lane)
        while (held[lane]) submit_first(lane);
    pthread_mutex_unlock(&queues);
}
static int random_bit(void) { return !holds && (chance = chance * 1103515245 + 12345) >> 16 & 1; }

FUNCTION(void, GetDeviceQueue)(VkDevice d, uint32_t family, uint32_t index, VkQueue *o)
{
    NEXT(d, GetDeviceQueue, 0, index, o);
    if (!has_transfers()) return;
    real_queue = *o;
    if (family) transfers.dispatch = *(void **)*o, *o = (VkQueue)(void *)&transfers;
}
FUNCTION(VkResult, QueueSubmit)(VkQueue d, uint32_t n, const VkSubmitInfo *i, VkFence f)
{
    END_IF_IT_FAILS(d, "QueueSubmit", 1, " submissions=%u buffers=%u%s%s", n,
                    n ? i->commandBufferCount : 0, IS_TRANSFERS(d) ? " transfers" : "",
                    n && i->waitSemaphoreCount ? " waits" : "");
    if (f) object(FENCE, KEY(f), 1)->ready = slowness ? now() + slowness : 0;
    if (!chance || n != 1) {
        submit_all(0);
        return table_of(d)->QueueSubmit(IS_TRANSFERS(d) ? real_queue : d, n, i, f);
    }
    const VkTimelineSemaphoreSubmitInfo *values = chained(i->pNext, VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO);
    struct held *made = calloc(1, sizeof *made);
    made->buffer = *i->pCommandBuffers, made->fence = f;
    if (i->waitSemaphoreCount && !forgets) made->wait = *i->pWaitSemaphores, made->waits = *values->pWaitSemaphoreValues;
    if (i->signalSemaphoreCount) made->signal = *i->pSignalSemaphores, made->signals = *values->pSignalSemaphoreValues;
    pthread_mutex_lock(&queues);
    struct held **at = &held[IS_TRANSFERS(d)];
    while (*at) at = &(*at)->next;
    *at = made, ++held_back;
    while (held[0] && random_bit() && random_bit()) submit_first(0);
    while (held[1] && random_bit() && random_bit()) submit_first(1);
    pthread_mutex_unlock(&queues);
    return VK_SUCCESS;
}
/* The time until a fence may be signalled, in nanoseconds. */
static int64_t remaining(VkFence fence)
{
    const struct object *found = object(FENCE, KEY(fence), 0);
    return found && found->ready ? found->ready - now() : 0;
}
FUNCTION(VkResult, QueueWaitIdle)(VkQueue d)
{
    END_IF_IT_FAILS(d, "QueueWaitIdle", 1, "");
    if (!IS_TRANSFERS(d)) submit_all(0);
    return table_of(d)->QueueWaitIdle(IS_TRANSFERS(d) ? real_queue : d);
}
FUNCTION(VkResult, SetDebugUtilsObjectNameEXT)(VkDevice d, const VkDebugUtilsObjectNameInfoEXT *i)
{
    const PFN_vkSetDebugUtilsObjectNameEXT next = table_of(d)->SetDebugUtilsObjectNameEXT; /* if enabled */
    return next && i->objectHandle != KEY(&transfers) ? next(d, i) : VK_SUCCESS;
}
FUNCTION(VkResult, WaitForFences)(VkDevice d, uint32_t n, const VkFence *f, VkBool32 all, uint64_t timeout)
{
    END_IF_IT_FAILS(d, "WaitForFences", 1, " fences=%u", n);
    for (uint32_t k = 0; k < n && chance; ++k) submit_all(f[k]);
    const struct timespec moment = { 0, 1000000 };
    for (uint64_t slept = 0; hangs && slept < timeout; slept += moment.tv_nsec) nanosleep(&moment, 0);
    int64_t wait = 0;
    for (uint32_t k = 0; k < n; ++k)
        if (remaining(f[k]) > wait) wait = remaining(f[k]);
    if (hangs) return VK_TIMEOUT;
    const uint64_t sleep = (uint64_t)wait < timeout ? (uint64_t)wait : timeout;
    const struct timespec time = { sleep / 1000000000, sleep % 1000000000 };
    if (sleep) nanosleep(&time, 0);
    return (uint64_t)wait > timeout ? VK_TIMEOUT : NEXT(d, WaitForFences, n, f, all, timeout);
}
FUNCTION(VkResult, GetFenceStatus)(VkDevice d, VkFence f)
{
    END_IF_IT_FAILS(d, "GetFenceStatus", 1, "");
    const int waits_fail = failing.count && !strcmp(failing.name, "vkWaitForFences");
    pthread_mutex_lock(&queues);
    int is_held = 0;
    for (int lane = 0; lane < 2; ++lane)
        for (const struct held *each = held[lane]; each; each = each->next) is_held |= each->fence == f;
    if (is_held && random_bit() && random_bit()) is_held = !submit_until(0, 0, f);
    pthread_mutex_unlock(&queues);
    return hangs || waits_fail || is_held || remaining(f) > 0 ? VK_NOT_READY : table_of(d)->GetFenceStatus(d, f);
}

FUNCTION(VkResult, GetSemaphoreFdKHR)(VkDevice d, const VkSemaphoreGetFdInfoKHR *i, int *o)
{
    END_IF_IT_FAILS(d, "GetSemaphoreFdKHR", 0, "");
    PFN_vkGetDeviceProcAddr function = table_of(d)->device_function;
    const struct shared shared = { d, i->semaphore, (PFN_vkWaitSemaphores)function(d, "vkWaitSemaphores"),
                                   (PFN_vkSignalSemaphore)function(d, "vkSignalSemaphore") };
    *o = memfd_create("semaphore", 0);
    return write(*o, &shared, sizeof shared) == (ssize_t)sizeof shared ? VK_SUCCESS : VK_ERROR_TOO_MANY_OBJECTS;
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
    END_IF_IT_FAILS(0, "CreateInstance", 0, "");
    NEXT_LINK(Instance, i, INSTANCE);
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    result = ((PFN_vkCreateInstance)function(0, "vkCreateInstance"))(i, a, o);
    if (!result) add_table(*o, (void *)function, 0)->instance_function = function;
    return result;
}
FUNCTION(VkResult, CreateDevice)(
    VkPhysicalDevice d, const VkDeviceCreateInfo *i, const VkAllocationCallbacks *a, VkDevice *o)
{
    END_IF_IT_FAILS(d, "CreateDevice", 1, " extensions=%u", i->enabledExtensionCount);
    if (minimum && i->enabledExtensionCount) return VK_ERROR_EXTENSION_NOT_PRESENT;
    NEXT_LINK(Device, i, DEVICE);
    const PFN_vkGetDeviceProcAddr device_function = link->u.pLayerInfo->pfnNextGetDeviceProcAddr;
    link->u.pLayerInfo = link->u.pLayerInfo->pNext;
    const struct table *instance = table_of(d);
    VkPhysicalDeviceMemoryProperties memory;
    instance->GetPhysicalDeviceMemoryProperties(d, &memory);
    const char *names[64];
    VkDeviceCreateInfo info = *i;
    info.ppEnabledExtensionNames = names, info.enabledExtensionCount = 0;
    if (has_transfers()) info.queueCreateInfoCount = 1; /* the driver's family */
    for (uint32_t k = 0; k < i->enabledExtensionCount; ++k) {
        const char *name = names[info.enabledExtensionCount++] = i->ppEnabledExtensionNames[k];
        if (exports && !strcmp(name, EXPORTED_SEMAPHORES)) --info.enabledExtensionCount;
        for (size_t n = 0; n < COUNT(ADDED) && getenv("VKOPS_ADDED"); ++n) {
            if (strcmp(ADDED[n].extension, name)) continue;
            const VkBool32 *found = ADDED[n].type ? chained(i->pNext, ADDED[n].type) : 0;
            const VkBool32 *values = (void *)((char *)found + sizeof(VkBaseOutStructure));
            note_command("added", " %s %d", name, found ? (int)(values[0] + 2 * values[1]) : -1);
            --info.enabledExtensionCount;
        }
    }
    result = ((PFN_vkCreateDevice)function(0, "vkCreateDevice"))(d, &info, a, o);
    if (result) return result;
    struct table *made = add_table(*o, (void *)device_function, 1);
    made->device_function = device_function;
    made->GetPhysicalDeviceProperties = instance->GetPhysicalDeviceProperties;
    made->physical = d, made->device = *o;
    while ((memory.memoryTypes[made->real_type].propertyFlags & (VISIBLE | COHERENT)) != (VISIBLE | COHERENT))
        ++made->real_type;
    return result;
}
FUNCTION(void, DestroyInstance)(VkInstance d, const VkAllocationCallbacks *a)
{
    remove_table(d).DestroyInstance(d, a);
}
FUNCTION(void, DestroyDevice)(VkDevice d, const VkAllocationCallbacks *a)
{
    remove_table(d).DestroyDevice(d, a);
}

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
static VKAPI_ATTR VkResult VKAPI_CALL cooperative_matrices(VkPhysicalDevice d, uint32_t *n, struct shape *o)
{
    (void)d;
    *n = COUNT(SHAPES);
    if (o) memcpy(o, SHAPES, sizeof SHAPES);
    return VK_SUCCESS;
}
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL physical_function(VkInstance instance, const char *name)
{
    const int ours = !strcmp(name, "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR");
    (void)instance;
    return ours && getenv("VKOPS_ADDED") ? (PFN_vkVoidFunction)cooperative_matrices : 0;
}
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL device_function(VkDevice device, const char *name)
{
    const PFN_vkVoidFunction next = table_of(device)->device_function(device, name), own = own_function(name);
    const int is_exported = exports && !strcmp(name, "vkGetSemaphoreFdKHR"); /* the driver has none */
    return own && (next || is_exported) ? own : next;
}
static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL instance_function(VkInstance instance, const char *name)
{
    PFN_vkVoidFunction own = own_function(name);
    if (!own) own = physical_function(instance, name); /* loaders that know the function ask here */
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
    layer->pfnGetPhysicalDeviceProcAddr = physical_function;
    return VK_SUCCESS;
}
