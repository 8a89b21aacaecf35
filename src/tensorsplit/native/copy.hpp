// Doing a cut, with as many threads as it is worth.
#pragma once

#include "geometry.hpp"
#include "kernels.hpp"

namespace tensorsplit {

// From how many bytes on parts are written around the cache, whatever the processor; for tests.
void stream_from(std::size_t bytes);

void copy_parts(const Kernels& kernels, const Cut& cut);

}  // namespace tensorsplit
