// Which kernels the processor can run.
#pragma once

#include "kernels.hpp"

namespace tensorsplit {

// The best ones.
const Kernels& best_kernels();

// The ones of that name; null if there are none, or the processor can't run them.
const Kernels* find_kernels(const char* name);

// Whether writing around the cache is faster than writing through it, for large copies. It was
// measured so on Intel's servers since Ice Lake, which "fast short rep mov" tells from the older
// ones, on which it was slower.
bool streams_are_fast();

}  // namespace tensorsplit
