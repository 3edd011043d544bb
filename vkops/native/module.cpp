// The Python module vkops_native: adapters, and operations and submissions beside those of Kompute.
//
// It is built together with Kompute (scripts/kp_wheel.py), whose sources are not changed. Its operations have
// the base class of Kompute's operations, and its queue executes both kinds.

#include "copier.hpp"
#include "exclusive.hpp"
#include "kompute.hpp"
#include "pool.hpp"
#include "queue.hpp"
#include "statistics.hpp"

py::object kp_trace, kp_debug, kp_info, kp_warning, kp_error;  // Kompute's headers declare them

namespace {

using namespace py::literals;

// The names of the bits that are set. `all` has the names of all bits, the lowest first.
template <class Flags>
py::tuple names(Flags flags, std::initializer_list<const char*> all)
{
    py::list names;
    auto bits = std::uint32_t(flags);
    for (const auto name : all) {
        if (bits & 1) names.append(name);
        bits >>= 1;
    }
    return names;
}

// The members of vkops.gpu.adapters.adapter_limits.Limits that are neither memory nor features.
py::dict limits(const Adapter& adapter)
{
    const auto& core = adapter.properties().limits;
    // Older versions of Vulkan report neither limit. All devices can allocate 1 GiB at once.
    auto allocation =
      adapter.properties<vk::PhysicalDeviceMaintenance3Properties>().maxMemoryAllocationSize;
    if (!allocation) allocation = 1 << 30;
    auto buffer = adapter.properties<vk::PhysicalDeviceMaintenance4Properties>().maxBufferSize;
    if (!buffer) buffer = allocation;
    const auto& subgroup = adapter.properties<vk::PhysicalDeviceSubgroupProperties>();
    const bool in_compute(subgroup.supportedStages & vk::ShaderStageFlagBits::eCompute);
    const auto triple = [](const auto& sizes) {
        return py::make_tuple(sizes[0], sizes[1], sizes[2]);
    };
    return py::dict(
      "max_compute_work_group_count"_a = triple(core.maxComputeWorkGroupCount),
      "max_compute_work_group_size"_a = triple(core.maxComputeWorkGroupSize),
      "max_compute_work_group_invocations"_a = core.maxComputeWorkGroupInvocations,
      "max_compute_shared_memory_size"_a = core.maxComputeSharedMemorySize,
      "max_push_constants_size"_a = core.maxPushConstantsSize,
      "max_storage_buffer_range"_a = core.maxStorageBufferRange,
      "max_uniform_buffer_range"_a = core.maxUniformBufferRange,
      "max_per_stage_descriptor_storage_buffers"_a = core.maxPerStageDescriptorStorageBuffers,
      "max_per_stage_descriptor_uniform_buffers"_a = core.maxPerStageDescriptorUniformBuffers,
      "max_per_stage_descriptor_storage_images"_a = core.maxPerStageDescriptorStorageImages,
      "max_per_stage_descriptor_sampled_images"_a = core.maxPerStageDescriptorSampledImages,
      "max_per_stage_descriptor_samplers"_a = core.maxPerStageDescriptorSamplers,
      "min_storage_buffer_offset_alignment"_a = core.minStorageBufferOffsetAlignment,
      "min_uniform_buffer_offset_alignment"_a = core.minUniformBufferOffsetAlignment,
      "min_texel_buffer_offset_alignment"_a = core.minTexelBufferOffsetAlignment,
      "max_texel_buffer_elements"_a = core.maxTexelBufferElements,
      "max_bound_descriptor_sets"_a = core.maxBoundDescriptorSets,
      "max_per_stage_resources"_a = core.maxPerStageResources,
      "max_buffer_size"_a = buffer,
      "max_memory_allocation_size"_a = allocation,
      "max_memory_allocation_count"_a = core.maxMemoryAllocationCount,
      "non_coherent_atom_size"_a = core.nonCoherentAtomSize,
      "buffer_image_granularity"_a = core.bufferImageGranularity,
      "max_image_dimension_2d"_a = core.maxImageDimension2D,
      "timestamp_valid_bits"_a = adapter.compute_family().second.timestampValidBits,
      "subgroup_size"_a = std::max(subgroup.subgroupSize, 1u),
      "subgroup_operations"_a =
        names(in_compute ? subgroup.supportedOperations : vk::SubgroupFeatureFlags(),
              { "BASIC", "VOTE", "ARITHMETIC", "BALLOT", "SHUFFLE", "SHUFFLE_RELATIVE", "CLUSTERED",
                "QUAD", "PARTITIONED", "ROTATE", "ROTATE_CLUSTERED" }));
}

// For each heap: its bytes, and whether it is device-local.
py::list memory_heaps(const Adapter& adapter)
{
    py::list heaps;
    for (std::uint32_t i = 0; i < adapter.memory.memoryHeapCount; ++i) {
        const auto& heap = adapter.memory.memoryHeaps[i];
        const bool device_local(heap.flags & vk::MemoryHeapFlagBits::eDeviceLocal);
        heaps.append(py::make_tuple(heap.size, device_local));
    }
    return heaps;
}

// For each type: the index of its heap, and the names of its properties.
py::list memory_types(const Adapter& adapter)
{
    py::list types;
    for (std::uint32_t i = 0; i < adapter.memory.memoryTypeCount; ++i) {
        const auto& type = adapter.memory.memoryTypes[i];
        types.append(py::make_tuple(
          type.heapIndex,
          names(type.propertyFlags,
                { "DEVICE_LOCAL", "HOST_VISIBLE", "HOST_COHERENT", "HOST_CACHED", "LAZILY_ALLOCATED",
                  "PROTECTED", "DEVICE_COHERENT", "DEVICE_UNCACHED", "RDMA_CAPABLE" })));
    }
    return types;
}

// For each heap, the bytes that this process may use and the bytes that it uses (VK_EXT_memory_budget); None if
// the adapter does not report them.
py::object memory_budget(const Adapter& adapter)
{
    if (!adapter.has(VK_EXT_MEMORY_BUDGET_EXTENSION_NAME)) return py::none();
    const auto chain = adapter.physical->getMemoryProperties2<vk::PhysicalDeviceMemoryProperties2,
      vk::PhysicalDeviceMemoryBudgetPropertiesEXT>();
    const auto& budget = chain.get<vk::PhysicalDeviceMemoryBudgetPropertiesEXT>();
    py::list budgets;
    for (std::uint32_t i = 0; i < adapter.memory.memoryHeapCount; ++i)
        budgets.append(py::make_tuple(budget.heapBudget[i], budget.heapUsage[i]));
    return budgets;
}

std::string driver(const Adapter& adapter)
{
    const auto& driver = adapter.properties<vk::PhysicalDeviceDriverProperties>();
    return std::string(driver.driverName.data()) + " " + driver.driverInfo.data();
}

std::vector<std::pair<std::string, std::uint32_t>> layers()
{
    std::vector<std::pair<std::string, std::uint32_t>> layers;
    for (const auto& layer : vk::enumerateInstanceLayerProperties())
        layers.emplace_back(layer.layerName.data(), layer.specVersion);
    return layers;
}

// The classes of errors that drivers report. Other exceptions keep their class, for example those that a signal
// handler raises while the host waits.
void define_errors(py::module_& module)
{
    static PyObject *failed, *lost, *no_memory;
    const auto define = [&](PyObject*& error, const char* name, PyObject* base) {
        error = PyErr_NewException((std::string("vkops_native.") + name).c_str(), base, nullptr);
        if (!error) throw py::error_already_set();
        module.attr(name) = py::handle(error);
    };
    define(failed, "Error", nullptr);
    define(lost, "DeviceLostError", failed);
    define(no_memory, "OutOfMemoryError", failed);
    py::register_local_exception_translator([](std::exception_ptr error) {
        try {
            std::rethrow_exception(error);
        } catch (const Lost& caught) {
            PyErr_SetString(lost, caught.what());
        } catch (const vk::DeviceLostError& caught) {
            PyErr_SetString(lost, caught.what());
        } catch (const vk::OutOfHostMemoryError& caught) {
            PyErr_SetString(no_memory, caught.what());
        } catch (const vk::OutOfDeviceMemoryError& caught) {
            PyErr_SetString(no_memory, caught.what());
        } catch (const vk::TooManyObjectsError& caught) {
            PyErr_SetString(no_memory, caught.what());
        } catch (const std::bad_alloc& caught) {
            PyErr_SetString(no_memory, caught.what());
        } catch (const vk::SystemError& caught) {
            PyErr_SetString(failed, caught.what());
        } catch (const Failure& caught) {
            PyErr_SetString(failed, caught.what());
        }
    });
}

void define_adapters(py::module_& module)
{
    define(module, "version", [] { return vk::enumerateInstanceVersion(); });
    define(module, "layers", &layers);
    define(module, "has_extension", &has_extension);
    module.attr("FEATURES") = py::tuple(py::cast(Features::all()));
    const auto core = [](auto member) {
        return [member](const Adapter& adapter) { return adapter.properties().*member; };
    };
    using Properties = vk::PhysicalDeviceProperties;
    ExclusiveClass<Adapter, std::shared_ptr<Adapter>>(module, "Adapter")
      .def_property_readonly(
        "name", [](const Adapter& self) { return self.properties().deviceName.data(); })
      .def_property_readonly(
        "type", [](const Adapter& self) { return int(self.properties().deviceType); })
      .def_property_readonly("api_version", core(&Properties::apiVersion))
      .def_property_readonly("driver_version", core(&Properties::driverVersion))
      .def_property_readonly("vendor_id", core(&Properties::vendorID))
      .def_property_readonly("device_id", core(&Properties::deviceID))
      .def_property_readonly(
        "pipeline_cache_uuid",
        [](const Adapter& self) {
            const auto& id = self.properties().pipelineCacheUUID;
            return py::bytes(reinterpret_cast<const char*>(id.data()), id.size());
        })
      .def_property_readonly(
        "uuids",  // of the device and of the driver
        [](const Adapter& self) {
            const auto& ids = self.properties<vk::PhysicalDeviceIDProperties>();
            const auto bytes = [](const auto& id) {
                return py::bytes(reinterpret_cast<const char*>(id.data()), id.size());
            };
            return py::make_tuple(bytes(ids.deviceUUID), bytes(ids.driverUUID));
        })
      .def_property_readonly("driver", &driver)
      .def_property_readonly("limits", &limits)
      .def_property_readonly(
        "features", [](const Adapter& self) { return py::tuple(py::cast(Features(self).names())); })
      .def_property_readonly(
        "cooperative_matrices",
        [](const Adapter& self) {
            py::list rows;
            for (const auto& [type, next, m, n, k, types, saturating, scope] :
                 self.cooperative_matrices())
                rows.append(
                  py::make_tuple(m, n, k, py::tuple(py::cast(types)), bool(saturating), scope));
            return rows;
        })
      .def_property_readonly("memory_heaps", &memory_heaps)
      .def_property_readonly("memory_types", &memory_types)
      .def_property_readonly("memory_budget", &memory_budget)
      .def("memory_types_for", &Adapter::memory_types)
      .def("take_messages", [](const Adapter& self) {
          return self.messages ? self.messages->take() : std::vector<Messages::Message>();
      });
    ExclusiveClass<Instance, std::shared_ptr<Instance>>(module, "Instance")
      .def(py::init([](const std::vector<std::string>& layers, const Settings& settings) {
          return without_lock([&] { return std::make_shared<Instance>(layers, settings); });
      }))
      .def("adapters", [](Instance& self) { return without_lock([&] { return self.adapters(); }); });
    ExclusiveClass<Compiler>(module, "Compiler")
      .def(py::init<std::shared_ptr<Adapter>>())
      .def("compile", &Compiler::compile);
}

void define_pools(py::module_& module)
{
    Allocation::define();
    define(module, "allocate", &Allocation::allocate);
    ExclusiveClass<FreeList, std::shared_ptr<FreeList>>(module, "FreeList")
      .def(py::init<std::uint64_t>())
      .def_readonly("size", &FreeList::size)
      .def_readonly("free", &FreeList::free)
      .def("close_if_empty", &FreeList::close_if_empty)
      .def_property_readonly("is_empty", [](const FreeList& self) { return self.free == self.size; });
}

// Memory that a call uses, and whether the call writes it.
using Uses = std::vector<std::pair<Allocation*, bool>>;

void add(Uses& uses, const py::iterable& allocations, bool is_written)
{
    for (const auto each : allocations) uses.emplace_back(&Allocation::of(each), is_written);
}

// Note the number of the next call in the memory that work uses, and submit the work; return the number, or
// -1 if no submission is possible now. The caller waits then: if this function waited while Python exits, the
// thread would end in the middle of C++ code that holds Python objects. No Python code runs between reading
// the number and submitting, so no other thread can get the same number.
template <class Submit>
std::int64_t submit(const Device& device, const Uses& uses, const Submit& submitted)
{
    device.queue->retire();
    if (device.queue->is_full()) return -1;
    const auto number = device.queue->submitted() + 1;
    for (const auto& [each, is_written] : uses) each->note(number, is_written);
    return std::int64_t(submitted());
}

// The same for two lists of allocations.
template <class Work>
std::int64_t submit_all(const Device& device, const Work& work, const py::iterable& reads,
                         const py::iterable& writes, const std::string& name)
{
    Uses uses;
    add(uses, reads, false);
    add(uses, writes, true);
    return submit(device, uses, [&] { return device.queue->submit(work, name); });
}

// Submit work to the queue for transfers, after the calls that it depends on; see `submit` and Queue::transfer.
// `reads` is host memory that it reads, and `writes` is memory that it writes.
std::int64_t transfer(const Device& device, const Operations& work, const std::vector<std::uint64_t>& after,
                      std::uint64_t reused, const py::iterable& reads, const py::iterable& writes, const std::string& name)
{
    Uses uses;
    add(uses, reads, false);
    add(uses, writes, true);
    return submit(device, uses, [&] { return device.queue->transfer(work, after, reused, name); });
}

// Submit a plan on allocations; return the number of the call. Return 0, and submit nothing, unless each
// allocation is one range, all are in the same memory, and none is both read and written.
std::int64_t run(const Device& device, const std::vector<const Step*>& steps, const py::list& reads,
                  const py::list& writes, const std::string& name)
{
    const auto& target = Allocation::of(writes[0]);
    std::vector<std::uint32_t> starts;
    starts.reserve(reads.size() + writes.size() + 1);
    const auto add = [&](py::handle each) {
        const auto& own = Allocation::of(each);
        starts.push_back(std::uint32_t(own.start()));
        return own.ranges.size() == 1 && own.list() == target.list();
    };
    for (const auto each : writes)
        if (!add(each)) return 0;
    for (auto i = reads.size(); i-- > 0;) {
        const auto end = starts.begin() + writes.size();
        if (!add(reads[i]) || std::find(starts.begin(), end, starts.back()) != end) return 0;
    }
    starts.push_back(0);
    const auto memory = target.memory(0).attr("native").cast<std::shared_ptr<Memory>>();
    Operations operations;
    for (const auto step : steps) operations.push_back(step->bind({ memory }, starts));
    return submit_all(device, operations, reads, writes, name);
}

// The counterpart of the class in vkops/shaders/slot.py: a descriptor of a call without its memory.
struct Slot
{
    const bool is_written;  // by the shader, or because it is a copy
    const std::uint64_t start, nbytes;
    const std::uint32_t format;
    const std::optional<Image::View> view;
    const std::shared_ptr<Sampler> sampler;

    explicit Slot(py::handle slot)
      : is_written(slot.attr("is_written").cast<bool>() || slot.attr("is_copied").cast<bool>()),
        start(slot.attr("start").cast<std::uint64_t>()),
        nbytes(slot.attr("nbytes").cast<std::uint64_t>()),
        format(slot.attr("format").cast<std::uint32_t>()),
        view(slot.attr("view").cast<std::optional<Image::View>>()),
        sampler(slot.attr("sampler").cast<std::shared_ptr<Sampler>>())
    {
    }
    // Whether it refers to memory that other dispatches can use, too.
    bool has_memory() const { return nbytes || view; }
};

// The counterpart of the class in vkops/gpu/run/shader_dispatch.py: a dispatch without its memory and values.
struct PreparedCall
{
    const std::shared_ptr<Pipeline> pipeline;
    const std::vector<Slot> slots;

    PreparedCall(std::shared_ptr<Pipeline> pipeline_, const py::tuple& slots_)
      : pipeline(std::move(pipeline_)), slots(slots_.begin(), slots_.end())
    {
    }
    // `name` is the name of the shader, because shaders share pipelines. `given` are buffers, images,
    // samplers and bytes; `counts` are three numbers, or (buffer, first byte, 12). If `exact`, each binding
    // gets a buffer of its own that ends where the binding ends, so that the validation layer finds accesses
    // beyond it.
    std::shared_ptr<Operation> bind(const Device& device, const py::sequence& given,
                                    const py::tuple& counts, const py::bytes& push, bool exact,
                                    const std::string& name) const
    {
        if (given.size() != slots.size()) throw py::value_error("given: must be one for each slot");
        std::vector<Descriptor> all(slots.size());
        for (std::size_t i = 0; i < slots.size(); ++i)
            refer(all[i], slots[i], given[i], exact ? &device : nullptr);
        Groups groups;
        if (py::isinstance<py::int_>(counts[0]))
            groups.counts = counts.cast<std::array<std::uint32_t, 3>>();
        else
            std::tie(groups.memory, groups.offset) = find(counts[0], counts[1].cast<std::uint64_t>());
        return dispatch(pipeline, name, std::move(all), groups, std::string(push), true);
    }
    std::int64_t run(const Device& device, const py::sequence& given, const py::tuple& counts,
                      const py::bytes& push, bool exact, const std::string& name) const
    {
        const Operations work{ bind(device, given, counts, push, exact, name) };
        Uses uses;
        uses.reserve(slots.size() + 1);
        if (!py::isinstance<py::int_>(counts[0])) uses.emplace_back(&allocation(counts[0]), false);
        for (std::size_t i = 0; i < slots.size(); ++i)
            if (slots[i].has_memory()) uses.emplace_back(&allocation(given[i]), slots[i].is_written);
        return submit(device, uses, [&] { return device.queue->submit(work, name); });
    }

  private:
    // Let a descriptor refer to a buffer, an image, a sampler or bytes; see `bind` for `exact`.
    static void refer(Descriptor& descriptor, const Slot& slot, py::handle given, const Device* exact)
    {
        if (slot.view) {
            const auto image = given.attr("native").cast<std::shared_ptr<Image>>();
            const auto& sampler = slot.sampler;
            descriptor.image = { sampler ? sampler->sampler : vk::Sampler(), image->view(*slot.view), GENERAL };
            descriptor.owners = { image, sampler };
            descriptor.key = { image->serial, (std::uint64_t)VkImageView(descriptor.image.imageView),
                               sampler ? sampler->serial : 0 };
        } else if (slot.nbytes) {
            auto [memory, offset] = find(given, slot.start);
            if (exact) try {
                memory = std::make_shared<Memory>(*exact, memory, offset, slot.nbytes);
                offset = 0;
            } catch (const std::exception&) {  // the driver does not allow a buffer at this offset
            }
            descriptor.refer(memory, offset, slot.nbytes);
            if (slot.format) {
                const auto view = memory->texels(offset, slot.nbytes, slot.format);
                descriptor.texels = view->view;
                descriptor.owners[1] = view;
                descriptor.key = { view->serial };
            }
        } else if (py::isinstance<Sampler>(given)) {
            const auto sampler = given.cast<std::shared_ptr<Sampler>>();
            descriptor.image.sampler = sampler->sampler;
            descriptor.owners = { sampler };
            descriptor.key = { sampler->serial };
        } else {
            descriptor.bytes = given.cast<std::string>();
        }
    }
    static Allocation& allocation(py::handle buffer)
    {
        static const auto name = PyUnicode_InternFromString("allocation");
        const auto allocation = py::reinterpret_steal<py::object>(PyObject_GetAttr(buffer.ptr(), name));
        if (!allocation) throw py::error_already_set();
        return Allocation::of(allocation);  // which the buffer keeps
    }
    // The memory that contains byte `start` of a buffer, and the offset of this byte in the memory.
    static std::pair<std::shared_ptr<Memory>, std::uint64_t> find(py::handle buffer, std::uint64_t start)
    {
        const auto& own = allocation(buffer);
        std::size_t range = 0;
        for (; start >= std::get<2>(own.ranges.at(range)); ++range) start -= std::get<2>(own.ranges[range]);
        const auto memory = own.memory(range).attr("native").cast<std::shared_ptr<Memory>>();
        return { memory, std::get<1>(own.ranges[range]) + start };
    }
};

// Define the Python class of an instance of `Addressed`.
template <class Source>
void define_addressed(py::module_& module, const char* name)
{
    using Word = std::decay_t<decltype(Source::unit)>;
    using Words = typename Source::template Array<Word>;
    using Integers = typename Source::template Array<std::int64_t>;
    ExclusiveClass<Source, std::shared_ptr<Source>>(module, name)
      .def(py::init([](Words words, Integers places, Integers bases, Word unit) {
               return std::shared_ptr<Source>(new Source{ words, places, bases, unit });
           }));
}

// A handle of Vulkan as an integer.
template <class Handle>
std::uint64_t number_of(Handle handle)
{
    return (std::uint64_t)static_cast<typename Handle::NativeType>(handle);
}

// Define the classes that depend on classes of Kompute's module, which must be imported first.
void define_operations(py::module_ module)
{
    Py_AtExit([] { for (const auto queue : Queue::all()) queue->finish(); });
    py::array_t<std::uint8_t>(0);  // pybind11 imports NumPy's functions at first use: now, not at exit
    using SharedDevice = std::shared_ptr<Device>;
    // Python may free a device while its work runs.
    const auto drained = py::custom_type_setup([](PyHeapTypeObject* heap_type) {
        static const auto dealloc = heap_type->ht_type.tp_base->tp_dealloc;
        heap_type->ht_type.tp_dealloc = [](PyObject* self) {
            PyObject_ClearWeakRefs(self);  // other threads run meanwhile
            const Exclusive exclusive;
            auto held = reinterpret_cast<py::detail::instance*>(self)->get_value_and_holder();
            if (held.holder_constructed()) held.holder<SharedDevice>()->queue->drain();
            dealloc(self);
        };
    });
    ExclusiveClass<Device, SharedDevice>(module, "Device", drained)
      .def(py::init([](std::shared_ptr<Adapter> adapter, std::uint32_t validated,
                       std::size_t max_submissions,
                       std::size_t max_open, std::uint32_t max_allocations,
                       const std::string& cached, bool transfers) {
               const auto device =
                 std::make_shared<Device>(adapter, validated, max_allocations, cached, transfers);
               device->queue = std::make_shared<Queue>(*device, max_submissions, max_open);
               return device;
           }))
      .def("pipeline_cache",
           [](const Device& self, const std::string& other) {
               return py::bytes(self.merged_pipelines(other));
           })
      .def_readonly("manager", &Device::manager)
      .def_readonly("import_alignment", &Device::import_alignment)
      .def_readonly("shares_memory", &Device::shares_memory)
      .def_readonly("shares_semaphores", &Device::shares_semaphores)
      .def_property_readonly("usage", [](const Device& self) { return VkFlags(self.usage); })
      .def_property_readonly(
        "handles",  // instance, physical device, device, queue, and the number of its family
        [](const Device& self) {
            return py::make_tuple(number_of(*self.adapter->instance), number_of(*self.adapter->physical),
                                  number_of(*self.device), number_of(self.handle), self.family);
        })
      .def("lend", [](const SharedDevice& self) { self->queue->lend(); })
      .def("take_back", [](const SharedDevice& self) { self->queue->take_back(); })
      .def_readonly("timestamp_period", &Device::timestamp_period)
      .def_property_readonly("features", [](const Device& self) { return self.features.names(); })
      .def_property(
        "measures", [](const SharedDevice& self) { return self->queue->measures(); },
        [](const SharedDevice& self, int what) { self->queue->measure(what); })
      .def_property(
        "patience", [](const SharedDevice& self) { return self->queue->patience; },
        [](const SharedDevice& self, std::uint64_t patience) { self->queue->patience = patience; })
      .def_property_readonly("submitted", [](const SharedDevice& self) { return self->queue->submitted(); })
      .def_property_readonly("completed", [](const SharedDevice& self) { return self->queue->completed(); })
      .def_property_readonly("pending", [](const SharedDevice& self) { return self->queue->pending(); })
      .def("submit", &submit_all<std::shared_ptr<Commands>>)
      .def("submit", &submit_all<Operations>)
      .def("submit", &submit_all<Meeting>)
      .def("run", &run)
      .def("transfer", &transfer)
      .def_property_readonly("transfers", [](const SharedDevice& self) { return self->queue->transfers(); })
      .def("wait_for", [](const SharedDevice& self, std::uint64_t number) { self->queue->wait_for(number); })
      .def("image_limits", &Image::limits)
      .def("format_features", [](const Device& self, std::uint32_t format) {  // of images and buffers
          const auto properties = self.adapter->physical->getFormatProperties(vk::Format(format));
          return std::pair(VkFlags(properties.optimalTilingFeatures), VkFlags(properties.bufferFeatures));
      })
      .def("make_room", [](const SharedDevice& self) { self->queue->make_room(); })
      .def("wait", [](const SharedDevice& self, std::uint64_t number) { self->queue->wait(number); })
      .def("take_nanoseconds", [](const SharedDevice& self) { return self->queue->take_nanoseconds(); })
      .def("take_measured", [](const SharedDevice& self) { return self->queue->take_measured(); })
      .def_property_readonly("calibrated", &Device::calibrated);
    ExclusiveClass<Memory, std::shared_ptr<Memory>>(module, "Memory")
      .def(py::init<const Device&, vk::DeviceSize, const std::string&>())
      .def(py::init<const Device&, const py::array&, const std::string&>())
      .def(py::init<const Device&, std::shared_ptr<Memory>, std::uint64_t, std::uint64_t>())
      .def_readonly("is_transferred", &Memory::is_transferred)
      .def_readonly("type", &Memory::type)
      .def_readonly("is_imported", &Memory::is_imported)
      .def_property_readonly("coherent", &Memory::coherent)
      .def_readonly("device_address", &Memory::address)
      .def_property_readonly("array", [](const std::shared_ptr<Memory>& self) -> py::object {
          if (!self->data) return py::none();
          return py::array_t<std::uint8_t>(
            self->size, reinterpret_cast<std::uint8_t*>(self->data), py::cast(self));
      })
      .def_property_readonly("handle", [](const Memory& self) { return number_of(self.buffer); })
      .def("flush", &Memory::flush)
      .def("invalidate", &Memory::invalidate);
    ExclusiveClass<SharedMemory, Memory, std::shared_ptr<SharedMemory>>(module, "SharedMemory")
      .def(py::init<const Device&, vk::DeviceSize, const std::string&>())
      .def(py::init<const Device&, vk::DeviceSize, std::uint64_t, std::uint32_t, bool, int>())
      .def_readonly("allocated", &SharedMemory::allocated)
      .def("descriptor", &SharedMemory::descriptor);
    ExclusiveClass<SharedSemaphore, std::shared_ptr<SharedSemaphore>>(module, "SharedSemaphore")
      .def(py::init([](const SharedDevice& device) {
          const auto semaphore = std::make_shared<SharedSemaphore>(*device);
          device->queue->end_transfers();
          return semaphore;
      }))
      .def_readonly("value", &SharedSemaphore::value)
      .def("descriptor", &SharedSemaphore::descriptor);
    ExclusiveClass<Meeting>(module, "Meeting")
      .def(py::init([](std::shared_ptr<SharedSemaphore> semaphore, std::uint64_t awaited) {
          return Meeting{ semaphore, awaited };
      }));
    ExclusiveClass<KomputeMemory, Memory, std::shared_ptr<KomputeMemory>>(module, "KomputeMemory")
      .def(py::init<const Device&, std::shared_ptr<kp::Tensor>>());
    ExclusiveClass<Copier>(module, "Copier")
      .def(py::init<std::size_t>())
      .def("copy", [](Copier& self, py::array_t<std::uint8_t>& target,
                      const py::array_t<std::uint8_t>& source) {
          const auto to = reinterpret_cast<char*>(target.mutable_data());  // throws if it is read-only
          const auto from = reinterpret_cast<const char*>(source.data());
          const auto nbytes = std::size_t(source.nbytes());
          if (target.nbytes() != source.nbytes()) throw py::value_error("target: must have as many bytes");
          without_lock([&] { self.copy(to, from, nbytes); return true; });
      }, "target"_a.noconvert(), "source"_a.noconvert());
    ExclusiveClass<Image, std::shared_ptr<Image>>(module, "Image")
      .def(py::init<const Device&, const Image::Form&, const Image::Size&>())
      .def_property_readonly("needs", [](const Image& self) {
          return py::make_tuple(self.needs.size, self.needs.alignment);
      })
      .def("bind", &Image::bind);
    ExclusiveClass<Sampler, std::shared_ptr<Sampler>>(module, "Sampler")
      .def(py::init<const Device&, bool, std::uint32_t, bool>());
    define(module, "OpCopyImage", &copy_image);
    define(module, "now", &now);
    define(module, "OpZeroImage", [](std::shared_ptr<Image> image) {
        return std::make_shared<Operation>(Label{ "clear an image" }, [=](Commands& commands) { image->record_zeros(commands); });
    });
    ExclusiveClass<Operation, kp::OpBase, std::shared_ptr<Operation>>(module, "Operation", py::dynamic_attr())
      .def_readonly("ordered", &Operation::ordered);
    define(module, "OpCopyRegions", [](std::shared_ptr<Memory> source, std::shared_ptr<Memory> target,
                                   const Rows& rows, bool ordered) {
        return copy_regions(source, target, rows_of(rows), ordered);
    });
    define(module, "OpCopyBytes", [](std::shared_ptr<Memory> target, std::uint64_t offset,
                                 const py::bytes& bytes) {
        return copy_bytes(target, offset, std::string(bytes));
    });
    define(module, "OpFillRegions", &fill_regions);
    ExclusiveClass<Pipeline, std::shared_ptr<Pipeline>>(module, "Pipeline")
      .def(py::init([](const SharedDevice& device, const py::bytes& spirv, std::string entry,
                       Bindings bindings, std::uint32_t push_nbytes, bool robust) {
               const std::string code(spirv);
               const auto next = robust ? device->features.robust_pipeline() : nullptr;
               return without_lock([&] {
                   return std::make_shared<Pipeline>(device->device, code, entry, bindings,
                                                     push_nbytes, next, vk::PipelineCreateFlags(),
                                                     *device->pipelines);
               });
           }))
      .def("set_name", [](Pipeline& self, const Device& device, const std::string& name) {
          self.name = name;
          device.name(self.pipeline, name);
      });
    define_addressed<Table>(module, "Table");
    define_addressed<Runs>(module, "Runs");
    ExclusiveClass<Step>(module, "Step")
      .def(py::init([](std::shared_ptr<Pipeline> pipeline, std::shared_ptr<Table> table,
                       std::size_t bindings, const std::array<std::uint32_t, 3>& counts, bool ordered,
                       std::uint64_t nbytes) {
               return Step{ pipeline, table, bindings, { counts, {}, 0 }, ordered, nbytes, {} };
           }))
      .def(py::init([](std::shared_ptr<Runs> runs) { return Step{ {}, {}, 0, {}, true, 0, runs }; }))
      .def("bind", &Step::bind);
    ExclusiveClass<PreparedCall>(module, "PreparedCall")
      .def(py::init<std::shared_ptr<Pipeline>, const py::tuple&>())
      .def("bind", &PreparedCall::bind)
      .def("run", &PreparedCall::run);
    ExclusiveClass<Commands, std::shared_ptr<Commands>>(module, "Commands")
      .def(py::init([](const SharedDevice& device, Operations operations) {
               auto commands = std::make_shared<Commands>(*device);
               commands->record(operations, {});
               return commands;
           }),
           py::keep_alive<1, 2>());  // they refer to the device
}

}  // namespace

PYBIND11_MODULE(vkops_native, module, py::mod_gil_not_used())
{
    define_errors(module);
    module.attr("interface") = 22;  // vkops/gpu/adapters/kompute.py expects this number: count it up with changes
    define_adapters(module);
    define_pools(module);
    // Kompute's module imports NumPy, which takes longer than listing the adapters. Therefore it is imported
    // by this function when a device is opened.
    define(module, "load_kompute", [] {
        const auto kp = py::module_::import("kp");
        const auto module = py::module_::import("vkops_native");
        if (!py::hasattr(module, "Device")) define_operations(module);
        return kp;
    });
}
