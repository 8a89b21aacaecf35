#include "tensors.hpp"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "parts.hpp"
#include "python.hpp"

namespace tensorsplit {
namespace {

// What we need of DLPack's interface in C, version 1:
// https://dmlc.github.io/dlpack/latest/c_api.html
struct DLDataType {
    std::uint8_t code, bits;
    std::uint16_t lanes;
};

struct DLTensor {
    void* data;
    std::int32_t device_type, device_id;
    std::int32_t ndim;
    DLDataType dtype;
    std::int64_t *shape, *strides;  // in elements
    std::uint64_t byte_offset;
};

struct DLManagedTensorVersioned {
    std::uint32_t major, minor;
    void* manager_ctx;
    void (*deleter)(DLManagedTensorVersioned* self);
    std::uint64_t flags;
    DLTensor dl_tensor;
};

struct DLPackExchangeAPI {
    std::uint32_t major, minor;
    const DLPackExchangeAPI* previous;
    void (*allocator)();
    void (*managed_tensor_from_py_object_no_sync)();
    int (*managed_tensor_to_py_object_no_sync)(DLManagedTensorVersioned* tensor, void** object);
    int (*dltensor_from_py_object_no_sync)(void* object, DLTensor* tensor);
};

constexpr std::int32_t cpu = 1;
constexpr std::uint8_t unsigned_code = 1, complex_code = 5;  // signed integers have code 0

// What is needed of torch; all of it lives as long as we do, and nothing is there before
// `use_torch`.
struct Torch {
    PyObject *tensor, *parameter;  // types
    PyObject* strided;             // the layout
    PyObject* shells;              // the types of less than a byte, as a frozenset
    PyObject *split, *unbind, *split_copy, *unbind_copy, *cat, *stack, *as_strided;
    PyObject *is_grad_enabled, *is_inference_mode_enabled;
    PyObject* is_transformed;         // whether something watches what is done
    PyObject* increment_version;      // of a list of tensors that were written
    Py_ssize_t kernel_from;           // fewer bytes are copied to new tensors by torch
    const DLPackExchangeAPI* memory;  // null if this torch has none
};

Torch torch{};

// The names of attributes, as Python has them.
struct Names {
    PyObject *dtype, *layout, *shape, *nbytes, *requires_grad, *is_conj, *is_neg, *is_inference;
    PyObject *storage, *address;
};

Names names{};

// Whether something says that it is so; true with an exception set if it fails.
bool is_true(PyObject* answer) {
    const Owned owner(answer);
    return answer != Py_False;
}

bool is_true_of(PyObject* tensor, PyObject* method) {
    return is_true(PyObject_CallMethodObjArgs(tensor, method, nullptr));
}

bool is_true_now(PyObject* function) {
    return is_true(PyObject_CallFunctionObjArgs(function, nullptr));
}

// What torch would have to know of: nothing that is read or written may be part of it.
struct Watching {
    bool gradients, inference, anything;
};

Watching watching_now() {
    const bool gradients = is_true_now(torch.is_grad_enabled);
    const bool inference = is_true_now(torch.is_inference_mode_enabled);
    return {gradients, inference, is_true_now(torch.is_transformed)};  // of Python, so it may fail
}

// Whether elements have less than a byte, which DLPack does not describe; true with an exception set
// if that fails.
bool is_shell(PyObject* tensor) {
    const Owned type(PyObject_GetAttr(tensor, names.dtype));
    return !type || PySet_Contains(torch.shells, type.get()) != 0;
}

// The memory of a tensor on the CPU as an array of elements of the same size, which keeps the
// storage: other threads may give the tensor another one meanwhile. Null, maybe without an
// exception, if it is not known.
PyObject* array_of(PyObject* tensor, DLDataType& type) {
    DLTensor seen{};
    if (!is_tensor(tensor)) return nullptr;
    Owned storage(PyObject_CallMethodObjArgs(tensor, names.storage, nullptr));
    if (!storage || torch.memory->dltensor_from_py_object_no_sync(tensor, &seen) != 0) {
        PyErr_Clear();  // no memory, or an element type that DLPack has not
        return nullptr;
    }
    if (seen.device_type != cpu || seen.strides == nullptr || seen.ndim > NPY_MAXDIMS)
        return nullptr;
    type = seen.dtype;
    if (type.bits == 8 && type.code <= unsigned_code && is_shell(tensor)) return nullptr;
    const int kind = type.bits == 8     ? NPY_UINT8
                     : type.bits == 16  ? NPY_UINT16
                     : type.bits == 32  ? NPY_UINT32
                     : type.bits == 64  ? NPY_UINT64
                     : type.bits == 128 ? NPY_COMPLEX128
                                        : NPY_NOTYPE;
    if (kind == NPY_NOTYPE || type.lanes != 1) return nullptr;
    npy_intp shape[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    bool is_empty = false;
    for (int i = 0; i < seen.ndim; ++i) {
        shape[i] = seen.shape[i];
        const auto stride = static_cast<std::uint64_t>(seen.strides[i]);  // any, where it is unused
        strides[i] = static_cast<npy_intp>(stride * (type.bits / 8U));
        is_empty = is_empty || shape[i] == 0;
    }
    if (seen.data == nullptr && !is_empty) return nullptr;  // its storage was made empty
    static char nothing = 0;  // NumPy would take new memory for a null pointer
    char* data = seen.data == nullptr ? &nothing : static_cast<char*>(seen.data) + seen.byte_offset;
    Owned array(PyArray_NewFromDescr(&PyArray_Type, PyArray_DescrFromType(kind), seen.ndim, shape,
                                     strides, data, NPY_ARRAY_WRITEABLE, nullptr));
    auto* keeper = reinterpret_cast<PyArrayObject*>(array.get());
    if (!array || PyArray_SetBaseObject(keeper, storage.release()) < 0) return nullptr;
    return array.release();
}

// Whether a tensor of that type is its memory and nothing else, and torch need not know what is
// done to it; false, maybe with an exception set.
bool is_its_memory(PyObject* tensor, const DLDataType& type, const Watching& watching) {
    const bool records =
        watching.gradients && is_true(PyObject_GetAttr(tensor, names.requires_grad));
    return !records && !is_true_of(tensor, names.is_neg) &&
           (type.code != complex_code || !is_true_of(tensor, names.is_conj));
}

bool are_their_memory(PyObject* tensors, const DLDataType& type, const Watching& watching) {
    for (Py_ssize_t i = 0; i < PyList_Size(tensors); ++i) {
        if (!is_its_memory(PyList_GetItem(tensors, i), type, watching)) return false;
    }
    return true;
}

// Whether torch lets only inference mode write to a tensor; true with an exception set if it fails.
bool is_others(PyObject* buffer, const Watching& watching) {
    return !watching.inference && is_true_of(buffer, names.is_inference);
}

// Whether a tensor is of that type, and may be written unseen; false, maybe with an exception set.
bool is_buffer_of(PyObject* buffer, const DLDataType& type, const DLDataType& own,
                  const Watching& watching) {
    return own.code == type.code && is_its_memory(buffer, type, watching) &&
           !is_others(buffer, watching);
}

// Arrays of all tensors of a list, which have one type; null, maybe without an exception.
PyObject* arrays_of(PyObject* tensors, DLDataType& type) {
    Owned arrays(PyList_New(0));
    for (Py_ssize_t i = 0; arrays && i < PyList_Size(tensors); ++i) {
        DLDataType own{};
        const Owned array(array_of(PyList_GetItem(tensors, i), own));
        if (i == 0) type = own;
        const bool fits = array && own.code == type.code;
        if (!fits || PyList_Append(arrays.get(), array.get()) < 0) return nullptr;
    }
    return arrays.release();
}

// The memory of an array for a tensor, and the shape that it has there.
struct Lent {
    Lent() = default;
    Lent(const Lent&) = delete;
    Lent& operator=(const Lent&) = delete;
    ~Lent() {
        if (Py_IsInitialized() == 0) return;
        const PyGILState_STATE state = PyGILState_Ensure();
        Py_XDECREF(array);
        PyGILState_Release(state);
    }

    DLManagedTensorVersioned managed{};
    std::vector<std::int64_t> shape, strides;
    PyObject* array = nullptr;       // owned
    std::shared_ptr<Lent> of_torch;  // itself, until torch gives it back
};

// Called when the tensor and all views of it are gone, by any thread.
void give_back(DLManagedTensorVersioned* managed) {
    const auto lent = std::move(static_cast<Lent*>(managed->manager_ctx)->of_torch);
}

// A tensor in the memory of an array, whose elements are of the same size; null with an exception
// set.
PyObject* tensor_of(PyObject* owner, const DLDataType& type) {
    auto* array = reinterpret_cast<PyArrayObject*>(owner);
    const int rank = PyArray_NDIM(array);
    const auto lent = std::make_shared<Lent>();
    lent->shape.assign(PyArray_DIMS(array), PyArray_DIMS(array) + rank);
    for (int i = 0; i < rank; ++i) {
        lent->strides.push_back(PyArray_STRIDE(array, i) / PyArray_ITEMSIZE(array));
    }
    lent->array = new_reference(owner);
    DLManagedTensorVersioned* managed = &lent->managed;
    managed->major = torch.memory->major;
    managed->manager_ctx = lent.get();
    managed->deleter = give_back;
    managed->dl_tensor = {PyArray_DATA(array),  cpu, 0, rank, type, lent->shape.data(),
                          lent->strides.data(), 0};
    lent->of_torch = lent;
    void* tensor = nullptr;
    if (torch.memory->managed_tensor_to_py_object_no_sync(managed, &tensor) == 0) {
        return static_cast<PyObject*>(tensor);
    }
    lent->of_torch.reset();  // unless torch gave it back while it failed
    return nullptr;
}

bool is_large(PyObject* tensor) {
    const Owned bytes(PyObject_GetAttr(tensor, names.nbytes));
    const Py_ssize_t size = bytes ? PyLong_AsSsize_t(bytes.get()) : -1;
    if (size < 0) PyErr_Clear();
    return size >= torch.kernel_from;
}

bool are_small(const std::vector<PyObject*>& arrays) {
    npy_intp bytes = 0;
    for (PyObject* array : arrays) bytes += PyArray_NBYTES(reinterpret_cast<PyArrayObject*>(array));
    return bytes < torch.kernel_from;
}

// What torch makes, in its graph of gradients, and under whatever watches.
PyObject* ask_torch(const TensorRequest& request, PyObject* split, PyObject* unbind) {
    const Ready& ready = request.ready;
    const Owned parts(
        ready.division.keepdims
            ? PyObject_CallFunctionObjArgs(split, request.tensor, ready.sizes, ready.axis, nullptr)
            : PyObject_CallFunctionObjArgs(unbind, request.tensor, ready.axis, nullptr));
    return parts ? PySequence_List(parts.get()) : nullptr;
}

// A new tensor in memory of NumPy, which the system gives in large pages; null, maybe without an
// exception.
PyObject* join_large(Owned& parts, Owned& arrays, PyObject* axis, bool keepdims,
                     const DLDataType& type) {
    PyObject *from = arrays.get(), *flag = keepdims ? Py_True : Py_False, *made = nullptr;
    const auto join = [&] { made = join_at_once(from, axis, flag, Py_True, Py_None); };
    keep_all_during(join, parts, arrays);
    const Owned whole(made);
    return whole ? tensor_of(made, type) : nullptr;
}

// Whether the memory of all arrays of tensors is of one storage; false, maybe with an exception
// set.
bool have_one_storage(const std::vector<PyObject*>& arrays) {
    Owned first(nullptr);
    for (PyObject* array : arrays) {
        PyObject* storage = PyArray_BASE(reinterpret_cast<PyArrayObject*>(array));
        Owned place(PyObject_CallMethodObjArgs(storage, names.address, nullptr));
        if (!place) return false;
        if (!first) {
            first.take(place.release());
        } else if (PyObject_RichCompareBool(place.get(), first.get(), Py_EQ) != 1) {
            return false;
        }
    }
    return true;
}

Py_ssize_t first_filled(const Whole& whole) {
    const auto& sizes = whole.division.sizes;
    const auto is_filled = [](npy_intp size) { return size != 0; };
    return std::distance(sizes.begin(), std::find_if(sizes.begin(), sizes.end(), is_filled));
}

// A tuple of numbers, in units of so many bytes; null with an exception set.
PyObject* tuple_of(const npy_intp* numbers, int count, npy_intp unit) {
    Owned tuple(PyTuple_New(count));
    for (int i = 0; tuple && i < count; ++i) {
        PyObject* number = PyLong_FromSsize_t(numbers[i] / unit);
        if (number == nullptr || PyTuple_SetItem(tuple.get(), i, number) < 0) return nullptr;
    }
    return tuple.release();
}

// The tensor that lies as an array does, which begins with one of a list; null, maybe without an
// exception.
PyObject* view_of(Owned& tensors, Py_ssize_t first, Owned& array) {
    auto* memory = reinterpret_cast<PyArrayObject*>(array.get());
    const int rank = PyArray_NDIM(memory);
    Owned shape(tuple_of(PyArray_DIMS(memory), rank, 1));
    Owned strides(tuple_of(PyArray_STRIDES(memory), rank, PyArray_ITEMSIZE(memory)));
    if (!shape || !strides) return nullptr;
    PyObject *tensor = PyList_GetItem(tensors.get(), first), *view = nullptr;
    PyObject *size = shape.get(), *steps = strides.get();
    const auto ask = [&] {
        view = PyObject_CallFunctionObjArgs(torch.as_strided, tensor, size, steps, nullptr);
    };
    keep_all_during(ask, tensors, array, shape, strides);
    // Torch has no strides below zero, and its storage may be shorter than another one there.
    if (view == nullptr && PyErr_ExceptionMatches(PyExc_RuntimeError)) PyErr_Clear();
    return view;
}

// A new tensor, by torch if it is small; null, maybe without an exception.
PyObject* join_new(Owned& parts, PyObject* axis, bool keepdims, PyObject* copy,
                   const Watching& watching) {
    DLDataType type{};
    Owned arrays(arrays_of(parts.get(), type));
    if (!arrays) return nullptr;
    Whole whole;
    const std::vector<PyObject*> each = entries_of(arrays.get());
    if (!read_parts(each, axis, keepdims, whole) || !are_parts_of(whole, each) || is_empty(whole)) {
        return nullptr;
    }
    Owned place(copy == Py_None ? view_of_parts(each, whole) : nullptr);
    if (place && have_one_storage(each) && are_their_memory(parts.get(), type, watching)) {
        PyObject* view = nullptr;
        arrays.keep_during([&] { view = view_of(parts, first_filled(whole), place); });
        if (view != nullptr) return view;
    }
    if (PyErr_Occurred() != nullptr) return nullptr;
    if (!are_small(each)) {
        const bool fits = are_their_memory(parts.get(), type, watching);
        return fits ? join_large(parts, arrays, axis, keepdims, type) : nullptr;
    }
    PyObject *function = keepdims ? torch.cat : torch.stack, *list = parts.get(), *made = nullptr;
    const auto ask = [&] { made = PyObject_CallFunctionObjArgs(function, list, axis, nullptr); };
    keep_all_during(ask, parts, arrays, place);
    return made;
}

// Join tensors in another one, which is returned; null, maybe without an exception.
PyObject* join_into(Owned& parts, PyObject* axis, bool keepdims, PyObject* out,
                    const Watching& watching) {
    DLDataType type{}, own{};
    Owned arrays(arrays_of(parts.get(), type)), written(PyList_New(0));
    if (!arrays || !are_their_memory(parts.get(), type, watching)) return nullptr;
    Owned whole(array_of(out, own));
    if (!whole || !is_buffer_of(out, type, own, watching) || !written ||
        PyList_Append(written.get(), out) < 0) {
        return nullptr;
    }
    PyObject *from = arrays.get(), *to = whole.get(), *list = written.get();
    bool done = false;
    const auto join = [&] {
        done = Owned(join_at_once(from, axis, keepdims ? Py_True : Py_False, Py_True, to)) &&
               Owned(PyObject_CallFunctionObjArgs(torch.increment_version, list, nullptr));
    };
    keep_all_during(join, parts, arrays, whole, written);
    return done ? new_reference(out) : nullptr;
}

// Read DLPack's interface, if it is of the version that we know; false with an exception set.
bool read_interface(PyObject* capsule) {
    if (capsule == Py_None) return true;
    const void* pointer = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    const auto* interface = static_cast<const DLPackExchangeAPI*>(pointer);
    while (interface != nullptr && interface->major != 1) interface = interface->previous;
    if (interface != nullptr && interface->dltensor_from_py_object_no_sync != nullptr &&
        interface->managed_tensor_to_py_object_no_sync != nullptr) {
        torch.memory = interface;
    }
    return pointer != nullptr;
}

PyObject* use_torch(PyObject*, PyObject* arguments) {
    if (torch.tensor != nullptr) Py_RETURN_NONE;
    Torch given{};
    PyObject* capsule;
    if (!PyArg_ParseTuple(arguments, "OOOOOOOOOOOOOOOnO", &given.tensor, &given.parameter,
                          &given.strided, &given.shells, &given.split, &given.unbind,
                          &given.split_copy, &given.unbind_copy, &given.cat, &given.stack,
                          &given.as_strided, &given.is_grad_enabled,
                          &given.is_inference_mode_enabled, &given.is_transformed,
                          &given.increment_version, &given.kernel_from, &capsule)) {
        return nullptr;
    }
    names = {
        PyUnicode_InternFromString("dtype"),           PyUnicode_InternFromString("layout"),
        PyUnicode_InternFromString("shape"),           PyUnicode_InternFromString("nbytes"),
        PyUnicode_InternFromString("requires_grad"),   PyUnicode_InternFromString("is_conj"),
        PyUnicode_InternFromString("is_neg"),          PyUnicode_InternFromString("is_inference"),
        PyUnicode_InternFromString("untyped_storage"), PyUnicode_InternFromString("data_ptr")};
    if (names.address == nullptr || !read_interface(capsule)) return nullptr;
    given.memory = torch.memory;
    torch = given;
    static_cast<void>(new_reference(arguments));  // and so all that it holds
    Py_RETURN_NONE;
}

PyMethodDef functions[] = {
    {"use_torch", use_torch, METH_VARARGS,
     "use_torch(tensor, parameter, strided, shells, split, unbind, split_copy, unbind_copy, cat,"
     " stack, as_strided, is_grad_enabled, is_inference_mode_enabled, is_transformed,"
     " increment_version, kernel_from, dlpack, /)\n--\n\n"
     "Split tensors, too, by what torch has of these names;"
     " shells are its types of less than a byte, in a frozenset. From how many bytes on the kernel"
     " copies to new tensors; and DLPack's interface in C, or None."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool is_tensor(PyObject* object) {
    const auto* type = reinterpret_cast<PyObject*>(Py_TYPE(object));
    return type == torch.tensor || type == torch.parameter;
}

bool is_of_torch(PyObject* object) {
    auto* type = reinterpret_cast<PyTypeObject*>(torch.tensor);
    return type != nullptr && PyObject_TypeCheck(object, type);
}

TensorFacts::TensorFacts(PyObject* tensor)
    : type(PyObject_GetAttr(tensor, names.dtype)),
      layout(PyObject_GetAttr(tensor, names.layout)),
      shape(PyObject_GetAttr(tensor, names.shape)) {}

TensorFacts::operator bool() const { return type && layout && shape && PyTuple_Check(shape.get()); }

bool fits_tensor(const Ready& ready, PyObject* tensor) {
    const TensorFacts facts(tensor);
    if (!facts) PyErr_Clear();
    return facts && facts.type.get() == ready.type && facts.layout.get() == torch.strided &&
           is_shape_of(ready, facts.shape.get());
}

PyObject* list_views(const TensorRequest& request) {
    return ask_torch(request, torch.split, torch.unbind);
}

PyObject* list_copies(const TensorRequest& request, const std::shared_ptr<Blocks>& blocks) {
    PyObject* tensor = request.tensor;
    const Ready& ready = request.ready;
    if (!blocks && (torch.memory == nullptr || !is_large(tensor))) {
        PyObject* parts = ask_torch(request, torch.split_copy, torch.unbind_copy);
        // It copies no elements of less than a byte; Python knows how.
        if (parts == nullptr && PyErr_ExceptionMatches(PyExc_RuntimeError)) PyErr_Clear();
        return parts;
    }
    const Watching watching = watching_now();
    if (torch.memory == nullptr || watching.anything) return nullptr;
    DLDataType type{};
    Owned array(array_of(tensor, type));
    auto* memory = reinterpret_cast<PyArrayObject*>(array.get());
    if (!array || !has_shape(memory, ready.shape) || !is_its_memory(tensor, type, watching)) {
        return nullptr;
    }
    PyObject* parts = nullptr;
    array.keep_during([&] { parts = list_copies(Request{memory, ready.division}, blocks); });
    Owned made(parts);
    for (Py_ssize_t i = 0; made && i < PyList_Size(parts); ++i) {
        PyObject* part = tensor_of(PyList_GetItem(parts, i), type);
        if (part == nullptr || PyList_SetItem(parts, i, part) < 0) return nullptr;
    }
    return made.release();
}

bool copy_to_own(const TensorRequest& request, PyObject* list) {
    const Ready& ready = request.ready;
    const Watching watching = watching_now();
    if (torch.memory == nullptr || watching.anything) return false;
    DLDataType type{}, own{};
    Owned array(array_of(request.tensor, type)), arrays(PyList_New(0));
    auto* memory = reinterpret_cast<PyArrayObject*>(array.get());
    if (!array || !arrays || !has_shape(memory, ready.shape) ||
        !is_its_memory(request.tensor, type, watching)) {
        return false;
    }
    for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
        PyObject* buffer = PyList_GetItem(list, i);
        const Owned written(array_of(buffer, own));
        if (!written || !is_buffer_of(buffer, type, own, watching) ||
            PyList_Append(arrays.get(), written.get()) < 0) {
            return false;
        }
    }
    PyObject* buffers = arrays.get();
    bool done = false;
    const auto copy = [&] {
        done = copy_to_own(Request{memory, ready.division}, buffers) &&
               Owned(PyObject_CallFunctionObjArgs(torch.increment_version, list, nullptr));
    };
    keep_all_during(copy, array, arrays);
    return done;
}

PyObject* join_tensors(Owned& parts, PyObject* axis, bool keepdims, PyObject* copy, PyObject* out) {
    const Watching watching = watching_now();
    if (torch.memory == nullptr || watching.anything) return nullptr;
    return out == Py_None ? join_new(parts, axis, keepdims, copy, watching)
                          : join_into(parts, axis, keepdims, out, watching);
}

bool add_tensor_functions(PyObject* module) {
    return PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace tensorsplit
