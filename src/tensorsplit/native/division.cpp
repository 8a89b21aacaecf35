#include "division.hpp"

#include <algorithm>
#include <cstddef>

#include "arrays.hpp"
#include "python.hpp"

namespace tensorsplit {
namespace {

// Read an integer; false with an exception set. Objects with `__index__` are not accepted: their
// code could change the array in the meantime.
bool read_integer(PyObject* object, npy_intp& value) {
    if (!PyLong_Check(object)) return refuse(PyExc_TypeError, "not an integer");
    value = PyLong_AsSsize_t(object);
    return value != -1 || PyErr_Occurred() == nullptr;
}

bool read_sizes(PyObject* tuple, npy_intp extent, std::vector<npy_intp>& sizes) {
    if (!PyTuple_Check(tuple)) return refuse(PyExc_TypeError, "sizes must be a tuple");
    const Py_ssize_t count = PyTuple_Size(tuple);
    sizes.reserve(static_cast<std::size_t>(count));
    npy_intp left = extent;
    for (Py_ssize_t i = 0; i < count; ++i) {
        npy_intp size = 0;
        if (!read_integer(PyTuple_GetItem(tuple, i), size)) return false;
        if (size < 0 || size > left) {
            return refuse(PyExc_ValueError, "sizes must add up to the axis");
        }
        left -= size;
        sizes.push_back(size);
    }
    return left == 0 || refuse(PyExc_ValueError, "sizes must add up to the axis");
}

}  // namespace

bool still_fits(PyArrayObject* array, const Division& division) {
    const bool fits =
        division.axis < PyArray_NDIM(array) && PyArray_DIM(array, division.axis) == division.extent;
    return fits || refuse(PyExc_ValueError, "the array has changed its shape");
}

bool read_shape(PyObject* tuple, std::vector<npy_intp>& shape) {
    if (!PyTuple_Check(tuple)) return refuse(PyExc_TypeError, "the shape must be a tuple");
    shape.resize(static_cast<std::size_t>(PyTuple_Size(tuple)));
    for (std::size_t i = 0; i < shape.size(); ++i) {
        PyObject* extent = PyTuple_GetItem(tuple, static_cast<Py_ssize_t>(i));
        if (!read_integer(extent, shape[i])) return false;
    }
    return true;
}

bool read_division(PyObject* const* arguments, int rank, const npy_intp* shape,
                   Division& division) {
    npy_intp axis = 0, keepdims = 0;
    if (!read_integer(arguments[0], axis) || !read_integer(arguments[2], keepdims)) return false;
    if (axis < 0 || axis >= rank) return refuse(PyExc_ValueError, "no such axis");
    division.axis = static_cast<int>(axis);
    division.extent = shape[axis];
    division.keepdims = keepdims != 0;
    if (!read_sizes(arguments[1], division.extent, division.sizes)) return false;
    for (const npy_intp size : division.sizes) {
        if (!division.keepdims && size != 1) {
            return refuse(PyExc_ValueError, "an axis can be dropped only from parts of size 1");
        }
    }
    return true;
}

bool is_empty(const Whole& whole) {
    return std::find(whole.shape.begin(), whole.shape.end(), 0) != whole.shape.end();
}

bool read_parts(const std::vector<PyObject*>& parts, PyObject* axis, bool keepdims, Whole& whole) {
    if (parts.empty() || !PyLong_CheckExact(axis) || !is_plain_array(parts.front())) return false;
    auto* first = reinterpret_cast<PyArrayObject*>(parts.front());
    const int rank = PyArray_NDIM(first) + (keepdims ? 0 : 1);
    int overflow = 0;
    const long given = PyLong_AsLongAndOverflow(axis, &overflow);
    if (overflow != 0 || given < -rank || given >= rank || rank > NPY_MAXDIMS) return false;
    Division& division = whole.division;
    division.axis = static_cast<int>(given < 0 ? given + rank : given);
    division.keepdims = keepdims;
    division.extent = 0;
    division.sizes.reserve(parts.size());
    for (PyObject* each : parts) {
        auto* part = reinterpret_cast<PyArrayObject*>(each);
        if (!is_plain_array(each) || PyArray_NDIM(part) != PyArray_NDIM(first)) return false;
        const npy_intp size = keepdims ? PyArray_DIM(part, division.axis) : 1;
        if (size > NPY_MAX_INTP - division.extent) return false;
        division.extent += size;
        division.sizes.push_back(size);
    }
    whole.shape.assign(PyArray_DIMS(first), PyArray_DIMS(first) + PyArray_NDIM(first));
    if (!keepdims) whole.shape.insert(whole.shape.begin() + division.axis, 0);
    whole.shape[static_cast<std::size_t>(division.axis)] = division.extent;
    return true;
}

PyArrayObject* read_request(PyObject* const* arguments, Division& division) {
    if (!PyArray_Check(arguments[0])) {
        refuse(PyExc_TypeError, "not an array");
        return nullptr;
    }
    auto* array = reinterpret_cast<PyArrayObject*>(arguments[0]);
    const bool fits =
        read_division(arguments + 1, PyArray_NDIM(array), PyArray_DIMS(array), division);
    return fits ? array : nullptr;
}

}  // namespace tensorsplit
