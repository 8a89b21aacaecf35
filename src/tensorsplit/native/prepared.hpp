// `Prepared` as a Python type: the base of plans, which split arrays that were found to fit before.
#pragma once

#include "numpy.hpp"

#include <vector>

#include "division.hpp"
#include "python.hpp"

namespace tensorsplit {

// What a plan was found to fit, and how that is divided. But for the type nothing of it changes.
// Objects are owned.
struct Ready {
    std::vector<npy_intp> shape;
    Division division;
    PyObject *axis, *sizes;  // as they came
    PyObject* type;          // of the array that was looked at last
};

// Whether it is a tuple of these numbers.
bool is_shape_of(const Ready& ready, PyObject* shape);

// The parts of an array of NumPy or a tensor, by a plan that was found to fit its type: views, new
// ones, or buffers. Null, maybe without an exception, if a closer look is needed. Throws
// std::bad_alloc.
PyObject* split_at_once(Owned& plan, PyObject* data, PyObject* copy, PyObject* out);

// Add the type to the module, and `called_at_once`; false with an exception set.
bool add_prepared_type(PyObject* module);

}  // namespace tensorsplit
