#include "cache_key.hpp"

#include <cstdint>
#include <cstring>
#include <string>

#include "arrays.hpp"
#include "python.hpp"

namespace tensorsplit {
namespace {

// Longer lists are not worth remembering.
constexpr npy_intp longest = 1 << 16;

// Comes before the numbers of an argument and says how many follow, so that no two different calls
// have the same bytes.
enum Kind : std::int64_t { nothing, integer, items, elements };

// Numbers, mostly small ones, as bytes: one byte, or a mark and eight bytes.
class Key {
  public:
    void add(std::int64_t value) {
        if (value >= 0 && value < mark) {
            bytes_.push_back(static_cast<char>(value));
        } else {
            bytes_.push_back(static_cast<char>(mark));
            bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
        }
    }

    PyObject* as_bytes() const {
        return PyBytes_FromStringAndSize(bytes_.data(), static_cast<Py_ssize_t>(bytes_.size()));
    }

  private:
    static constexpr std::int64_t mark = 255;
    std::string bytes_;  // which needs no memory of its own for the simplest calls
};

// Types are compared exactly, so that no subclass passes for what it is not: True is no integer
// here. Each of these functions says whether there is a key for what it was given; none of them
// runs Python code, which could change an argument in the meantime.

bool add_integer(PyObject* object, Key& key) {
    if (!PyLong_CheckExact(object)) return false;
    int overflow = 0;
    key.add(PyLong_AsLongLongAndOverflow(object, &overflow));
    return overflow == 0;
}

template <class Item>
bool add_items(Py_ssize_t count, Item item, Key& key) {
    if (count > longest) return false;
    key.add(items);
    key.add(count);
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (!add_integer(item(i), key)) return false;
    }
    return true;
}

bool add_array(PyArrayObject* given, Key& key) {
    const int type = PyArray_DESCR(given)->type_num;
    const int rank = PyArray_NDIM(given);
    if (!PyTypeNum_ISINTEGER(type) || !PyArray_ISNOTSWAPPED(given) || rank > 1) return false;
    const npy_intp count = PyArray_SIZE(given);
    if (count > longest) return false;
    for (const npy_intp each : {npy_intp{elements}, npy_intp{type}, npy_intp{rank}, count}) {
        key.add(each);
    }
    const char* item = PyArray_BYTES(given);
    for (npy_intp i = 0; i < count; ++i) {
        std::int64_t value = 0;
        std::memcpy(&value, item, static_cast<std::size_t>(PyArray_ITEMSIZE(given)));
        key.add(value);
        if (rank == 1) item += PyArray_STRIDE(given, 0);
    }
    return true;
}

bool add_argument(PyObject* object, Key& key) {
    if (object == Py_None) {
        key.add(nothing);
        return true;
    }
    if (PyLong_CheckExact(object)) {
        key.add(integer);
        return add_integer(object, key);
    }
    if (PyList_CheckExact(object)) {
        const auto item = [&](Py_ssize_t i) { return PyList_GetItem(object, i); };
        return add_items(PyList_Size(object), item, key);
    }
    if (PyTuple_CheckExact(object)) {
        const auto item = [&](Py_ssize_t i) { return PyTuple_GetItem(object, i); };
        return add_items(PyTuple_Size(object), item, key);
    }
    return is_plain_array(object) && add_array(reinterpret_cast<PyArrayObject*>(object), key);
}

bool add_arguments(PyObject* arguments, Key& key) {
    const Py_ssize_t count = PyTuple_Size(arguments);
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (!add_argument(PyTuple_GetItem(arguments, i), key)) return false;
    }
    return true;
}

// Whether the type is the only one of its number: it has no byte order of its own, no fields, and
// no length or unit.
bool is_its_number(PyArray_Descr* type) {
    PyArray_Descr* known = PyArray_DescrFromType(type->type_num);
    if (known == nullptr) PyErr_Clear();
    Py_XDECREF(reinterpret_cast<PyObject*>(known));
    return known == type;
}

}  // namespace

PyObject* cache_key(PyObject* array, PyObject* arguments) {
    if (!PyTuple_CheckExact(arguments)) {
        refuse(PyExc_TypeError, "arguments must be a tuple");
        return nullptr;
    }
    if (!is_plain_array(array)) return new_reference(Py_None);
    auto* data = reinterpret_cast<PyArrayObject*>(array);
    PyArray_Descr* type = PyArray_DESCR(data);
    const bool is_number = is_its_number(type);
    Key key;
    key.add(is_number ? type->type_num : 0);
    key.add(PyArray_NDIM(data));
    for (int i = 0; i < PyArray_NDIM(data); ++i) key.add(PyArray_DIM(data, i));
    if (!add_arguments(arguments, key)) return new_reference(Py_None);
    if (is_number) return key.as_bytes();
    Owned bytes(key.as_bytes());
    return bytes ? PyTuple_Pack(2, reinterpret_cast<PyObject*>(type), bytes.get()) : nullptr;
}

}  // namespace tensorsplit
