// How an axis is divided, read from Python objects.
#pragma once

#include "numpy.hpp"

#include <vector>

namespace tensorsplit {

struct Division {
    int axis;
    npy_intp extent;              // of the axis
    std::vector<npy_intp> sizes;  // along the axis; they add up to the extent
    bool keepdims;
};

// The parts of one array.
struct Request {
    PyArrayObject* array;  // borrowed
    const Division& division;
};

// Whether the sizes still fit the array; false with an exception set. Creating a list, or reading
// one of the caller's, may run any Python code, even code that changes the shape of the array.
bool still_fits(PyArrayObject* array, const Division& division);

// Read a tuple of integers; false with an exception set.
bool read_shape(PyObject* tuple, std::vector<npy_intp>& shape);

// Read (axis, sizes, keepdims) for the shape; false with an exception set.
bool read_division(PyObject* const* arguments, int rank, const npy_intp* shape, Division& division);

// What parts are joined to, by their own shapes.
struct Whole {
    std::vector<npy_intp> shape;
    Division division;
};

bool is_empty(const Whole& whole);

// Read what is made of parts along an axis, which is an int, and kept by them or not; false where
// they need a closer look. Only of the first is the shape beside the axis looked at.
bool read_parts(const std::vector<PyObject*>& parts, PyObject* axis, bool keepdims, Whole& whole);

// Read (array, axis, sizes, keepdims): the array, as it came; null with an exception set.
PyArrayObject* read_request(PyObject* const* arguments, Division& division);

}  // namespace tensorsplit
