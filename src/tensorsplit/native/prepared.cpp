#include "prepared.hpp"

#include <algorithm>
#include <memory>

#include "python.hpp"

namespace tensorsplit {
namespace {

struct PyPrepared {
    PyObject base;
    Ready* ready;  // null until an array was found to fit
};

PyObject* accept(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
    return guarded([&]() -> PyObject* {
        if (!count_is(count, 5)) return nullptr;
        if (!PyArray_DescrCheck(arguments[0])) {
            refuse(PyExc_TypeError, "not a dtype");
            return nullptr;
        }
        Ready*& ready = reinterpret_cast<PyPrepared*>(self)->ready;
        if (ready == nullptr) {  // else it may be in use, without the GIL
            auto made = std::make_unique<Ready>();
            if (!read_shape(arguments[1], made->shape)) return nullptr;
            const int rank = static_cast<int>(made->shape.size());
            if (!read_division(arguments + 2, rank, made->shape.data(), made->division)) {
                return nullptr;
            }
            ready = made.release();
        }
        Owned old(reinterpret_cast<PyObject*>(ready->type));
        ready->type = reinterpret_cast<PyArray_Descr*>(new_reference(arguments[0]));
        Py_RETURN_NONE;
    });
}

void destroy(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    const std::unique_ptr<Ready> ready(reinterpret_cast<PyPrepared*>(self)->ready);
    if (ready) Py_DECREF(reinterpret_cast<PyObject*>(ready->type));
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyMethodDef methods[] = {
    {"_accept", as_method(accept), METH_FASTCALL,
     "_accept($self, dtype, shape, axis, sizes, keepdims, /)\n--\n\n"
     "Split arrays of that type and shape at once from now on. How they are split is read the first"
     " time."},
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

const Ready* ready_of(PyObject* prepared) {
    return reinterpret_cast<const PyPrepared*>(prepared)->ready;
}

bool add_prepared_type(PyObject* module) {
    Owned type(PyType_FromModuleAndSpec(module, &spec, nullptr));
    return type && PyModule_AddObjectRef(module, "Prepared", type.get()) == 0;
}

}  // namespace tensorsplit
