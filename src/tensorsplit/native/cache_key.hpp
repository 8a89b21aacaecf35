// The key by which a call is found again.
#pragma once

#include "numpy.hpp"

namespace tensorsplit {

// For (array, arguments): something hashable that is equal for two calls only if they are given
// arrays of the same shape and element type, and arguments that mean the same. None where that
// takes a closer look: for arrays of subclasses, and for arguments that are not None, integers, or
// lists, tuples or arrays of integers. Null with an exception set.
PyObject* cache_key(PyObject* array, PyObject* arguments);

}  // namespace tensorsplit
