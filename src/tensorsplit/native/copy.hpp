// Copying the parts of a split, with as many threads as are worth it.
#pragma once

#include "geometry.hpp"
#include "kernels.hpp"

namespace tensorsplit {

// From how many bytes on stores are non-temporal, whatever the processor; for tests.
void set_non_temporal_from(std::size_t bytes);

void copy_parts(const Kernels& kernels, const Split& split);

}  // namespace tensorsplit
