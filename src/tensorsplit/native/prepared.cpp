#include "prepared.hpp"

#include <algorithm>
#include <memory>

#include "arrays.hpp"
#include "python.hpp"
#include "tensors.hpp"

namespace tensorsplit {
namespace {

struct PyPrepared {
    PyObject base;
    Ready* ready;  // null until an array was found to fit
};

PyObject* accept(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
    return guarded([&]() -> PyObject* {
        if (!count_is(count, 5)) return nullptr;
        if (!is_plain_array(arguments[0]) && !is_tensor(arguments[0])) Py_RETURN_NONE;
        Owned type(PyObject_GetAttrString(arguments[0], "dtype"));
        if (!type) return nullptr;
        Ready*& ready = reinterpret_cast<PyPrepared*>(self)->ready;
        if (ready == nullptr) {  // else it may be in use, without the GIL
            auto made = std::make_unique<Ready>();
            if (!read_shape(arguments[1], made->shape)) return nullptr;
            const int rank = static_cast<int>(made->shape.size());
            if (!read_division(arguments + 2, rank, made->shape.data(), made->division)) {
                return nullptr;
            }
            made->axis = new_reference(arguments[2]);
            made->sizes = new_reference(arguments[3]);
            ready = made.release();
        }
        const Owned old(ready->type);
        ready->type = type.release();
        Py_RETURN_NONE;
    });
}

void destroy(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    const std::unique_ptr<Ready> ready(reinterpret_cast<PyPrepared*>(self)->ready);
    if (ready) {
        for (PyObject* object : {ready->axis, ready->sizes, ready->type}) Py_DECREF(object);
    }
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyMethodDef methods[] = {
    {"_accept", as_method(accept), METH_FASTCALL,
     "_accept($self, array, shape, axis, sizes, keepdims, /)\n--\n\n"
     "Split arrays like this one, which has that shape, at once from now on. How they are split is"
     " read the first time. Nothing is done for arrays that only Python splits."},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("What splits an array like one that was looked at before.")},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_methods, methods},
    {0, nullptr},
};

PyType_Spec spec = {
    "tensorsplit.native._kernel.Prepared",
    sizeof(PyPrepared),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    slots,
};

}  // namespace

bool has_shape_of(const Ready& ready, PyArrayObject* array) {
    return static_cast<std::size_t>(PyArray_NDIM(array)) == ready.shape.size() &&
           std::equal(ready.shape.begin(), ready.shape.end(), PyArray_DIMS(array));
}

bool is_shape_of(const Ready& ready, PyObject* shape) {
    std::vector<npy_intp> seen;
    const bool is_shape = read_shape(shape, seen);
    if (!is_shape) PyErr_Clear();
    return is_shape && seen == ready.shape;
}

const Ready* ready_of(PyObject* prepared) {
    return reinterpret_cast<const PyPrepared*>(prepared)->ready;
}

bool add_prepared_type(PyObject* module) {
    Owned type(PyType_FromModuleAndSpec(module, &spec, nullptr));
    return type && PyModule_AddObjectRef(module, "Prepared", type.get()) == 0;
}

}  // namespace tensorsplit
