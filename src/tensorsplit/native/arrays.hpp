// NumPy arrays: which of them the kernel can copy, and new ones for the parts.
#pragma once

#include "numpy.hpp"

#include <cstddef>
#include <vector>

#include "geometry.hpp"

namespace tensorsplit {

// What to cut, as Python says it.
struct Request {
    PyArrayObject* array;  // borrowed
    int axis;
    std::vector<npy_intp> sizes;  // along the axis; all of them are the axis
    bool keepdims;

    std::size_t part_bytes(npy_intp size) const;
};

// Whether it is an ndarray, and of no subclass.
bool is_plain_array(PyObject* object);

// Whether the elements are bytes that can be copied without anybody's help.
bool holds_plain_bytes(PyArrayObject* array);

// The cut, with no destinations yet.
Cut cut_of(const Request& request);

// A new C-contiguous array for the part; null with an exception set.
PyObject* new_part(const Request& request, npy_intp size);

// A view of the part that begins at `offset` along the axis; null with an exception set.
PyObject* new_view(const Request& request, npy_intp offset, npy_intp size);

// Whether the objects are just what parts can be written to without looking any closer: ndarrays,
// C-contiguous, writable, of the type and shape of their parts, each alone with its memory.
bool are_plainly_fine(const Request& request, const std::vector<PyObject*>& out);

}  // namespace tensorsplit
