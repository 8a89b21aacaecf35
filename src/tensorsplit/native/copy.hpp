// Copying the parts of a split, with as many threads as are worth it.
#pragma once

#include "geometry.hpp"
#include "kernels.hpp"

namespace tensorsplit {

void copy_parts(const Kernels& kernels, const Split& split);

}  // namespace tensorsplit
