// The parts of an array, as a list.
#pragma once

#include <memory>

#include "arrays.hpp"
#include "kernels.hpp"

namespace tensorsplit {

// Use these kernels from now on.
void use_kernels(const Kernels& kernels);

// New arrays, in memory of `blocks` if that is not null; None if NumPy has to copy; null with an
// exception set.
PyObject* list_copies(const Request& request, const std::shared_ptr<Blocks>& blocks);

// Copy to each of `out`: True; False, with nothing written, if they need a closer look; null with
// an exception set.
PyObject* copy_to_each(const Request& request, PyObject* out);

// Views; null with an exception set.
PyObject* list_views(PyArrayObject* array, const Division& division);

}  // namespace tensorsplit
