#include "prepared.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>

#include "arrays.hpp"
#include "blocks_type.hpp"
#include "parts.hpp"
#include "python.hpp"
#include "tensors.hpp"
#include "vectorcall.hpp"

namespace tensorsplit {
namespace {

struct PyPrepared {
    PyObject base;
    Ready* ready;           // null until an array was found to fit, as is
    Vectorcall vectorcall;  // for Python, which then asks the method `__call__`
};

// These live as long as we do.
PyObject* prepared_type;
struct Names {
    PyObject *call, *copy, *out;
};
Names names{};

PyPrepared& prepared_of(PyObject* self) { return *reinterpret_cast<PyPrepared*>(self); }

// The parts of an array or a tensor, written to buffers or memory of a pool; null, maybe without an
// exception.
template <class Parts>
PyObject* split_into(const Parts& request, PyObject* out) {
    if (PyList_CheckExact(out) || PyTuple_CheckExact(out)) {
        Owned buffers(PySequence_List(out));  // which nobody else can change
        PyObject* own = buffers.get();
        bool done = false;
        if (own != nullptr) buffers.keep_during([&] { done = copy_to_own(request, own); });
        return done ? buffers.release() : nullptr;
    }
    Owned blocks(find_blocks(out));
    PyObject *pool = blocks.get(), *parts = nullptr;
    if (blocks) blocks.keep_during([&] { parts = list_copies(request, blocks_of(pool)); });
    return parts;
}

template <class Parts>
PyObject* split(Owned& plan, const Parts& request, PyObject* copy, PyObject* out) {
    PyObject* parts = nullptr;
    plan.keep_during([&] {
        parts = out != Py_None    ? split_into(request, out)
                : copy == Py_True ? list_copies(request, nullptr)
                                  : list_views(request);
    });
    if (parts == Py_None) Py_CLEAR(parts);  // NumPy has to copy
    return parts;
}

// The plan is that which is ready; the array or tensor may have another shape.
PyObject* split_by(const Ready& ready, Owned& plan, PyObject* data, PyObject* copy, PyObject* out) {
    if (copy != Py_True && copy != Py_False) return nullptr;
    if (!is_plain_array(data)) return split(plan, TensorRequest{data, ready}, copy, out);
    auto* array = reinterpret_cast<PyArrayObject*>(data);
    if (!has_shape(array, ready.shape)) return nullptr;
    return split(plan, Request{array, ready.division}, copy, out);
}

// Whether the array or tensor is like the last one that was looked at.
bool fits(const Ready& ready, PyObject* data) {
    if (!is_plain_array(data)) return is_tensor(data) && fits_tensor(ready, data);
    auto* type = PyArray_DESCR(reinterpret_cast<PyArrayObject*>(data));
    return reinterpret_cast<PyObject*>(type) == ready.type;
}

// Null, maybe without an exception, if the method `__call__` has to look closer.
PyObject* answer(PyObject* self, PyObject* const* arguments, Py_ssize_t count, PyObject* given) {
    if (count != 1) return nullptr;
    PyObject *data = arguments[0], *copy = Py_False, *out = Py_None;
    const Py_ssize_t named = given == nullptr ? 0 : PyTuple_Size(given);
    for (Py_ssize_t i = 0; i < named; ++i) {
        PyObject* name = PyTuple_GetItem(given, i);
        if (name != names.copy && name != names.out) return nullptr;
        (name == names.copy ? copy : out) = arguments[1 + i];
    }
    const Ready& ready = *prepared_of(self).ready;
    if (!fits(ready, data)) return nullptr;
    Owned plan(new_reference(self));
    return split_by(ready, plan, data, copy, out);
}

PyObject* vectorcall(PyObject* self, PyObject* const* arguments, std::size_t flags,
                     PyObject* given) {
    const Py_ssize_t count = positional_of(flags);
    PyObject* parts = guarded([&] { return answer(self, arguments, count, given); });
    if (parts != nullptr || PyErr_Occurred() != nullptr) return parts;
    PyObject* type = reinterpret_cast<PyObject*>(Py_TYPE(self));
    return call_python(PyObject_GetAttr(type, names.call), self, arguments, count, given);
}

PyObject* accept(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
    return guarded([&]() -> PyObject* {
        if (!count_is(count, 5)) return nullptr;
        if (!is_plain_array(arguments[0]) && !is_tensor(arguments[0])) Py_RETURN_NONE;
        Owned type(PyObject_GetAttrString(arguments[0], "dtype"));
        if (!type) return nullptr;
        Ready*& ready = prepared_of(self).ready;
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
            prepared_of(self).vectorcall = vectorcall;
        }
        const Owned old(ready->type);
        ready->type = type.release();
        Py_RETURN_NONE;
    });
}

void destroy(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    const std::unique_ptr<Ready> ready(prepared_of(self).ready);
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

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PyPrepared, vectorcall), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
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

// Python makes no class whose objects are called at once and that has a method `__call__` to be
// looked at, and before 3.12 none at all. So this one is made here, and has nothing of its own.
PyObject* called_at_once(PyObject*, PyObject* type) {
    // A build for debugging insists that such a class calls by itself in every other way, too.
    if (PySys_GetObject("gettotalrefcount") != nullptr) return new_reference(type);
    PyType_Slot no_slots[] = {{Py_tp_members, members}, {0, nullptr}};
    PyType_Spec derived = {
        "tensorsplit.arrays.prepared.PreparedSplit",
        0,
        0,
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_VECTORCALL,
        no_slots,
    };
    return PyType_FromSpecWithBases(&derived, type);
}

PyMethodDef functions[] = {
    {"called_at_once", called_at_once, METH_O,
     "called_at_once(type)\n--\n\n"
     "A class derived from one of plans, whose objects answer a call before `__call__` is looked "
     "for."},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

bool is_shape_of(const Ready& ready, PyObject* shape) {
    std::vector<npy_intp> seen;
    const bool is_shape = read_shape(shape, seen);
    if (!is_shape) PyErr_Clear();
    return is_shape && seen == ready.shape;
}

PyObject* split_at_once(Owned& plan, PyObject* data, PyObject* copy, PyObject* out) {
    auto* type = reinterpret_cast<PyTypeObject*>(prepared_type);
    if (!PyObject_TypeCheck(plan.get(), type)) return nullptr;
    const Ready* ready = prepared_of(plan.get()).ready;
    return ready == nullptr ? nullptr : split_by(*ready, plan, data, copy, out);
}

bool add_prepared_type(PyObject* module) {
    names = {PyUnicode_InternFromString("__call__"), PyUnicode_InternFromString("copy"),
             PyUnicode_InternFromString("out")};
    prepared_type = PyType_FromModuleAndSpec(module, &spec, nullptr);
    return names.out != nullptr && prepared_type != nullptr &&
           PyModule_AddObjectRef(module, "Prepared", prepared_type) == 0 &&
           PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace tensorsplit
