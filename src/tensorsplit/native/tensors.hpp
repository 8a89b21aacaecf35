// Tensors of PyTorch: split by its own operations, and copied where it tells where their memory is.
#pragma once

#include "numpy.hpp"

#include <memory>

#include "blocks.hpp"
#include "prepared.hpp"
#include "python.hpp"

namespace tensorsplit {

// Whether it is a tensor, and of no subclass but Parameter; false before `use_torch`.
bool is_tensor(PyObject* object);

// Whether it is a tensor of any class.
bool is_of_torch(PyObject* object);

// What distinguishes tensors; types and layouts are objects that live for ever.
struct TensorFacts {
    explicit TensorFacts(PyObject* tensor);

    // False, with an exception set, if there is no shape, as of nested tensors.
    explicit operator bool() const;

    const Owned type, layout, shape;
};

// Whether a plan was found to fit such a tensor.
bool fits_tensor(const Ready& ready, PyObject* tensor);

// The parts of one tensor, by a plan for its shape.
struct TensorRequest {
    PyObject* tensor;  // borrowed
    const Ready& ready;
};

// As for arrays; null, or false, without an exception if Python has to look closer.
PyObject* list_views(const TensorRequest& request);
PyObject* list_copies(const TensorRequest& request, const std::shared_ptr<Blocks>& blocks);
bool copy_to_own(const TensorRequest& request, PyObject* list);

// Join a list of tensors as arrays are joined, which must be kept as `Owned::keep_during` does it.
PyObject* join_tensors(Owned& parts, PyObject* axis, bool keepdims, PyObject* copy, PyObject* out);

// Add `use_torch` to the module; false with an exception set.
bool add_tensor_functions(PyObject* module);

}  // namespace tensorsplit
