// Which way of copying is fastest for a kind of split and a size, as the copies themselves show.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "kernels.hpp"

namespace tensorsplit {

struct Way {
    Stores stores;
    std::size_t threads;

    bool operator==(const Way& other) const {
        return stores == other.stores && threads == other.threads;
    }
};

// What splits have in common for which the same way is fastest.
struct Kind {
    bool is_tiles;         // elements that are closest along another dimension than the last
    bool is_joined;        // parts to one array, and not an array to its parts
    std::uint8_t columns;  // the logarithm of their number, up to 31
    std::uint8_t width;    // that of the bytes of a column, on average
    bool is_even;          // the columns are of one width
    bool lines_in_step;    // they begin at the same place of a cache line

    unsigned flags() const {
        return (is_joined ? 8u : 0u) + (is_tiles ? 4u : 0u) + (is_even ? 2u : 0u) +
               (lines_in_step ? 1u : 0u);
    }

    unsigned number() const { return (flags() * 32 + columns) * 32 + width; }
};

// What has been chosen for copies of about `bytes` bytes, and the best times for a byte, in
// nanoseconds, of the last comparison; 0 where there is none yet.
struct Choice {
    Kind kind;
    std::size_t bytes;
    Way way, other;
    double time, time_of_other;
};

// From how many bytes on stores are non-temporal; 0 if that is to be measured. Forgets what was
// chosen.
void set_non_temporal_from(std::size_t bytes);

void forget_choices();

// The first guess, before anything is measured: what does not fit the cache with its parts.
std::size_t guessed_non_temporal_from();

// The way of the next copy, and how long it took, which only counts if all threads were free.
Way choose_way(const Kind& kind, std::size_t bytes);
void report_time(const Kind& kind, std::size_t bytes, const Way& way,
                 std::chrono::nanoseconds time);

std::vector<Choice> list_choices();

}  // namespace tensorsplit
