// Copies of the host's memory by several threads: one processor core is slower than a fast link.
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
        if (process_.forked()) {  // where the threads do not exist
            new std::vector<std::thread>(std::move(threads_));
            return;
        }
        {
            const std::lock_guard lock(mutex_);
            ends_ = true;
        }
        wake_.notify_all();
        for (auto& each : threads_) each.join();
    }
    // Copy bytes; the caller copies, too. Several callers take turns.
    void copy(char* to, const char* from, std::size_t nbytes)
    {
        const std::lock_guard turn(turn_);
        auto part = (nbytes + count_ - 1) / count_;
        part = std::max(LEAST, (part + PAGE - 1) / PAGE * PAGE);
        std::unique_lock lock(mutex_);
        for (std::size_t start = 0; start < nbytes; start += part, ++left_)
            parts_.push_back({ to + start, from + start, std::min(part, nbytes - start) });
        while (threads_.size() + 1 < std::min(count_, parts_.size())) try {
            threads_.emplace_back(&Copier::work, this);
        } catch (const std::system_error&) {  // the system has no more threads: the others do it
            break;
        }
        if (parts_.size() > 1) wake_.notify_all();
        while (!parts_.empty()) copy_one(lock);
        done_.wait(lock, [&] { return !left_; });
    }

  private:
    static constexpr std::size_t PAGE = 4096, LEAST = 512 << 10;
    struct Part
    {
        char* to;
        const char* from;
        std::size_t nbytes;
    };
    const std::size_t count_;  // of threads, the caller's included
    Process process_;
    std::mutex turn_, mutex_;
    std::condition_variable wake_, done_;
    std::deque<Part> parts_;
    std::size_t left_ = 0;  // parts that are not copied yet
    bool ends_ = false;
    std::vector<std::thread> threads_;

    void copy_one(std::unique_lock<std::mutex>& lock)
    {
        const auto part = parts_.front();
        parts_.pop_front();
        lock.unlock();
        std::memcpy(part.to, part.from, part.nbytes);
        lock.lock();
        if (!--left_) done_.notify_all();
    }
    void work()
    {
        std::unique_lock lock(mutex_);
        for (;;) {
            wake_.wait(lock, [&] { return ends_ || !parts_.empty(); });
            if (ends_) return;
            copy_one(lock);
        }
    }
};
