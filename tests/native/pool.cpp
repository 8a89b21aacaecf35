// The pool of threads by itself: what its work throws, and where its threads belong.
#include "check.hpp"
#include "pool.hpp"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <new>
#include <stdexcept>
#include <thread>

#include "processors.hpp"

namespace {

using namespace tensorsplit;
using std::chrono::milliseconds;

// What a job uses, which is gone when the job is over.
struct Used {
    std::atomic<int> at_work{0};
    std::atomic<bool> has_helper{false}, has_failed{false};
};

template <class Condition>
void wait_for(Condition condition) {
    for (int i = 0; i < 20000 && !condition(); ++i) std::this_thread::sleep_for(milliseconds(1));
    CHECK(condition());
}

// A job that fails, on the caller's thread or on a helper's, while another thread works on it.
template <class Error, class Throw>
void fails(bool by_helper, Throw raise) {
    auto used = std::make_unique<Used>();
    const auto caller = std::this_thread::get_id();
    bool is_caught = false;
    try {
        run_parallel(64, 3, [&](std::size_t) {
            ++used->at_work;
            const bool is_helper = std::this_thread::get_id() != caller;
            if (is_helper) used->has_helper = true;
            wait_for([&] { return used->has_helper.load(); });
            if (is_helper == by_helper) {
                used->has_failed = true;
                --used->at_work;
                raise();
            }
            wait_for([&] { return used->has_failed.load(); });
            std::this_thread::sleep_for(milliseconds(5));  // the other one has failed long ago
            --used->at_work;
        });
    } catch (const Error&) {
        is_caught = true;
    }
    CHECK(is_caught);
    CHECK(used->at_work == 0);
    used.reset();
    std::atomic<int> done{0};
    CHECK(run_parallel(100, 3, [&](std::size_t) { ++done; }));
    CHECK(done == 100);
}

void test_what_the_work_throws_reaches_the_caller() {
    for (const bool by_helper : {false, true}) {
        for (int i = 0; i < 20; ++i) {
            fails<std::bad_alloc>(by_helper, [] { throw std::bad_alloc(); });
            fails<std::length_error>(by_helper, [] { throw std::length_error("too long"); });
            fails<int>(by_helper, [] { throw 3; });
        }
    }
}

// All threads that a job asks for work on it, also when all of them sleep as it comes.
void test_all_helpers_are_woken() {
    constexpr int threads = 8;
    for (int i = 0; i < 20; ++i) {
        std::atomic<int> at_work{0};
        CHECK(run_parallel(threads, threads, [&](std::size_t) {
            ++at_work;
            wait_for([&] { return at_work == threads; });
        }));
        std::this_thread::sleep_for(milliseconds(i % 2 == 0 ? 5 : 0));
    }
}

Place at(std::size_t processor, const char* allowed) {
    return {read_processors(allowed), processor};
}

void test_helpers_work_beside_the_caller() {
    const auto seen = [](std::size_t processor, const char* allowed, const char* core,
                         std::size_t helpers) {
        return beside(at(processor, allowed), read_processors(core), helpers);
    };
    // Two processors, and one that is left of them.
    CHECK(seen(0, "0-1", "0", 1) == read_processors("1"));
    CHECK(seen(1, "0-1", "1", 1) == read_processors("0"));
    CHECK(seen(1, "1", "1", 1) == read_processors("1"));
    // Four cores of two processors each: other cores first, if they have room.
    CHECK(seen(1, "0-7", "1,5", 1) == read_processors("0,2-4,6-7"));
    CHECK(seen(1, "0-7", "1,5", 6) == read_processors("0,2-4,6-7"));
    CHECK(seen(1, "0-7", "1,5", 7) == read_processors("0,2-7"));
    CHECK(seen(1, "1,5", "1,5", 1) == read_processors("5"));
    CHECK(seen(1, "1,2,5", "1,5", 1) == read_processors("2"));
    CHECK(seen(1, "1,2,5", "1,5", 2) == read_processors("2,5"));
    // Where the caller is, it may not be any more.
    CHECK(seen(3, "0-1", "3", 1) == read_processors("0-1"));
    // Many.
    CHECK(seen(1023, "0-1023", "511,1023", 15) == read_processors("0-510,512-1022"));
}

void test_lists_of_processors_are_read() {
    CHECK(read_processors("").none());
    CHECK(read_processors("junk").none());
    CHECK(read_processors("0,4-5,9\n").to_ulong() == 0x231);
    CHECK(read_processors("1022-5000").count() == 2);
    CHECK(read_processors("5-").count() <= 1);
}

}  // namespace

int main() {
    test_helpers_work_beside_the_caller();
    test_lists_of_processors_are_read();
    const std::optional<Place> place = find_place();
    if (!place || place->allowed.count() > 1) {
        test_what_the_work_throws_reaches_the_caller();
        test_all_helpers_are_woken();
    }
    std::puts("fine");
}
