// Memory of a device with a buffer for all uses, and imported memory of the host.
#pragma once

#include "device.hpp"

#include <pybind11/numpy.h>

constexpr auto HOST_ALLOCATION = vk::ExternalMemoryHandleTypeFlagBits::eHostAllocationEXT;
const vk::ExternalMemoryBufferCreateInfo IMPORTED(HOST_ALLOCATION);  // of each buffer of imported memory

// A part of a buffer as texels.
class Texels : public DeviceObject
{
  public:
    const vk::BufferView view;

    Texels(std::shared_ptr<vk::Device> device, vk::Buffer buffer, std::uint64_t start,
           std::uint64_t nbytes, std::uint64_t format)
      : DeviceObject(device),
        view(keep(device->createBufferView({ {}, buffer, vk::Format(format), start, nbytes })))
    {
    }
};

// An allocation with a buffer over all of it, or a buffer over a part of another allocation. Tensors of Kompute
// are not used, because Kompute ignores failures and takes the first type of memory that is possible.
class Memory : public DeviceObject
{
  public:
    vk::Buffer buffer;
    const vk::DeviceSize size;
    std::uint32_t type = 0;
    std::uint64_t address = 0;  // of the first byte, for shaders
    char* data = nullptr;       // null: the host does not see it
    const bool is_imported = false;  // memory of the host
    bool is_transferred = false;  // by the queue for transfers; never memory that host and device both see

    // `use` is one of those of Adapter::memory_types. If the driver has no memory of one type, the
    // next one is tried.
    Memory(const Device& owner, vk::DeviceSize size_, const std::string& use)
      : DeviceObject(owner.device), size(size_)
    {
        buffer = keep(device_->createBuffer(owner.buffer_info(size)));
        is_transferred = use == "device" && owner.families.size() > 1;
        const auto needs = device_->getBufferMemoryRequirements(buffer);
        allocate(owner, needs.size, owner.adapter->memory_types(use), needs.memoryTypeBits, nullptr);
        serve(owner, use);
    }
    // Memory of the host, for the same uses: the pages of an array that consists of whole pages.
    Memory(const Device& owner, const py::array& array, const std::string& use)
      : DeviceObject(owner.device), size(array.nbytes()), is_imported(true)
    {
        if (!owner.import_alignment) throw Failure("host memory cannot be imported");
        keep(std::make_shared<py::array>(array));  // first, so that it is freed last
        const auto pages = const_cast<void*>(array.data());
        const auto fits =
          device_->getMemoryHostPointerPropertiesEXT(HOST_ALLOCATION, pages, owner.functions);
        buffer = keep(device_->createBuffer(owner.buffer_info(size).setPNext(&IMPORTED)));
        const auto needs = device_->getBufferMemoryRequirements(buffer);
        if (needs.size > size) throw Failure("the driver needs more memory for a buffer than its size");
        const auto bits = needs.memoryTypeBits & fits.memoryTypeBits;
        const vk::ImportMemoryHostPointerInfoEXT pointer(HOST_ALLOCATION, pages);
        allocate(owner, size, owner.adapter->memory_types(use), bits, &pointer);
        serve(owner, use);
    }
    // A second buffer over a part of an allocation. Vulkan guarantees that both see the same bytes
    // ("Memory Aliasing").
    Memory(const Device& owner, std::shared_ptr<Memory> whole, std::uint64_t start,
           std::uint64_t nbytes)
      : DeviceObject(owner.device), size(nbytes), type(whole->type), whole_(whole)
    {
        whole->check();
        auto info = owner.buffer_info(nbytes);
        if (whole->is_imported) info.setPNext(&IMPORTED);
        buffer = keep(device_->createBuffer(info));
        const auto needs = device_->getBufferMemoryRequirements(buffer);
        if (start % needs.alignment || !(needs.memoryTypeBits >> type & 1))
            throw Failure("the driver allows no second buffer over this memory");
        device_->bindBufferMemory(buffer, whole->memory_, start);
    }

    // A view of a range as texels; the latest views are kept for later dispatches.
    std::shared_ptr<Texels> texels(std::uint64_t start, std::uint64_t nbytes, std::uint32_t format)
    {
        if (texels_.size() >= MAX_TEXELS) texels_.clear();
        auto& view = texels_[{ start, nbytes, format }];
        if (!view) view = std::make_shared<Texels>(device_, buffer, start, nbytes, format);
        return view;
    }
    // Bind an image to it.
    void bind(vk::Image image, std::uint64_t start) const
    {
        check();
        device_->bindImageMemory(image, memory_, start);
    }
    // Make writes of the host visible to the device, or (invalidate) writes of the device to the host.
    void flush(std::uint64_t start, std::uint64_t nbytes) const
    {
        if (atom_) device_->flushMappedMemoryRanges(atoms(start, nbytes));
    }
    void invalidate(std::uint64_t start, std::uint64_t nbytes) const
    {
        if (atom_) device_->invalidateMappedMemoryRanges(atoms(start, nbytes));
    }
    bool coherent() const { return !atom_; }
    // Throw a Failure if no other object can be bound to this memory.
    void check() const
    {
        if (!memory_) throw Failure("the memory is Kompute's");
    }

  protected:
    vk::DeviceMemory memory_;

    // For derived classes, which create the buffer and the allocation.
    Memory(const Device& owner, vk::DeviceSize size_) : DeviceObject(owner.device), size(size_) {}
    void map(const Device& owner)
    {
        data = static_cast<char*>(device_->mapMemory(memory_, 0, VK_WHOLE_SIZE));
        const auto flags = owner.adapter->memory.memoryTypes[type].propertyFlags;
        if (!(flags & vk::MemoryPropertyFlagBits::eHostCoherent))
            atom_ = owner.adapter->properties().limits.nonCoherentAtomSize;
    }
    // Allocate memory for the buffer: of the first of these types that the buffer allows (its bit is set) and
    // that the driver has left.
    void allocate(const Device& owner, vk::DeviceSize nbytes, std::vector<std::uint32_t> types,
                  std::uint32_t bits, const void* next)
    {
        const auto is_refused = [bits](std::uint32_t each) { return !(bits >> each & 1); };
        types.erase(std::remove_if(types.begin(), types.end(), is_refused), types.end());
        if (types.empty()) throw Failure("the device has no memory for buffers");
        vk::MemoryAllocateFlagsInfo flags(vk::MemoryAllocateFlagBits::eDeviceAddress);
        flags.pNext = next;
        if (owner.features.has_addresses()) next = &flags;
        for (auto each = types.begin(); !memory_; ++each) {
            type = *each;
            try {
                memory_ = keep(owner.allocate({ nbytes, type, next }));
            } catch (const vk::OutOfDeviceMemoryError&) {
                if (each + 1 == types.end()) throw;
            }
        }
        device_->bindBufferMemory(buffer, memory_, 0);
    }

  private:
    static constexpr std::size_t MAX_TEXELS = 256;

    std::map<std::array<std::uint64_t, 3>, std::shared_ptr<Texels>> texels_;
    std::uint64_t atom_ = 0;         // 0: the host need not flush what it writes
    std::shared_ptr<Memory> whole_;  // keeps its memory alive

    // Prepare memory of its own for a use.
    void serve(const Device& owner, const std::string& use)
    {
        owner.name(buffer, use + " memory");
        if (owner.features.has_addresses())
            address = device_->getBufferAddress({ buffer }, owner.functions);
        if (use != "device") map(owner);  // memory for "device" may be visible to the host, but is not mapped
    }
    vk::MappedMemoryRange atoms(std::uint64_t start, std::uint64_t nbytes) const
    {
        const auto first = start / atom_ * atom_;
        const auto end = (start + nbytes + atom_ - 1) / atom_ * atom_;
        return { memory_, first, end < size ? end - first : VK_WHOLE_SIZE };
    }
};
