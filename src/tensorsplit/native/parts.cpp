#include "parts.hpp"

#include <atomic>
#include <cstddef>
#include <cstring>
#include <exception>
#include <optional>
#include <utility>
#include <vector>

#include "copy.hpp"
#include "cpu.hpp"
#include "python.hpp"
#include "tensors.hpp"

namespace tensorsplit {
namespace {

// Read without the GIL, by threads that copy while another one selects kernels.
std::atomic<const Kernels*> in_use{&best_kernels()};

// Below this size, releasing the GIL takes longer than the copy.
constexpr npy_intp worth_releasing = 64 * 1024;

// Up to this many strips, or rows, looking for the best way to copy them takes longer than the
// copy.
constexpr npy_intp few_strips = 64;
constexpr npy_intp few_rows = 8;

bool are_few(npy_intp rows, std::size_t parts) {
    return rows <= few_rows || rows * static_cast<npy_intp>(parts) <= few_strips;
}

// Copy a small array whose parts are few contiguous strips, or contiguous strips of few rows; false
// if it is no such array.
bool copy_few(const Request& request, const std::vector<PyObject*>& parts) {
    if (!PyArray_IS_C_CONTIGUOUS(request.array)) return false;
    if (PyArray_NBYTES(request.array) >= worth_releasing) return false;
    npy_intp rows = 1, inner = PyArray_ITEMSIZE(request.array);
    for (int i = 0; i < PyArray_NDIM(request.array); ++i) {
        if (i < request.division.axis) rows *= PyArray_DIM(request.array, i);
        if (i > request.division.axis) inner *= PyArray_DIM(request.array, i);
    }
    if (!are_few(rows, parts.size())) return false;
    const char* from = PyArray_BYTES(request.array);
    for (npy_intp row = 0; row < rows; ++row) {
        for (std::size_t i = 0; i < parts.size(); ++i) {
            const npy_intp width = request.division.sizes[i] * inner;
            char* to = PyArray_BYTES(reinterpret_cast<PyArrayObject*>(parts[i])) + row * width;
            std::memcpy(to, from, static_cast<std::size_t>(width));
            from += width;
        }
    }
    return true;
}

// Run an action that copies so many bytes.
template <class Action>
void release_during(npy_intp bytes, Action action) {
    if (bytes < worth_releasing) return action();
    PyThreadState* state = PyEval_SaveThread();
    try {
        action();
    } catch (const std::exception&) {
        PyEval_RestoreThread(state);
        throw;
    }
    PyEval_RestoreThread(state);
}

// Copy to C-contiguous arrays, which the caller keeps alive.
void copy_to(const Request& request, const std::vector<PyObject*>& parts) {
    if (copy_few(request, parts)) return;
    Split split = split_of(request);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        auto* part = reinterpret_cast<PyArrayObject*>(parts[i]);
        const auto size = static_cast<std::size_t>(request.division.sizes[i]);
        split.parts.push_back({size, PyArray_BYTES(part)});
    }
    release_during(PyArray_NBYTES(request.array), [&] { copy_parts(*in_use.load(), split); });
}

// A list for the parts, after which nothing can change the array any more; null with an exception
// set.
PyObject* new_list(const Request& request) {
    Owned list(PyList_New(static_cast<Py_ssize_t>(request.division.sizes.size())));
    return list && still_fits(request.array, request.division) ? list.release() : nullptr;
}

// Put into the list what `make(size)` gives for each part; false with an exception set.
template <class Make>
bool fill(PyObject* list, const Request& request, Make make) {
    Py_ssize_t index = 0;
    for (const npy_intp size : request.division.sizes) {
        PyObject* part = make(size);
        if (part == nullptr || PyList_SetItem(list, index++, part) < 0) return false;
    }
    return true;
}

// Copy elements that hold references; false with an exception set.
bool copy_by_numpy(const Request& request, const std::vector<PyObject*>& parts) {
    Owned views(list_views(request));
    for (std::size_t i = 0; views && i < parts.size(); ++i) {
        auto* view = reinterpret_cast<PyArrayObject*>(
            PyList_GetItem(views.get(), static_cast<Py_ssize_t>(i)));
        auto* part = reinterpret_cast<PyArrayObject*>(parts[i]);
        int failed = 0;
        views.keep_during([&] { failed = PyArray_CopyInto(part, view); });
        if (failed < 0) return false;
    }
    return static_cast<bool>(views);
}

// Join small arrays of few strips; false if they are not.
bool join_few(const Join& join) {
    const auto bytes = static_cast<npy_intp>(join.bytes);
    if (bytes >= worth_releasing || !are_few(static_cast<npy_intp>(join.rows), join.parts.size())) {
        return false;
    }
    for (const JoinedPart& part : join.parts) {
        for (std::size_t row = 0; row < join.rows; ++row) {
            std::memcpy(part.column.to + row * part.column.step,
                        part.source + offset_of(part.outer, row), part.column.width);
        }
    }
    return true;
}

// Read a number that is 0 or 1; false if it is another, or may be.
bool read_flag(PyObject* object, bool& flag) {
    if (!PyLong_CheckExact(object) && !PyBool_Check(object)) return false;
    int overflow = 0;
    const long number = PyLong_AsLongAndOverflow(object, &overflow);
    flag = number == 1;
    return overflow == 0 && (number == 0 || number == 1);
}

}  // namespace

std::vector<PyObject*> entries_of(PyObject* list) {
    std::vector<PyObject*> entries;
    const Py_ssize_t count = PyList_Size(list);
    entries.reserve(static_cast<std::size_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) entries.push_back(PyList_GetItem(list, i));
    return entries;
}

void use_kernels(const Kernels& kernels) { in_use.store(&kernels); }

PyObject* list_copies(const Request& request, const std::shared_ptr<Blocks>& blocks) {
    auto* array = reinterpret_cast<PyObject*>(request.array);
    if (!is_plain_array(array) || !holds_plain_bytes(request.array)) return new_reference(Py_None);
    std::vector<PyObject*> parts;
    parts.reserve(request.division.sizes.size());
    Owned made(new_list(request));
    const bool done = made && fill(made.get(), request, [&](npy_intp size) {
                          parts.push_back(blocks ? new_pooled_part(request, size, blocks)
                                                 : new_part(request, size));
                          return parts.back();
                      });
    if (!done) return nullptr;
    made.keep_during([&] { copy_to(request, parts); });
    return made.release();
}

PyObject* copy_to_each(const Request& request, PyObject* out) {
    if (!PyList_Check(out) && !PyTuple_Check(out)) return new_reference(Py_False);
    Owned own(PySequence_List(out));
    PyObject* list = own.get();
    bool done = false;
    if (own) own.keep_during([&] { done = copy_to_own(request, list); });
    return done                          ? new_reference(Py_True)
           : PyErr_Occurred() == nullptr ? new_reference(Py_False)
                                         : nullptr;
}

bool copy_to_own(const Request& request, PyObject* list) {
    if (!still_fits(request.array, request.division)) return false;
    const std::vector<PyObject*> buffers = entries_of(list);
    if (!is_plain_array(reinterpret_cast<PyObject*>(request.array)) ||
        !are_simple_buffers(request, buffers)) {
        return false;
    }
    if (!holds_plain_bytes(request.array)) return copy_by_numpy(request, buffers);
    copy_to(request, buffers);
    return true;
}

PyObject* join_at_once(PyObject* parts, PyObject* axis, PyObject* keepdims, PyObject* copy,
                       PyObject* out) {
    Whole whole;
    bool keeps = false;
    if ((!PyList_CheckExact(parts) && !PyTuple_CheckExact(parts)) || !read_flag(keepdims, keeps) ||
        (copy != Py_None && copy != Py_True)) {
        return nullptr;
    }
    Owned own(PySequence_List(parts));  // which nobody else can change
    if (!own) return nullptr;
    const std::vector<PyObject*> each = entries_of(own.get());
    if (!each.empty() && is_tensor(each.front())) return join_tensors(own, axis, keeps, copy, out);
    if (!read_parts(each, axis, keeps, whole) || !are_parts_of(whole, each)) return nullptr;
    auto* first = reinterpret_cast<PyArrayObject*>(each.front());
    if (!holds_plain_bytes(first)) return nullptr;
    if (copy == Py_None && out == Py_None) {
        if (is_empty(whole)) return nullptr;
        PyObject* view = have_one_base(each) ? view_of_parts(each, whole) : nullptr;
        if (view != nullptr || PyErr_Occurred() != nullptr) return view;
    }
    Owned made(out == Py_None ? new_array(PyArray_DESCR(first), whole.shape) : new_reference(out));
    auto* array = reinterpret_cast<PyArrayObject*>(made.get());
    if (!made || !is_plain_array(made.get()) || !has_shape(array, whole.shape)) return nullptr;
    std::optional<Join> join = join_of({array, whole.division}, each);
    if (!join) return nullptr;
    if (join_few(*join)) return made.release();
    const auto act = [&] {
        release_during(static_cast<npy_intp>(join->bytes),
                       [&] { join_parts(*in_use.load(), std::move(*join)); });
    };
    keep_all_during(act, own, made);
    return made.release();
}

PyObject* list_views(const Request& request) {
    Owned list(new_list(request));
    if (!list) return nullptr;
    ViewMaker views(request);
    const bool done = fill(list.get(), request, [&](npy_intp size) { return views.next(size); });
    return done ? list.release() : nullptr;
}

}  // namespace tensorsplit
