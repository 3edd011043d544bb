// Submissions to a device's queue, in order, without waiting.
#pragma once

#include "dispatch.hpp"

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

// The queue of a device. Calls of `submit` are numbered from 1. While the device is busy, what they
// submit is recorded in open commands, which are submitted together when somebody asks for the
// results, or by a thread when the device has nothing to do.
//
// Python's lock (the GIL) is held in all functions but `watch`. `mutex_` protects what the thread
// uses, too. No object of Python is made or freed while it is held, which can run any code.
class Queue
{
  public:
    // Nanoseconds that `finish` waits. What then still runs is kept for ever, with its device.
    std::uint64_t patience = 10'000'000'000;

    Queue(const Device& owner, std::size_t limit, std::size_t max_open)
      : owner_(owner), limit_(limit), max_open_(max_open)
    {
        spare_.push_back(std::make_shared<Commands>(owner));
        fences_.push_back(owned(owner.device->createFence({}), owner.device));
        all().insert(this);
    }
    Queue(const Queue&) = delete;
    Queue& operator=(const Queue&) = delete;
    ~Queue()
    {
        all().erase(this);
        finish();
    }
    // All queues. Those that daemon threads use are still there when Python has ended.
    static std::set<Queue*>& all()
    {
        static auto& queues = *new std::set<Queue*>;
        return queues;
    }
    // Wait for what runs, without Python's lock, before the destructor does with it: while Python
    // exits, taking the lock again ends this thread, which a destructor does not allow.
    void drain()
    {
        if (process_.forked()) return;
        Fence last;
        {
            const std::lock_guard lock(mutex_);
            if (lost_.empty() && open_) try { flush(); } catch (const std::exception&) {}
            if (running_.empty() || !lost_.empty()) return;
            last = running_.back().fence;
        }
        if (without_lock([&] { return await(*last, patience); }) == vk::Result::eTimeout) patience = 0;
    }
    // Submit what is open, end the thread, and wait for what runs.
    void finish()
    {
        if (process_.forked()) {  // where the thread does not exist
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
        if (running_.empty() || !lost_.empty()) return;
        if (await(*running_.back().fence, patience) == vk::Result::eTimeout)
            new std::deque<Running>(std::move(running_));
    }

    std::uint64_t submitted() const { return submitted_; }
    // The number of the last call whose work is known to be done.
    std::uint64_t completed()
    {
        submit_open();
        retire();
        return completed_;
    }
    // The names of calls whose work is not known to be done.
    std::vector<std::string> pending() const
    {
        std::vector<std::string> found;
        const std::lock_guard lock(mutex_);
        for (const auto& each : running_)
            found.insert(found.end(), each.names.begin(), each.names.end());
        found.insert(found.end(), names_.begin(), names_.end());
        return found;
    }
    // What the device measures of what is submitted from now on: nothing, all of it, or each operation.
    enum Measures { NOTHING, TOTAL, EACH };
    int measures() const { return measures_; }
    void measure(int what)
    {
        submit_open();
        measures_ = what;
    }

    // Lend Vulkan's queue to the calling thread, which may submit to it as long as it has it: what
    // vkops was given before is submitted, and what others give it meanwhile waits for the end.
    void lend()
    {
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

    // Whether the device has all the submissions that it can have at a time, or the queue is lent.
    bool is_full() const
    {
        const std::lock_guard lock(mutex_);
        return running_.size() >= limit_ || lent_ != std::thread::id();
    }
    // Wait until it can have one more.
    void make_room()
    {
        await_return();
        retire();
        std::unique_lock lock(mutex_);
        if (running_.size() < limit_) return;
        const auto first = running_.front().last;
        lock.unlock();
        wait(first);
    }
    // Submit operations once, now or with others, and return the number of the call.
    std::uint64_t submit(const Operations& operations, const std::string& name)
    {
        retire();
        const std::lock_guard lock(mutex_);
        check();
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
        retire();
        const std::lock_guard lock(mutex_);
        check();
        if (open_) flush();
        const auto chosen = commands->running ? commands->twin() : commands;
        start({ chosen, unused_fence(), submitted_ + 1, { name }, false, 0 });
        return ++submitted_;
    }
    // Wait for a call, and all before it. A signal handler of Python may end the wait by an exception;
    // the work goes on.
    void wait(std::uint64_t number)
    {
        number = std::min(number, submitted_);
        if (number > completed_) submit_open();
        for (;;) {
            retire();
            if (number <= completed_) return;
            const auto fence = fence_of(number);  // which is not reset while it is held here
            const auto result = without_lock([&] { return await(*fence, SLICE); });
            std::unique_lock lock(mutex_);
            check(result, "vkWaitForFences");
            lock.unlock();
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
    // A submission that was measured: when, the number of its last call, and its operations.
    using Measured = std::tuple<std::int64_t, std::uint64_t, std::vector<Timing>>;
    // All that were since the last call, and have ended.
    std::vector<Measured> take_measured()
    {
        completed();
        return std::exchange(measured_, {});
    }

  private:
    static constexpr auto ONCE = vk::CommandBufferUsageFlagBits::eOneTimeSubmit;
    static constexpr std::uint64_t SLICE = 50'000'000;  // nanoseconds between looks for signals
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
    std::thread thread_;  // which submits what is open, while it runs
    std::thread::id lent_;  // the thread that has Vulkan's queue, if one does
    bool ends_ = false, stuck_ = false;
    int measures_ = NOTHING;
    std::shared_ptr<Commands> open_;   // which have operations, and are not submitted
    std::vector<std::string> names_;   // of the calls that are recorded in them
    std::deque<Running> running_;
    std::vector<std::shared_ptr<Commands>> spare_;
    std::vector<Fence> fences_;  // that have been signalled, or are new
    std::uint64_t submitted_ = 0, completed_ = 0;
    double nanoseconds_ = 0;
    std::vector<Measured> measured_;
    std::string lost_;  // why nothing is known of the work any more
    std::vector<std::shared_ptr<Commands>> dropped_;  // commands that could not be submitted

    // Throw the failure of a command of Vulkan. If the device is lost, each call throws that again:
    // drivers may report success for fences of a lost device.
    void check(vk::Result result = vk::Result::eSuccess, const char* command = "")
    {
        if (lost_.empty() && result == vk::Result::eErrorDeviceLost)
            lost_ = std::string(command) + ": " + vk::to_string(result);
        if (!lost_.empty()) throw Lost(lost_);
        if (int(result) < 0) fail(result, command);
    }
    // Wait until no other thread has Vulkan's queue.
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
    // Whether work has ended. The validation layer reads what shaders print after it has shown the
    // fence as signalled, and drops it if the commands are reset before: waiting for the queue ends that.
    vk::Result status(const Fence& fence) const
    {
        const auto found = static_cast<vk::Result>(vkGetFenceStatus(*owner_.device, *fence));
        if (found != vk::Result::eSuccess || !owner_.validated) return found;
        if (lent_ != std::thread::id()) return found;  // waiting for it needs the queue, too
        return static_cast<vk::Result>(vkQueueWaitIdle(owner_.handle));
    }
    Fence fence_of(std::uint64_t number) const
    {
        const std::lock_guard lock(mutex_);
        for (const auto& each : running_)
            if (each.last >= number) return each.fence;
        throw std::logic_error("the submission is not known");
    }
    void submit_open()
    {
        const std::lock_guard lock(mutex_);
        check();
        if (open_) flush();
    }
    // Whether the device has nothing to do.
    bool is_dry()
    {
        if (running_.empty()) return true;
        const auto found = status(running_.back().fence);
        check(found, "vkGetFenceStatus");
        return found == vk::Result::eSuccess;
    }
    // Record operations of a call in the open commands; if there are none, in others, which are open
    // then. Commands that cannot be recorded or submitted are destroyed.
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
    // Submit what is open. If that fails, the operations stay open, but for the last call with so many.
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
        } catch (const std::exception& error) {  // calls that have returned are lost
            lost_ = error.what();
        }
    }
    void start(Running made)
    {
        const vk::SubmitInfo info(0, nullptr, nullptr, 1, &made.commands->buffer);
        check(owner_.handle.submit(1, &info, *made.fence), "vkQueueSubmit");
        ++made.commands->running;
        running_.push_back(std::move(made));
    }
    // A fence that no thread waits for.
    Fence unused_fence()
    {
        for (auto& each : fences_)
            if (each.use_count() == 1) {
                owner_.device->resetFences(*each);
                return each;  // which is in use until the submission is done
            }
        fences_.push_back(owned(owner_.device->createFence({}), owner_.device));
        return fences_.back();
    }
    // Drop what the device has done.
    void retire()
    {
        std::vector<Running> done;
        std::unique_lock lock(mutex_);
        check();
        while (!running_.empty()) {
            const auto found = status(running_.front().fence);
            check(found, "vkGetFenceStatus");
            if (found != vk::Result::eSuccess) break;
            completed_ = running_.front().last;
            done.push_back(std::move(running_.front()));
            running_.pop_front();
        }
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
            spare_.push_back(each.commands);
        }
    }
    // Whether there is a thread that submits what is open.
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
                stuck_ = true;  // the next call finds what happened
            }
        }
    }
};
