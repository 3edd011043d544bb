// Copies of host memory by several threads: one processor core is slower than a fast link to a device.
#pragma once

#include "adapters.hpp"

#include <condition_variable>
#include <cstring>
#include <deque>
#include <thread>

// Threads that copy parts of memory, until the object is freed. They use nothing of Python.
class Copier
{
  public:
    explicit Copier(std::size_t count) : count_(std::max<std::size_t>(count, 1)) {}
    Copier(const Copier&) = delete;
    Copier& operator=(const Copier&) = delete;
    ~Copier()
    {
        if (process_.forked()) {  // the threads do not exist here, and ~condition_variable would wait for them
            (void)shared_.release();
            return;
        }
        {
            const std::lock_guard lock(shared_->mutex);
            shared_->ends = true;
        }
        shared_->wake.notify_all();
        for (auto& each : shared_->threads) each.join();
    }
    // Copy bytes; the caller copies, too. Several callers take turns.
    void copy(char* to, const char* from, std::size_t nbytes)
    {
        auto& all = *shared_;
        const std::lock_guard turn(all.turn);
        auto part = (nbytes + count_ - 1) / count_;
        part = std::max(LEAST, (part + PAGE - 1) / PAGE * PAGE);
        std::unique_lock lock(all.mutex);
        for (std::size_t start = 0; start < nbytes; start += part, ++all.left)
            all.parts.push_back({ to + start, from + start, std::min(part, nbytes - start) });
        while (all.threads.size() + 1 < std::min(count_, all.parts.size())) try {
            all.threads.emplace_back(&Shared::work, &all);
        } catch (const std::system_error&) {  // the system has no more threads: copy with fewer
            break;
        }
        if (all.parts.size() > 1) all.wake.notify_all();
        while (!all.parts.empty()) all.copy_one(lock);
        all.done.wait(lock, [&] { return !all.left; });
    }

  private:
    static constexpr std::size_t PAGE = 4096, LEAST = 512 << 10;
    struct Part
    {
        char* to;
        const char* from;
        std::size_t nbytes;
    };
    // What the threads share.
    struct Shared
    {
        std::mutex turn, mutex;
        std::condition_variable wake, done;
        std::deque<Part> parts;
        std::size_t left = 0;  // parts that are not copied yet
        bool ends = false;
        std::vector<std::thread> threads;

        void copy_one(std::unique_lock<std::mutex>& lock)
        {
            const auto part = parts.front();
            parts.pop_front();
            lock.unlock();
            std::memcpy(part.to, part.from, part.nbytes);
            lock.lock();
            if (!--left) done.notify_all();
        }
        void work()
        {
            std::unique_lock lock(mutex);
            for (;;) {
                wake.wait(lock, [&] { return ends || !parts.empty(); });
                if (ends) return;
                copy_one(lock);
            }
        }
    };
    const std::size_t count_;  // of threads, the caller's included
    Process process_;
    std::unique_ptr<Shared> shared_ = std::make_unique<Shared>();
};
