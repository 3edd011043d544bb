// The Vulkan instance of this process, and what its adapters report.
#pragma once

#include <kompute/Kompute.hpp>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <set>
#include <unistd.h>

namespace py = pybind11;

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
  protected:
    std::shared_ptr<vk::Device> device_;

    explicit DeviceObject(std::shared_ptr<vk::Device> device) : device_(device) {}
    template <class Handle>
    Handle keep(Handle made)
    {
        kept_.push_back(owned(made, device_));
        return made;
    }

  private:
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

  private:
    std::set<std::string> extensions_;
    vk::StructureChain<vk::PhysicalDeviceProperties2, vk::PhysicalDeviceMaintenance3Properties,
      vk::PhysicalDeviceSubgroupProperties, vk::PhysicalDeviceDriverProperties,
      vk::PhysicalDeviceExternalMemoryHostPropertiesEXT>
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
    static vk::Instance make()
    {
        const vk::ApplicationInfo application("vkops", 1, "Kompute", 1, VK_API_VERSION_1_3);
        return vk::createInstance({ {}, &application });
    }
    std::shared_ptr<vk::Instance> handle_ = owned(make());
};
