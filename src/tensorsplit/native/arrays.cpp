#include "arrays.hpp"

#include <algorithm>

namespace tensorsplit {
namespace {

struct Memory {
    const char* begin;
    const char* end;
};

// The bytes between the first and the last element.
Memory memory_of(PyArrayObject* array) {
    const char* begin = PyArray_BYTES(array);
    const char* end = begin + PyArray_ITEMSIZE(array);
    for (int i = 0; i < PyArray_NDIM(array); ++i) {
        const npy_intp extent = PyArray_DIM(array, i);
        if (extent == 0) return {nullptr, nullptr};
        const npy_intp reach = (extent - 1) * PyArray_STRIDE(array, i);
        (reach < 0 ? begin : end) += reach;
    }
    return {begin, end};
}

bool are_disjoint(std::vector<Memory>& memories) {
    const auto is_before = [](const Memory& a, const Memory& b) { return a.begin < b.begin; };
    if (!std::is_sorted(memories.begin(), memories.end(), is_before)) {
        std::sort(memories.begin(), memories.end(), is_before);
    }
    const auto meet = [](const Memory& a, const Memory& b) { return b.begin < a.end; };
    return std::adjacent_find(memories.begin(), memories.end(), meet) == memories.end();
}

// The shape of a part; how many dimensions it has.
int part_shape(const Request& request, npy_intp size, npy_intp* shape) {
    int rank = 0;
    for (int i = 0; i < PyArray_NDIM(request.array); ++i) {
        if (i != request.axis) {
            shape[rank++] = PyArray_DIM(request.array, i);
        } else if (request.keepdims) {
            shape[rank++] = size;
        }
    }
    return rank;
}

// The type of the array, for a function that takes over a reference to it.
PyArray_Descr* shared_type(PyArrayObject* array) {
    PyArray_Descr* type = PyArray_DESCR(array);
    Py_INCREF(reinterpret_cast<PyObject*>(type));
    return type;
}

bool has_shape(PyArrayObject* array, const npy_intp* shape, int rank) {
    return PyArray_NDIM(array) == rank && std::equal(shape, shape + rank, PyArray_DIMS(array));
}

bool have_same_type(PyArrayObject* a, PyArrayObject* b) {
    return PyArray_DESCR(a) == PyArray_DESCR(b) ||
           PyArray_EquivTypes(PyArray_DESCR(a), PyArray_DESCR(b)) != 0;
}

}  // namespace

std::size_t Request::part_bytes(npy_intp size) const {
    const npy_intp extent = PyArray_DIM(array, axis);
    return extent == 0 ? 0 : static_cast<std::size_t>(PyArray_NBYTES(array) / extent * size);
}

bool is_plain_array(PyObject* object) { return PyArray_CheckExact(object) != 0; }

bool holds_plain_bytes(PyArrayObject* array) {
    // What is not counted may still be a handle: strings of variable length are. Type numbers of
    // their own have only NumPy's and those types that are registered the old way, as plain bytes.
    PyArray_Descr* type = PyArray_DESCR(array);
    const bool is_known = type->type_num >= 0 && type->type_num != NPY_VSTRING;
    return is_known && !PyDataType_REFCHK(type) && PyDataType_ELSIZE(type) > 0;
}

Cut cut_of(const Request& request) {
    Cut cut;
    cut.source = PyArray_BYTES(request.array);
    cut.width = static_cast<std::size_t>(PyArray_ITEMSIZE(request.array));
    cut.axis = static_cast<std::size_t>(request.axis);
    cut.dimensions.reserve(static_cast<std::size_t>(PyArray_NDIM(request.array)));
    for (int i = 0; i < PyArray_NDIM(request.array); ++i) {
        const auto extent = static_cast<std::size_t>(PyArray_DIM(request.array, i));
        cut.dimensions.push_back({extent, PyArray_STRIDE(request.array, i)});
    }
    cut.parts.reserve(request.sizes.size());
    return cut;
}

PyObject* new_part(const Request& request, npy_intp size) {
    npy_intp shape[NPY_MAXDIMS];
    const int rank = part_shape(request, size, shape);
    return PyArray_NewFromDescr(&PyArray_Type, shared_type(request.array), rank, shape, nullptr,
                                nullptr, 0, nullptr);
}

PyObject* new_view(const Request& request, npy_intp offset, npy_intp size) {
    PyArrayObject* array = request.array;
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    const int rank = part_shape(request, size, shape);
    for (int i = 0, to = 0; i < PyArray_NDIM(array); ++i) {
        if (i != request.axis || request.keepdims) strides[to++] = PyArray_STRIDE(array, i);
    }
    char* data = PyArray_BYTES(array);
    if (size != 0) data += offset * PyArray_STRIDE(array, request.axis);  // as slicing does
    const int flags = PyArray_FLAGS(array) & ~(NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEBACKIFCOPY);
    PyObject* view = PyArray_NewFromDescr(&PyArray_Type, shared_type(array), rank, shape, strides,
                                          data, flags, nullptr);
    if (view == nullptr) return nullptr;
    PyObject* base = reinterpret_cast<PyObject*>(array);
    Py_INCREF(base);
    if (PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(view), base) < 0) {
        Py_DECREF(view);
        return nullptr;
    }
    return view;
}

bool are_plainly_fine(const Request& request, const std::vector<PyObject*>& out) {
    if (out.size() != request.sizes.size()) return false;
    std::vector<Memory> memories{memory_of(request.array)};
    memories.reserve(out.size() + 1);
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (!is_plain_array(out[i])) return false;
        auto* buffer = reinterpret_cast<PyArrayObject*>(out[i]);
        npy_intp shape[NPY_MAXDIMS];
        const int rank = part_shape(request, request.sizes[i], shape);
        if (!has_shape(buffer, shape, rank) || !have_same_type(buffer, request.array) ||
            !PyArray_IS_C_CONTIGUOUS(buffer) || !PyArray_ISWRITEABLE(buffer)) {
            return false;
        }
        memories.push_back(memory_of(buffer));
    }
    return are_disjoint(memories);
}

}  // namespace tensorsplit
