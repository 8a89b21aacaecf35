#include "arrays.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "python.hpp"

namespace tensorsplit {
namespace {

// Addresses are numbers here: with strides that no element is reached by, pointers would overflow.
struct Memory {
    std::uintptr_t begin = 0, end = 0;
};

// The bytes between the first and the last element; no memory if there is none.
Memory memory_of(PyArrayObject* array) {
    if (PyArray_SIZE(array) == 0) return {0, 0};
    const auto first = reinterpret_cast<std::uintptr_t>(PyArray_BYTES(array));
    Memory memory{first, first + static_cast<std::uintptr_t>(PyArray_ITEMSIZE(array))};
    for (int i = 0; i < PyArray_NDIM(array); ++i) {
        const auto steps = static_cast<std::uintptr_t>(PyArray_DIM(array, i) - 1);
        const npy_intp stride = PyArray_STRIDE(array, i);
        (stride < 0 ? memory.begin : memory.end) += steps * static_cast<std::uintptr_t>(stride);
    }
    return memory;
}

bool are_disjoint(std::vector<Memory>& memories) {
    const auto is_before = [](const Memory& a, const Memory& b) { return a.begin < b.begin; };
    if (!std::is_sorted(memories.begin(), memories.end(), is_before)) {
        std::sort(memories.begin(), memories.end(), is_before);
    }
    const auto meet = [](const Memory& a, const Memory& b) { return b.begin < a.end; };
    return std::adjacent_find(memories.begin(), memories.end(), meet) == memories.end();
}

// The shapes of the parts, which differ in one dimension at most.
class PartShape {
  public:
    explicit PartShape(const Request& request)
        : PartShape(PyArray_DIMS(request.array), PyArray_NDIM(request.array), request.division) {}

    // Of an array of that shape.
    PartShape(const npy_intp* whole, int rank, const Division& division) {
        for (int i = 0; i < rank; ++i) {
            if (i != division.axis) {
                others_ *= whole[i];
            } else if (division.keepdims) {
                size_ = &shape_[rank_];
            } else {
                continue;
            }
            shape_[rank_++] = whole[i];
        }
    }
    PartShape(const PartShape&) = delete;
    PartShape& operator=(const PartShape&) = delete;

    // The shape of a part of that size.
    const npy_intp* of(npy_intp size) {
        if (size_ != nullptr) *size_ = size;
        return shape_;
    }

    // Whether an array has the shape of a part of that size.
    bool is_of(PyArrayObject* array, npy_intp size) {
        return PyArray_NDIM(array) == rank_ && same_numbers(of(size), PyArray_DIMS(array), rank_);
    }

    int rank() const { return rank_; }

    // How many elements a part has for each index of the axis.
    npy_intp others() const { return others_; }

  private:
    npy_intp shape_[NPY_MAXDIMS];
    npy_intp* size_ = nullptr;  // in the shape, if the axis stays
    npy_intp others_ = 1;
    int rank_ = 0;
};

// The type with a new reference, for a function that steals one.
PyArray_Descr* shared(PyArray_Descr* type) {
    Py_INCREF(reinterpret_cast<PyObject*>(type));
    return type;
}

bool is_plain(PyArray_Descr* type) {
    // Elements that are not reference-counted may still be handles, as StringDType's are. Type
    // numbers of their own have only NumPy's and those types that are registered the old way, as
    // plain bytes.
    const bool is_known = type->type_num >= 0 && type->type_num != NPY_VSTRING;
    return is_known && !PyDataType_REFCHK(type) && PyDataType_ELSIZE(type) > 0;
}

// The size of an array in bytes; false with an exception set if it is too large.
bool count_bytes(PyArray_Descr* type, int rank, const npy_intp* shape, npy_intp& bytes) {
    bytes = PyDataType_ELSIZE(type);
    for (int i = 0; i < rank; ++i) {
        if (shape[i] < 0) return refuse(PyExc_ValueError, "negative dimensions are not allowed");
        if (shape[i] != 0 && bytes > NPY_MAX_INTP / shape[i]) {
            return refuse(PyExc_ValueError, "the array is too big");
        }
        bytes *= shape[i];
    }
    return true;
}

constexpr const char* pooled_name = "tensorsplit.native.pooled";

// The memory of an array, and the blocks that it returns to, which may be gone by then.
struct Pooled {
    std::weak_ptr<Blocks> from;
    Block block;

    ~Pooled() {
        if (const auto blocks = from.lock()) {
            blocks->give_back(block);
        } else {
            release(block);
        }
    }
};

// The base of an array, which lives as long as the array and all views of it; null with an
// exception set.
PyObject* new_base(std::unique_ptr<Pooled> pooled) {
    PyObject* base = PyCapsule_New(pooled.get(), pooled_name, [](PyObject* capsule) {
        delete static_cast<Pooled*>(PyCapsule_GetPointer(capsule, pooled_name));
    });
    if (base != nullptr) static_cast<void>(pooled.release());
    return base;
}

// Set the base of an array, stealing both references; null with an exception set.
PyObject* with_base(PyObject* array, PyObject* base) {
    Owned made(array);
    if (!made) {
        Py_DECREF(base);
        return nullptr;
    }
    const int failed = PyArray_SetBaseObject(reinterpret_cast<PyArrayObject*>(array), base);
    return failed < 0 ? nullptr : made.release();
}

// The dimensions before an axis, as few as possible.
Shape outer_of(PyArrayObject* array, int axis) {
    Dimension outer[NPY_MAXDIMS];
    for (int i = 0; i < axis; ++i) {
        outer[i] = {static_cast<std::size_t>(PyArray_DIM(array, i)), PyArray_STRIDE(array, i)};
    }
    return merge(outer, outer + axis);
}

// Whether the elements of that dimension and those after it lie one after the other.
bool lies_together(PyArrayObject* array, int first) {
    if (PyArray_SIZE(array) == 0) return true;  // whatever its strides are
    npy_intp stride = PyArray_ITEMSIZE(array);
    for (int i = PyArray_NDIM(array); i-- > first;) {
        const npy_intp extent = PyArray_DIM(array, i);
        if (extent != 1 && PyArray_STRIDE(array, i) != stride) return false;
        stride *= extent;
    }
    return true;
}

bool are_same(PyArray_Descr* a, PyArray_Descr* b) {
    return a == b || PyArray_EquivTypes(a, b) != 0;
}

}  // namespace

bool is_plain_array(PyObject* object) { return PyArray_CheckExact(object) != 0; }

bool has_shape(PyArrayObject* array, const std::vector<npy_intp>& shape) {
    const int rank = PyArray_NDIM(array);
    return static_cast<std::size_t>(rank) == shape.size() &&
           same_numbers(shape.data(), PyArray_DIMS(array), rank);
}

bool holds_plain_bytes(PyArrayObject* array) { return is_plain(PyArray_DESCR(array)); }

Split split_of(const Request& request) {
    Split split;
    split.source = PyArray_BYTES(request.array);
    split.width = static_cast<std::size_t>(PyArray_ITEMSIZE(request.array));
    split.axis = static_cast<std::size_t>(request.division.axis);
    split.dimensions.reserve(static_cast<std::size_t>(PyArray_NDIM(request.array)));
    for (int i = 0; i < PyArray_NDIM(request.array); ++i) {
        const auto extent = static_cast<std::size_t>(PyArray_DIM(request.array, i));
        // The stride of a single index means nothing; the largest is that of a dimension apart.
        const npy_intp stride = extent <= 1 ? NPY_MAX_INTP : PyArray_STRIDE(request.array, i);
        split.dimensions.push_back({extent, stride});
    }
    split.parts.reserve(request.division.sizes.size());
    return split;
}

PyObject* new_array(PyArray_Descr* type, const std::vector<npy_intp>& shape) {
    return PyArray_NewFromDescr(&PyArray_Type, shared(type), static_cast<int>(shape.size()),
                                shape.data(), nullptr, nullptr, 0, nullptr);
}

PyObject* new_part(const Request& request, npy_intp size) {
    PartShape shape(request);
    return PyArray_NewFromDescr(&PyArray_Type, shared(PyArray_DESCR(request.array)), shape.rank(),
                                shape.of(size), nullptr, nullptr, 0, nullptr);
}

PyObject* new_pooled_part(const Request& request, npy_intp size,
                          const std::shared_ptr<Blocks>& blocks) {
    PartShape shape(request);
    Owned part(new_pooled(PyArray_DESCR(request.array), shape.rank(), shape.of(size), blocks));
    return part.get() == Py_None ? new_part(request, size) : part.release();
}

PyObject* new_pooled(PyArray_Descr* type, int rank, const npy_intp* shape,
                     const std::shared_ptr<Blocks>& blocks) {
    npy_intp bytes = 0;
    if (!is_plain(type)) return new_reference(Py_None);
    if (!count_bytes(type, rank, shape, bytes)) return nullptr;
    if (bytes == 0) return new_reference(Py_None);
    auto pooled = std::make_unique<Pooled>();
    pooled->block = blocks->take(static_cast<std::size_t>(bytes));
    pooled->from = blocks;
    char* data = pooled->block.begin;
    PyObject* base = new_base(std::move(pooled));
    if (base == nullptr) return nullptr;
    return with_base(PyArray_NewFromDescr(&PyArray_Type, shared(type), rank, shape, nullptr, data,
                                          NPY_ARRAY_CARRAY, nullptr),
                     base);
}

ViewMaker::ViewMaker(const Request& request)
    : array_(request.array),
      type_(PyArray_DESCR(array_)),
      data_(reinterpret_cast<std::uintptr_t>(PyArray_BYTES(array_))),
      flags_(PyArray_FLAGS(array_) & ~(NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEBACKIFCOPY)) {
    const npy_intp *shape = PyArray_DIMS(array_), *strides = PyArray_STRIDES(array_);
    bool is_empty = false;
    for (int i = 0; i < PyArray_NDIM(array_); ++i) {
        is_empty = is_empty || shape[i] == 0;
        if (i == request.division.axis) {
            step_ = static_cast<std::uintptr_t>(strides[i]);
            if (!request.division.keepdims) continue;
            size_ = &shape_[rank_];
        }
        shape_[rank_] = shape[i];
        strides_[rank_++] = strides[i];
    }
    if (is_empty) step_ = 0;
}

PyObject* ViewMaker::next(npy_intp size) {
    if (size_ != nullptr) *size_ = size;
    const std::uintptr_t begin = size == 0 ? data_ : data_ + offset_ * step_;
    offset_ += static_cast<std::uintptr_t>(size);
    PyObject* made = PyArray_NewFromDescr(&PyArray_Type, shared(type_), rank_, shape_, strides_,
                                          reinterpret_cast<char*>(begin), flags_, nullptr);
    return with_base(made, new_reference(reinterpret_cast<PyObject*>(array_)));
}

bool are_parts_of(const Whole& whole, const std::vector<PyObject*>& parts) {
    PartShape shape(whole.shape.data(), static_cast<int>(whole.shape.size()), whole.division);
    auto* type = PyArray_DESCR(reinterpret_cast<PyArrayObject*>(parts.front()));
    for (std::size_t i = 0; i < parts.size(); ++i) {
        auto* part = reinterpret_cast<PyArrayObject*>(parts[i]);
        if (!shape.is_of(part, whole.division.sizes[i]) || !are_same(PyArray_DESCR(part), type)) {
            return false;
        }
    }
    return true;
}

bool have_one_base(const std::vector<PyObject*>& parts) {
    PyObject* base = nullptr;
    for (PyObject* each : parts) {
        auto* part = reinterpret_cast<PyArrayObject*>(each);
        if (PyArray_SIZE(part) == 0) continue;
        if (base == nullptr) base = PyArray_BASE(part);
        if (PyArray_BASE(part) != base || base == nullptr) return parts.size() == 1;
    }
    return true;
}

PyObject* view_of_parts(const std::vector<PyObject*>& parts, const Whole& whole) {
    const Division& division = whole.division;
    PyArrayObject* first = nullptr;  // that has elements
    std::uintptr_t step = 0, next = 0;
    bool is_writable = true;
    for (std::size_t i = 0; i < parts.size(); ++i) {
        auto* part = reinterpret_cast<PyArrayObject*>(parts[i]);
        is_writable = is_writable && PyArray_ISWRITEABLE(part);
        if (division.sizes[i] == 0) continue;
        const auto place = reinterpret_cast<std::uintptr_t>(PyArray_BYTES(part));
        if (first == nullptr) {
            first = part;
            next = place;
            if (division.keepdims) {
                step = static_cast<std::uintptr_t>(PyArray_STRIDE(part, division.axis));
            }
        } else if (i == 1 && !division.keepdims) {
            step = place - next;
            next = place;
        }
        if (place != next ||
            !same_numbers(PyArray_STRIDES(part), PyArray_STRIDES(first), PyArray_NDIM(first))) {
            return nullptr;
        }
        next += static_cast<std::uintptr_t>(division.sizes[i]) * step;
    }
    if (is_writable && step == 0 && division.extent > 1) return nullptr;
    const npy_intp* around = PyArray_STRIDES(first);
    std::vector<npy_intp> strides(around, around + PyArray_NDIM(first));
    if (!division.keepdims) {
        strides.insert(strides.begin() + division.axis, static_cast<npy_intp>(step));
    }
    int flags = PyArray_FLAGS(first) & ~(NPY_ARRAY_OWNDATA | NPY_ARRAY_WRITEBACKIFCOPY);
    if (!is_writable) flags &= ~NPY_ARRAY_WRITEABLE;
    PyObject* view = PyArray_NewFromDescr(&PyArray_Type, shared(PyArray_DESCR(first)),
                                          static_cast<int>(whole.shape.size()), whole.shape.data(),
                                          strides.data(), PyArray_BYTES(first), flags, nullptr);
    return with_base(view, new_reference(reinterpret_cast<PyObject*>(first)));
}

std::optional<Join> join_of(const Request& request, const std::vector<PyObject*>& parts) {
    PyArrayObject* whole = request.array;
    const int axis = request.division.axis;
    if (!is_plain_array(reinterpret_cast<PyObject*>(whole)) || !PyArray_ISWRITEABLE(whole) ||
        !is_plain(PyArray_DESCR(whole)) || parts.size() != request.division.sizes.size() ||
        !lies_together(whole, axis)) {
        return {};
    }
    PartShape shape(request);
    const auto size = static_cast<std::size_t>(PyArray_ITEMSIZE(whole));
    std::size_t inner = size;
    for (int i = axis + 1; i < PyArray_NDIM(whole); ++i) {
        inner *= static_cast<std::size_t>(PyArray_DIM(whole, i));
    }
    const std::size_t row = inner * static_cast<std::size_t>(request.division.extent);
    const Shape rows = outer_of(whole, axis);
    Join join;
    join.parts.reserve(parts.size());
    join.rows = count_elements(rows);
    join.bytes = join.rows * row;
    const bool are_apart = rows.size() == 1 && rows[0].stride >= static_cast<std::ptrdiff_t>(row);
    if (!rows.empty() && !are_apart && join.bytes != 0) return {};
    const std::size_t step = !are_apart ? row : static_cast<std::size_t>(rows[0].stride);
    const Memory written = memory_of(whole);
    char* to = PyArray_BYTES(whole);
    for (std::size_t i = 0; i < parts.size(); ++i) {
        if (!is_plain_array(parts[i])) return {};
        auto* part = reinterpret_cast<PyArrayObject*>(parts[i]);
        const Memory read = memory_of(part);
        if (!shape.is_of(part, request.division.sizes[i]) ||
            !are_same(PyArray_DESCR(part), PyArray_DESCR(whole)) || !lies_together(part, axis) ||
            (read.begin < written.end && written.begin < read.end)) {
            return {};
        }
        const std::size_t width = static_cast<std::size_t>(request.division.sizes[i]) * inner;
        if (width == 0) continue;
        join.parts.push_back({PyArray_BYTES(part), outer_of(part, axis), {0, width, to, step}});
        to += width;
    }
    return join;
}

bool are_simple_buffers(const Request& request, const std::vector<PyObject*>& out) {
    if (out.size() != request.division.sizes.size()) return false;
    PartShape shape(request);
    const npy_intp bytes = shape.others() * PyArray_ITEMSIZE(request.array);
    std::vector<Memory> memories(out.size() + 1);
    memories.back() = memory_of(request.array);
    for (std::size_t i = 0; i < out.size(); ++i) {
        if (!is_plain_array(out[i])) return false;
        auto* buffer = reinterpret_cast<PyArrayObject*>(out[i]);
        const npy_intp size = request.division.sizes[i];
        if (!shape.is_of(buffer, size) ||
            !are_same(PyArray_DESCR(buffer), PyArray_DESCR(request.array)) ||
            !PyArray_IS_C_CONTIGUOUS(buffer) || !PyArray_ISWRITEABLE(buffer)) {
            return false;
        }
        const auto begin = reinterpret_cast<std::uintptr_t>(PyArray_BYTES(buffer));
        const auto length = static_cast<std::uintptr_t>(size * bytes);
        if (length != 0) memories[i] = {begin, begin + length};
    }
    return are_disjoint(memories);
}

}  // namespace tensorsplit
