// Copies and joins of many threads at once, while others change what decides their ways.
#include "copy.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include "cpu.hpp"
#include "pool.hpp"
#include "ways.hpp"

namespace {

using namespace tensorsplit;
using Bytes = std::vector<char>;

void check(bool holds) {
    if (!holds) std::_Exit(1);
}

// Split rows of 3 kB in two, and join them again.
void split_and_join(std::size_t rows, std::size_t seed) {
    const std::size_t left = 1000, right = 2000, whole = left + right;
    Bytes source(rows * whole), a(rows * left), b(rows * right), again(source.size());
    for (std::size_t i = 0; i < source.size(); ++i) {
        source[i] = static_cast<char>(i * 31 + i / whole + seed);
    }
    const auto signed_of = [](std::size_t number) { return static_cast<std::ptrdiff_t>(number); };
    const Split split{source.data(),
                      1,
                      {{rows, signed_of(whole)}, {whole, 1}},
                      1,
                      {{left, a.data()}, {right, b.data()}}};
    copy_parts(baseline, split);
    Join join;
    join.rows = rows;
    join.bytes = source.size();
    join.parts.push_back(
        {a.data(), {{rows, signed_of(left)}}, {0, left, again.data(), whole}});
    join.parts.push_back(
        {b.data(), {{rows, signed_of(right)}}, {0, right, again.data() + left, whole}});
    join_parts(baseline, join);
    check(again == source);
    check(std::memcmp(a.data(), source.data(), left) == 0);
}

}  // namespace

int main() {
    set_threads(3);
    std::atomic<bool> is_over{false};
    std::thread meddler([&] {
        for (std::size_t i = 0; !is_over; ++i) {
            set_threads(1 + i % 4);
            static_cast<void>(list_choices());
            if (i % 16 == 0) forget_choices();
            if (i % 32 == 0) set_non_temporal_from(i % 64 == 0 ? 0 : 1);
            std::this_thread::yield();
        }
    });
    std::vector<std::thread> callers;
    for (std::size_t seed = 0; seed < 4; ++seed) {
        callers.emplace_back([seed] {
            for (std::size_t i = 0; i < 20; ++i) split_and_join(30 + 200 * (i % 3), seed);
        });
    }
    for (std::thread& caller : callers) caller.join();
    is_over = true;
    meddler.join();
    std::puts("fine");
}
