// Python's fast way of calling, where the stable interface of Python 3.11 has no names for it.
#pragma once

#include "numpy.hpp"

#include <cstddef>

#include "python.hpp"

#include <structmember.h>

#ifndef Py_TPFLAGS_HAVE_VECTORCALL  // there from 3.12 on, with this value
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
#endif

namespace tensorsplit {

using Vectorcall = PyObject* (*)(PyObject*, PyObject* const*, std::size_t, PyObject*);

// How many arguments are given by position.
inline Py_ssize_t positional_of(std::size_t flags) {
    return static_cast<Py_ssize_t>(flags & ~(std::size_t{1} << (8 * sizeof(std::size_t) - 1)));
}

// Call a function of Python, with `self` before the arguments unless it is null. The function may
// be null with an exception set; it is released.
inline PyObject* call_python(PyObject* function, PyObject* self, PyObject* const* arguments,
                             Py_ssize_t count, PyObject* names) {
    Owned called(function);
    const Py_ssize_t first = self == nullptr ? 0 : 1;
    Owned positional(called ? PyTuple_New(first + count) : nullptr);
    Owned named(names == nullptr ? nullptr : PyDict_New());
    if (!positional || (names != nullptr && !named)) return nullptr;
    if (self != nullptr) PyTuple_SetItem(positional.get(), 0, new_reference(self));
    for (Py_ssize_t i = 0; i < count; ++i) {
        PyTuple_SetItem(positional.get(), first + i, new_reference(arguments[i]));
    }
    for (Py_ssize_t i = 0; named && i < PyTuple_Size(names); ++i) {
        PyObject* value = arguments[count + i];
        if (PyDict_SetItem(named.get(), PyTuple_GetItem(names, i), value) < 0) return nullptr;
    }
    PyObject *ready = positional.get(), *by_name = named.get(), *answer = nullptr;
    keep_all_during([&] { answer = PyObject_Call(function, ready, by_name); }, called, positional,
                    named);
    return answer;
}

}  // namespace tensorsplit
