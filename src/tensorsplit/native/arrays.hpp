// NumPy arrays: which of them the kernel can copy, and new ones for the parts.
#pragma once

#include "numpy.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "blocks.hpp"
#include "division.hpp"
#include "geometry.hpp"

namespace tensorsplit {

// Whether it is an ndarray, and of no subclass.
bool is_plain_array(PyObject* object);

// Whether two shapes of that rank are the same: they are so short that calling memcmp would take
// longer than comparing them.
inline bool same_numbers(const npy_intp* a, const npy_intp* b, int count) {
    for (int i = 0; i < count; ++i) {
        if (a[i] != b[i]) return false;
    }
    return true;
}

// Whether the elements are plain bytes, without references or handles.
bool holds_plain_bytes(PyArrayObject* array);

// The split, without destinations.
Split split_of(const Request& request);

// A new C-contiguous array for a part of that size; null with an exception set.
PyObject* new_part(const Request& request, npy_intp size);

// The same in memory of `blocks`, which is returned when the array and all views of it are gone.
PyObject* new_pooled_part(const Request& request, npy_intp size,
                          const std::shared_ptr<Blocks>& blocks);

// A C-contiguous array in memory of `blocks`; None if it needs none, or holds more than bytes; null
// with an exception set.
PyObject* new_pooled(PyArray_Descr* type, int rank, const npy_intp* shape,
                     const std::shared_ptr<Blocks>& blocks);

// Makes views of the parts of an array, which must not change meanwhile, one after the other.
class ViewMaker {
  public:
    explicit ViewMaker(const Request& request);

    // Null with an exception set.
    PyObject* next(npy_intp size);

  private:
    PyArrayObject* array_;
    PyArray_Descr* type_;
    std::uintptr_t data_, step_ = 0, offset_ = 0;  // as numbers, which may overflow
    int rank_ = 0, flags_;
    npy_intp shape_[NPY_MAXDIMS], strides_[NPY_MAXDIMS];
    npy_intp* size_ = nullptr;  // in the shape, if the axis stays
};

// A new C-contiguous array of a shape; null with an exception set.
PyObject* new_array(PyArray_Descr* type, const std::vector<npy_intp>& shape);

bool has_shape(PyArrayObject* array, const std::vector<npy_intp>& shape);

// Whether arrays have the shapes of the parts of a whole, and one type.
bool are_parts_of(const Whole& whole, const std::vector<PyObject*>& parts);

// Whether parts with elements, of which there are some, are views of one array.
bool have_one_base(const std::vector<PyObject*>& parts);

// The array whose views the parts of a whole may be, in order, as they lie; it is not empty. Null
// if they lie elsewhere, or with an exception set.
PyObject* view_of_parts(const std::vector<PyObject*>& parts, const Whole& whole);

// The join of parts to the array of the request; none if they need a closer look: they are ndarrays
// of the shapes and the type of the parts of a writable ndarray, which shares no memory with them,
// and in each of them the elements from the axis on lie together.
std::optional<Join> join_of(const Request& request, const std::vector<PyObject*>& parts);

// Whether parts can be written to these objects without further checks: they are C-contiguous
// writable ndarrays of the type and shape of their parts, and none shares memory with another.
bool are_simple_buffers(const Request& request, const std::vector<PyObject*>& out);

}  // namespace tensorsplit
