// `Plans` as a Python type: what was decided for calls, found again by their arguments.
#pragma once

#include "numpy.hpp"

namespace tensorsplit {

// What is kept for a call with that array and those arguments, as a new reference; null, maybe
// without an exception, if nothing is, or if telling it from other calls takes a closer look: for
// arrays whose shape is no tuple of integers, and for arguments that are not None, integers, or
// lists, tuples or arrays of numbers. Throws std::bad_alloc.
PyObject* find_plan(PyObject* plans, PyObject* array, PyObject* const* arguments, Py_ssize_t count);

// Add the type to the module; false with an exception set.
bool add_plans_type(PyObject* module);

}  // namespace tensorsplit
