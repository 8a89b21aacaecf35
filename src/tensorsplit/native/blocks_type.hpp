// `Blocks` as a Python type.
#pragma once

#include "numpy.hpp"

namespace tensorsplit {

// Add the type to the module; false with an exception set.
bool add_blocks_type(PyObject* module);

}  // namespace tensorsplit
