// Which kernels the processor can run.
#pragma once

#include <cstddef>

#include "kernels.hpp"

namespace tensorsplit {

// The best kernels for this processor.
const Kernels& best_kernels();

// The kernels of that name; null if there are none, or the processor can't run them.
const Kernels* find_kernels(const char* name);

struct Cache {
    std::size_t bytes;
    const char* origin;  // of that number
};

// The largest cache of a processor. Virtual machines may hide it, or show that of the whole
// machine.
Cache last_level_cache();

}  // namespace tensorsplit
