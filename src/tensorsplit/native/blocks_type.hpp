// `Blocks` as a Python type.
#pragma once

#include "numpy.hpp"

#include <memory>

#include "blocks.hpp"

namespace tensorsplit {

// The blocks of an object of the type.
const std::shared_ptr<Blocks>& blocks_of(PyObject* self);

// The blocks of a pool, as a new reference to an object of the type; null, maybe without an
// exception, for all that is not exactly of the type given to `use_pool`.
PyObject* find_blocks(PyObject* pool);

// Add the type to the module, and `use_pool`; false with an exception set.
bool add_blocks_type(PyObject* module);

}  // namespace tensorsplit
