// `Prepared` as a Python type: the base of plans, which splits arrays that were found to fit before.
#pragma once

#include "numpy.hpp"

#include <vector>

#include "division.hpp"

namespace tensorsplit {

// What a plan was found to fit, and how that is divided. But for the type nothing of it changes.
// Objects are owned.
struct Ready {
    std::vector<npy_intp> shape;
    Division division;
    PyObject *axis, *sizes;  // as they came
    PyObject* type;          // of the array that was looked at last
};

// Whether the array has that shape, so that the division is one of its own.
bool has_shape_of(const Ready& ready, PyArrayObject* array);

// Whether it is a tuple of these numbers.
bool is_shape_of(const Ready& ready, PyObject* shape);

// What is ready of an object of the type, or of one derived from it; null if nothing is.
const Ready* ready_of(PyObject* prepared);

// Add the type to the module; false with an exception set.
bool add_prepared_type(PyObject* module);

}  // namespace tensorsplit
