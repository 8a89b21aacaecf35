#include "parts.hpp"

#include <atomic>
#include <cstddef>
#include <new>
#include <vector>

#include "copy.hpp"
#include "cpu.hpp"
#include "python.hpp"

namespace tensorsplit {
namespace {

// Read without the GIL, by threads that copy while another one selects kernels.
std::atomic<const Kernels*> in_use{&best_kernels()};

// Below this size, releasing the GIL takes longer than the copy.
constexpr npy_intp worth_releasing = 64 * 1024;

// Copy to C-contiguous arrays, which the caller keeps alive.
void copy_to(const Request& request, const std::vector<PyObject*>& parts) {
    Split split = split_of(request);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        auto* part = reinterpret_cast<PyArrayObject*>(parts[i]);
        const auto size = static_cast<std::size_t>(request.division.sizes[i]);
        split.parts.push_back({size, PyArray_BYTES(part)});
    }
    if (PyArray_NBYTES(request.array) < worth_releasing) return copy_parts(*in_use.load(), split);
    PyThreadState* state = PyEval_SaveThread();
    try {
        copy_parts(*in_use.load(), split);
    } catch (const std::bad_alloc&) {
        PyEval_RestoreThread(state);
        throw;
    }
    PyEval_RestoreThread(state);
}

// A list of what `make(offset, size)` gives for each part; null with an exception set.
template <class Make>
PyObject* list_parts(PyArrayObject* array, const Division& division, Make make) {
    Owned list(PyList_New(static_cast<Py_ssize_t>(division.sizes.size())));
    if (!list || !still_fits(array, division)) return nullptr;
    npy_intp offset = 0;
    Py_ssize_t index = 0;
    for (const npy_intp size : division.sizes) {
        PyObject* part = make(offset, size);
        if (part == nullptr || PyList_SetItem(list.get(), index++, part) < 0) return nullptr;
        offset += size;
    }
    return list.release();
}

// Copy elements that hold references; false with an exception set.
bool copy_by_numpy(const Request& request, const std::vector<PyObject*>& parts) {
    Owned views(list_views(request.array, request.division));
    for (std::size_t i = 0; views && i < parts.size(); ++i) {
        PyObject* view = PyList_GetItem(views.get(), static_cast<Py_ssize_t>(i));
        if (PyArray_CopyInto(reinterpret_cast<PyArrayObject*>(parts[i]),
                             reinterpret_cast<PyArrayObject*>(view)) < 0) {
            return false;
        }
    }
    return static_cast<bool>(views);
}

}  // namespace

void use_kernels(const Kernels& kernels) { in_use.store(&kernels); }

PyObject* list_copies(const Request& request, const std::shared_ptr<Blocks>& blocks) {
    auto* array = reinterpret_cast<PyObject*>(request.array);
    if (!is_plain_array(array) || !holds_plain_bytes(request.array)) return new_reference(Py_None);
    std::vector<PyObject*> parts;
    parts.reserve(request.division.sizes.size());
    Owned made(list_parts(request.array, request.division, [&](npy_intp, npy_intp size) {
        parts.push_back(blocks ? new_pooled_part(request, size, blocks) : new_part(request, size));
        return parts.back();
    }));
    if (!made) return nullptr;
    made.keep_during([&] { copy_to(request, parts); });
    return made.release();
}

PyObject* copy_to_each(const Request& request, PyObject* out) {
    if (!PyList_Check(out) && !PyTuple_Check(out)) return new_reference(Py_False);
    // A tuple of our own: another thread could empty a list while we copy.
    Owned tuple(PySequence_Tuple(out));
    if (!tuple || !still_fits(request.array, request.division)) return nullptr;
    std::vector<PyObject*> buffers;
    const Py_ssize_t count = PyTuple_Size(tuple.get());
    buffers.reserve(static_cast<std::size_t>(count));
    for (Py_ssize_t i = 0; i < count; ++i) buffers.push_back(PyTuple_GetItem(tuple.get(), i));
    if (!is_plain_array(reinterpret_cast<PyObject*>(request.array)) ||
        !are_simple_buffers(request, buffers)) {
        return new_reference(Py_False);
    }
    if (holds_plain_bytes(request.array)) {
        tuple.keep_during([&] { copy_to(request, buffers); });
    } else if (!copy_by_numpy(request, buffers)) {
        return nullptr;
    }
    return new_reference(Py_True);
}

PyObject* list_views(PyArrayObject* array, const Division& division) {
    return list_parts(array, division, [&](npy_intp offset, npy_intp size) {
        return new_view(array, division, offset, size);
    });
}

}  // namespace tensorsplit
