// What Python sees.
#define TENSORSPLIT_IMPORTS_NUMPY
#include "numpy.hpp"

#include <cstddef>
#include <new>
#include <vector>

#include "arrays.hpp"
#include "copy.hpp"
#include "cpu.hpp"
#include "pool.hpp"

namespace tensorsplit {
namespace {

const Kernels* in_use = &best_kernels();

// Below this, letting other Python threads run takes longer than the copy.
constexpr npy_intp worth_releasing = 64 * 1024;

// A reference that is given up at the end of a scope.
class Owned {
  public:
    explicit Owned(PyObject* object) : object_(object) {}
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    ~Owned() { Py_XDECREF(object_); }

    PyObject* get() const { return object_; }
    PyObject* release() {
        PyObject* object = object_;
        object_ = nullptr;
        return object;
    }
    explicit operator bool() const { return object_ != nullptr; }

    // Run what lets other Python threads run. When Python ends in the meantime it may end this
    // thread too, by unwinding it (until 3.13); then the object must not be touched any more.
    template <class Action>
    void keep_during(Action action) {
        PyObject* object = release();
        try {
            action();
        } catch (const std::bad_alloc&) {
            object_ = object;
            throw;
        }
        object_ = object;
    }

  private:
    PyObject* object_;
};

bool refuse(PyObject* kind, const char* why) {
    PyErr_SetString(kind, why);
    return false;
}

bool read_sizes(PyObject* tuple, npy_intp extent, std::vector<npy_intp>& sizes) {
    if (!PyTuple_Check(tuple)) return refuse(PyExc_TypeError, "sizes must be a tuple");
    const Py_ssize_t count = PyTuple_Size(tuple);
    sizes.reserve(static_cast<std::size_t>(count));
    npy_intp left = extent;
    for (Py_ssize_t i = 0; i < count; ++i) {
        const npy_intp size = PyLong_AsSsize_t(PyTuple_GetItem(tuple, i));
        if (size == -1 && PyErr_Occurred() != nullptr) return false;
        if (size < 0 || size > left) {
            return refuse(PyExc_ValueError, "sizes must add up to the axis");
        }
        left -= size;
        sizes.push_back(size);
    }
    return left == 0 || refuse(PyExc_ValueError, "sizes must add up to the axis");
}

// Read (array, axis, sizes, keepdims); false with an exception set.
bool read(PyObject* const* arguments, Request& request) {
    if (!PyArray_Check(arguments[0])) return refuse(PyExc_TypeError, "not an array");
    request.array = reinterpret_cast<PyArrayObject*>(arguments[0]);
    const long axis = PyLong_AsLong(arguments[1]);
    if (axis == -1 && PyErr_Occurred() != nullptr) return false;
    if (axis < 0 || axis >= PyArray_NDIM(request.array)) {
        return refuse(PyExc_ValueError, "no such axis");
    }
    request.axis = static_cast<int>(axis);
    const int keepdims = PyObject_IsTrue(arguments[3]);
    if (keepdims < 0) return false;
    request.keepdims = keepdims != 0;
    if (!read_sizes(arguments[2], PyArray_DIM(request.array, request.axis), request.sizes)) {
        return false;
    }
    for (const npy_intp size : request.sizes) {
        if (!request.keepdims && size != 1) {
            return refuse(PyExc_ValueError, "an axis can be dropped only from parts of size 1");
        }
    }
    return true;
}

// Run `action`, which may lack memory; false with an exception set.
template <class Action>
bool guarded(Action action) {
    try {
        return action();
    } catch (const std::bad_alloc&) {
        PyErr_NoMemory();
        return false;
    }
}

// Copy the parts to arrays that hold them in C order and that somebody keeps alive.
void copy_to(const Request& request, const std::vector<PyObject*>& parts) {
    Cut cut = cut_of(request);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        auto* part = reinterpret_cast<PyArrayObject*>(parts[i]);
        cut.parts.push_back({static_cast<std::size_t>(request.sizes[i]), PyArray_BYTES(part)});
    }
    if (PyArray_NBYTES(request.array) < worth_releasing) return copy_parts(*in_use, cut);
    PyThreadState* state = PyEval_SaveThread();
    try {
        copy_parts(*in_use, cut);
    } catch (const std::bad_alloc&) {
        PyEval_RestoreThread(state);
        throw;
    }
    PyEval_RestoreThread(state);
}

// A list of what `make(offset, size)` gives for each part; null with an exception set.
template <class Make>
PyObject* list_parts(const Request& request, Make make) {
    Owned list(PyList_New(static_cast<Py_ssize_t>(request.sizes.size())));
    if (!list) return nullptr;
    npy_intp offset = 0;
    Py_ssize_t index = 0;
    for (const npy_intp size : request.sizes) {
        PyObject* part = make(offset, size);
        if (part == nullptr || PyList_SetItem(list.get(), index++, part) < 0) return nullptr;
        offset += size;
    }
    return list.release();
}

bool count_is(Py_ssize_t given, Py_ssize_t wanted) {
    return given == wanted || refuse(PyExc_TypeError, "wrong number of arguments");
}

PyObject* copies(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    PyObject* list = nullptr;
    const bool done = guarded([&] {
        Request request{};
        if (!count_is(count, 4) || !read(arguments, request)) return false;
        if (!is_plain_array(arguments[0]) || !holds_plain_bytes(request.array)) {
            Py_INCREF(Py_None);
            list = Py_None;
            return true;
        }
        std::vector<PyObject*> parts;
        parts.reserve(request.sizes.size());
        Owned made(list_parts(request, [&](npy_intp, npy_intp size) {
            parts.push_back(new_part(request, size));
            return parts.back();
        }));
        if (!made) return false;
        made.keep_during([&] { copy_to(request, parts); });
        list = made.release();
        return true;
    });
    return done ? list : nullptr;
}

PyObject* copy_into(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    bool is_copied = false;
    const bool done = guarded([&] {
        Request request{};
        if (!count_is(count, 5) || !read(arguments, request)) return false;
        PyObject* given = arguments[4];
        if (!PyList_Check(given) && !PyTuple_Check(given)) return true;
        // A tuple of our own: a list could be emptied by another thread while we copy.
        Owned tuple(PySequence_Tuple(given));
        if (!tuple) return false;
        std::vector<PyObject*> out;
        const Py_ssize_t buffers = PyTuple_Size(tuple.get());
        out.reserve(static_cast<std::size_t>(buffers));
        for (Py_ssize_t i = 0; i < buffers; ++i) out.push_back(PyTuple_GetItem(tuple.get(), i));
        is_copied = is_plain_array(arguments[0]) && holds_plain_bytes(request.array) &&
                    are_plainly_fine(request, out);
        if (is_copied) tuple.keep_during([&] { copy_to(request, out); });
        return true;
    });
    return done ? PyBool_FromLong(is_copied) : nullptr;
}

PyObject* views(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    PyObject* list = nullptr;
    const bool done = guarded([&] {
        Request request{};
        if (!count_is(count, 4) || !read(arguments, request)) return false;
        if (!is_plain_array(arguments[0])) return refuse(PyExc_TypeError, "not an ndarray itself");
        list = list_parts(request, [&](npy_intp offset, npy_intp size) {
            return new_view(request, offset, size);
        });
        return list != nullptr;
    });
    return done ? list : nullptr;
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
    in_use = found;
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

template <class Function>
PyCFunction as_method(Function function) {
    // The way that Python itself suggests; a direct cast would be warned of.
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

PyMethodDef methods[] = {
    {"copies", as_method(copies), METH_FASTCALL,
     "copies(array, axis, sizes, keepdims)\n--\n\n"
     "The parts as new arrays; None if NumPy has to copy them."},
    {"copy_into", as_method(copy_into), METH_FASTCALL,
     "copy_into(array, axis, sizes, keepdims, out)\n--\n\n"
     "Write the parts; False, with nothing written, unless all of `out` is plainly fine."},
    {"views", as_method(views), METH_FASTCALL,
     "views(array, axis, sizes, keepdims)\n--\n\nThe parts as views."},
    {"use", use, METH_O, "use(name)\n--\n\nSelect kernels; the best ones if it is empty."},
    {"use_threads", use_threads, METH_O, "use_threads(count)\n--\n\nBound the threads."},
    {"use_streams_from", use_streams_from, METH_O,
     "use_streams_from(bytes)\n--\n\nHow large copies are that are written around the cache."},
    {nullptr, nullptr, 0, nullptr},
};

int execute(PyObject*) { return PyArray_ImportNumPyAPI(); }

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
