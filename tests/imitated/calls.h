/* The functions of Vulkan that the layer replaces, and those of the next layer. */
#pragma once

#include "objects.h"

#include <vulkan/vk_layer.h>

typedef unsigned long long LL;

/* Functions that make objects of a name: what is refused with the minimum limits, and what is recorded. */
#define CREATED(X) \
    X(Buffer, 0, " bytes=%llu usage=0x%x flags=0x%x", (LL)i->size, i->usage, i->flags) \
    X(BufferView, 0, " format=%d bytes=%llu", i->format, (LL)i->range) \
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
      " type=%d offset=%llu", type_of(m), (LL)at) \
    X(BindImageMemory, 0, (VkDevice d, VkImage b, VkDeviceMemory m, VkDeviceSize at), (d, b, m, at), \
      " type=%d offset=%llu", type_of(m), (LL)at) \
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
    X(DeviceWaitIdle, 1, (VkDevice d), (d), "")

/* Functions that record commands. */
#define COMMANDS(X) \
    X(CmdDispatch, (VkCommandBuffer d, uint32_t x, uint32_t y, uint32_t z), (d, x, y, z), \
      " groups=%u,%u,%u", x, y, z) \
    X(CmdDispatchIndirect, (VkCommandBuffer d, VkBuffer b, VkDeviceSize at), (d, b, at), "") \
    X(CmdFillBuffer, (VkCommandBuffer d, VkBuffer b, VkDeviceSize at, VkDeviceSize size, uint32_t word), \
      (d, b, at, size, word), " bytes=%llu", (LL)size) \
    X(CmdUpdateBuffer, (VkCommandBuffer d, VkBuffer b, VkDeviceSize at, VkDeviceSize size, const void *p), \
      (d, b, at, size, p), " bytes=%llu", (LL)size) \
    X(CmdCopyBuffer, (VkCommandBuffer d, VkBuffer s, VkBuffer t, uint32_t n, const VkBufferCopy *r), \
      (d, s, t, n, r), " regions=%u bytes=%llu", n, (LL)r->size) \
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
    X(CreateShaderModule) X(CreateComputePipelines) X(CreatePipelineCache) X(GetPipelineCacheData) \
    X(MergePipelineCaches) X(DestroyPipelineCache) \
    X(DestroyShaderModule) X(DestroyFence) X(GetSemaphoreFdKHR) X(GetPhysicalDeviceExternalSemaphoreProperties) X(GetDeviceQueue) X(QueueSubmit) X(QueueWaitIdle) X(WaitForFences) X(GetFenceStatus) \
    X(SetDebugUtilsObjectNameEXT)

/* Of an instance or a device, which handles begin with the same pointer as. */
static struct table {
    struct table *next;
    void *key;
    VkPhysicalDevice physical;
    VkDevice device;
    uint32_t real_type; /* the memory type of the driver that all memory has */
    uint32_t allocations;
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
/* Whether a function is one of instances, which validation layers do not want to be asked of devices. */
static int of_instance(const char *name)
{
    return strstr(name, "PhysicalDevice") || strstr(name, "Instance") || !strcmp(name, "CreateDevice") ||
           !strcmp(name, "EnumerateDeviceExtensionProperties");
}
static struct table *add_table(void *handle, PFN_vkVoidFunction (*function)(void *, const char *), int is_device)
{
    struct table *made = calloc(1, sizeof *made);
    made->key = *(void **)handle;
#define LOAD(name, ...) \
    if (!is_device || !of_instance(#name)) made->name = (PFN_vk##name)function(handle, "vk" #name);
#define LOAD_CREATED(name, ...) made->Create##name = (PFN_vkCreate##name)function(handle, "vkCreate" #name);
    FALLIBLE(LOAD) COMMANDS(LOAD) OTHERS(LOAD) CREATED(LOAD_CREATED)
    lock(), made->next = tables, tables = made, unlock();
    return made;
}
static struct table remove_table(void *handle) /* a copy of it */
{
    lock();
    struct table **at = &tables;
    while ((*at)->key != *(void **)handle) at = &(*at)->next;
    struct table *found = *at, copy = *found;
    *at = found->next;
    unlock();
    free(found);
    return copy;
}

/* -- functions that only count, fail or record --------------------------------------------------- */

#define FUNCTION(type, name) static VKAPI_ATTR type VKAPI_CALL layer_##name
#define FIRST(first, ...) first
#define NEXT(handle, name, ...) table_of(handle)->name(handle, __VA_ARGS__)
#define END_IF_IT_FAILS(handle, name, can_report_loss, ...) \
    VkResult result; \
    if (ends("vk" name, can_report_loss, &result, __VA_ARGS__)) return drained(handle, result)

/* What is lost here still runs in the driver, and uses memory that is freed next. */
static VkResult drained(void *handle, VkResult result)
{
    const struct table *table = handle && result == VK_ERROR_DEVICE_LOST ? table_of(handle) : 0;
    if (table && table->device) table->DeviceWaitIdle(table->device);
    return result;
}
static int type_of(VkDeviceMemory memory) { return (int)object(MEMORY, KEY(memory), 0)->type; }

#define DEFINE_FALLIBLE(name, can_report_loss, parameters, arguments, ...) \
    FUNCTION(VkResult, name) parameters \
    { \
        END_IF_IT_FAILS(d, #name, can_report_loss, __VA_ARGS__); \
        return table_of(FIRST arguments)->name arguments; \
    }
#define DEFINE_COMMAND(name, parameters, arguments, ...) \
    FUNCTION(void, name) parameters \
    { \
        note_command("vk" #name, __VA_ARGS__); \
        table_of(FIRST arguments)->name arguments; \
    }
#define DEFINE_CREATED(name, refused, ...) \
    FUNCTION(VkResult, Create##name)(VkDevice d, const Vk##name##CreateInfo *i, \
                                     const VkAllocationCallbacks *a, Vk##name *o) \
    { \
        END_IF_IT_FAILS(d, "Create" #name, 0, __VA_ARGS__); \
        if (minimum && (refused)) return misuse("Create" #name, "more than the device allows"); \
        Vk##name##CreateInfo changed = *i; \
        _Generic(changed, VkCommandPoolCreateInfo: change_pool, VkBufferCreateInfo: change_buffer, \
                 VkSemaphoreCreateInfo: change_semaphore, default: change_nothing)(&changed); \
        return NEXT(d, Create##name, &changed, a, o); \
    }
/* The driver has one family of queues. */
static void change_nothing(void *info) { (void)info; }
static void change_pool(void *info)
{
    if (has_transfers()) ((VkCommandPoolCreateInfo *)info)->queueFamilyIndex = 0;
}
static void change_buffer(void *info)
{
    if (has_transfers()) ((VkBufferCreateInfo *)info)->sharingMode = VK_SHARING_MODE_EXCLUSIVE;
}
/* The driver knows nothing of what the layer exports. */
static void change_semaphore(void *info)
{
    for (VkBaseOutStructure *each = info; exports && each && each->pNext; each = each->pNext)
        if (each->pNext->sType == VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO) each->pNext = each->pNext->pNext;
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
