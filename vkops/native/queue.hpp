// Submissions to a device's queue, in order, without waiting.
#pragma once

#include "dispatch.hpp"
#include "shared.hpp"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

// Nanoseconds of a clock that never goes back.
inline std::int64_t now()
{
    const auto time = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time).count();
}

// The queue of a device. Calls of `submit` are numbered from 1. While the device is busy, their operations
// are recorded in an open command buffer. It is submitted when a caller waits for results, or by a thread of
// the queue when the device becomes idle.
//
// All functions but `watch` are Exclusive. `mutex_` guards the members that `watch` uses in its thread. No
// Python object is created or freed while it is held, because that can run any code.
class Queue
{
  public:
    // Nanoseconds that `finish` waits. Commands that still run then are never freed, and neither is their
    // device.
    std::uint64_t patience = 10'000'000'000;

    Queue(const Device& owner, std::size_t limit, std::size_t max_open)
      : owner_(owner), limit_(limit), max_open_(max_open)
    {
        spare_.push_back(std::make_shared<Commands>(owner));
        fences_.push_back(owned(owner.device->createFence({}), owner.device));
        for (auto& each : timelines_) {
            if (owner.families.size() == 1) break;
            const vk::SemaphoreTypeCreateInfo timeline(vk::SemaphoreType::eTimeline, 0);
            each = owned(owner.device->createSemaphore({ {}, &timeline }), owner.device);
        }
        all().insert(this);
    }
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;
    ~Queue()
    {
        all().erase(this);
        finish();
    }
    // All queues. Queues that daemon threads use still exist when Python has ended.
    static std::set<Queue*>& all()
    {
        static auto& queues = *new std::set<Queue*>;
        return queues;
    }
    // Wait for running commands without Python's lock. The destructor waits with the lock: while Python exits,
    // taking the lock again ends this thread, which a destructor does not allow.
    void drain()
    {
        if (process_.forked()) return;
        std::vector<Fence> last;
        {
            const std::lock_guard lock(mutex_);
            if (lost_.empty() && open_) try { flush(); } catch (const std::exception&) {}
            if (!lost_.empty()) return;
            for (const auto each : { &running_, &transferring_ })
                if (!each->empty()) last.push_back(each->back().fence);
        }
        for (const auto& each : last)
            if (without_lock([&] { return await(*each, patience); }) == vk::Result::eTimeout) patience = 0;
    }
    // Submit the open commands, end the thread, and wait for running commands.
    void finish()
    {
        if (process_.forked()) {  // the thread does not exist in this process, and must not be joined
            new std::thread(std::move(thread_));
            return;
        }
        {
            const std::lock_guard lock(mutex_);
            ends_ = true;
            if (lost_.empty() && open_) try { flush(); } catch (const std::exception&) {}
        }
        wake_.notify_all();
        if (thread_.joinable()) thread_.join();
        if (!lost_.empty()) return;
        for (const auto each : { &running_, &transferring_ })
            if (!each->empty() && await(*each->back().fence, patience) == vk::Result::eTimeout)
                new std::deque<Running>(std::move(*each));
    }

    std::uint64_t submitted() const { return submitted_; }
    // The number of the last call whose work is known to be completed.
    std::uint64_t completed()
    {
        submit_open();
        retire();
        return done();
    }
    // The names of calls whose work is not known to be completed.
    std::vector<std::string> pending() const
    {
        std::vector<std::string> names;
        const std::lock_guard lock(mutex_);
        for (const auto running : { &transferring_, &running_ })
            for (const auto& each : *running)
                names.insert(names.end(), each.names.begin(), each.names.end());
        names.insert(names.end(), names_.begin(), names_.end());
        return names;
    }
    // What the device measures from the next submission on: nothing, the total time, or each operation.
    enum Measures { NOTHING, TOTAL, EACH };
    int measures() const { return measures_; }
    void measure(int what)
    {
        submit_open();
        measures_ = what;
    }

    // Lend the VkQueue to the calling thread, which may submit to it until `take_back`. The open commands are
    // submitted first. Submissions of other threads wait for `take_back`.
    void lend()
    {
        await_return();
        end_transfers();
        await_return();
        submit_open();
        lent_ = std::this_thread::get_id();
    }
    void take_back()
    {
        const std::lock_guard lock(mutex_);
        lent_ = {};
        wake_.notify_all();
    }

    // Drop completed submissions. This may free Python objects, which can run any code.
    void retire()
    {
        std::vector<Running> done;
        std::unique_lock lock(mutex_);
        check();
        while (!running_.empty()) {
            const auto result = status(running_.front().fence);
            check(result, "vkGetFenceStatus");
            if (result != vk::Result::eSuccess) break;
            completed_ = running_.front().last;
            done.push_back(std::move(running_.front()));
            running_.pop_front();
        }
        while (!transferring_.empty()) {
            const auto result = status(transferring_.front().fence);
            check(result, "vkGetFenceStatus");
            if (result != vk::Result::eSuccess) break;
            transferred_.insert(transferring_.front().last);
            done.push_back(std::move(transferring_.front()));
            transferring_.pop_front();
        }
        note_idle();
        while (!transferred_.empty() && *transferred_.begin() <= completed_ &&
               (transferring_.empty() || *transferred_.begin() < transferring_.front().last))
            transferred_.erase(transferred_.begin());
        const auto dropped = std::exchange(dropped_, {});
        lock.unlock();
        for (const auto& each : done) {
            --each.commands->running;
            const auto timings = each.commands->timings();
            for (const auto& [call, name, nbytes, start, end] : timings)
                nanoseconds_ += owner_.timestamp_period * ((end - start) & owner_.timestamp_mask);
            if (each.since) measured_.emplace_back(each.since, each.last, timings);
            if (!each.once) continue;
            each.commands->clear();
            const std::lock_guard guard(mutex_);  // the other thread takes some when it submits again
            (each.commands->transfers() ? spare_transfers_ : spare_).push_back(each.commands);
        }
    }
    // Whether the maximum number of submissions is running, or the queue is lent.
    bool is_full() const
    {
        const std::lock_guard lock(mutex_);
        return running_.size() + transferring_.size() >= limit_ || lent_ != std::thread::id();
    }
    // Wait until another submission is possible.
    void make_room()
    {
        await_return();
        retire();
        std::unique_lock lock(mutex_);
        if (running_.size() + transferring_.size() < limit_) return;
        const auto first = running_.empty() ? transferring_.front().last : running_.front().last;
        lock.unlock();
        wait(first);
    }
    // Submit operations once, immediately or together with later ones; return the number of the call.
    std::uint64_t submit(const Operations& operations, const std::string& name)
    {
        const std::lock_guard lock(mutex_);
        check();
        note_idle();
        record(operations, submitted_ + 1);
        names_.push_back(name);
        ++submitted_;
        if (open_->operations().size() >= max_open_ || is_dry() || !watched())
            flush(operations.size());
        else
            wake_.notify_all();
        return submitted_;
    }
    // Submit commands that may be submitted again, also while they run.
    std::uint64_t submit(const std::shared_ptr<Commands>& commands, const std::string& name)
    {
        const std::lock_guard lock(mutex_);
        check();
        if (open_) flush();
        note_idle();
        const auto chosen = commands->running ? commands->twin() : commands;
        start({ chosen, unused_fence(), submitted_ + 1, { name }, false, 0 });
        return ++submitted_;
    }
    // Submit the open commands, and then a meeting as a submission of its own.
    std::uint64_t submit(const Meeting& meeting, const std::string& name)
    {
        const std::lock_guard lock(mutex_);
        check();
        if (open_) flush();
        note_idle();
        // An operation that does nothing keeps the semaphore until the submission has ended.
        record({ std::make_shared<Operation>(Label{ name }, [kept = meeting.semaphore](Commands&) {}) }, submitted_ + 1);
        names_.push_back(name);
        ++submitted_;
        meeting_ = &meeting;
        try { flush(1); } catch (...) { meeting_ = nullptr; throw; }
        meeting_ = nullptr;
        return submitted_;
    }
    // Stop using the queue for transfers: transfers would not be ordered with submissions of other code.
    void end_transfers()
    {
        is_shared_ = true;
        wait(last_transfer_);
    }
    // Whether the queue for transfers is used. It is not while the device measures, which excludes that queue.
    bool transfers() const { return timelines_[0] && !is_shared_ && measures_ == NOTHING; }
    // Submit a transfer to its queue. It begins when the calls `all_before`, and all calls up to `reused`, have
    // ended: `reused` is the last call that used the range of memory, which may be several merged ranges. Later
    // submissions to the queue of dispatches begin when the transfer has ended.
    std::uint64_t transfer(const Operations& operations, const std::vector<std::uint64_t>& all_before,
                           std::uint64_t reused, const std::string& name)
    {
        const std::lock_guard lock(mutex_);
        check();
        // The last of these calls in the queue of dispatches. In its own queue, the transfer is last anyway.
        std::uint64_t after = reused > completed_ ? reused : 0;
        for (const auto number : all_before) {
            const bool is_transfer = transferred_.count(number) ||
              std::any_of(transferring_.begin(), transferring_.end(),
                          [&](const auto& each) { return each.last == number; });
            if (!is_transfer && number > completed_) after = std::max(after, number);
        }
        if (open_ && after > flushed_) flush();
        const auto running = std::find_if(running_.begin(), running_.end(),
                                          [&](const auto& each) { return each.last >= after; });
        const auto before = running == running_.end() && !running_.empty() ? std::prev(running) : running;
        auto commands = spare_transfers_.empty() ? std::make_shared<Commands>(owner_, true)
                                                 : spare_transfers_.back();
        const auto fence = unused_fence();
        commands->record(operations, ONCE);
        if (!spare_transfers_.empty()) spare_transfers_.pop_back();
        start({ commands, fence, submitted_ + 1, { name }, true, 0 }, true,
              before == running_.end() || !after ? 0 : before->last);
        return last_transfer_ = ++submitted_;
    }
    // Wait for a transfer only; or, for any other call, for it and all calls before it.
    void wait_for(std::uint64_t number)
    {
        for (;;) {
            retire();
            if (number <= done() || transferred_.count(number)) return;
            Fence fence;
            for (const auto& each : transferring_)
                if (each.last == number) fence = each.fence;
            if (!fence) return wait(number);
            await_fence(fence);
        }
    }
    // Wait for a call and all calls before it. An exception in a Python signal handler ends the wait, but not
    // the work.
    void wait(std::uint64_t number)
    {
        number = std::min(number, submitted_);
        if (number > done()) submit_open();
        for (;;) {
            retire();
            if (number <= done()) return;
            await_fence(fence_of(number));
        }
    }
    // The device time of all submissions that were measured since the last call of this function; empty if the
    // device cannot measure.
    std::optional<double> take_nanoseconds()
    {
        wait(submitted_);
        const auto nanoseconds = std::exchange(nanoseconds_, 0.0);
        return owner_.timestamp_period > 0 ? std::optional<double>(nanoseconds) : std::nullopt;
    }
    // A submission that was measured: its time, the number of its last call, and its operations.
    using Measured = std::tuple<std::int64_t, std::uint64_t, std::vector<Timing>>;
    // The measured submissions that have ended since the last call of this function.
    std::vector<Measured> take_measured()
    {
        completed();
        return std::exchange(measured_, {});
    }

  private:
    static constexpr auto ONCE = vk::CommandBufferUsageFlagBits::eOneTimeSubmit;
    static constexpr std::uint64_t SLICE = 50'000'000;  // nanoseconds between checks for signals of Python
    static constexpr std::int64_t SPIN = 100'000;  // nanoseconds before a thread that waits sleeps
    using Fence = std::shared_ptr<vk::Fence>;
    struct Running
    {
        std::shared_ptr<Commands> commands;
        Fence fence;
        std::uint64_t last;  // number of a call
        std::vector<std::string> names;
        bool once;
        std::int64_t since;  // when it was submitted, if it is measured
    };
    const Device& owner_;
    const std::size_t limit_, max_open_;
    Process process_;
    mutable std::mutex mutex_;
    std::condition_variable wake_;
    std::thread thread_;  // runs `watch`
    std::thread::id lent_;  // the thread that the VkQueue is lent to; none by default
    bool ends_ = false, stuck_ = false;
    int measures_ = NOTHING;
    std::shared_ptr<Commands> open_;   // recorded, but not submitted; null if there are none
    std::vector<std::string> names_;   // the names of the calls in `open_`
    std::deque<Running> running_, transferring_;  // in the queue of dispatches, and in that of transfers
    std::vector<std::shared_ptr<Commands>> spare_, spare_transfers_;
    // A timeline semaphore of each queue; its value is the number of the last call that has ended.
    std::array<std::shared_ptr<vk::Semaphore>, 2> timelines_;
    std::uint64_t flushed_ = 0, last_transfer_ = 0;  // the last call submitted to each queue
    std::set<std::uint64_t> transferred_;  // completed transfers with numbers above a call that still runs
    bool is_shared_ = false;  // other code submits to the queue of dispatches, or waits for it
    const Meeting* meeting_ = nullptr;  // the meeting of the next submission, if it is one
    std::vector<Fence> fences_;  // signalled or new; a fence with one owner can be reused
    std::uint64_t submitted_ = 0, completed_ = 0;
    double nanoseconds_ = 0;
    std::vector<Measured> measured_;
    std::string lost_;  // why the device is lost; empty if it is not
    std::vector<std::shared_ptr<Commands>> dropped_;  // commands that could not be submitted

    // Throw an exception for the failure of a Vulkan command. Once the device is lost, every call throws again,
    // because drivers may report success for fences of a lost device.
    void check(vk::Result result = vk::Result::eSuccess, const char* command = "")
    {
        if (lost_.empty() && result == vk::Result::eErrorDeviceLost)
            lost_ = std::string(command) + ": " + vk::to_string(result);
        if (!lost_.empty()) throw Lost(lost_);
        if (int(result) < 0) fail(result, command);
    }
    // Wait until the VkQueue is not lent to another thread.
    void await_return()
    {
        for (std::unique_lock lock(mutex_); lent_ != std::thread::id();) {
            if (lent_ == std::this_thread::get_id())
                throw Failure("this thread has locked the queue for its own submissions");
            lock.unlock();
            without_lock([&] {
                std::unique_lock waiting(mutex_);
                const auto returned = [&] { return lent_ == std::thread::id(); };
                return wake_.wait_for(waiting, std::chrono::nanoseconds(SLICE), returned);
            });
            if (PyErr_CheckSignals()) throw py::error_already_set();
            lock.lock();
        }
    }
    vk::Result await(const vk::Fence& fence, std::uint64_t nanoseconds) const
    {
        return owner_.device->waitForFences(1, &fence, VK_TRUE, nanoseconds);  // no throw
    }
    // The status of a fence. The validation layer reads the output of printing shaders only after it reports
    // the fence as signalled, and loses the output if the commands are reset first. vkQueueWaitIdle waits
    // until it has read the output.
    vk::Result status(const Fence& fence) const
    {
        const auto result = static_cast<vk::Result>(vkGetFenceStatus(*owner_.device, *fence));
        if (result != vk::Result::eSuccess || !owner_.validated) return result;
        if (lent_ != std::thread::id()) return result;  // vkQueueWaitIdle may not be called: the queue is lent
        return static_cast<vk::Result>(vkQueueWaitIdle(owner_.handle));
    }
    Fence fence_of(std::uint64_t number) const
    {
        const std::lock_guard lock(mutex_);
        if (completed_ < number && !running_.empty()) {
            for (const auto& each : running_)
                if (each.last >= number) return each.fence;
            return running_.back().fence;
        }
        if (!transferring_.empty()) return transferring_.front().fence;
        throw std::logic_error("the submission is not known");
    }
    void submit_open()
    {
        const std::lock_guard lock(mutex_);
        check();
        if (open_) flush();
    }
    // Whether the device is idle.
    bool is_dry()
    {
        if (running_.empty()) return true;
        const auto result = status(running_.back().fence);
        check(result, "vkGetFenceStatus");
        return result == vk::Result::eSuccess;
    }
    // Record the operations of a call in the open commands, or open new ones. Commands that cannot be
    // recorded or submitted are destroyed.
    void record(const Operations& operations, std::uint64_t call)
    {
        auto commands = open_;
        if (!commands) {
            if (spare_.empty()) spare_.push_back(std::make_shared<Commands>(owner_));
            commands = std::move(spare_.back());
            spare_.pop_back();
            commands->begin(ONCE, measures_ != NOTHING);
        }
        commands->add(operations, call);
        open_ = commands;
    }
    // Submit the open commands. If that fails, their operations are recorded again in new open commands,
    // except for the last call, which has `last` operations and fails.
    void flush(std::size_t last = 0)
    {
        try {
            const auto fence = unused_fence();
            open_->end();
            start({ open_, fence, submitted_, names_, true, measures_ == EACH ? now() : 0 });
        } catch (const std::exception&) {
            reopen(last);
            throw;
        }
        open_.reset();
        names_.clear();
        stuck_ = false;
    }
    void reopen(std::size_t last)
    {
        stuck_ = true;
        const auto commands = std::exchange(open_, nullptr);
        dropped_.push_back(commands);
        if (last) {
            names_.pop_back();
            --submitted_;
        }
        if (!lost_.empty()) return;
        const auto& all = commands->operations();
        const Operations kept(all.begin(), all.end() - last);
        if (kept.empty()) return;
        try {
            record(kept, 0);
            open_->calls = { commands->calls.begin(), commands->calls.end() - last };
        } catch (const std::exception& error) {  // work of earlier calls, which have returned, is lost
            lost_ = error.what();
        }
    }
    // Submit commands to a queue. `after` is a call in the queue of dispatches that a transfer waits for; 0
    // for none.
    void start(Running submission, bool transfers = false, std::uint64_t after = 0)
    {
        vk::SubmitInfo info(0, nullptr, nullptr, 1, &submission.commands->buffer);
        if (!transfers && !transferring_.empty()) after = transferring_.back().last;
        // The semaphore of the other queue, and the semaphore of a meeting.
        std::array<vk::Semaphore, 2> awaited, signalled;
        std::array<std::uint64_t, 2> awaited_values{}, signalled_values{};
        const std::array<vk::PipelineStageFlags, 2> stages{ vk::PipelineStageFlagBits::eAllCommands,
                                                            vk::PipelineStageFlagBits::eAllCommands };
        std::uint32_t waits = 0, signals = 0;
        const auto wait = [&](vk::Semaphore semaphore, std::uint64_t value) {
            awaited[waits] = semaphore, awaited_values[waits++] = value;
        };
        const auto signal = [&](vk::Semaphore semaphore, std::uint64_t value) {
            signalled[signals] = semaphore, signalled_values[signals++] = value;
        };
        if (timelines_[0] && after) wait(*timelines_[!transfers], after);
        if (timelines_[0]) signal(*timelines_[transfers], submission.last);
        const auto shared = meeting_ ? meeting_->semaphore.get() : nullptr;
        if (shared && meeting_->awaited) wait(shared->semaphore, meeting_->awaited);
        if (shared && !meeting_->awaited) signal(shared->semaphore, shared->value + 1);
        const vk::TimelineSemaphoreSubmitInfo values(waits, awaited_values.data(), signals, signalled_values.data());
        if (waits || signals) {
            info = { waits, awaited.data(), stages.data(), 1, &submission.commands->buffer, signals, signalled.data() };
            info.pNext = &values;
        }
        const auto& queue = transfers ? owner_.transfer_handle : owner_.handle;
        check(queue.submit(1, &info, *submission.fence), "vkQueueSubmit");
        if (shared && !meeting_->awaited) ++shared->value;
        ++submission.commands->running;
        if (!transfers) flushed_ = submission.last;
        (transfers ? transferring_ : running_).push_back(std::move(submission));
    }
    // If the queue of dispatches is idle and there is a queue for transfers, note that all other calls have
    // ended.
    void note_idle()
    {
        if (timelines_[0] && running_.empty() && !open_) completed_ = submitted_;
    }
    // The last call that has ended together with all calls before it.
    std::uint64_t done() const
    {
        if (!timelines_[0]) return completed_;
        const std::lock_guard lock(mutex_);
        if (transferring_.empty()) return completed_;
        return std::min(completed_, transferring_.front().last - 1);
    }
    // Wait up to SLICE for a fence; throw if a Python signal handler raises. A fence that is referred to here
    // is not reset.
    void await_fence(const Fence& fence)
    {
        const auto result = without_lock([&] {
            // Short work has ended before a thread that sleeps is awake.
            const auto is_running = [&] { return vkGetFenceStatus(*owner_.device, *fence) == VK_NOT_READY; };
            for (const auto end = now() + SPIN; is_running() && now() < end;)
                std::this_thread::yield();
            return await(*fence, SLICE);
        });
        std::unique_lock lock(mutex_);
        check(result, "vkWaitForFences");
        lock.unlock();
        if (PyErr_CheckSignals()) throw py::error_already_set();
    }
    // A fence that no thread waits for.
    Fence unused_fence()
    {
        for (auto& each : fences_)
            if (each.use_count() == 1) {
                owner_.device->resetFences(*each);
                return each;  // in use until the submission has ended
            }
        fences_.push_back(owned(owner_.device->createFence({}), owner_.device));
        return fences_.back();
    }
    // Start the thread that submits open commands; return whether it runs.
    bool watched()
    {
        try {
            if (!thread_.joinable()) thread_ = std::thread(&Queue::watch, this);
        } catch (const std::system_error&) {  // the system has no more threads
        }
        return thread_.joinable();
    }
    void watch()
    {
        std::unique_lock lock(mutex_);
        for (;;) {
            wake_.wait(lock, [&] { return ends_ || (open_ && !stuck_ && lost_.empty()); });
            if (ends_) return;
            try {
                if (is_dry()) {
                    flush();
                    continue;
                }
                const auto fence = running_.back().fence;
                lock.unlock();
                const auto result = await(*fence, SLICE);
                lock.lock();
                check(result, "vkWaitForFences");
            } catch (const std::exception&) {
                stuck_ = true;  // the next call fails in the same way, and reports it
            }
        }
    }
};
