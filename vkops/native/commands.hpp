// Operations in command buffers, and their submission in order, without waiting.
#pragma once

#include "memory.hpp"

#include <deque>
#include <functional>

class Commands;

// A custom operation of Kompute that also uses descriptor sets and small data of the commands. The
// functions that record it keep alive what they use.
struct Operation : kp::OpBase
{
    using Record = std::function<void(Commands&)>;
    const Record record_in;
    // What must be executed once before it is recorded in commands that run again and again.
    const Record prepare;
    const bool ordered;  // whether it must see what the operations before it wrote

    explicit Operation(Record record_, bool ordered_ = true, Record prepare_ = [](Commands&) {})
      : record_in(std::move(record_)), prepare(std::move(prepare_)), ordered(ordered_)
    {
    }
    void record(const vk::CommandBuffer&) override
    {
        throw std::runtime_error("Kompute's sequences cannot record operations of vkops");
    }
    void preEval(const vk::CommandBuffer&) override {}
    void postEval(const vk::CommandBuffer&) override {}
};
using Operations = std::vector<std::shared_ptr<kp::OpBase>>;  // Kompute's own, too

// Memory of small data, which is placed one behind the other.
struct SmallData
{
    static constexpr vk::DeviceSize ALIGNMENT = 256;  // of every device's buffer offsets, at most
    const Memory memory;
    vk::DeviceSize used = 0;

    SmallData(const Device& owner, vk::DeviceSize size, const std::string& use)
      : memory(owner, size, use)
    {
    }
    bool fits(vk::DeviceSize nbytes) const { return used + nbytes <= memory.size; }
    // Take the bytes behind those that are taken; they fit.
    vk::DescriptorBufferInfo take(vk::DeviceSize nbytes)
    {
        const auto offset = used;
        used = (used + nbytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        return { memory.buffer, offset, nbytes };
    }
};

// Throw what a command of Vulkan returned.
[[noreturn]] inline void fail(vk::Result result, const std::string& command)
{
    if (result == vk::Result::eErrorOutOfHostMemory) throw vk::OutOfHostMemoryError(command);
    if (result == vk::Result::eErrorOutOfDeviceMemory) throw vk::OutOfDeviceMemoryError(command);
    throw std::runtime_error(command + ": " + vk::to_string(result));
}

// How many descriptors of each kind a set has.
struct DescriptorCounts
{
    std::uint32_t storage = 0, uniform = 0;
};

// A command buffer with recorded operations, and what they need beside their own memory:
// descriptor sets and small data.
class Commands : DeviceObject
{
  public:
    explicit Commands(const Device& owner) : DeviceObject(owner.device), owner_(owner)
    {
        using Flag = vk::CommandPoolCreateFlagBits;
        const auto pool =
          keep(device_->createCommandPool({ Flag::eResetCommandBuffer, owner.family }));
        buffer = device_->allocateCommandBuffers({ pool, vk::CommandBufferLevel::ePrimary, 1 })[0];
    }
    Commands(const Commands&) = delete;
    Commands& operator=(const Commands&) = delete;
    ~Commands()
    {
        for (const auto flag : noted_) *flag = false;
    }

    vk::CommandBuffer buffer;
    std::size_t running = 0;          // submissions of them that have not ended
    std::shared_ptr<Commands> twins;  // the same, to be submitted while they run

    // Replace the operations. Each sees what those before it wrote, in earlier submissions, too, but
    // those that are not ordered see as much as the one before them.
    void record(Operations operations, vk::CommandBufferUsageFlags flags, bool timed = false)
    {
        clear();
        operations_ = std::move(operations);
        timed_ = timed && owner_.timestamp_period > 0;
        if (timed_ && !queries_)
            queries_ = keep(device_->createQueryPool({ {}, vk::QueryType::eTimestamp, 2 }));
        buffer.begin({ flags });
        if (timed_) {
            buffer.resetQueryPool(queries_, 0, 2);
            buffer.writeTimestamp(vk::PipelineStageFlagBits::eTopOfPipe, queries_, 0);
        }
        for (std::size_t i = 0; i < operations_.size(); ++i) {
            const auto own = dynamic_cast<Operation*>(operations_[i].get());
            if (i && !(own && !own->ordered)) barrier({}, {});
            own ? own->record_in(*this) : operations_[i]->record(buffer);
        }
        barrier(HOST, vk::AccessFlagBits::eHostRead);
        if (timed_) buffer.writeTimestamp(vk::PipelineStageFlagBits::eBottomOfPipe, queries_, 1);
        buffer.end();
    }
    // Drop the operations and what they keep alive. The device is done with them.
    void clear()
    {
        operations_.clear();
        for (const auto pool : descriptors_) device_->resetDescriptorPool(pool);
        full_ = 0;
        for (auto* data : { &seen_, &copied_ }) {
            while (!data->empty() && (data->size() > 1 || data->front()->memory.size > MAX_KEPT_BYTES))
                data->pop_back();
            for (const auto& each : *data) each->used = 0;
        }
    }
    // The same commands, which may be submitted while they run.
    std::shared_ptr<Commands> twin()
    {
        if (!twins) {
            const auto made = std::make_shared<Commands>(owner_);
            made->record(operations_, vk::CommandBufferUsageFlagBits::eSimultaneousUse);
            twins = made;
        }
        return twins;
    }
    // They were submitted: what operations noted while they were recorded is true.
    void confirm() { noted_.clear(); }
    // What the device took, after a run that was recorded with timestamps.
    std::optional<double> nanoseconds() const
    {
        if (!timed_) return {};
        using Flag = vk::QueryResultFlagBits;
        const auto ticks = device_->getQueryPoolResults<std::uint64_t>(
          queries_, 0, 2, 2 * sizeof(std::uint64_t), sizeof(std::uint64_t), Flag::e64 | Flag::eWait);
        return owner_.timestamp_period *
               ((ticks.value[1] - ticks.value[0]) & owner_.timestamp_mask);
    }

    // -- for operations while they are recorded ------------------------------------------------

    // Set a flag, and return what it was. It is cleared again if they cannot be submitted.
    bool note(bool& flag)
    {
        if (!flag) noted_.push_back(&flag);
        return std::exchange(flag, true);
    }
    // Copy bytes to memory that is theirs until the commands are cleared. Those that many read are
    // copied to the device's own memory first, if they are elsewhere.
    vk::DescriptorBufferInfo place(const std::string& bytes, bool many = false)
    {
        const auto placed = take(seen_, bytes.size(), "table");
        const Memory& memory = seen_.back()->memory;
        std::memcpy(memory.data + placed.offset, bytes.data(), bytes.size());
        const auto flags = owner_.adapter->memory.memoryTypes[memory.type].propertyFlags;
        if (!many || flags & vk::MemoryPropertyFlagBits::eDeviceLocal) return placed;
        const auto copy = take(copied_, bytes.size(), "device");
        buffer.copyBuffer(placed.buffer, copy.buffer,
                          vk::BufferCopy(placed.offset, copy.offset, bytes.size()));
        barrier({}, {});
        return copy;
    }
    // Make a descriptor set that is theirs until the commands are cleared.
    vk::DescriptorSet descriptors(const vk::DescriptorSetLayout& layout, DescriptorCounts counts)
    {
        for (;; ++full_) {
            const bool added = full_ == descriptors_.size();
            if (added) descriptors_.push_back(make_pool(counts));
            const vk::DescriptorSetAllocateInfo info(descriptors_[full_], 1, &layout);
            vk::DescriptorSet set;
            const auto result = device_->allocateDescriptorSets(&info, &set);
            if (result == vk::Result::eSuccess) return set;
            if (added) fail(result, "vkAllocateDescriptorSets");
        }
    }
    void update(const std::vector<vk::WriteDescriptorSet>& writes) const
    {
        device_->updateDescriptorSets(writes, {});
    }

  private:
    static constexpr vk::DeviceSize DATA_BYTES = 64 << 10, MAX_KEPT_BYTES = 256 << 10;
    static constexpr std::uint32_t SETS = 16, DESCRIPTORS = 128;

    using Data = std::vector<std::unique_ptr<SmallData>>;
    const Device& owner_;
    vk::QueryPool queries_;
    std::vector<vk::DescriptorPool> descriptors_;
    std::size_t full_ = 0;  // the pools before this one have no more sets
    Data seen_, copied_;
    Operations operations_;
    std::vector<bool*> noted_;
    bool timed_ = false;

    vk::DescriptorPool make_pool(DescriptorCounts counts)
    {
        using Type = vk::DescriptorType;
        const vk::DescriptorPoolSize sizes[] = {
            { Type::eStorageBuffer, std::max(DESCRIPTORS, counts.storage) },
            { Type::eUniformBuffer, std::max(SETS, counts.uniform) },
        };
        return keep(device_->createDescriptorPool({ {}, SETS, sizes }));
    }
    vk::DescriptorBufferInfo take(Data& data, vk::DeviceSize nbytes, const char* use) const
    {
        if (data.empty() || !data.back()->fits(nbytes))
            data.push_back(std::make_unique<SmallData>(
              owner_, std::max<vk::DeviceSize>(DATA_BYTES, nbytes), use));
        return data.back()->take(nbytes);
    }
    // Make all that was written before visible to all that comes after it, and to another stage.
    void barrier(vk::PipelineStageFlags stage, vk::AccessFlags access) const
    {
        using Access = vk::AccessFlagBits;
        using Stage = vk::PipelineStageFlagBits;
        const vk::MemoryBarrier all(
          Access::eShaderWrite | Access::eTransferWrite,
          Access::eShaderRead | Access::eShaderWrite | Access::eUniformRead |
            Access::eIndirectCommandRead | Access::eTransferRead | Access::eTransferWrite | access);
        buffer.pipelineBarrier(
          SHADER | TRANSFER, SHADER | TRANSFER | Stage::eDrawIndirect | stage, {}, all, {}, {});
    }
};

// What other operations need to be executed once.
inline std::shared_ptr<Operation> prepare(const Operations& operations)
{
    return std::make_shared<Operation>([operations](Commands& commands) {
        for (const auto& each : operations)
            if (const auto own = dynamic_cast<Operation*>(each.get())) own->prepare(commands);
    });
}

// Submissions to a device's queue, in order. They are numbered from 1. One thread at a time submits;
// any number of threads wait. Python's lock (the GIL) protects what is stored.
class Queue
{
  public:
    bool timed = false;  // whether the device measures what is submitted from now on
    // Nanoseconds that the destructor waits. What then still runs is kept for ever, with its device.
    std::uint64_t patience = 10'000'000'000;

    Queue(const Device& owner, std::size_t limit) : owner_(owner), limit_(limit)
    {
        spare_.push_back(std::make_shared<Commands>(owner));
        fences_.push_back(owned(owner.device->createFence({}), owner.device));
    }
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;
    ~Queue()
    {
        if (process_.forked() || running_.empty()) return;
        if (lost_.empty() && await(*running_.back().fence, patience) == vk::Result::eTimeout)
            new std::deque<Running>(std::move(running_));
    }

    std::uint64_t submitted() const { return submitted_; }
    // The number of the last submission that is known to be done.
    std::uint64_t completed()
    {
        check(vk::Result::eSuccess, "");
        while (!running_.empty()) {
            const auto status = static_cast<vk::Result>(
              vkGetFenceStatus(*owner_.device, *running_.front().fence));
            check(status, "vkGetFenceStatus");
            if (status != vk::Result::eSuccess) break;
            retire();
        }
        return submitted_ - running_.size();
    }

    // Submit operations once, and return the number of the submission.
    std::uint64_t submit(Operations operations)
    {
        make_room();
        if (spare_.empty()) spare_.push_back(std::make_shared<Commands>(owner_));
        // Commands that cannot be recorded or submitted are destroyed.
        const auto commands = std::move(spare_.back());
        spare_.pop_back();
        commands->record(std::move(operations), vk::CommandBufferUsageFlagBits::eOneTimeSubmit, timed);
        return start(commands, true);
    }
    // Submit commands that may be submitted again, also while they run.
    std::uint64_t submit(std::shared_ptr<Commands> commands)
    {
        make_room();
        return start(commands->running ? commands->twin() : commands, false);
    }
    // Wait for a submission, and all before it. A signal handler of Python may end the wait by an
    // exception; the work goes on.
    void wait(std::uint64_t number)
    {
        if (number > submitted_) number = submitted_;
        while (completed() < number) {
            const auto fence = running_.front().fence;  // which is not reset while it is held here
            // Not py::gil_scoped_release: while Python exits, taking the lock again ends this thread,
            // which a destructor does not allow.
            const auto state = PyEval_SaveThread();
            const auto result = await(*fence, SLICE);
            PyEval_RestoreThread(state);
            check(result, "vkWaitForFences");
            if (PyErr_CheckSignals()) throw py::error_already_set();
        }
    }
    // The time that the device took for all that was submitted while it measured, since the last
    // call; nothing if it cannot measure.
    std::optional<double> take_nanoseconds()
    {
        wait(submitted_);
        const auto found = std::exchange(nanoseconds_, 0.0);
        return owner_.timestamp_period > 0 ? std::optional<double>(found) : std::nullopt;
    }

  private:
    static constexpr std::uint64_t SLICE = 50'000'000;  // nanoseconds between looks for signals
    using Fence = std::shared_ptr<vk::Fence>;
    struct Running
    {
        std::shared_ptr<Commands> commands;
        Fence fence;
        bool once;
    };
    const Device& owner_;
    const std::size_t limit_;
    Process process_;
    std::deque<Running> running_;
    std::vector<std::shared_ptr<Commands>> spare_;
    std::vector<Fence> fences_;  // that have been signalled, or are new
    std::uint64_t submitted_ = 0;
    double nanoseconds_ = 0;
    std::string lost_;  // the first failure after which nothing is known of the work

    // Throw the failure of a command of Vulkan. Lack of memory aside, the device is lost then, and
    // each call throws that failure again: drivers may report success for fences of a lost device.
    void check(vk::Result result, const char* command)
    {
        if (result == vk::Result::eErrorOutOfHostMemory || result == vk::Result::eErrorOutOfDeviceMemory)
            fail(result, command);
        if (lost_.empty() && int(result) < 0)
            lost_ = std::string(command) + ": " + vk::to_string(result);
        if (!lost_.empty()) throw std::runtime_error(lost_);
    }
    vk::Result await(const vk::Fence& fence, std::uint64_t nanoseconds) const
    {
        return owner_.device->waitForFences(1, &fence, VK_TRUE, nanoseconds);  // no throw
    }
    // Wait until the device can have one more submission.
    void make_room()
    {
        const auto running = submitted_ - completed();
        if (running >= limit_) wait(submitted_ - running + 1);
    }
    std::uint64_t start(const std::shared_ptr<Commands>& commands, bool once)
    {
        const auto fence = unused_fence();
        const vk::SubmitInfo info(0, nullptr, nullptr, 1, &commands->buffer);
        check(owner_.handle.submit(1, &info, *fence), "vkQueueSubmit");
        commands->confirm();
        ++commands->running;
        running_.push_back({ commands, fence, once });
        return ++submitted_;
    }
    // A fence that no thread waits for.
    Fence unused_fence()
    {
        for (auto& each : fences_)
            if (each.use_count() == 1) {
                const auto found = std::move(each);
                each = std::move(fences_.back());
                fences_.pop_back();
                owner_.device->resetFences(*found);
                return found;
            }
        return owned(owner_.device->createFence({}), owner_.device);
    }
    // The first submission is done.
    void retire()
    {
        const auto done = running_.front();
        running_.pop_front();
        fences_.push_back(done.fence);
        --done.commands->running;
        nanoseconds_ += done.commands->nanoseconds().value_or(0);
        if (!done.once) return;
        done.commands->clear();
        spare_.push_back(done.commands);
    }
};
