// The functions of the module.
#define TENSORSPLIT_IMPORTS_NUMPY
#include "numpy.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <vector>

#include "blocks_type.hpp"
#include "cache_key.hpp"
#include "copy.hpp"
#include "cpu.hpp"
#include "parts.hpp"
#include "pool.hpp"
#include "python.hpp"

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

// The division of all arrays of one shape.
struct Viewer {
    std::vector<npy_intp> shape;
    Division division;
};

constexpr const char* viewer_name = "tensorsplit.native.viewer";

PyObject* views_of(PyObject* self, PyObject* object) {
    const auto* viewer = static_cast<const Viewer*>(PyCapsule_GetPointer(self, viewer_name));
    if (viewer == nullptr) return nullptr;
    if (!is_plain_array(object)) return new_reference(Py_None);
    auto* array = reinterpret_cast<PyArrayObject*>(object);
    const npy_intp* shape = PyArray_DIMS(array);
    const bool fits =
        std::equal(viewer->shape.begin(), viewer->shape.end(), shape, shape + PyArray_NDIM(array));
    return fits ? list_views(array, viewer->division) : new_reference(Py_None);
}

PyMethodDef views_method = {
    "views", views_of, METH_O,
    "views(array)\n--\n\nThe parts; None for a subclass of ndarray or another shape."};

PyObject* make_viewer(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    return guarded([&]() -> PyObject* {
        auto viewer = std::make_unique<Viewer>();
        if (!count_is(count, 4) || !read_shape(arguments[0], viewer->shape)) return nullptr;
        const int rank = static_cast<int>(viewer->shape.size());
        if (!read_division(arguments + 1, rank, viewer->shape.data(), viewer->division)) {
            return nullptr;
        }
        Owned self(PyCapsule_New(viewer.get(), viewer_name, [](PyObject* capsule) {
            delete static_cast<Viewer*>(PyCapsule_GetPointer(capsule, viewer_name));
        }));
        if (!self) return nullptr;
        static_cast<void>(viewer.release());
        return PyCFunction_NewEx(&views_method, self.get(), nullptr);
    });
}

PyObject* key_of_call(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    return guarded([&]() -> PyObject* {
        return count_is(count, 2) ? cache_key(arguments[0], arguments[1]) : nullptr;
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

PyObject* use_non_temporal_from(PyObject*, PyObject* argument) {
    const std::size_t bytes = read_count(argument);
    if (bytes == 0) return nullptr;
    set_non_temporal_from(bytes);
    Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"copies", as_method(copies), METH_FASTCALL,
     "copies(array, axis, sizes, keepdims)\n--\n\n"
     "The parts as new arrays; None if NumPy has to copy them."},
    {"copy_into", as_method(copy_into), METH_FASTCALL,
     "copy_into(array, axis, sizes, keepdims, out)\n--\n\n"
     "Write the parts; False, with nothing written, if `out` needs a closer look."},
    {"viewer", as_method(make_viewer), METH_FASTCALL,
     "viewer(shape, axis, sizes, keepdims)\n--\n\n"
     "A function that gives the parts of an ndarray of that shape as views, and None for anything"
     " else, subclasses too."},
    {"cache_key", as_method(key_of_call), METH_FASTCALL,
     "cache_key(array, arguments)\n--\n\n"
     "What tells a call from all others; None where that takes a closer look."},
    {"use", use, METH_O, "use(name)\n--\n\nSelect kernels; the best ones if it is empty."},
    {"use_threads", use_threads, METH_O, "use_threads(count)\n--\n\nBound the threads."},
    {"use_non_temporal_from", use_non_temporal_from, METH_O,
     "use_non_temporal_from(bytes)\n--\n\nFrom how many bytes on stores are non-temporal."},
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
