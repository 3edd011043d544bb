// The Vulkan instance of this process, and what its adapters report.
#pragma once

#include <atomic>
#include <kompute/Kompute.hpp>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <unistd.h>

namespace py = pybind11;

// What a function returns that runs without Python's lock. Not py::gil_scoped_release: while Python
// exits, taking the lock again ends this thread, which a destructor does not allow.
template <class Function>
auto without_lock(const Function& function)
{
    std::optional<decltype(function())> result;
    std::exception_ptr error;
    const auto state = PyEval_SaveThread();
    try {
        result = function();
    } catch (...) {
        error = std::current_exception();
    }
    PyEval_RestoreThread(state);
    if (error) std::rethrow_exception(error);
    return *std::move(result);
}

// What the driver refuses, or does not have. Python sees it as an Error of this module; each vk::Error, too.
struct Failure : std::runtime_error
{
    using runtime_error::runtime_error;
};
// Nothing is known of the work of a device any more.
struct Lost : Failure
{
    using Failure::Failure;
};

// The process that made a handle of Vulkan. A process forked off it has none of the driver's threads,
// and must not destroy the handle.
class Process
{
  public:
    bool forked() const { return getpid() != id_; }

  private:
    pid_t id_ = getpid();
};

// A handle that is destroyed with its last owner; `parent` is kept until then.
template <class Handle, class Parent = void>
std::shared_ptr<Handle> owned(Handle made, std::shared_ptr<Parent> parent = {})
{
    return { new Handle(made), [parent, process = Process()](Handle* handle) {
                const std::unique_ptr<Handle> ended(handle);
                if (process.forked()) return;
                if constexpr (!std::is_same_v<Parent, vk::Device>)
                    handle->destroy();
                else if constexpr (std::is_same_v<Handle, vk::DeviceMemory>)
                    parent->free(*handle);
                else
                    parent->destroy(*handle);
            } };
}

// Something that has handles of a device, which are destroyed with it.
class DeviceObject
{
  public:
    const std::uint64_t serial = ++objects;  // which no other object ever has, unlike its handles

  protected:
    std::shared_ptr<vk::Device> device_;

    explicit DeviceObject(std::shared_ptr<vk::Device> device) : device_(device) {}
    template <class Handle>
    Handle keep(std::shared_ptr<Handle> made)
    {
        kept_.push_back(made);
        return *made;
    }
    template <class Handle>
    Handle keep(Handle made)
    {
        return keep(owned(made, device_));
    }

  private:
    static inline std::atomic<std::uint64_t> objects = 0;
    std::vector<std::shared_ptr<void>> kept_;
};

// A Vulkan adapter, and its properties.
class Adapter
{
  public:
    std::shared_ptr<vk::Instance> instance;
    std::shared_ptr<vk::PhysicalDevice> physical;
    vk::PhysicalDeviceMemoryProperties memory;

    Adapter(std::shared_ptr<vk::Instance> instance_, vk::PhysicalDevice handle)
      : instance(instance_), physical(std::make_shared<vk::PhysicalDevice>(handle))
    {
        for (const auto& extension : physical->enumerateDeviceExtensionProperties())
            extensions_.insert(extension.extensionName.data());
        if (!has(VK_KHR_DRIVER_PROPERTIES_EXTENSION_NAME))
            chain_.unlink<vk::PhysicalDeviceDriverProperties>();
        if (!has(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME))
            chain_.unlink<vk::PhysicalDeviceExternalMemoryHostPropertiesEXT>();
        physical->getProperties2(&chain_.get<vk::PhysicalDeviceProperties2>());
        memory = physical->getMemoryProperties();
    }

    bool has(const char* extension) const { return extensions_.count(extension); }

    // The number of the first queue family with compute shaders, and its properties, which are
    // empty if there is none. Nothing else is asked of it.
    std::pair<std::uint32_t, vk::QueueFamilyProperties> compute_family() const
    {
        const auto families = physical->getQueueFamilyProperties();
        for (std::uint32_t i = 0; i < families.size(); ++i)
            if (families[i].queueFlags & vk::QueueFlagBits::eCompute) return { i, families[i] };
        return {};
    }

    // A structure of properties; zeros if the adapter does not have it.
    template <class Structure>
    const Structure& properties() const
    {
        return chain_.get<Structure>();
    }
    const vk::PhysicalDeviceProperties& properties() const
    {
        return properties<vk::PhysicalDeviceProperties2>().properties;
    }

    // The types of memory for a use, the best first; buffers of every device have one of the last.
    std::vector<std::uint32_t> memory_types(const std::string& use) const
    {
        using Flag = vk::MemoryPropertyFlagBits;
        using Flags = vk::MemoryPropertyFlags;
        constexpr auto LOCAL = Flag::eDeviceLocal, SEEN = Flag::eHostVisible;
        constexpr auto COHERENT = Flag::eHostCoherent, CACHED = Flag::eHostCached;
        struct Wish { Flags has, lacks; };
        static const std::map<std::string, std::vector<Wish>> wishes{
            { "device", { { LOCAL, SEEN }, { LOCAL, {} } } },
            { "mapped", { { LOCAL | SEEN | COHERENT | CACHED, {} }, { LOCAL | SEEN | CACHED, {} },
                          { LOCAL | SEEN | COHERENT, {} }, { SEEN | COHERENT, {} } } },
            { "upload", { { SEEN | COHERENT, LOCAL | CACHED }, { SEEN | COHERENT, {} } } },
            { "readback", { { SEEN | COHERENT | CACHED, {} }, { SEEN | CACHED, {} },
                            { SEEN | COHERENT, {} } } },
            { "table", { { LOCAL | SEEN | COHERENT, {} }, { SEEN | COHERENT, {} } } },
        };
        // Types beside these need a feature of their own.
        const Flags usual = LOCAL | SEEN | COHERENT | CACHED;
        std::vector<std::uint32_t> found;
        for (const auto& [has, lacks] : wishes.at(use))
            for (std::uint32_t type = 0; type < memory.memoryTypeCount; ++type) {
                const auto flags = memory.memoryTypes[type].propertyFlags;
                if ((flags & has) == has && !(flags & lacks) && !(flags & ~usual) &&
                    std::find(found.begin(), found.end(), type) == found.end())
                    found.push_back(type);
            }
        return found;
    }

    // VkCooperativeMatrixPropertiesKHR, which is newer than Vulkan's headers of 2023.
    struct CooperativeMatrix
    {
        int type = 1000506001;
        void* next = nullptr;
        std::uint32_t m = 0, n = 0, k = 0;
        std::array<std::int32_t, 4> types = {};  // of the matrices A, B, C and of the result
        vk::Bool32 is_saturating = false;
        std::int32_t scope = 0;
    };
    std::vector<CooperativeMatrix> cooperative_matrices() const
    {
        using List = VkResult(VKAPI_PTR*)(VkPhysicalDevice, std::uint32_t*, CooperativeMatrix*);
        const auto list = reinterpret_cast<List>(
          instance->getProcAddr("vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR"));
        std::uint32_t count = 0;
        if (!has("VK_KHR_cooperative_matrix") || !list || list(*physical, &count, nullptr)) return {};
        std::vector<CooperativeMatrix> found(count);
        if (list(*physical, &count, found.data()) < 0) return {};
        found.resize(count);
        return found;
    }

  private:
    std::set<std::string> extensions_;
    vk::StructureChain<vk::PhysicalDeviceProperties2, vk::PhysicalDeviceMaintenance3Properties,
      vk::PhysicalDeviceMaintenance4Properties, vk::PhysicalDeviceSubgroupProperties,
      vk::PhysicalDeviceDriverProperties, vk::PhysicalDeviceExternalMemoryHostPropertiesEXT>
      chain_;
};

// An instance with the layers that the environment names at this moment.
class Instance
{
  public:
    std::vector<std::shared_ptr<Adapter>> adapters() const
    {
        std::vector<std::shared_ptr<Adapter>> found;
        for (const auto& physical : handle_->enumeratePhysicalDevices())
            found.push_back(std::make_shared<Adapter>(handle_, physical));
        return found;
    }

  private:
    // Drivers that lack some of Vulkan, such as MoltenVK, are there only for those who ask for them.
    static vk::Instance make()
    {
        const vk::ApplicationInfo application("vkops", 1, "Kompute", 1, VK_API_VERSION_1_3);
        const char* const portability = "VK_KHR_portability_enumeration";
        constexpr auto all = vk::InstanceCreateFlagBits::eEnumeratePortabilityKHR;
        try {
            return vk::createInstance({ all, &application, {}, portability });
        } catch (const vk::ExtensionNotPresentError&) {  // in loaders before 1.3.207
            return vk::createInstance({ {}, &application });
        }
    }
    std::shared_ptr<vk::Instance> handle_ = owned(make());
};
