// Copying the parts of a split, or joining them, with as many threads as are worth it.
#pragma once

#include "geometry.hpp"
#include "kernels.hpp"

namespace tensorsplit {

void copy_parts(const Kernels& kernels, const Split& split);
void join_parts(const Kernels& kernels, Join join);

}  // namespace tensorsplit
