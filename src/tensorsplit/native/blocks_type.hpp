// `Blocks` as a Python type.
#pragma once

#include "numpy.hpp"

#include <memory>

#include "blocks.hpp"

namespace tensorsplit {

// The blocks of an object of the type.
const std::shared_ptr<Blocks>& blocks_of(PyObject* self);

// Add the type to the module; false with an exception set.
bool add_blocks_type(PyObject* module);

}  // namespace tensorsplit
