#include "spelling.hpp"

#include <cstdint>
#include <cstring>
#include <string>

#include "arrays.hpp"
#include "python.hpp"

namespace tensorsplit {
namespace {

// Longer lists are not worth remembering.
constexpr npy_intp longest = 1 << 16;

// What stands before the numbers of an argument, and tells how many of them follow, so that no two
// calls come to the same bytes by different ways.
enum Kind : std::int64_t { nothing, integer, items, elements };

// Numbers, mostly small ones, as bytes: one byte, or a mark and eight bytes.
class Text {
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

// Types are compared and not asked, so that no subclass passes for what it is not: True is no
// integer here. Each of these functions tells whether it could spell what it was given; none of
// them runs Python code, which could change an argument in the meantime.

bool spell_integer(PyObject* object, Text& text) {
    if (!PyLong_CheckExact(object)) return false;
    int overflow = 0;
    text.add(PyLong_AsLongLongAndOverflow(object, &overflow));
    return overflow == 0;
}

template <class Item>
bool spell_items(Py_ssize_t count, Item item, Text& text) {
    if (count > longest) return false;
    text.add(items);
    text.add(count);
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (!spell_integer(item(i), text)) return false;
    }
    return true;
}

bool spell_array(PyArrayObject* given, Text& text) {
    const int type = PyArray_DESCR(given)->type_num;
    const int rank = PyArray_NDIM(given);
    if (!PyTypeNum_ISINTEGER(type) || !PyArray_ISNOTSWAPPED(given) || rank > 1) return false;
    const npy_intp count = PyArray_SIZE(given);
    if (count > longest) return false;
    for (const npy_intp each : {npy_intp{elements}, npy_intp{type}, npy_intp{rank}, count}) {
        text.add(each);
    }
    const char* item = PyArray_BYTES(given);
    for (npy_intp i = 0; i < count; ++i) {
        std::int64_t value = 0;
        std::memcpy(&value, item, static_cast<std::size_t>(PyArray_ITEMSIZE(given)));
        text.add(value);
        if (rank == 1) item += PyArray_STRIDE(given, 0);
    }
    return true;
}

bool spell_argument(PyObject* object, Text& text) {
    if (object == Py_None) {
        text.add(nothing);
        return true;
    }
    if (PyLong_CheckExact(object)) {
        text.add(integer);
        return spell_integer(object, text);
    }
    if (PyList_CheckExact(object)) {
        const auto item = [&](Py_ssize_t i) { return PyList_GetItem(object, i); };
        return spell_items(PyList_Size(object), item, text);
    }
    if (PyTuple_CheckExact(object)) {
        const auto item = [&](Py_ssize_t i) { return PyTuple_GetItem(object, i); };
        return spell_items(PyTuple_Size(object), item, text);
    }
    return is_plain_array(object) && spell_array(reinterpret_cast<PyArrayObject*>(object), text);
}

bool spell_arguments(PyObject* arguments, Text& text) {
    const Py_ssize_t count = PyTuple_Size(arguments);
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (!spell_argument(PyTuple_GetItem(arguments, i), text)) return false;
    }
    return true;
}

// Whether it is the one object that stands for its type number, and says no more than that: neither
// another byte order, nor fields, nor a length or a unit.
bool is_its_number(PyArray_Descr* type) {
    PyArray_Descr* known = PyArray_DescrFromType(type->type_num);
    if (known == nullptr) PyErr_Clear();
    Py_XDECREF(reinterpret_cast<PyObject*>(known));
    return known == type;
}

}  // namespace

PyObject* spell(PyObject* array, PyObject* arguments) {
    if (!PyTuple_CheckExact(arguments)) {
        refuse(PyExc_TypeError, "arguments must be a tuple");
        return nullptr;
    }
    if (!is_plain_array(array)) return new_reference(Py_None);
    auto* data = reinterpret_cast<PyArrayObject*>(array);
    PyArray_Descr* type = PyArray_DESCR(data);
    const bool is_number = is_its_number(type);
    Text text;
    text.add(is_number ? type->type_num : 0);
    text.add(PyArray_NDIM(data));
    for (int i = 0; i < PyArray_NDIM(data); ++i) text.add(PyArray_DIM(data, i));
    if (!spell_arguments(arguments, text)) return new_reference(Py_None);
    if (is_number) return text.as_bytes();
    Owned spelled(text.as_bytes());
    return spelled ? PyTuple_Pack(2, reinterpret_cast<PyObject*>(type), spelled.get()) : nullptr;
}

}  // namespace tensorsplit
