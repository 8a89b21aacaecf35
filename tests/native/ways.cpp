// How the way of a copy is chosen, where the copies take as long as a model of a machine says.
// Given an argument, it prints what the model says of the first guess and of what was chosen.
#include "ways.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <queue>
#include <string>
#include <vector>

#include "check.hpp"
#include "pool.hpp"

namespace {

using namespace tensorsplit;

constexpr std::size_t most_threads = 16;  // as tensorsplit.native has it
constexpr std::size_t piece = 64 * 1024;      // which a thread takes at least
constexpr std::size_t kibibyte = 1024, mebibyte = 1024 * 1024;
constexpr Kind columns_of_4{false, false, 2, 10, true, true};

// A machine: times in nanoseconds, rates in bytes for a nanosecond.
struct Machine {
    const char* name;
    double waking;    // how long it takes a thread to wake another one,
    double starting;  // and until that one runs
    double rate;      // at which one thread copies by plain stores,
    double memory;    // and all threads together
    double prefetched, non_temporal;  // how much longer other stores take
};

// As measured on an AMD EPYC (2 cores, a virtual machine): threads that spin, threads that have
// slept a millisecond, and 80. The rates of many threads are assumed.
std::vector<Machine> machines() {
    std::vector<Machine> found;
    for (const double memory : {2., 4., 8., 16.}) {
        found.push_back({"spinning", 100, 300, 10, memory * 10, 1, 1});
        found.push_back({"after 1 ms", 8000, 5000, 10, memory * 10, 1, 1});
        found.push_back({"after 80 ms", 19000, 14000, 10, memory * 10, 1, 1});
    }
    return found;
}

// When each thread begins to copy: the caller wakes one, and each that is woken two more.
std::vector<double> beginnings(const Machine& machine, std::size_t threads) {
    std::vector<double> begins{threads > 1 ? machine.waking : 0};
    std::priority_queue<double, std::vector<double>, std::greater<double>> awake;
    std::size_t left = threads - 1;
    const auto wake = [&](double time) {
        awake.push(time + machine.starting);
        --left;
    };
    if (left > 0) wake(0);
    while (!awake.empty()) {
        double time = awake.top();
        awake.pop();
        for (int i = 0; i < 2 && left > 0; ++i, time += machine.waking) wake(time);
        begins.push_back(time);
    }
    std::sort(begins.begin(), begins.end());
    return begins;
}

double time_of(const Machine& machine, const Way& way, std::size_t bytes) {
    double left = static_cast<double>(bytes);
    left *= way.stores == Stores::prefetched     ? machine.prefetched
            : way.stores == Stores::non_temporal ? machine.non_temporal
                                                 : 1;
    const std::size_t pieces = way.threads == 1 ? 1 : (bytes + piece - 1) / piece;
    const std::vector<double> begins = beginnings(machine, std::min(way.threads, pieces));
    for (std::size_t i = 0;; ++i) {
        const double rate =
            std::min(static_cast<double>(i + 1) * machine.rate, machine.memory);
        const double until = i + 1 < begins.size() ? begins[i + 1] : INFINITY;
        if (begins[i] + left / rate <= until) return begins[i] + left / rate;
        left -= rate * (until - begins[i]);
    }
}

// The ways of so many copies. `disturb` gives the factor by which a copy takes longer.
std::vector<Way> copy(
    const Machine& machine, std::size_t bytes, std::size_t copies, const Kind& kind = columns_of_4,
    const std::function<double(std::size_t)>& disturb = [](std::size_t) { return 1.; }) {
    std::vector<Way> ways;
    for (std::size_t i = 0; i < copies; ++i) {
        ways.push_back(choose_way(kind, bytes));
        const double time = time_of(machine, ways.back(), bytes) * disturb(i);
        report_time(kind, bytes, ways.back(),
                    std::chrono::nanoseconds(static_cast<std::int64_t>(time)));
    }
    return ways;
}

std::vector<Way> all_ways() {
    std::vector<Way> ways;
    for (std::size_t threads = 1; threads <= tensorsplit::threads(); ++threads) {
        for (const Stores stores : {Stores::plain, Stores::prefetched, Stores::non_temporal}) {
            ways.push_back({stores, threads});
        }
    }
    return ways;
}

double best_time(const Machine& machine, std::size_t bytes) {
    double best = INFINITY;
    for (const Way& way : all_ways()) best = std::min(best, time_of(machine, way, bytes));
    return best;
}

double time_of_all(const Machine& machine, const std::vector<Way>& ways, std::size_t bytes) {
    double sum = 0;
    for (const Way& way : ways) sum += time_of(machine, way, bytes);
    return sum;
}

void begin(std::size_t processors) {
    set_threads(std::min(processors, most_threads));
    set_non_temporal_from(0);
}

struct Outcome {
    double guess = 0, first_40 = 0, settled = 0;  // beside the fastest way
};

void worsen(Outcome& worst, const Outcome& seen) {
    worst.guess = std::max(worst.guess, seen.guess);
    worst.first_40 = std::max(worst.first_40, seen.first_40);
    worst.settled = std::max(worst.settled, seen.settled);
}

Outcome outcome_of(const Machine& machine, std::size_t processors, std::size_t bytes) {
    begin(processors);
    const std::vector<Way> ways = copy(machine, bytes, 41);
    const double best = best_time(machine, bytes);
    const std::vector<Way> first(ways.begin(), ways.begin() + 40);
    return {time_of(machine, ways.front(), bytes) / best,
            time_of_all(machine, first, bytes) / (40 * best),
            time_of(machine, ways.back(), bytes) / best};
}

// The worst outcome of all machines of that name.
Outcome worst_of(const std::string& name, std::size_t processors, std::size_t bytes) {
    Outcome worst;
    for (const Machine& machine : machines()) {
        if (machine.name == name) worsen(worst, outcome_of(machine, processors, bytes));
    }
    return worst;
}

void print_outcomes() {
    for (const std::size_t processors : {2, 4, 8, 16, 32, 64, 128}) {
        for (const char* name : {"spinning", "after 1 ms", "after 80 ms"}) {
            for (std::size_t bytes = 256 * kibibyte; bytes <= 256 * mebibyte; bytes *= 2) {
                const Outcome worst = worst_of(name, processors, bytes);
                std::printf("%zu processors, %s, %zu KiB: %.2f %.2f %.2f\n", processors, name,
                            bytes / kibibyte, worst.guess, worst.first_40, worst.settled);
            }
        }
    }
}

void test_the_number_of_threads() {
    for (const std::size_t processors : {2, 4, 8, 16, 32, 64, 128}) {
        for (std::size_t bytes = 256 * kibibyte; bytes <= 256 * mebibyte; bytes *= 2) {
            const Outcome awake = worst_of("spinning", processors, bytes);
            CHECK(awake.guess <= 2 && awake.first_40 <= 1.35 && awake.settled <= 1.05);
            for (const char* name : {"after 1 ms", "after 80 ms"}) {
                const Outcome rested = worst_of(name, processors, bytes);
                CHECK(rested.guess <= 1.25 && rested.first_40 <= 1.2 && rested.settled <= 1.2);
            }
        }
    }
}

// How often ways were used that are slower than the best one by more than a quarter.
std::ptrdiff_t count_slow(const Machine& machine, const std::vector<Way>& ways, std::size_t bytes) {
    const double best = best_time(machine, bytes);
    return std::count_if(ways.begin(), ways.end(), [&](const Way& way) {
        return time_of(machine, way, bytes) > 1.25 * best;
    });
}

void test_slow_ways_are_given_up() {
    for (const std::size_t processors : {1, 2, 16}) {
        for (const std::size_t bytes : {2 * mebibyte, 7 * mebibyte}) {
            for (const double slower : {1.3, 1.7, 4.}) {
                const Machine machine{"", 8000, 5000, 10, 80, slower, slower};
                begin(processors);
                const auto ways = copy(machine, bytes, 40);
                CHECK(count_slow(machine, ways, bytes) <= (slower < 1.6 ? 6 : 4));
                CHECK(time_of_all(machine, ways, bytes) <= 1.25 * 40 * best_time(machine, bytes));
            }
        }
    }
}

void test_a_faster_way_replaces_the_guess() {
    for (const std::size_t bytes : {4 * mebibyte, 7 * mebibyte}) {
        const Machine machine{"", 8000, 5000, 10, 20, 0.8, 0.5};
        begin(2);
        const auto ways = copy(machine, bytes, 40);
        CHECK(ways.front().stores == Stores::plain);
        CHECK(ways.back().stores == Stores::non_temporal);
        CHECK(ways.back().threads == 2);
        CHECK(count_slow(machine, ways, bytes) <= 14);
    }
}

void test_small_copies_stay_in_the_cache() {
    const Machine machine{"", 8000, 5000, 10, 20, 0.8, 0.5};
    begin(2);
    for (const Way& way : copy(machine, 2 * mebibyte, 100)) {
        CHECK(way.stores != Stores::non_temporal);
    }
}

void test_similar_splits_are_learned_from() {
    const Machine machine{"", 8000, 5000, 10, 20, 1.9, 0.5};
    constexpr Kind twice_as_many{false, false, 3, 10, true, true};
    constexpr Kind four_times{false, false, 4, 10, true, true};
    constexpr Kind uneven{false, false, 2, 10, false, true};
    begin(2);
    copy(machine, 4 * mebibyte, 100);
    const auto stores = [&](std::size_t bytes, const Kind& kind) {
        return copy(machine, bytes, 1, kind).front().stores;
    };
    CHECK(stores(6 * mebibyte, columns_of_4) == Stores::non_temporal);
    CHECK(stores(3 * mebibyte, columns_of_4) == Stores::non_temporal);
    CHECK(stores(4 * mebibyte, twice_as_many) == Stores::non_temporal);
    CHECK(stores(2 * mebibyte, columns_of_4) == Stores::plain);
    CHECK(stores(4 * mebibyte, four_times) == Stores::plain);
    CHECK(stores(6 * mebibyte, twice_as_many) == Stores::plain);
    CHECK(stores(4 * mebibyte, uneven) == Stores::plain);
    // Stores known to be far slower are not tried, but one thread is.
    CHECK(count_slow(machine, copy(machine, 6 * mebibyte, 40), 6 * mebibyte) == 1);
    // What the caller asks for is not learned.
    set_non_temporal_from(5 * mebibyte);
    copy(machine, 6 * mebibyte, 100);
    CHECK(stores(4 * mebibyte, columns_of_4) == Stores::plain);
}

void test_one_disturbed_copy_does_no_lasting_harm() {
    const Machine machine{"", 8000, 5000, 10, 20, 1.3, 0.8};
    for (std::size_t disturbed = 0; disturbed < 40; ++disturbed) {
        begin(2);
        const auto disturb = [&](std::size_t i) { return i == disturbed ? 10. : 1.; };
        const auto ways = copy(machine, 4 * mebibyte, 250, columns_of_4, disturb);
        CHECK(ways.back() == (Way{Stores::non_temporal, 2}));
    }
}

// How many of so many copies were made by another number of threads than before, where copies by
// two threads, and those by one, take longer by a factor.
std::ptrdiff_t count_others(std::size_t copies, double by_two, double by_one) {
    const Machine machine{"", 8000, 5000, 10, 20, 1.3, 4};
    const std::size_t bytes = 4 * mebibyte;
    std::ptrdiff_t others = 0;
    for (std::size_t i = 0; i < copies; ++i) {
        const Way way = choose_way(columns_of_4, bytes);
        const double time = time_of(machine, way, bytes) * (way.threads == 2 ? by_two : by_one);
        report_time(columns_of_4, bytes, way,
                    std::chrono::nanoseconds(static_cast<std::int64_t>(time)));
        if (way.threads != 2 || way.stores != Stores::plain) ++others;
    }
    return others;
}

void test_a_way_that_has_become_far_slower_is_given_up() {
    begin(2);
    count_others(60, 1, 1);
    CHECK(count_others(30, 6, 1) >= 10);
    CHECK(count_others(100, 6, 1) == 100);
    count_others(200, 1, 1);
    CHECK(count_others(60, 1, 1) == 0);  // and used again when it is the fastest again
}

void test_where_all_copies_become_slower_the_way_stays() {
    begin(2);
    count_others(60, 1, 1);
    CHECK(count_others(60, 3, 3) <= 5);
    std::ptrdiff_t others = 0;  // where they are slower and faster in turns
    for (int i = 0; i < 100; ++i) others += count_others(10, 3, 3) + count_others(10, 1, 1);
    CHECK(others <= 100);
}

// The first finds the caches as another way left them.
void test_the_fastest_copy_of_a_turn_counts_but_for_the_first() {
    const Machine machine{"", 8000, 5000, 10, 20, 1.3, 4};
    const std::size_t bytes = 4 * mebibyte;
    const std::vector<double> factors{0.5, 1, 1.1};
    begin(2);
    const auto ways =
        copy(machine, bytes, 3, columns_of_4, [&](std::size_t i) { return factors[i]; });
    const double found = list_choices().front().time * static_cast<double>(bytes);
    CHECK(std::abs(found - time_of(machine, ways.front(), bytes)) <= 1);
}

// Another thread may have begun its copy when it was the turn of another way.
void test_only_copies_of_the_way_whose_turn_it_is_count() {
    const Machine machine{"", 8000, 5000, 10, 20, 1.3, 4};
    const std::size_t bytes = 4 * mebibyte;
    const Way way{Stores::plain, 2}, no_turn{Stores::plain, 3};
    begin(2);
    for (int i = 0; i < 40; ++i) {
        copy(machine, bytes, 1);
        report_time(columns_of_4, bytes, no_turn, std::chrono::nanoseconds(1));
    }
    const std::vector<Choice> choices = list_choices();
    CHECK(choices.size() == 1 && choices[0].way == way);
    const double found = choices[0].time * static_cast<double>(bytes);
    CHECK(std::abs(found - time_of(machine, way, bytes)) <= 1);
}

}  // namespace

int main(int count, char**) {
    if (count > 1) print_outcomes();
    test_the_number_of_threads();
    test_slow_ways_are_given_up();
    test_a_faster_way_replaces_the_guess();
    test_small_copies_stay_in_the_cache();
    test_similar_splits_are_learned_from();
    test_one_disturbed_copy_does_no_lasting_harm();
    test_a_way_that_has_become_far_slower_is_given_up();
    test_where_all_copies_become_slower_the_way_stays();
    test_the_fastest_copy_of_a_turn_counts_but_for_the_first();
    test_only_copies_of_the_way_whose_turn_it_is_count();
    std::puts("fine");
}
