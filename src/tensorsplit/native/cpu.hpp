// Which kernels the processor can run.
#pragma once

#include "kernels.hpp"

namespace tensorsplit {

// The best kernels for this processor.
const Kernels& best_kernels();

// The kernels of that name; null if there are none, or the processor can't run them.
const Kernels* find_kernels(const char* name);

// Whether non-temporal stores are faster than ordinary ones for large copies. They were measured to
// be on Intel's servers since Ice Lake, and to be slower on older ones; the CPU flag "fast short
// rep mov" tells these apart.
bool non_temporal_is_fast();

}  // namespace tensorsplit
