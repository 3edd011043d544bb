// Submissions of Kompute's operations, with barriers between them and timestamps.
#pragma once

#include "device.hpp"

// Make all that was written before visible to all that comes after it, the host included.
inline void record_barrier(const vk::CommandBuffer& commands)
{
    using Access = vk::AccessFlagBits;
    const vk::MemoryBarrier barrier(
      Access::eShaderWrite | Access::eTransferWrite,
      Access::eShaderRead | Access::eShaderWrite | Access::eTransferRead | Access::eTransferWrite |
        Access::eHostRead);
    commands.pipelineBarrier(SHADER | TRANSFER, SHADER | TRANSFER | HOST, {}, barrier, {}, {});
}

// Operations in a command buffer, to be submitted again and again, or recorded anew.
class Commands
{
  public:
    explicit Commands(std::shared_ptr<Device> owner) : owner_(owner), device_(owner->device)
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
        if (process_.forked()) return;  // a fork has none of the driver's threads
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
        return owner_->timestamp_period *
               ((ticks.value[1] - ticks.value[0]) & owner_->timestamp_mask);
    }

  private:
    std::shared_ptr<Device> owner_;
    std::shared_ptr<vk::Device> device_;
    Process process_;
    vk::CommandPool pool_;
    vk::CommandBuffer buffer_;
    vk::Fence fence_;
    vk::QueryPool queries_;
    std::vector<std::shared_ptr<kp::OpBase>> operations_;
    bool running_ = false;
    bool timed_ = false;
};
