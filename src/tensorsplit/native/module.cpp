// What Python sees.
#define TENSORSPLIT_IMPORTS_NUMPY
#include "numpy.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "copy.hpp"
#include "cpu.hpp"
#include "parts.hpp"
#include "pool.hpp"
#include "pooling.hpp"
#include "python.hpp"
#include "spelling.hpp"

namespace tensorsplit {
namespace {

PyObject* copies(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    return guarded([&]() -> PyObject* {
        Request request{};
        if (!count_is(count, 4) || !read_request(arguments, request)) return nullptr;
        return list_copies(request, nullptr);
    });
}

PyObject* copy_into(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    return guarded([&]() -> PyObject* {
        Request request{};
        if (!count_is(count, 5) || !read_request(arguments, request)) return nullptr;
        return copy_to_each(request, arguments[4]);
    });
}

// A division of all arrays of one shape.
struct Cutter {
    std::vector<npy_intp> shape;
    Division division;
};

constexpr const char* cutter_name = "tensorsplit.native.cutter";

PyObject* views_of(PyObject* self, PyObject* object) {
    const auto* cutter = static_cast<const Cutter*>(PyCapsule_GetPointer(self, cutter_name));
    if (cutter == nullptr) return nullptr;
    if (!is_plain_array(object)) return new_reference(Py_None);
    auto* array = reinterpret_cast<PyArrayObject*>(object);
    const npy_intp* shape = PyArray_DIMS(array);
    const bool fits =
        std::equal(cutter->shape.begin(), cutter->shape.end(), shape, shape + PyArray_NDIM(array));
    return fits ? list_views(array, cutter->division) : new_reference(Py_None);
}

PyMethodDef views_method = {
    "views", views_of, METH_O,
    "views(array)\n--\n\nThe parts; None if it is no ndarray itself, or of another shape."};

PyObject* viewer(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    return guarded([&]() -> PyObject* {
        auto cutter = std::make_unique<Cutter>();
        if (!count_is(count, 4) || !read_shape(arguments[0], cutter->shape)) return nullptr;
        const int rank = static_cast<int>(cutter->shape.size());
        if (!read_division(arguments + 1, rank, cutter->shape.data(), cutter->division)) {
            return nullptr;
        }
        Owned self(PyCapsule_New(cutter.get(), cutter_name, [](PyObject* capsule) {
            delete static_cast<Cutter*>(PyCapsule_GetPointer(capsule, cutter_name));
        }));
        if (!self) return nullptr;
        static_cast<void>(cutter.release());
        return PyCFunction_NewEx(&views_method, self.get(), nullptr);
    });
}

PyObject* spell_call(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    return guarded([&]() -> PyObject* {
        return count_is(count, 2) ? spell(arguments[0], arguments[1]) : nullptr;
    });
}

PyObject* use(PyObject*, PyObject* name) {
    Owned bytes(PyUnicode_AsUTF8String(name));
    if (!bytes) return nullptr;
    const char* text = PyBytes_AsString(bytes.get());
    const Kernels* found = *text == '\0' ? &best_kernels() : find_kernels(text);
    if (found == nullptr) {
        refuse(PyExc_ValueError, "the processor has no such kernels");
        return nullptr;
    }
    use_kernels(*found);
    return PyUnicode_FromString(found->name);
}

// Read a count of one or more; 0 with an exception set.
std::size_t read_count(PyObject* count) {
    const Py_ssize_t number = PyLong_AsSsize_t(count);
    if (number == -1 && PyErr_Occurred() != nullptr) return 0;
    if (number < 1) refuse(PyExc_ValueError, "it must be 1 or more");
    return number < 1 ? 0 : static_cast<std::size_t>(number);
}

PyObject* use_threads(PyObject*, PyObject* argument) {
    const std::size_t count = read_count(argument);
    if (count == 0) return nullptr;
    set_threads(count);
    Py_RETURN_NONE;
}

PyObject* use_streams_from(PyObject*, PyObject* argument) {
    const std::size_t bytes = read_count(argument);
    if (bytes == 0) return nullptr;
    stream_from(bytes);
    Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"copies", as_method(copies), METH_FASTCALL,
     "copies(array, axis, sizes, keepdims)\n--\n\n"
     "The parts as new arrays; None if NumPy has to copy them."},
    {"copy_into", as_method(copy_into), METH_FASTCALL,
     "copy_into(array, axis, sizes, keepdims, out)\n--\n\n"
     "Write the parts; False, with nothing written, unless all of `out` is plainly fine."},
    {"viewer", as_method(viewer), METH_FASTCALL,
     "viewer(shape, axis, sizes, keepdims)\n--\n\n"
     "A function that gives the parts of an ndarray itself of that shape as views, and None for"
     " anything else."},
    {"spell", as_method(spell_call), METH_FASTCALL,
     "spell(array, arguments)\n--\n\n"
     "What tells a call from all others; None where that takes a closer look."},
    {"use", use, METH_O, "use(name)\n--\n\nSelect kernels; the best ones if it is empty."},
    {"use_threads", use_threads, METH_O, "use_threads(count)\n--\n\nBound the threads."},
    {"use_streams_from", use_streams_from, METH_O,
     "use_streams_from(bytes)\n--\n\nHow large copies are that are written around the cache."},
    {nullptr, nullptr, 0, nullptr},
};

int execute(PyObject* module) {
    return PyArray_ImportNumPyAPI() == 0 && add_blocks_type(module) ? 0 : -1;
}

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void*>(execute)},
    {0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "tensorsplit.native._kernel",
    "Copies of the parts of an array.",
    0,
    methods,
    slots,
    nullptr,
    nullptr,
    nullptr,
};

}  // namespace
}  // namespace tensorsplit

PyMODINIT_FUNC PyInit__kernel() { return PyModuleDef_Init(&tensorsplit::definition); }
