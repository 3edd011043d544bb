// Memory and semaphores that are shared with other processes or drivers as file descriptors.
#pragma once

#include "memory.hpp"

// An allocation with a buffer over all of it. Vulkan requires both sides to create equal buffers, to use equal
// dedicated allocations, and to choose the same type of memory.
class SharedMemory : public Memory
{
  public:
    std::uint64_t allocated;  // bytes of the allocation

    // Memory that can be exported; `use` is one of those of Adapter::memory_types.
    SharedMemory(const Device& owner, vk::DeviceSize nbytes, const std::string& use)
      : Memory(owner, nbytes)
    {
        const auto needs = make_buffer(owner);
        allocated = needs.size;
        const vk::MemoryDedicatedAllocateInfo dedicated({}, buffer);
        vk::ExportMemoryAllocateInfo exported(SHARED_HANDLE);
        exported.pNext = &dedicated;
        place(owner, owner.adapter->memory_types(use), needs.memoryTypeBits, &exported, use != "device");
    }
    // The memory of a file descriptor, which the caller still owns and closes.
    SharedMemory(const Device& owner, vk::DeviceSize nbytes, std::uint64_t allocated_,
                 std::uint32_t chosen, bool is_mapped, int descriptor)
      : Memory(owner, nbytes), allocated(allocated_)
    {
        const auto needs = make_buffer(owner);
        if (needs.size > allocated || chosen >= owner.adapter->memory.memoryTypeCount)
            throw Failure("the driver places such a buffer differently");
        const int own = dup(descriptor);  // a successful import transfers its ownership to the driver
        if (own < 0) throw Failure("the process has no file descriptor left");
        const vk::MemoryDedicatedAllocateInfo dedicated({}, buffer);
        vk::ImportMemoryFdInfoKHR imported(SHARED_HANDLE, own);
        imported.pNext = &dedicated;
        try {
            place(owner, { chosen }, needs.memoryTypeBits, &imported, is_mapped);
        } catch (...) {
            if (!memory_) close(own);
            throw;
        }
    }
    // A new file descriptor, which is the caller's.
    int descriptor(const Device& owner) const
    {
        return device_->getMemoryFdKHR({ memory_, SHARED_HANDLE }, owner.functions);
    }

  private:
    vk::MemoryRequirements make_buffer(const Device& owner)
    {
        if (!owner.shares_memory) throw Failure("memory cannot be shared");
        const vk::ExternalMemoryBufferCreateInfo external(SHARED_HANDLE);
        buffer = keep(device_->createBuffer(
          { {}, size, owner.usage, vk::SharingMode::eExclusive, 0, nullptr, &external }));
        return device_->getBufferMemoryRequirements(buffer);
    }
    void place(const Device& owner, const std::vector<std::uint32_t>& types, std::uint32_t bits,
               const void* next, bool is_mapped)
    {
        allocate(owner, allocated, types, bits, next);
        owner.name(buffer, "shared memory");
        if (owner.features.has_addresses())
            address = device_->getBufferAddress({ buffer }, owner.functions);
        if (is_mapped) map(owner);
    }
};

// A timeline semaphore that another driver waits for or signals.
class SharedSemaphore : public DeviceObject
{
  public:
    vk::Semaphore semaphore;
    std::uint64_t value = 0;  // the last one that a queue was told to signal

    explicit SharedSemaphore(const Device& owner) : DeviceObject(owner.device)
    {
        if (!owner.shares_semaphores) throw Failure("semaphores cannot be shared");
        const vk::ExportSemaphoreCreateInfo exported(SEMAPHORE_HANDLE);
        vk::SemaphoreTypeCreateInfo timeline(vk::SemaphoreType::eTimeline, 0);
        timeline.pNext = &exported;
        semaphore = keep(device_->createSemaphore({ {}, &timeline }));
        owner.name(semaphore, "shared semaphore");
    }
    // A new file descriptor, which is the caller's.
    int descriptor(const Device& owner) const
    {
        return device_->getSemaphoreFdKHR({ semaphore, SEMAPHORE_HANDLE }, owner.functions);
    }
};

// A synchronization point with another driver. If `awaited` is not 0, all later work of the queue waits for this
// value of the semaphore. If it is 0, the semaphore's next value is signalled when all earlier work has ended.
struct Meeting
{
    std::shared_ptr<SharedSemaphore> semaphore;
    std::uint64_t awaited;
};
