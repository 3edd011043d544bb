// Operations, and the command buffers that they are recorded in.
#pragma once

#include "memory.hpp"

#include <deque>
#include <functional>
#include <map>

class Commands;

// The name of an operation in profiles, and the number of bytes that it reads and writes; 0 if it is not
// known. An operation without a name has the name of its call.
struct Label
{
    std::string name;
    std::uint64_t nbytes = 0;
};

// An operation of vkops, which can use descriptor sets and small data of the commands. It has the base class
// of Kompute's operations, because the queue executes these, too; but Kompute's sequences cannot record it. Its
// functions keep the objects alive that they use.
struct Operation : kp::OpBase
{
    using Record = std::function<void(Commands&)>;
    const Label label;
    const Record record_in;  // records it; must not throw
    const bool ordered;      // whether it must see the results of the operations before it
    const Record reserve;    // reserves descriptor sets and small data of the commands, before record_in

    Operation(Label label_, Record record_, bool ordered_ = true, Record reserve_ = [](Commands&) {})
      : label(std::move(label_)), record_in(std::move(record_)), ordered(ordered_),
        reserve(std::move(reserve_))
    {
    }
    void record(const vk::CommandBuffer&) override
    {
        throw Failure("Kompute's sequences cannot record operations of vkops");
    }
    void preEval(const vk::CommandBuffer&) override {}
    void postEval(const vk::CommandBuffer&) override {}
};
using Operations = std::vector<std::shared_ptr<kp::OpBase>>;  // Kompute's own, too

// A part of the memory with this serial number.
struct Range : vk::DescriptorBufferInfo
{
    std::uint64_t serial = 0;

    Range(const Memory& memory, std::uint64_t offset_, std::uint64_t nbytes)
      : vk::DescriptorBufferInfo(memory.buffer, offset_, nbytes), serial(memory.serial)
    {
    }
};

// Memory in which small data are placed one after the other, and the number of bytes in use.
struct SmallData
{
    const Memory memory;
    vk::DeviceSize used = 0;
};

// An operation that was measured: the number of its call, its label, and the ticks of the device when all
// before it had ended and when it had.
using Timing = std::tuple<std::uint64_t, std::string, std::uint64_t, std::uint64_t, std::uint64_t>;

// Throw an exception for the result of a command of Vulkan.
[[noreturn]] inline void fail(vk::Result result, const std::string& command)
{
    if (result == vk::Result::eErrorOutOfHostMemory) throw vk::OutOfHostMemoryError(command);
    if (result == vk::Result::eErrorOutOfDeviceMemory) throw vk::OutOfDeviceMemoryError(command);
    throw Failure(command + ": " + vk::to_string(result));
}

// The number of descriptors of each type in a set: the types of Vulkan 1.0 without dynamic offsets.
using DescriptorCounts = std::array<std::uint32_t, 8>;

// All that a descriptor set depends on: the serial numbers of a layout and of memory, offsets, sizes.
using Key = std::vector<std::uint64_t>;

// A command buffer with recorded operations, and the descriptor sets and small data that they use.
class Commands : DeviceObject
{
  public:
    // `transfers`: whether they are submitted to the queue for transfers.
    explicit Commands(const Device& owner, bool transfers = false)
      : DeviceObject(owner.device), owner_(owner), transfers_(transfers)
    {
        using Flag = vk::CommandPoolCreateFlagBits;
        const auto family = owner.families[transfers];
        const auto pool = keep(device_->createCommandPool({ Flag::eResetCommandBuffer, family }));
        buffer = device_->allocateCommandBuffers({ pool, vk::CommandBufferLevel::ePrimary, 1 })[0];
    }
    Commands(const Commands&) = delete;
    Commands& operator=(const Commands&) = delete;

    vk::CommandBuffer buffer;
    std::size_t running = 0;          // submissions of them that have not ended
    std::shared_ptr<Commands> twins;  // a second recording, which is submitted while this one runs

    // Record all operations at once.
    void record(const Operations& operations, vk::CommandBufferUsageFlags flags)
    {
        begin(flags);
        add(operations, 0);
        end();
    }
    // Begin to record; there are no operations.
    void begin(vk::CommandBufferUsageFlags flags, bool timed = false)
    {
        timed_ = timed && owner_.timestamp_period > 0;
        stamps_ = 0;
        calls.clear();
        if (timed_) reserve_stamps(1);
        buffer.begin({ flags });
        stamp();
    }
    // Record more operations: all of them or, if that fails, none. A barrier before each ordered operation
    // makes earlier writes visible; for the first one, the barrier at the end of the submission before does.
    // An operation that is not ordered has no barrier. `call` is the number of the call that they are part of.
    void add(const Operations& more, std::uint64_t call)
    {
        sets.clear(), data.clear();
        if (timed_) reserve_stamps(more.size());
        calls.reserve(operations_.size() + more.size());
        for (const auto& each : more)
            if (const auto own = dynamic_cast<Operation*>(each.get())) own->reserve(*this);
        operations_.reserve(operations_.size() + more.size());
        for (const auto& each : more) {
            const auto own = dynamic_cast<Operation*>(each.get());
            if (!operations_.empty() && !(own && !own->ordered)) barrier({}, {});
            const auto shown = owner_.shows_names && own && !own->label.name.empty();
            if (shown) buffer.beginDebugUtilsLabelEXT({ own->label.name.c_str() }, owner_.functions);
            own ? own->record_in(*this) : each->record(buffer);
            if (shown) buffer.endDebugUtilsLabelEXT(owner_.functions);
            stamp();
            operations_.push_back(each);
            calls.push_back(call);
        }
    }
    void end()
    {
        barrier(HOST, vk::AccessFlagBits::eHostRead);
        buffer.end();
    }
    const Operations& operations() const { return operations_; }
    bool transfers() const { return transfers_; }
    // Drop the operations and the objects that they keep alive. The device must have completed them.
    void clear()
    {
        operations_.clear();
        if (kept_.size() > MAX_KEPT_SETS) {
            for (const auto pool : descriptors_) device_->resetDescriptorPool(pool);
            kept_.clear();
            full_ = 0;
        }
        for (auto* data : { &seen_, &copied_ }) {
            while (!data->empty() && (data->size() > 1 || data->front()->memory.size > MAX_KEPT_BYTES))
                data->pop_back();
            for (const auto& each : *data) each->used = 0;
        }
    }
    // A second recording of the same operations, which may be submitted while these commands run.
    std::shared_ptr<Commands> twin()
    {
        if (!twins) {
            const auto commands = std::make_shared<Commands>(owner_);
            commands->record(operations_, vk::CommandBufferUsageFlagBits::eSimultaneousUse);
            twins = commands;
        }
        return twins;
    }
    // The times that the device measured, after a run that was recorded with timestamps.
    std::vector<Timing> timings() const
    {
        std::vector<Timing> timings;
        if (!timed_) return timings;
        using Flag = vk::QueryResultFlagBits;
        std::vector<std::uint64_t> ticks;
        for (std::uint32_t first = 0; first < stamps_; first += STAMPS) {
            const auto count = std::min(stamps_ - first, STAMPS);
            const auto some = device_->getQueryPoolResults<std::uint64_t>(
              queries_[first / STAMPS], 0, count, count * sizeof(std::uint64_t),
              sizeof(std::uint64_t), Flag::e64 | Flag::eWait);
            ticks.insert(ticks.end(), some.value.begin(), some.value.end());
        }
        for (std::size_t i = 0; i < operations_.size(); ++i) {
            const auto own = dynamic_cast<Operation*>(operations_[i].get());
            const auto label = own ? own->label : Label{ "Kompute's operation" };
            timings.emplace_back(calls[i], label.name, label.nbytes, ticks[i] & owner_.timestamp_mask,
                               ticks[i + 1] & owner_.timestamp_mask);
        }
        return timings;
    }

    // -- for operations while they are recorded ------------------------------------------------

    std::vector<std::uint64_t> calls;             // the number of the call of each operation
    std::deque<vk::DescriptorSet> sets;           // that operations have reserved, in their order
    std::deque<vk::DescriptorBufferInfo> data;

    // Reserve memory until the commands are cleared, and let `write` fill it. Data that many invocations
    // read are first copied to device-local memory, if the memory is not device-local.
    template <class Write>
    Range place(vk::DeviceSize nbytes, const Write& write, bool many = false)
    {
        const auto placed = take(seen_, nbytes, "table");
        const Memory& memory = seen_.back()->memory;
        write(memory.data + placed.offset);
        const auto flags = owner_.adapter->memory.memoryTypes[memory.type].propertyFlags;
        if (!many || flags & vk::MemoryPropertyFlagBits::eDeviceLocal) return placed;
        const auto copy = take(copied_, nbytes, "device");
        buffer.copyBuffer(placed.buffer, copy.buffer,
                          vk::BufferCopy(placed.offset, copy.offset, nbytes));
        barrier({}, {});
        return copy;
    }
    // A descriptor set with these descriptors. A set that was allocated for equal descriptors is reused.
    vk::DescriptorSet descriptors(const vk::DescriptorSetLayout& layout, DescriptorCounts counts,
                                  const Key& key, std::vector<vk::WriteDescriptorSet>& writes)
    {
        auto& set = kept_[key];
        if (set) return set;
        for (;; ++full_) {
            const bool added = full_ == descriptors_.size();
            if (added) descriptors_.push_back(make_pool(counts));
            const vk::DescriptorSetAllocateInfo info(descriptors_[full_], 1, &layout);
            vk::DescriptorSet allocated;
            const auto result = device_->allocateDescriptorSets(&info, &allocated);
            if (result == vk::Result::eSuccess) {
                for (auto& each : writes) each.dstSet = allocated;
                device_->updateDescriptorSets(writes, {});
                return set = allocated;
            }
            if (added) fail(result, "vkAllocateDescriptorSets");
        }
    }

  private:
    static constexpr vk::DeviceSize DATA_BYTES = 64 << 10, MAX_KEPT_BYTES = 1 << 20;
    static constexpr vk::DeviceSize ALIGNMENT = 256;  // the largest that Vulkan lets devices require
    static constexpr std::size_t MAX_KEPT_SETS = 256;
    static constexpr std::uint32_t SETS = 16, DESCRIPTORS = 128, STAMPS = 64;

    using Data = std::vector<std::unique_ptr<SmallData>>;
    const Device& owner_;
    const bool transfers_;
    std::vector<vk::QueryPool> queries_;  // of STAMPS timestamps each
    std::uint32_t stamps_ = 0;            // timestamps written: one at the beginning, one after each operation
    std::vector<vk::DescriptorPool> descriptors_;
    std::map<Key, vk::DescriptorSet> kept_;
    std::size_t full_ = 0;  // the pools before this one have no more sets
    Data seen_, copied_;
    Operations operations_;
    bool timed_ = false;

    void reserve_stamps(std::size_t more)
    {
        while (queries_.size() * STAMPS < stamps_ + more)
            queries_.push_back(keep(device_->createQueryPool({ {}, vk::QueryType::eTimestamp, STAMPS })));
    }
    // Write a timestamp when all that was recorded before has ended.
    void stamp()
    {
        if (!timed_) return;
        const auto pool = queries_[stamps_ / STAMPS];
        if (stamps_ % STAMPS == 0) buffer.resetQueryPool(pool, 0, STAMPS);
        buffer.writeTimestamp(vk::PipelineStageFlagBits::eBottomOfPipe, pool, stamps_++ % STAMPS);
    }
    vk::DescriptorPool make_pool(DescriptorCounts counts)
    {
        std::array<vk::DescriptorPoolSize, std::tuple_size_v<DescriptorCounts>> sizes;
        for (std::uint32_t each = 0; each < sizes.size(); ++each) {
            const auto type = vk::DescriptorType(each);
            const auto least = type == vk::DescriptorType::eStorageBuffer ? DESCRIPTORS : SETS;
            sizes[each] = { type, std::max(least, counts[each]) };
        }
        return keep(device_->createDescriptorPool({ {}, SETS, sizes }));
    }
    Range take(Data& data, vk::DeviceSize nbytes, const char* use) const
    {
        if (data.empty() || data.back()->used + nbytes > data.back()->memory.size)
            data.push_back(std::unique_ptr<SmallData>(
              new SmallData{ { owner_, std::max<vk::DeviceSize>(DATA_BYTES, nbytes), use } }));
        auto& [memory, used] = *data.back();
        const Range placed(memory, used, nbytes);
        used = (used + nbytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
        return placed;
    }
    // Make all that was written before visible to all that comes after it, and to another stage.
    void barrier(vk::PipelineStageFlags stage, vk::AccessFlags access) const
    {
        using Access = vk::AccessFlagBits;
        using Stage = vk::PipelineStageFlagBits;
        if (transfers_) {
            const vk::MemoryBarrier copied(Access::eTransferWrite,
                                           Access::eTransferRead | Access::eTransferWrite | access);
            buffer.pipelineBarrier(TRANSFER, TRANSFER | stage, {}, copied, {}, {});
            return;
        }
        const vk::MemoryBarrier all(
          Access::eShaderWrite | Access::eTransferWrite,
          Access::eShaderRead | Access::eShaderWrite | Access::eUniformRead |
            Access::eIndirectCommandRead | Access::eTransferRead | Access::eTransferWrite | access);
        buffer.pipelineBarrier(
          SHADER | TRANSFER, SHADER | TRANSFER | Stage::eDrawIndirect | stage, {}, all, {}, {});
    }
};
