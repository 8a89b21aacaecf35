#include "pool.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "processors.hpp"

#ifdef TENSORSPLIT_SSE2
#include <emmintrin.h>
#endif
#ifndef _WIN32
#include <pthread.h>
#endif

namespace tensorsplit {
namespace {

std::atomic<std::size_t> allowed{1};

// How long a thread spins before it sleeps: copies often follow each other, and a thread that has
// to be woken comes too late for a copy of a megabyte.
constexpr std::chrono::microseconds spin_timeout{20};

// One turn of a spin loop. Yielding instead made copies of a megabyte slower, and other libraries'.
void relax() {
#ifdef TENSORSPLIT_SSE2
    _mm_pause();
#elif defined(TENSORSPLIT_VECTORS)
    __asm__ volatile("yield");
#endif
}

template <class Ready>
void spin_until(Ready ready) {
    const auto end = std::chrono::steady_clock::now() + spin_timeout;
    while (!ready() && std::chrono::steady_clock::now() < end) relax();
}

class Pool {
  public:
    // Whether the pool ran the job; it runs one at a time. Throws what the work threw first, when
    // no thread works on it any more.
    bool run(std::size_t count, std::size_t most, const std::function<void(std::size_t)>& work) {
        std::unique_lock<std::mutex> turn(busy_, std::try_to_lock);
        if (!turn.owns_lock()) return false;
        std::vector<std::atomic<bool>> taken(count);
        const std::optional<Place> caller = find_place();
        const bool is_alone = caller && caller->allowed.count() == 1;
        const std::size_t helpers = is_alone ? 0 : start(std::min(count, most) - 1);
        if (caller) keep_beside(*caller);
        {
            std::lock_guard<std::mutex> lock(mutex_);
            job_ = {&work, &taken, helpers + 1};
            wanted_ = helpers;
        }
        if (helpers != 0) wake_.notify_one();
        take_all(job_, 0);
        {
            std::lock_guard<std::mutex> lock(mutex_);
            wanted_ = 0;  // threads that have not woken by now are not needed
        }
        spin_until([this] { return working_ == 0; });
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, [this] { return working_ == 0; });
        if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
        return true;
    }

  private:
    struct Work {
        const std::function<void(std::size_t)>* work;
        std::vector<std::atomic<bool>>* taken;
        std::size_t threads;
    };

    // As many helpers as could be started, up to `wanted`.
    std::size_t start(std::size_t wanted) {
        try {
            while (helpers_.size() < wanted) {
                helpers_.reserve(helpers_.size() + 1);
                std::thread helper([this, number = helpers_.size() + 1] { help(number); });
                helpers_.push_back(helper.native_handle());
                helper.detach();
            }
        } catch (const std::exception&) {  // the system has no more threads, or no more memory
        }
        return std::min(helpers_.size(), wanted);
    }

    // Keep the helpers off the caller's processor, where Linux may wake them, and leaves them until
    // the copy is over; and on those that the caller may use, which may be others each time.
    void keep_beside(const Place& caller) {
        if (caller == caller_ && helpers_.size() == placed_) return;
        const auto core = cores_.find(caller.processor);
        const Processors found =
            beside(caller, core != cores_.end() ? core->second : add_core(caller.processor),
                   helpers_.size());
        {
            std::lock_guard<std::mutex> lock(mutex_);
            caller_ = caller;
            beside_ = found;
        }
        for (const auto helper : helpers_) keep_on(helper, found);
        placed_ = helpers_.size();
    }

    const Processors& add_core(std::size_t processor) {
        return cores_.emplace(processor, core_of(processor)).first->second;
    }

    void help(std::size_t number) {
        for (;;) {
            spin_until([this] { return wanted_ > 0; });
            std::unique_lock<std::mutex> lock(mutex_);
            if (wanted_ == 0) wake_.wait(lock);
            if (is_on(caller_.processor) && !beside_[caller_.processor]) go_beside(lock);
            if (wanted_ == 0) continue;  // too late for this job
            --wanted_;
            ++working_;
            const Work job = job_;
            lock.unlock();
            wake_others();
            take_all(job, number);
            lock.lock();
            if (--working_ == 0) done_.notify_one();
        }
    }

    // Each helper wakes two more, as waking one takes the caller several microseconds.
    void wake_others() {
        for (int i = 0; i < 2 && wanted_ > 0; ++i) wake_.notify_one();
    }

    // Leave the caller's processor: whatever moved this thread there, Linux or another program.
    // That may take long, and the caller, which needs the lock, may move the helpers meanwhile.
    void go_beside(std::unique_lock<std::mutex>& lock) {
        Processors processors;
        do {
            processors = beside_;
            lock.unlock();
            stay_on(processors);
            lock.lock();
        } while (processors != beside_);
    }

    // Each thread begins with the same pieces in every copy of the same size, which may still be in
    // the cache of its processor. The pieces are interleaved, so that all threads work at about the
    // same place. After a failure nothing is left to take.
    void take_all(const Work& job, std::size_t number) noexcept {
        try {
            for (std::size_t other = 0; other < job.threads; ++other) {
                std::size_t index = (number + other) % job.threads;
                for (; index < job.taken->size(); index += job.threads) {
                    std::atomic<bool>& taken = (*job.taken)[index];
                    if (!taken.exchange(true, std::memory_order_relaxed)) (*job.work)(index);
                }
            }
        } catch (...) {
            for (std::atomic<bool>& taken : *job.taken) taken = true;
            std::lock_guard<std::mutex> lock(mutex_);
            if (!failure_) failure_ = std::current_exception();
        }
    }

    std::mutex busy_;  // held by the caller whose job it is, who alone uses these:
    std::vector<std::thread::native_handle_type> helpers_;
    std::map<std::size_t, Processors> cores_;  // of the processors on which callers were
    std::size_t placed_ = 0;                   // how many helpers are beside the caller

    std::mutex mutex_;
    std::condition_variable wake_, done_;
    Work job_{};
    std::exception_ptr failure_;                       // the first of the job
    Place caller_{{}, SIZE_MAX};                       // of the last job that moved the helpers,
    Processors beside_;                                // and where they work
    std::atomic<std::size_t> wanted_{0}, working_{0};  // changed while the mutex is held
};

// Never destroyed: its threads wait in it until the process ends.
std::atomic<Pool*> current{nullptr};

#ifndef _WIN32
// A child of fork has none of its parent's threads, and locks in any state.
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

bool run_parallel(std::size_t count, std::size_t most,
                  const std::function<void(std::size_t)>& work) {
    const bool wanted = count > 1 && most > 1;
    if (wanted && pool().run(count, most, work)) return true;
    for (std::size_t index = 0; index < count; ++index) work(index);
    return !wanted;
}

}  // namespace tensorsplit
