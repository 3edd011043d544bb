// The Vulkan instance of this process, and what its adapters report.
#pragma once

#include <atomic>
#include <kompute/Kompute.hpp>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <algorithm>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <unistd.h>
#include <variant>

namespace py = pybind11;

// Run a function without Python's global lock, and return its result. py::gil_scoped_release cannot be
// used: while Python exits, taking the lock again ends this thread, which a destructor does not allow.
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

// A request that the driver rejects or does not support. In Python it is an Error of this module, as each
// vk::Error is.
struct Failure : std::runtime_error
{
    using runtime_error::runtime_error;
};
// The device was lost: the status of its work is unknown.
struct Lost : Failure
{
    using Failure::Failure;
};

// The process that created a handle of Vulkan. A process that was forked from it has none of the driver's
// threads, so it must not destroy the handle.
class Process
{
  public:
    bool forked() const { return getpid() != id_; }

  private:
    pid_t id_ = getpid();
};

// A handle that is destroyed with its last owner; `parent` is kept until then.
template <class Handle, class Parent = void>
std::shared_ptr<Handle> owned(Handle raw, std::shared_ptr<Parent> parent = {})
{
    return { new Handle(raw), [parent, process = Process()](Handle* handle) {
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

// The base class of objects that own handles of a device; their destructor destroys the handles.
class DeviceObject
{
  public:
    const std::uint64_t serial = ++objects;  // which no other object ever has, unlike its handles

  protected:
    std::shared_ptr<vk::Device> device_;

    explicit DeviceObject(std::shared_ptr<vk::Device> device) : device_(device) {}
    ~DeviceObject()
    {
        while (!kept_.empty()) kept_.pop_back();  // the last first: later ones may use earlier ones
    }
    template <class Handle>
    Handle keep(std::shared_ptr<Handle> handle)
    {
        kept_.push_back(handle);
        return *handle;
    }
    template <class Handle>
    Handle keep(Handle handle)
    {
        return keep(owned(handle, device_));
    }

  private:
    static inline std::atomic<std::uint64_t> objects = 0;
    std::vector<std::shared_ptr<void>> kept_;
};

// The messages of layers in order: severity, id and text. Layers add messages from any thread.
class Messages
{
  public:
    using Message = std::tuple<std::uint32_t, std::string, std::string>;
    std::vector<Message> take()
    {
        const std::lock_guard lock(mutex_);
        return std::exchange(messages_, {});
    }
    VkDebugUtilsMessengerCreateInfoEXT info(const void* next)
    {
        return { VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT, next, 0,
                 VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT |
                   VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                   VK_DEBUG_UTILS_MESSAGE_SEVERITY_INFO_BIT_EXT,
                 VK_DEBUG_UTILS_MESSAGE_TYPE_GENERAL_BIT_EXT | VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
                 &add, this };
    }

  private:
    std::mutex mutex_;
    std::vector<Message> messages_;

    static VKAPI_ATTR VkBool32 VKAPI_CALL add(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                              VkDebugUtilsMessageTypeFlagsEXT,
                                              const VkDebugUtilsMessengerCallbackDataEXT* data, void* self)
    {
        auto& messages = *static_cast<Messages*>(self);
        const std::lock_guard lock(messages.mutex_);
        messages.messages_.emplace_back(severity, data->pMessageIdName ? data->pMessageIdName : "", data->pMessage);
        return VK_FALSE;
    }
};

// A Vulkan adapter, and its properties.
class Adapter
{
  public:
    std::shared_ptr<vk::Instance> instance;
    std::shared_ptr<vk::PhysicalDevice> physical;
    vk::PhysicalDeviceMemoryProperties memory;
    std::shared_ptr<Messages> messages;  // of its instance; null if the instance keeps none

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

    // The number and the properties of the first queue family that supports compute shaders. The
    // properties are empty if there is none. No other capability is required.
    std::pair<std::uint32_t, vk::QueueFamilyProperties> compute_family() const
    {
        const auto families = physical->getQueueFamilyProperties();
        for (std::uint32_t i = 0; i < families.size(); ++i)
            if (families[i].queueFlags & vk::QueueFlagBits::eCompute) return { i, families[i] };
        return {};
    }

    bool has_timelines() const
    {
        const bool is_core = properties().apiVersion >= VK_API_VERSION_1_2;
        if (!is_core && !has(VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME)) return false;
        const auto features = physical->getFeatures2<vk::PhysicalDeviceFeatures2,
          vk::PhysicalDeviceTimelineSemaphoreFeatures>();
        return features.get<vk::PhysicalDeviceTimelineSemaphoreFeatures>().timelineSemaphore;
    }

    // The number of a queue family that only transfers, if the adapter is a discrete GPU that has one and
    // timeline semaphores.
    std::optional<std::uint32_t> transfer_family() const
    {
        using Flag = vk::QueueFlagBits;
        if (properties().deviceType != vk::PhysicalDeviceType::eDiscreteGpu || !has_timelines()) return {};
        const auto families = physical->getQueueFamilyProperties();
        for (std::uint32_t i = 0; i < families.size(); ++i) {
            const auto flags = families[i].queueFlags;
            if (flags & Flag::eTransfer && !(flags & (Flag::eCompute | Flag::eGraphics))) return i;
        }
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

    // The types of memory for a use, the best first. On every device, buffers can have a type
    // with the last flags for a use.
    std::vector<std::uint32_t> memory_types(const std::string& use) const
    {
        using Flag = vk::MemoryPropertyFlagBits;
        using Flags = vk::MemoryPropertyFlags;
        constexpr auto LOCAL = Flag::eDeviceLocal, SEEN = Flag::eHostVisible;
        constexpr auto COHERENT = Flag::eHostCoherent, CACHED = Flag::eHostCached;
        struct Choice { Flags has, lacks; };
        static const std::map<std::string, std::vector<Choice>> choices{
            { "device", { { LOCAL, SEEN }, { LOCAL, {} } } },
            { "mapped", { { LOCAL | SEEN | COHERENT | CACHED, {} }, { LOCAL | SEEN | CACHED, {} },
                          { LOCAL | SEEN | COHERENT, {} }, { SEEN | COHERENT, {} } } },
            { "upload", { { SEEN | COHERENT, LOCAL | CACHED }, { SEEN | COHERENT, {} } } },
            { "readback", { { SEEN | COHERENT | CACHED, {} }, { SEEN | CACHED, {} },
                            { SEEN | COHERENT, {} } } },
            { "table", { { LOCAL | SEEN | COHERENT, {} }, { SEEN | COHERENT, {} } } },
        };
        // A type with other flags, such as protected memory, may be used only if a feature is enabled.
        const Flags usual = LOCAL | SEEN | COHERENT | CACHED;
        std::vector<std::uint32_t> types;
        for (const auto& [has, lacks] : choices.at(use))
            for (std::uint32_t type = 0; type < memory.memoryTypeCount; ++type) {
                const auto flags = memory.memoryTypes[type].propertyFlags;
                if ((flags & has) == has && !(flags & lacks) && !(flags & ~usual) &&
                    std::find(types.begin(), types.end(), type) == types.end())
                    types.push_back(type);
            }
        return types;
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
        std::vector<CooperativeMatrix> matrices(count);
        if (list(*physical, &count, matrices.data()) < 0) return {};
        matrices.resize(count);
        return matrices;
    }

  private:
    std::set<std::string> extensions_;
    vk::StructureChain<vk::PhysicalDeviceProperties2, vk::PhysicalDeviceMaintenance3Properties,
      vk::PhysicalDeviceMaintenance4Properties, vk::PhysicalDeviceSubgroupProperties,
      vk::PhysicalDeviceDriverProperties, vk::PhysicalDeviceIDProperties,
      vk::PhysicalDeviceExternalMemoryHostPropertiesEXT>
      chain_;
};

// The settings of a layer by their names: booleans, numbers and lists of names.
using Setting = std::variant<bool, std::uint32_t, std::vector<std::string>>;
using Settings = std::map<std::string, Setting>;

// Settings of a layer that let shaders print: the structures that an instance is created with, and the
// extension that defines them. Vulkan's headers of 2023 lack these structures.
class LayerSettings
{
  public:
    const char* extension = "VK_EXT_layer_settings";

    LayerSettings(const char* layer, const Settings& settings, bool is_known)
    {
        if (!is_known) {  // an older layer, which reads the rest from a file
            extension = VK_EXT_VALIDATION_FEATURES_EXTENSION_NAME;
            return;
        }
        constexpr int BOOL32 = 0, UINT32 = 3, STRING = 7;
        for (const auto& [name, value] : settings)
            if (const auto flag = std::get_if<bool>(&value))
                add({ layer, name.c_str(), BOOL32, 1, &flags_.emplace_back(*flag) });
            else if (const auto number = std::get_if<std::uint32_t>(&value))
                add({ layer, name.c_str(), UINT32, 1, number });
            else {
                auto& words = words_.emplace_back();
                for (const auto& each : std::get<2>(value)) words.push_back(each.c_str());
                add({ layer, name.c_str(), STRING, std::uint32_t(words.size()), words.data() });
            }
    }
    LayerSettings(const LayerSettings&) = delete;  // its structures point to one another
    const void* chain() const
    {
        return info_.count ? static_cast<const void*>(&info_) : &features_;
    }

  private:
    struct Each
    {
        const char *layer, *name;
        int type;
        std::uint32_t count;
        const void* values;
    };
    struct
    {
        int type = 1000496000;
        const void* next = nullptr;
        std::uint32_t count = 0;
        const Each* settings = nullptr;
    } info_;
    std::vector<Each> settings_;
    std::list<vk::Bool32> flags_;
    std::list<std::vector<const char*>> words_;
    const vk::ValidationFeatureEnableEXT prints_ = vk::ValidationFeatureEnableEXT::eDebugPrintf;
    const vk::ValidationFeaturesEXT features_{ 1, &prints_ };

    void add(const Each& each)
    {
        settings_.push_back(each);
        info_.count = std::uint32_t(settings_.size());
        info_.settings = settings_.data();
    }
};

// Whether Vulkan, or a layer, has an extension for instances.
inline bool has_extension(const std::string& extension, const std::string& layer = {})
{
    const auto all = layer.empty() ? vk::enumerateInstanceExtensionProperties()
                                   : vk::enumerateInstanceExtensionProperties(layer);
    return std::any_of(all.begin(), all.end(),
                       [&](const auto& each) { return extension == each.extensionName.data(); });
}

// An instance with the layers that the environment names at this moment and some more. With settings for
// the first of these, its messages are kept.
class Instance
{
  public:
    Instance(const std::vector<std::string>& layers, const Settings& settings)
    {
        std::vector<const char*> names, extensions;
        for (const auto& each : layers) names.push_back(each.c_str());
        const vk::ApplicationInfo application("vkops", 1, "Kompute", 1, VK_API_VERSION_1_3);
        vk::InstanceCreateInfo info({}, &application, names);
        // The loader lists drivers that support Vulkan in part, such as MoltenVK, only for instances with
        // this extension, which loaders before 1.3.207 do not have.
        if (has_extension("VK_KHR_portability_enumeration")) {
            extensions.push_back("VK_KHR_portability_enumeration");
            info.flags = vk::InstanceCreateFlagBits::eEnumeratePortabilityKHR;
        }
        if (has_extension(VK_EXT_DEBUG_UTILS_EXTENSION_NAME))
            extensions.push_back(VK_EXT_DEBUG_UTILS_EXTENSION_NAME);
        if (settings.empty()) {
            info.setPEnabledExtensionNames(extensions);
            handle_ = owned(vk::createInstance(info));
            return;
        }
        const LayerSettings told(names[0], settings, has_extension("VK_EXT_layer_settings", names[0]));
        extensions.push_back(told.extension);
        info.setPEnabledExtensionNames(extensions);
        messages_ = std::make_shared<Messages>();
        const auto listens = messages_->info(told.chain());
        info.pNext = &listens;
        const auto instance = owned(vk::createInstance(info));
        const auto function = [&](const char* name) { return instance->getProcAddr(name); };
        const auto create =
          reinterpret_cast<PFN_vkCreateDebugUtilsMessengerEXT>(function("vkCreateDebugUtilsMessengerEXT"));
        const auto destroy =
          reinterpret_cast<PFN_vkDestroyDebugUtilsMessengerEXT>(function("vkDestroyDebugUtilsMessengerEXT"));
        const auto later = messages_->info(nullptr);
        VkDebugUtilsMessengerEXT messenger = nullptr;
        create(*instance, &later, nullptr, &messenger);
        handle_ = { instance.get(), [=, messages = messages_, process = Process()](vk::Instance*) {
                       if (!process.forked()) destroy(*instance, messenger, nullptr);
                   } };
    }
    std::vector<std::shared_ptr<Adapter>> adapters() const
    {
        std::vector<std::shared_ptr<Adapter>> adapters;
        for (const auto& physical : handle_->enumeratePhysicalDevices()) {
            adapters.push_back(std::make_shared<Adapter>(handle_, physical));
            adapters.back()->messages = messages_;
        }
        return adapters;
    }

  private:
    std::shared_ptr<Messages> messages_;  // adapters keep them longer than the instance
    std::shared_ptr<vk::Instance> handle_;
};
