// The parts of an array, as a list.
#pragma once

#include <memory>
#include <vector>

#include "arrays.hpp"
#include "kernels.hpp"

namespace tensorsplit {

// Use these kernels from now on.
void use_kernels(const Kernels& kernels);

// What a list holds, as borrowed references; it must not change meanwhile.
std::vector<PyObject*> entries_of(PyObject* list);

// New arrays, in memory of `blocks` if that is not null; None if NumPy has to copy; null with an
// exception set.
PyObject* list_copies(const Request& request, const std::shared_ptr<Blocks>& blocks);

// Copy to each of `out`: True; False, with nothing written, if they need a closer look; null with
// an exception set.
PyObject* copy_to_each(const Request& request, PyObject* out);

// The same for a list that nobody else has, which must be kept as `Owned::keep_during` does it;
// false, maybe with an exception set, if nothing was written.
bool copy_to_own(const Request& request, PyObject* list);

// Join a list or a tuple of arrays or tensors along an axis, an int, which they keep or not: in
// `out`, or in a new array, or without a copy as the array whose views they are, unless `copy` is
// True. Null, maybe without an exception, with nothing written, where anything needs a closer look.
PyObject* join_at_once(PyObject* parts, PyObject* axis, PyObject* keepdims, PyObject* copy,
                       PyObject* out);

// Views; null with an exception set.
PyObject* list_views(const Request& request);

}  // namespace tensorsplit
