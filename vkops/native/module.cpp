// What vkops needs of Vulkan beside Kompute's Python module: copies with regions, barriers, imported
// host memory, submissions that release Python's lock (the GIL), timestamps and device features.
//
// It is built together with Kompute (scripts/kp_wheel.py), whose sources stay as they are, and works
// on the tensors and algorithms of Kompute's own module: its operations derive from kp::OpBase.

#include <kompute/Kompute.hpp>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <unistd.h>

namespace py = pybind11;
py::object kp_trace, kp_debug, kp_info, kp_warning, kp_error;  // Kompute's headers declare them

namespace {

using Address = std::uintptr_t;
using Rows = py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>;

constexpr auto SHADER = vk::PipelineStageFlagBits::eComputeShader;
constexpr auto TRANSFER = vk::PipelineStageFlagBits::eTransfer;
constexpr auto HOST = vk::PipelineStageFlagBits::eHost;
constexpr auto HOST_ALLOCATION = vk::ExternalMemoryHandleTypeFlagBits::eHostAllocationEXT;

// Make all that was written before visible to all that comes after it, the host included.
void record_barrier(const vk::CommandBuffer& commands)
{
    using Access = vk::AccessFlagBits;
    const vk::MemoryBarrier barrier(
      Access::eShaderWrite | Access::eTransferWrite,
      Access::eShaderRead | Access::eShaderWrite | Access::eTransferRead | Access::eTransferWrite |
        Access::eHostRead);
    commands.pipelineBarrier(SHADER | TRANSFER, SHADER | TRANSFER | HOST, {}, barrier, {}, {});
}

// A Vulkan device that vkops opens itself, with optional features and extensions, and Kompute's
// manager on it. Kompute cannot make sequences on such a device; Commands replace them.
class Device
{
  public:
    std::shared_ptr<vk::Device> device;
    std::shared_ptr<kp::Manager> manager;
    vk::Queue queue;
    std::uint32_t family = 0;
    std::uint64_t import_alignment = 0;  // bytes; 0: host memory cannot be imported
    double timestamp_period = 0;         // nanoseconds; 0: the queue has no timestamps
    bool shader_int64 = false;

    Device(std::uint32_t index, std::vector<std::string> wanted)
    {
        const vk::ApplicationInfo application("vkops", 1, "Kompute", 1, VK_API_VERSION_1_1);
        std::shared_ptr<vk::Instance> instance(
          new vk::Instance(vk::createInstance({ {}, &application })), [](vk::Instance* made) {
              made->destroy();
              delete made;
          });
        const auto all = instance->enumeratePhysicalDevices();
        if (index >= all.size())
            throw py::index_error("adapter " + std::to_string(index) + " does not exist");
        auto physical = std::make_shared<vk::PhysicalDevice>(all[index]);
        if (physical->getProperties().apiVersion >= VK_API_VERSION_1_1)
            wanted.push_back(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME);
        std::vector<const char*> extensions;
        for (const auto& present : physical->enumerateDeviceExtensionProperties())
            for (const auto& name : wanted)
                if (name == present.extensionName.data()) extensions.push_back(name.c_str());

        const auto families = physical->getQueueFamilyProperties();
        while (family < families.size() &&
               !(families[family].queueFlags & vk::QueueFlagBits::eCompute))
            ++family;
        if (family == families.size())
            throw std::runtime_error("the adapter has no queue for compute shaders");
        vk::PhysicalDeviceFeatures features;
        features.shaderInt64 = physical->getFeatures().shaderInt64;
        const float priority = 1;
        const vk::DeviceQueueCreateInfo queues({}, family, 1, &priority);
        vk::DeviceCreateInfo info({}, queues, {}, extensions, &features);
        device = { new vk::Device(physical->createDevice(info)), [instance](vk::Device* made) {
                      made->destroy();
                      delete made;
                  } };
        queue = device->getQueue(family, 0);
        manager = std::make_shared<kp::Manager>(instance, physical, device);

        shader_int64 = features.shaderInt64;
        if (families[family].timestampValidBits)
            timestamp_period = physical->getProperties().limits.timestampPeriod;
        for (const char* name : extensions)
            if (name == std::string(VK_EXT_EXTERNAL_MEMORY_HOST_EXTENSION_NAME))
                import_alignment = import_properties(*physical).minImportedHostPointerAlignment;
    }

  private:
    static vk::PhysicalDeviceExternalMemoryHostPropertiesEXT import_properties(
      const vk::PhysicalDevice& physical)
    {
        const auto chain = physical.getProperties2<vk::PhysicalDeviceProperties2,
          vk::PhysicalDeviceExternalMemoryHostPropertiesEXT>();
        return chain.get<vk::PhysicalDeviceExternalMemoryHostPropertiesEXT>();
    }
};

// Memory of the host that the device reads without a copy: the whole pages that hold an array.
class ImportedArray
{
  public:
    vk::Buffer buffer;
    std::uint64_t offset;  // bytes from the start of the first page to the array

    ImportedArray(std::shared_ptr<Device> owner, const py::array& array)
      : device_(owner->device), array_(array), process_(getpid())
    {
        if (!owner->import_alignment) throw std::runtime_error("host memory cannot be imported");
        const auto unit = owner->import_alignment;
        const auto address = reinterpret_cast<Address>(array.data());
        const auto start = address / unit * unit;
        const auto size = (address + array.nbytes() - start + unit - 1) / unit * unit;
        offset = address - start;

        const auto properties = reinterpret_cast<PFN_vkGetMemoryHostPointerPropertiesEXT>(
          device_->getProcAddr("vkGetMemoryHostPointerPropertiesEXT"));
        VkMemoryHostPointerPropertiesEXT fits{};
        fits.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT;
        const auto kind = static_cast<VkExternalMemoryHandleTypeFlagBits>(HOST_ALLOCATION);
        const auto pages = reinterpret_cast<void*>(start);
        if (properties(*device_, kind, pages, &fits) != VK_SUCCESS)
            throw std::runtime_error("the driver does not import this host memory");
        const vk::ExternalMemoryBufferCreateInfo external(HOST_ALLOCATION);
        const vk::BufferCreateInfo info({}, size, vk::BufferUsageFlagBits::eTransferSrc,
          vk::SharingMode::eExclusive, 0, nullptr, &external);
        buffer = device_->createBuffer(info);
        try {
            const auto types =
              device_->getBufferMemoryRequirements(buffer).memoryTypeBits & fits.memoryTypeBits;
            if (!types) throw std::runtime_error("no memory type fits this host memory");
            std::uint32_t type = 0;
            while (!(types >> type & 1)) ++type;
            const vk::ImportMemoryHostPointerInfoEXT pointer(HOST_ALLOCATION, pages);
            memory_ = device_->allocateMemory({ size, type, &pointer });
            device_->bindBufferMemory(buffer, memory_, 0);
        } catch (...) {
            release();
            throw;
        }
    }
    ImportedArray(const ImportedArray&) = delete;
    ImportedArray& operator=(const ImportedArray&) = delete;
    ~ImportedArray()
    {
        if (getpid() == process_) release();
    }

  private:
    std::shared_ptr<vk::Device> device_;
    py::array array_;  // keeps the memory alive
    pid_t process_;
    vk::DeviceMemory memory_;

    void release()
    {
        device_->destroy(buffer);
        device_->free(memory_);
    }
};

// vkCmdCopyBuffer: the rows of `regions` are (source offset, target offset, bytes).
class OpCopyRegions : public kp::OpBase
{
  public:
    OpCopyRegions(std::shared_ptr<kp::Tensor> source, std::shared_ptr<kp::Tensor> target,
                  const Rows& regions)
      : from_(source->constructDescriptorBufferInfo().buffer), source_(source), target_(target)
    {
        take(regions, 0);
    }
    OpCopyRegions(std::shared_ptr<ImportedArray> source, std::shared_ptr<kp::Tensor> target,
                  const Rows& regions)
      : from_(source->buffer), source_(source), target_(target)
    {
        take(regions, source->offset);
    }
    void record(const vk::CommandBuffer& commands) override
    {
        commands.copyBuffer(from_, target_->constructDescriptorBufferInfo().buffer, regions_);
    }
    void preEval(const vk::CommandBuffer&) override {}
    void postEval(const vk::CommandBuffer&) override {}

  private:
    vk::Buffer from_;
    std::shared_ptr<void> source_;  // kept alive
    std::shared_ptr<kp::Tensor> target_;
    std::vector<vk::BufferCopy> regions_;

    void take(const Rows& rows, std::uint64_t offset)
    {
        if (rows.ndim() != 2 || rows.shape(1) != 3 || !rows.shape(0))
            throw py::value_error("regions: must be rows of (source offset, target offset, bytes)");
        static_assert(sizeof(vk::BufferCopy) == 3 * sizeof(std::uint64_t));
        const auto first = reinterpret_cast<const vk::BufferCopy*>(rows.data());
        regions_.assign(first, first + rows.shape(0));
        for (auto& region : regions_) region.srcOffset += offset;
    }
};

// Operations in a command buffer, to be submitted again and again, or recorded anew.
class Commands
{
  public:
    explicit Commands(std::shared_ptr<Device> owner)
      : owner_(owner), device_(owner->device), process_(getpid())
    {
        using Flag = vk::CommandPoolCreateFlagBits;
        pool_ = device_->createCommandPool({ Flag::eResetCommandBuffer, owner->family });
        buffer_ = device_->allocateCommandBuffers({ pool_, vk::CommandBufferLevel::ePrimary, 1 })[0];
        fence_ = device_->createFence({});
        if (owner->timestamp_period > 0)
            queries_ = device_->createQueryPool({ {}, vk::QueryType::eTimestamp, 2 });
    }
    Commands(const Commands&) = delete;
    Commands& operator=(const Commands&) = delete;
    ~Commands()
    {
        if (getpid() != process_) return;  // a fork has none of the driver's threads
        if (running_) (void)device_->waitForFences(1, &fence_, VK_TRUE, UINT64_MAX);  // no throw
        device_->destroy(queries_);
        device_->destroy(fence_);
        device_->destroy(pool_);
    }

    // Each operation sees what those before it wrote; the host sees what all of them wrote.
    void record(std::vector<std::shared_ptr<kp::OpBase>> operations, bool timed)
    {
        if (running_) throw std::runtime_error("record: the commands are still running");
        timed_ = timed && queries_;
        buffer_.begin(vk::CommandBufferBeginInfo());
        if (timed_) {
            buffer_.resetQueryPool(queries_, 0, 2);
            buffer_.writeTimestamp(vk::PipelineStageFlagBits::eTopOfPipe, queries_, 0);
        }
        for (const auto& operation : operations) {
            operation->record(buffer_);
            record_barrier(buffer_);
        }
        if (timed_) buffer_.writeTimestamp(vk::PipelineStageFlagBits::eBottomOfPipe, queries_, 1);
        buffer_.end();
        operations_ = std::move(operations);
    }
    void start()
    {
        if (running_) throw std::runtime_error("start: the commands are still running");
        for (const auto& operation : operations_) operation->preEval(buffer_);
        owner_->queue.submit(vk::SubmitInfo(0, nullptr, nullptr, 1, &buffer_), fence_);
        running_ = true;
    }
    void wait()
    {
        if (!running_) return;
        running_ = false;
        (void)device_->waitForFences(fence_, VK_TRUE, UINT64_MAX);  // throws if the device is lost
        device_->resetFences(fence_);
        for (const auto& operation : operations_) operation->postEval(buffer_);
    }
    void run()
    {
        start();
        wait();
    }
    // Drop the operations and what they keep alive.
    void clear()
    {
        wait();
        operations_.clear();
    }
    // What the device took for the last run, or nothing if it was not recorded with timestamps.
    std::optional<double> nanoseconds()
    {
        if (!timed_ || running_) return {};
        using Flag = vk::QueryResultFlagBits;
        const auto ticks = device_->getQueryPoolResults<std::uint64_t>(
          queries_, 0, 2, 2 * sizeof(std::uint64_t), sizeof(std::uint64_t), Flag::e64 | Flag::eWait);
        return owner_->timestamp_period * (ticks.value[1] - ticks.value[0]);
    }

  private:
    std::shared_ptr<Device> owner_;
    std::shared_ptr<vk::Device> device_;
    pid_t process_;
    vk::CommandPool pool_;
    vk::CommandBuffer buffer_;
    vk::Fence fence_;
    vk::QueryPool queries_;
    std::vector<std::shared_ptr<kp::OpBase>> operations_;
    bool running_ = false;
    bool timed_ = false;
};

}  // namespace

PYBIND11_MODULE(vkops_native, module)
{
    py::module_::import("kp");  // registers the base classes
    module.attr("interface") = 1;  // vkops/gpu/kompute.py expects this number: count it up with changes
    using Release = py::call_guard<py::gil_scoped_release>;

    py::class_<Device, std::shared_ptr<Device>>(module, "Device")
      .def(py::init<std::uint32_t, std::vector<std::string>>(), py::arg("index"),
           py::arg("extensions"))
      .def_readonly("manager", &Device::manager)
      .def_readonly("import_alignment", &Device::import_alignment)
      .def_readonly("timestamp_period", &Device::timestamp_period)
      .def_readonly("shader_int64", &Device::shader_int64);
    py::class_<ImportedArray, std::shared_ptr<ImportedArray>>(module, "ImportedArray")
      .def(py::init<std::shared_ptr<Device>, const py::array&>());
    py::class_<OpCopyRegions, kp::OpBase, std::shared_ptr<OpCopyRegions>>(module, "OpCopyRegions")
      .def(py::init<std::shared_ptr<kp::Tensor>, std::shared_ptr<kp::Tensor>, const Rows&>())
      .def(py::init<std::shared_ptr<ImportedArray>, std::shared_ptr<kp::Tensor>, const Rows&>());
    py::class_<Commands, std::shared_ptr<Commands>>(module, "Commands")
      .def(py::init<std::shared_ptr<Device>>())
      .def("record", &Commands::record, py::arg("operations"), py::arg("timed") = false)
      .def("start", &Commands::start, Release())
      .def("wait", &Commands::wait, Release())
      .def("run", &Commands::run, Release())
      .def("clear", &Commands::clear)
      .def_property_readonly("nanoseconds", &Commands::nanoseconds);
}
