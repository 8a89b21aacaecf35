// Which processors threads may use, and where they are; only Linux lets a thread choose.
#pragma once

#include <bitset>
#include <cstddef>
#include <optional>
#include <thread>

namespace tensorsplit {

// A set of processors, by their numbers.
using Processors = std::bitset<1024>;

// Where a thread is.
struct Place {
    Processors allowed;
    std::size_t processor;

    bool operator==(const Place& other) const {
        return allowed == other.allowed && processor == other.processor;
    }
};

// The place of the calling thread; none if the system does not say.
std::optional<Place> find_place();

// Whether the calling thread is on that processor.
bool is_on(std::size_t processor);

// The processors of the same core, that one included.
Processors core_of(std::size_t processor);

// Read numbers and ranges, such as "0,4-5"; what is no such list has no processors.
Processors read_processors(const char* text);

// Where `helpers` threads work beside one that is at `place`, on `core`: on the other cores if they
// have a processor for each, or else on any other processor. All that are allowed if there is none.
Processors beside(const Place& place, const Processors& core, std::size_t helpers);

// Keep a thread on these processors, if the system lets us.
void keep_on(std::thread::native_handle_type thread, const Processors& processors) noexcept;

// The same for the calling thread.
void stay_on(const Processors& processors) noexcept;

}  // namespace tensorsplit
