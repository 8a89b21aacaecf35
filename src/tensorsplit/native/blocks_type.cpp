#include "blocks_type.hpp"

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "parts.hpp"
#include "python.hpp"

namespace tensorsplit {
namespace {

struct PyBlocks {
    PyObject base;
    std::shared_ptr<Blocks> blocks;
};

// The type of pools, the name of their blocks, and the type of these; all live as long as we do.
PyObject *pool_type, *attribute, *blocks_type;

PyObject* make(PyTypeObject* type, PyObject* arguments, PyObject*) {
    Py_ssize_t most_idle = 0;
    if (!PyArg_ParseTuple(arguments, "n", &most_idle)) return nullptr;
    if (most_idle < 0) {
        refuse(PyExc_ValueError, "it must be 0 or more");
        return nullptr;
    }
    return guarded([&] {
        auto blocks = std::make_shared<Blocks>(static_cast<std::size_t>(most_idle));
        auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
        PyObject* self = allocate(type, 0);
        if (self == nullptr) return self;
        new (&reinterpret_cast<PyBlocks*>(self)->blocks) std::shared_ptr<Blocks>(std::move(blocks));
        return self;
    });
}

void destroy(PyObject* self) {
    PyTypeObject* type = Py_TYPE(self);
    reinterpret_cast<PyBlocks*>(self)->blocks.~shared_ptr();
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyObject* copies(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
    return guarded([&]() -> PyObject* {
        Division division;
        auto* array = count_is(count, 4) ? read_request(arguments, division) : nullptr;
        if (array == nullptr) return nullptr;
        return list_copies({array, division}, blocks_of(self));
    });
}

PyObject* empty(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
    return guarded([&]() -> PyObject* {
        std::vector<npy_intp> shape;
        if (!count_is(count, 2) || !read_shape(arguments[0], shape)) return nullptr;
        if (!PyArray_DescrCheck(arguments[1])) {
            refuse(PyExc_TypeError, "not a dtype");
            return nullptr;
        }
        return new_pooled(reinterpret_cast<PyArray_Descr*>(arguments[1]),
                          static_cast<int>(shape.size()), shape.data(), blocks_of(self));
    });
}

PyObject* clear(PyObject* self, PyObject*) {
    blocks_of(self)->clear();
    Py_RETURN_NONE;
}

PyObject* fill(PyObject* self, PyObject* argument) {
    const long byte = PyLong_AsLong(argument);
    if (byte == -1 && PyErr_Occurred() != nullptr) return nullptr;
    blocks_of(self)->fill(static_cast<unsigned char>(byte));
    Py_RETURN_NONE;
}

PyObject* idle_bytes(PyObject* self, void*) { return PyLong_FromSize_t(blocks_of(self)->idle()); }

PyObject* in_use_bytes(PyObject* self, void*) {
    return PyLong_FromSize_t(blocks_of(self)->in_use());
}

PyObject* use_pool(PyObject*, PyObject* type) {
    pool_type = new_reference(type);
    Py_RETURN_NONE;
}

PyMethodDef methods[] = {
    {"copies", as_method(copies), METH_FASTCALL,
     "copies($self, array, axis, sizes, keepdims, /)\n--\n\n"
     "The parts as new arrays in these blocks; None if NumPy has to copy them."},
    {"empty", as_method(empty), METH_FASTCALL,
     "empty($self, shape, dtype, /)\n--\n\n"
     "An array; None if it has no elements, or elements that are no plain bytes."},
    {"clear", clear, METH_NOARGS, "clear($self, /)\n--\n\nGive back all that is idle."},
    {"fill", fill, METH_O, "fill($self, byte, /)\n--\n\nOverwrite all that is idle; for tests."},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef attributes[] = {
    {"idle_bytes", idle_bytes, nullptr, "How much memory waits for its next use.", nullptr},
    {"in_use_bytes", in_use_bytes, nullptr, "How much memory is in arrays.", nullptr},
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("Blocks(most_idle, /)\n--\n\nMemory that is reused.")},
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {0, nullptr},
};

PyType_Spec spec = {
    "tensorsplit.native._kernel.Blocks", sizeof(PyBlocks), 0, Py_TPFLAGS_DEFAULT, slots,
};

PyMethodDef functions[] = {
    {"use_pool", use_pool, METH_O,
     "use_pool(type)\n--\n\nTake memory from objects of exactly that type, by their `blocks`."},
    {nullptr, nullptr, 0, nullptr},
};

bool is_exactly(PyObject* object, PyObject* type) {
    return reinterpret_cast<PyObject*>(Py_TYPE(object)) == type;
}

}  // namespace

const std::shared_ptr<Blocks>& blocks_of(PyObject* self) {
    return reinterpret_cast<PyBlocks*>(self)->blocks;
}

PyObject* find_blocks(PyObject* pool) {
    if (!is_exactly(pool, pool_type)) return nullptr;
    Owned blocks(PyObject_GetAttr(pool, attribute));
    return blocks && is_exactly(blocks.get(), blocks_type) ? blocks.release() : nullptr;
}

bool add_blocks_type(PyObject* module) {
    attribute = PyUnicode_InternFromString("blocks");
    blocks_type = PyType_FromModuleAndSpec(module, &spec, nullptr);
    return attribute != nullptr && blocks_type != nullptr &&
           PyModule_AddObjectRef(module, "Blocks", blocks_type) == 0 &&
           PyModule_AddFunctions(module, functions) == 0;
}

}  // namespace tensorsplit
