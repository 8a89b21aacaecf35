#include "pool.hpp"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>

#ifndef _WIN32
#include <pthread.h>
#endif

namespace tensorsplit {
namespace {

std::atomic<std::size_t> allowed{1};

class Pool {
  public:
    // Whether the pool took the job; it does one at a time.
    bool run(std::size_t count, const std::function<void(std::size_t)>& work) {
        std::unique_lock<std::mutex> turn(busy_, std::try_to_lock);
        if (!turn.owns_lock()) return false;
        const std::size_t helpers = start(std::min(count, threads()) - 1);
        {
            std::lock_guard<std::mutex> lock(mutex_);
            work_ = &work;
            count_ = count;
            next_.store(0, std::memory_order_relaxed);
            wanted_ = helpers;
        }
        for (std::size_t i = 0; i < helpers; ++i) wake_.notify_one();
        take_all(work, count);
        std::unique_lock<std::mutex> lock(mutex_);
        wanted_ = 0;  // whoever has not woken by now is not needed any more
        done_.wait(lock, [this] { return working_ == 0; });
        work_ = nullptr;
        return true;
    }

  private:
    // As many helpers as could be started, up to `wanted`.
    std::size_t start(std::size_t wanted) {
        try {
            while (started_ < wanted) {
                std::thread([this] { help(); }).detach();
                ++started_;
            }
        } catch (const std::system_error&) {  // the system has no more threads to give
        }
        return std::min(started_, wanted);
    }

    void help() {
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            wake_.wait(lock, [this] { return wanted_ > 0; });
            --wanted_;
            ++working_;
            const auto* work = work_;
            const std::size_t count = count_;
            lock.unlock();
            take_all(*work, count);
            lock.lock();
            if (--working_ == 0) done_.notify_one();
        }
    }

    void take_all(const std::function<void(std::size_t)>& work, std::size_t count) {
        for (;;) {
            const std::size_t index = next_.fetch_add(1, std::memory_order_relaxed);
            if (index >= count) return;
            work(index);
        }
    }

    std::mutex busy_;
    std::size_t started_ = 0;

    std::mutex mutex_;
    std::condition_variable wake_, done_;
    const std::function<void(std::size_t)>* work_ = nullptr;
    std::size_t count_ = 0, wanted_ = 0, working_ = 0;
    std::atomic<std::size_t> next_{0};
};

// Never destroyed: its threads wait in it until the process ends, whatever ends it.
std::atomic<Pool*> current{nullptr};

#ifndef _WIN32
// A child of fork has none of its parent's threads, and its locks as they happened to be.
[[maybe_unused]] const int registered =
    pthread_atfork(nullptr, nullptr, [] { current.store(nullptr); });
#endif

Pool& pool() {
    Pool* seen = current.load();
    if (seen != nullptr) return *seen;
    Pool* made = new Pool;
    if (current.compare_exchange_strong(seen, made)) return *made;
    delete made;
    return *seen;
}

}  // namespace

void set_threads(std::size_t count) { allowed.store(std::max<std::size_t>(count, 1)); }

std::size_t threads() { return allowed.load(); }

void run_parallel(std::size_t count, const std::function<void(std::size_t)>& work) {
    if (count > 1 && threads() > 1 && pool().run(count, work)) return;
    for (std::size_t index = 0; index < count; ++index) work(index);
}

}  // namespace tensorsplit
