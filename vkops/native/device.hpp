// A Vulkan device with the optional features and extensions that vkops uses.
#pragma once

#include "features.hpp"

constexpr auto SHADER = vk::PipelineStageFlagBits::eComputeShader;
constexpr auto TRANSFER = vk::PipelineStageFlagBits::eTransfer;
constexpr auto HOST = vk::PipelineStageFlagBits::eHost;

constexpr auto SHARED_HANDLE = vk::ExternalMemoryHandleTypeFlagBits::eOpaqueFd;
constexpr auto SEMAPHORE_HANDLE = vk::ExternalSemaphoreHandleTypeFlagBits::eOpaqueFd;

// Newer headers of Vulkan have the loader of functions in a namespace of its own.
namespace vk { namespace detail {} using namespace detail; }
using Functions = vk::DispatchLoaderDynamic;

class Queue;

// A Vulkan device and its queue. Kompute's manager on it makes the tensors of Kompute's own operations.
class Device
{
  public:
    std::shared_ptr<Adapter> adapter;
    std::shared_ptr<vk::Device> device;
    std::shared_ptr<kp::Manager> manager;
    vk::Queue handle;
    std::shared_ptr<vk::PipelineCache> pipelines;
    std::uint32_t family = 0;
    std::vector<std::uint32_t> families;  // that use buffers: its own, and one for transfers if it has that
    vk::Queue transfer_handle;
    std::uint64_t import_alignment = 0;  // bytes; 0: host memory cannot be imported
    bool shares_memory = false;          // with other processes and drivers, by file descriptors
    bool shares_semaphores = false;      // timeline semaphores, in the same way
    double timestamp_period = 0;         // nanoseconds; 0: the queue has no timestamps
    std::uint64_t timestamp_mask = 0;    // the bits of a timestamp that are valid
    vk::BufferUsageFlags usage;          // of every buffer
    Functions functions;                 // those that Vulkan's library does not export
    const bool validated;                // under the validation layer
    bool shows_names = false;            // a tool shows the names of objects and of operations
    const Features features;
    std::shared_ptr<Queue> queue;  // the last member: it is destroyed first

    // `validated_` is described at Features; `transfers`: whether to open a queue for transfers.
    Device(std::shared_ptr<Adapter> adapter_, std::uint32_t validated_, std::uint32_t max_allocations,
           const std::string& cached, bool transfers)
      : adapter(adapter_), validated(validated_), features(*adapter_, validated_),
        max_allocations_(max_allocations)
    {
        const auto& physical = *adapter->physical;
        std::vector<const char*> extensions = features.extensions();
        const auto enable = [&](const char* name) {
            if (adapter->has(name)) extensions.push_back(name);
            return adapter->has(name);
        };
        enable(VK_KHR_SHADER_NON_SEMANTIC_INFO_EXTENSION_NAME);  // debugPrintfEXT
        if (adapter->properties().apiVersion >= VK_API_VERSION_1_1 &&
            enable(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME))
            import_alignment =
              adapter->properties<vk::PhysicalDeviceExternalMemoryHostPropertiesEXT>()
                .minImportedHostPointerAlignment;
        shares_memory = can_share() && enable(VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
        shares_semaphores = shares_memory && can_share_semaphores() &&
                            enable(VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME);

        is_calibrated_ = has_clock() && enable(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME);
        const auto chosen = adapter->compute_family();
        if (!chosen.second.queueCount)
            throw Failure("the adapter has no queue for compute shaders");
        family = chosen.first;
        families = { family };
        const auto transfer = transfers ? adapter->transfer_family() : std::nullopt;
        if (transfer) families.push_back(*transfer);
        const bool uses_timelines = transfer || shares_semaphores;
        if (uses_timelines && adapter->properties().apiVersion < VK_API_VERSION_1_2)
            enable(VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME);
        const float priority = 1;
        std::vector<vk::DeviceQueueCreateInfo> queues;
        for (const auto each : families) queues.push_back({ {}, each, 1, &priority });
        vk::DeviceCreateInfo info({}, queues, {}, extensions);
        vk::PhysicalDeviceTimelineSemaphoreFeatures timeline(VK_TRUE);
        timeline.pNext = const_cast<void*>(features.chain());
        info.pNext = uses_timelines ? &timeline : features.chain();
        device = owned(physical.createDevice(info), adapter->instance);
        // Only the functions that are used are loaded: to load all takes a millisecond.
#define LOAD(name) functions.name = reinterpret_cast<PFN_##name>(device->getProcAddr(#name));
        LOAD(vkGetCalibratedTimestampsEXT) LOAD(vkGetMemoryHostPointerPropertiesEXT)
        LOAD(vkGetMemoryFdKHR) LOAD(vkGetSemaphoreFdKHR) LOAD(vkGetBufferDeviceAddress) LOAD(vkGetBufferDeviceAddressKHR)
        LOAD(vkSetDebugUtilsObjectNameEXT)
        LOAD(vkCmdBeginDebugUtilsLabelEXT) LOAD(vkCmdEndDebugUtilsLabelEXT)
#undef LOAD
        shows_names = functions.vkSetDebugUtilsObjectNameEXT && (validated || has_tool());
        if (!functions.vkGetBufferDeviceAddress)
            functions.vkGetBufferDeviceAddress = functions.vkGetBufferDeviceAddressKHR;
        handle = device->getQueue(family, 0);
        name(handle, "vkops");
        if (transfer) name(transfer_handle = device->getQueue(*transfer, 0), "vkops' transfers");
        pipelines = pipeline_cache(cached);
        manager = std::make_shared<kp::Manager>(adapter->instance, adapter->physical, device);

        using Usage = vk::BufferUsageFlagBits;
        usage = Usage::eTransferSrc | Usage::eTransferDst | Usage::eStorageBuffer |
                Usage::eUniformBuffer | Usage::eIndirectBuffer | Usage::eUniformTexelBuffer |
                Usage::eStorageTexelBuffer;
        if (features.has_addresses()) usage |= Usage::eShaderDeviceAddress;
        if (const auto bits = chosen.second.timestampValidBits) {
            timestamp_period = adapter->properties().limits.timestampPeriod;
            timestamp_mask = ~std::uint64_t(0) >> (64 - bits);
        }
    }

    // The parameters of a buffer. It is shared by both queues (VK_SHARING_MODE_CONCURRENT), because a
    // transfer of ownership needs a submission to each queue. For buffers, sharing costs the known drivers
    // nothing.
    vk::BufferCreateInfo buffer_info(vk::DeviceSize size) const
    {
        vk::BufferCreateInfo info({}, size, usage);
        if (families.size() > 1) info.setSharingMode(vk::SharingMode::eConcurrent).setQueueFamilyIndices(families);
        return info;
    }

    // Name an object for tools that show it.
    template <class Handle>
    void name(Handle object, const std::string& text) const
    {
        if (!shows_names) return;
        const auto number = (std::uint64_t)static_cast<typename Handle::NativeType>(object);
        (void)device->setDebugUtilsObjectNameEXT({ Handle::objectType, number, text.c_str() }, functions);
    }

    // The device's ticks and the nanoseconds of `now` at the same time; empty if the device cannot read both.
    std::optional<std::pair<std::uint64_t, std::uint64_t>> calibrated() const
    {
        if (!is_calibrated_ || !timestamp_mask) return {};
        const vk::CalibratedTimestampInfoEXT infos[] = { vk::TimeDomainEXT::eDevice, CLOCK };
        std::uint64_t times[2], deviation;
        if (device->getCalibratedTimestampsEXT(2, infos, times, &deviation, functions) !=
            vk::Result::eSuccess)
            return {};
        return std::pair(times[0] & timestamp_mask, times[1]);
    }

    // Allocate memory. Vulkan requires applications to stay below the device's maximum number of
    // allocations, and drivers need not check it.
    std::shared_ptr<vk::DeviceMemory> allocate(const vk::MemoryAllocateInfo& info) const
    {
        if (*allocations_ >= max_allocations_)
            throw vk::TooManyObjectsError(
              "the device allows " + std::to_string(max_allocations_) + " allocations of memory");
        const auto memory = owned(device->allocateMemory(info), device);
        ++*allocations_;
        return { memory.get(), [memory, count = allocations_](vk::DeviceMemory*) { --*count; } };
    }

    // The content of the pipeline cache, merged with the content of another cache.
    std::string merged_pipelines(const std::string& other) const
    {
        const auto merged = pipeline_cache(other);
        device->mergePipelineCaches(*merged, *pipelines);
        const auto content = device->getPipelineCacheData(*merged);
        return { content.begin(), content.end() };
    }

  private:
    static constexpr auto CLOCK = vk::TimeDomainEXT::eClockMonotonic;  // of std::chrono::steady_clock
    bool is_calibrated_ = false;

    // Whether the adapter exports and imports memory of buffers.
    bool can_share() const
    {
        if (adapter->properties().apiVersion < VK_API_VERSION_1_1) return false;
        using Feature = vk::ExternalMemoryFeatureFlagBits;
        const auto needs = Feature::eExportable | Feature::eImportable;
        const auto properties = adapter->physical->getExternalBufferProperties(
          { {}, vk::BufferUsageFlagBits::eStorageBuffer, SHARED_HANDLE });
        return (properties.externalMemoryProperties.externalMemoryFeatures & needs) == needs;
    }
    // Whether the adapter exports timeline semaphores.
    bool can_share_semaphores() const
    {
        if (!adapter->has_timelines()) return false;
        const vk::SemaphoreTypeCreateInfo timeline(vk::SemaphoreType::eTimeline, 0);
        vk::PhysicalDeviceExternalSemaphoreInfo asked(SEMAPHORE_HANDLE);
        asked.pNext = &timeline;
        const auto properties = adapter->physical->getExternalSemaphoreProperties(asked);
        return bool(properties.externalSemaphoreFeatures & vk::ExternalSemaphoreFeatureFlagBits::eExportable);
    }
    // Whether a tool that shows names, such as RenderDoc, is active.
    bool has_tool() const
    {
        const bool is_core = adapter->properties().apiVersion >= VK_API_VERSION_1_3;
        if (!is_core && !adapter->has(VK_EXT_TOOLING_INFO_EXTENSION_NAME)) return false;
        const auto list = reinterpret_cast<PFN_vkGetPhysicalDeviceToolProperties>(
          adapter->instance->getProcAddr(is_core ? "vkGetPhysicalDeviceToolProperties"
                                                 : "vkGetPhysicalDeviceToolPropertiesEXT"));
        std::uint32_t count = 0;
        if (!list || list(*adapter->physical, &count, nullptr) < 0) return false;
        std::vector<vk::PhysicalDeviceToolProperties> tools(count);
        if (list(*adapter->physical, &count,
                 reinterpret_cast<VkPhysicalDeviceToolProperties*>(tools.data())) < 0)
            return false;
        return std::any_of(tools.begin(), tools.end(), [](const auto& each) {
            return bool(each.purposes & vk::ToolPurposeFlagBits::eDebugMarkersEXT);
        });
    }
    // Whether the adapter can read its own clock and CLOCK at the same time.
    bool has_clock()
    {
        if (!adapter->has(VK_EXT_CALIBRATED_TIMESTAMPS_EXTENSION_NAME)) return false;
        constexpr auto name = "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT";
        functions.vkGetPhysicalDeviceCalibrateableTimeDomainsEXT =
          reinterpret_cast<PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsEXT>(
            adapter->instance->getProcAddr(name));
        if (!functions.vkGetPhysicalDeviceCalibrateableTimeDomainsEXT) return false;  // an old loader
        const auto domains = adapter->physical->getCalibrateableTimeDomainsEXT(functions);
        const auto has = [&](vk::TimeDomainEXT each) {
            return std::find(domains.begin(), domains.end(), each) != domains.end();
        };
        return has(vk::TimeDomainEXT::eDevice) && has(CLOCK);
    }

    const std::uint32_t max_allocations_;
    const std::shared_ptr<std::atomic<std::uint32_t>> allocations_ =
      std::make_shared<std::atomic<std::uint32_t>>(0);

    // A pipeline cache with this content, or an empty one if the driver rejects the content.
    std::shared_ptr<vk::PipelineCache> pipeline_cache(const std::string& content) const
    {
        try {
            return owned(device->createPipelineCache({ {}, content.size(), content.data() }), device);
        } catch (const vk::SystemError&) {
            if (content.empty()) throw;
            return pipeline_cache("");
        }
    }
};
