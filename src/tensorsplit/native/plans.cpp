#include "plans.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "python.hpp"
#include "tensors.hpp"

namespace tensorsplit {
namespace {

// Longer lists are not worth remembering.
constexpr npy_intp longest = 1 << 16;

// Shapes of more dimensions, which only classes of their own have, are not remembered.
constexpr Py_ssize_t most_dimensions = 64;

// The last two bits of the first number of an argument, which also says how many follow; so no two
// different calls have the same numbers.
enum Kind : std::int64_t { nothing, integer, items, elements, kinds };

// The numbers that tell a call from all others, the element type, or its name, where a number does
// not say it, and a class that a number is the address of, which is of no other one while it lives.
class Key {
  public:
    void add(std::int64_t number) {
        if (count_ == room_) grow();
        numbers_[count_++] = number;
    }

    void add(std::int64_t number, Kind kind) { add(number * kinds + kind); }

    const std::int64_t* begin() const { return numbers_; }
    const std::int64_t* end() const { return numbers_ + count_; }

    // Each number is mixed with its place and by itself: no multiplication waits for another.
    std::uint64_t hash() const {
        std::uint64_t hash = 0, place = 0;
        for (const std::int64_t number : *this) {
            place += 0x9E3779B97F4A7C15;
            const std::uint64_t mixed =
                (static_cast<std::uint64_t>(number) + place) * 0xBF58476D1CE4E5B9;
            hash += mixed ^ mixed >> 32;
        }
        return hash;
    }

    bool is(const std::vector<std::int64_t>& numbers) const {
        return std::equal(begin(), end(), numbers.begin(), numbers.end());
    }

    Owned type{nullptr}, kind{nullptr};

  private:
    void grow() {
        std::vector<std::int64_t> more(2 * room_);
        std::copy(begin(), end(), more.begin());
        many_.swap(more);
        numbers_ = many_.data();
        room_ = many_.size();
    }

    std::array<std::int64_t, 64> few_;  // enough for most calls
    std::vector<std::int64_t> many_;
    std::int64_t* numbers_ = few_.data();
    std::size_t count_ = 0, room_ = few_.size();
};

// The names of attributes, as Python has them.
struct Names {
    PyObject *dtype, *layout, *shape;
};

Names names{};

// Types are compared exactly, so that no subclass passes for what it is not: True is no integer
// here. Each of these functions says whether there is a key for what it was given; none of those
// for arguments runs Python code, which could change another one in the meantime.

// Integers beyond these have no key.
constexpr std::int64_t largest = INT64_MAX / kinds - 1;

bool read_integer(PyObject* object, std::int64_t& number) {
    int overflow = 0;
    number = PyLong_AsLongLongAndOverflow(object, &overflow);
    return overflow == 0 && -largest <= number && number <= largest;
}

// The number of the type of an integer that is one of NumPy's own objects; -1 for all else.
int type_of_scalar(PyObject* object) {
    if (!PyArray_IsScalar(object, Integer)) return -1;
    PyArray_Descr* type = PyArray_DescrFromTypeObject(reinterpret_cast<PyObject*>(Py_TYPE(object)));
    if (type == nullptr) PyErr_Clear();
    const Owned owner(reinterpret_cast<PyObject*>(type));
    const bool is_exact = owner && type->typeobj == Py_TYPE(object);
    return is_exact && PyTypeNum_ISINTEGER(type->type_num) ? type->type_num : -1;
}

bool read_scalar(PyObject* object, std::int64_t& number) {
    const Owned integer(PyNumber_Index(object));
    if (!integer) PyErr_Clear();
    return integer && read_integer(integer.get(), number);
}

// An item means its value, whatever its type.
bool read_item(PyObject* object, std::int64_t& number) {
    if (PyLong_CheckExact(object)) return read_integer(object, number);
    return type_of_scalar(object) >= 0 && read_scalar(object, number);
}

template <class Item>
bool add_items(Py_ssize_t count, Item item, Key& key) {
    if (count > longest) return false;
    key.add(count, items);
    for (Py_ssize_t i = 0; i < count; ++i) {
        std::int64_t number = 0;
        if (!read_item(item(i), number)) return false;
        key.add(number);
    }
    return true;
}

void add_elements(int type, int rank, npy_intp count, Key& key) {
    key.add((count * NPY_NTYPES_LEGACY + type) * 2 + rank, elements);
}

bool add_array(PyArrayObject* given, Key& key) {
    const int type = PyArray_TYPE(given);
    const int rank = PyArray_NDIM(given);
    const npy_intp count = PyArray_SIZE(given);
    const auto bytes = static_cast<std::size_t>(PyArray_ITEMSIZE(given));
    const bool is_number = type >= 0 && PyTypeNum_ISNUMBER(type) && bytes <= sizeof(std::int64_t);
    if (!is_number || !PyArray_ISNOTSWAPPED(given) || rank > 1 || count > longest) return false;
    add_elements(type, rank, count, key);
    for (npy_intp i = 0; i < count; ++i) {
        std::int64_t value = 0;
        const npy_intp offset = i == 0 ? 0 : i * PyArray_STRIDE(given, 0);
        std::memcpy(&value, PyArray_BYTES(given) + offset, bytes);
        key.add(value);
    }
    return true;
}

bool add_argument(PyObject* object, Key& key) {
    std::int64_t number = 0;
    if (object == Py_None) {
        key.add(0, nothing);
        return true;
    }
    if (PyLong_CheckExact(object)) {
        if (!read_integer(object, number)) return false;
        key.add(number, integer);
        return true;
    }
    if (PyList_CheckExact(object)) {
        const auto item = [&](Py_ssize_t i) { return PyList_GetItem(object, i); };
        return add_items(PyList_Size(object), item, key);
    }
    if (PyTuple_CheckExact(object)) {
        const auto item = [&](Py_ssize_t i) { return PyTuple_GetItem(object, i); };
        return add_items(PyTuple_Size(object), item, key);
    }
    if (is_plain_array(object)) return add_array(reinterpret_cast<PyArrayObject*>(object), key);
    const int type = type_of_scalar(object);
    if (type < 0 || !read_scalar(object, number)) return false;
    add_elements(type, 0, 1, key);  // an array of rank 0
    key.add(number);
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

std::int64_t address_of(const void* object) {
    return static_cast<std::int64_t>(reinterpret_cast<std::intptr_t>(object));
}

void add_type(PyArray_Descr* type, Key& key) {
    const bool is_told = is_its_number(type);
    if (!is_told) key.type.take(new_reference(reinterpret_cast<PyObject*>(type)));
    key.add(is_told ? type->type_num : -1);
}

// The name is all that counts of element types which are not of NumPy; each array may have an
// object of its own.
bool add_named_type(Owned& type, Key& key) {
    PyObject *object = type.get(), *name = nullptr;
    type.keep_during([&] { name = PyObject_Str(object); });
    key.type.take(name);
    key.add(-1);
    return name != nullptr;
}

bool add_shape(PyObject* shape, Key& key) {
    if (!PyTuple_Check(shape)) return false;
    const Py_ssize_t rank = PyTuple_Size(shape);
    key.add(rank);
    for (Py_ssize_t i = 0; i < rank; ++i) {
        std::int64_t number = 0;
        if (!read_item(PyTuple_GetItem(shape, i), number)) return false;
        key.add(number);
    }
    return true;
}

// A shape of a class of its own, as TensorFlow's are; what that class does may be Python code.
bool add_own_shape(Owned& shape, Key& key) {
    PyObject* object = shape.get();
    if (PySequence_Check(object) == 0) return false;
    Py_ssize_t rank = -1;
    shape.keep_during([&] { rank = PySequence_Size(object); });
    if (rank < 0 || rank > most_dimensions) return false;
    key.add(rank);
    for (Py_ssize_t i = 0; i < rank; ++i) {
        PyObject* item = nullptr;
        shape.keep_during([&] { item = PySequence_GetItem(object, i); });
        const Owned dimension(item);
        std::int64_t number = 0;
        if (!dimension || !read_item(dimension.get(), number)) return false;
        key.add(number);
    }
    return true;
}

void add_numpy(PyArrayObject* array, Key& key) {
    add_type(PyArray_DESCR(array), key);
    key.add(PyArray_NDIM(array));
    for (int i = 0; i < PyArray_NDIM(array); ++i) key.add(PyArray_DIM(array, i));
}

bool add_tensor(PyObject* tensor, Key& key) {
    const TensorFacts facts(tensor);
    if (!facts) return false;
    key.add(-2);
    for (PyObject* object : {facts.type.get(), facts.layout.get()}) key.add(address_of(object));
    return add_shape(facts.shape.get(), key);
}

// What any other class says of an array may be Python code, during which nothing may be owned.
bool add_other(PyObject* array, Key& key) {
    key.add(-3);
    key.add(address_of(Py_TYPE(array)));
    {
        Owned shape(PyObject_GetAttr(array, names.shape));
        if (!shape) return false;
        const bool is_tuple = PyTuple_Check(shape.get()) != 0;
        if (!(is_tuple ? add_shape(shape.get(), key) : add_own_shape(shape, key))) return false;
    }
    PyObject* layout = nullptr;
    if (is_of_torch(array)) {
        layout = PyObject_GetAttr(array, names.layout);
        if (layout == nullptr) return false;
        Py_DECREF(layout);  // layouts live for ever
    }
    key.add(address_of(layout));
    Owned type(PyObject_GetAttr(array, names.dtype));
    if (!type) return false;
    if (PyArray_DescrCheck(type.get())) {
        add_type(reinterpret_cast<PyArray_Descr*>(type.get()), key);
    } else if (!add_named_type(type, key)) {
        return false;
    }
    key.kind.take(new_reference(reinterpret_cast<PyObject*>(Py_TYPE(array))));
    return true;
}

bool add_data(PyObject* data, Key& key) {
    if (is_plain_array(data)) {
        add_numpy(reinterpret_cast<PyArrayObject*>(data), key);
        return true;
    }
    if (is_tensor(data) ? add_tensor(data, key) : add_other(data, key)) return true;
    const bool has_failed = PyErr_Occurred() != nullptr;
    if (has_failed && PyErr_ExceptionMatches(PyExc_Exception) != 0) PyErr_Clear();
    return false;  // the function says why, if that matters; but interrupts are not for it
}

// False with an exception set if reading an array was interrupted.
bool read_key(PyObject* data, PyObject* const* arguments, Py_ssize_t count, Key& key) {
    const auto add = [&](PyObject* argument) { return add_argument(argument, key); };
    return add_data(data, key) && std::all_of(arguments, arguments + count, add);
}

// Whether two element types that no numbers tell, or their names, are the same.
bool is_same_type(PyObject* a, PyObject* b) {
    if (PyUnicode_Check(a) || PyUnicode_Check(b)) {
        return PyUnicode_Check(a) && PyUnicode_Check(b) && PyUnicode_Compare(a, b) == 0;
    }
    return PyArray_EquivTypes(reinterpret_cast<PyArray_Descr*>(a),
                              reinterpret_cast<PyArray_Descr*>(b)) != 0;
}

// One call, and what was decided for it; the objects are owned.
struct Entry {
    std::uint64_t hash = 0;
    std::vector<std::int64_t> numbers;
    PyObject *type = nullptr, *kind = nullptr, *plan = nullptr;
};

// A hash table of which nothing is removed alone; at most half of its places are taken. The GIL
// guards it; where Python code may run, nothing of it is held on to.
class Table {
  public:
    Table() = default;
    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;
    ~Table() { clear(); }

    std::size_t size() const { return count_; }

    template <class Action>
    int each(Action action) const {
        for (const Entry& entry : places_) {
            const int result = entry.plan == nullptr ? 0 : action(entry);
            if (result != 0) return result;
        }
        return 0;
    }

    // A new reference; null if there is none.
    PyObject* find(const Key& key) const {
        if (count_ == 0) return nullptr;
        const std::uint64_t hash = key.hash();
        for (std::size_t at = hash;; ++at) {
            const Entry& entry = places_[at & (places_.size() - 1)];
            if (entry.plan == nullptr) return nullptr;
            if (entry.hash != hash || !key.is(entry.numbers)) continue;
            Owned plan(new_reference(entry.plan));
            if (!key.type) return plan.release();
            Owned type(new_reference(entry.type));
            const std::uint64_t changes = changes_;
            if (is_same_type(type.get(), key.type.get())) return plan.release();
            if (changes != changes_) return nullptr;  // comparing them ran Python code
        }
    }

    // Keep what is not there yet.
    void add(const Key& key, PyObject* plan) {
        if (2 * (count_ + 1) > places_.size()) grow();
        Entry entry;
        entry.hash = key.hash();
        entry.numbers.assign(key.begin(), key.end());
        if (key.type) entry.type = new_reference(key.type.get());
        if (key.kind) entry.kind = new_reference(key.kind.get());
        entry.plan = new_reference(plan);
        place(std::move(entry));
        ++count_;
        ++changes_;
    }

    void clear() {
        std::vector<Entry> gone;
        gone.swap(places_);
        count_ = 0;
        ++changes_;
        for (const Entry& entry : gone) {
            for (PyObject* object : {entry.type, entry.kind, entry.plan}) Py_XDECREF(object);
        }
    }

  private:
    void grow() {
        std::vector<Entry> old(std::max<std::size_t>(16, 2 * places_.size()));
        old.swap(places_);
        for (Entry& entry : old) {
            if (entry.plan != nullptr) place(std::move(entry));
        }
    }

    void place(Entry entry) {
        std::size_t at = entry.hash;
        while (places_[at & (places_.size() - 1)].plan != nullptr) ++at;
        places_[at & (places_.size() - 1)] = std::move(entry);
    }

    std::vector<Entry> places_;  // a power of two, or none
    std::size_t count_ = 0;
    std::uint64_t changes_ = 0;
};

// What an argument will be known by, as a new reference: an object that never changes, None, an
// integer or a tuple of integers; null, maybe with an exception set, if there is none.
PyObject* unchanging(PyObject* argument) {
    if (argument == Py_None || PyLong_CheckExact(argument)) return new_reference(argument);
    if (!PyList_CheckExact(argument) && !PyTuple_CheckExact(argument)) return nullptr;
    Owned tuple(PySequence_Tuple(argument));
    for (Py_ssize_t i = 0; tuple && i < PyTuple_Size(tuple.get()); ++i) {
        if (!PyLong_CheckExact(PyTuple_GetItem(tuple.get(), i))) return nullptr;
    }
    return tuple.release();
}

// Whether it is that very object, or a list of the same ones.
bool is_known_by(PyObject* argument, PyObject* known) {
    if (argument == known) return true;
    if (!PyList_CheckExact(argument) || !PyTuple_CheckExact(known)) return false;
    const Py_ssize_t count = PyTuple_Size(known);
    if (PyList_Size(argument) != count) return false;
    for (Py_ssize_t i = 0; i < count; ++i) {
        if (PyList_GetItem(argument, i) != PyTuple_GetItem(known, i)) return false;
    }
    return true;
}

// The call on an array that was made last, if it was made twice. To find that the next one is the
// same takes a sixth of the time of a key.
class LastCall {
  public:
    LastCall() = default;
    LastCall(const LastCall&) = delete;
    LastCall& operator=(const LastCall&) = delete;
    ~LastCall() { clear(); }

    PyObject* plan() const { return objects_.empty() ? nullptr : objects_[0]; }

    bool is(PyArrayObject* array, PyObject* const* arguments, Py_ssize_t count) const {
        const std::size_t given = static_cast<std::size_t>(count) + 2;
        const int rank = PyArray_NDIM(array);
        return objects_.size() == given && objects_[1] == type_of(array) &&
               shape_.size() == static_cast<std::size_t>(rank) &&
               same_numbers(shape_.data(), PyArray_DIMS(array), rank) &&
               std::equal(arguments, arguments + count, objects_.begin() + 2, is_known_by);
    }

    // A call, and what was decided for it.
    void note(PyArrayObject* array, PyObject* const* arguments, Py_ssize_t count, PyObject* plan) {
        if (plan != seen_ || plan == this->plan()) {
            seen_ = plan;
            return;
        }
        std::vector<npy_intp> shape(PyArray_DIMS(array), PyArray_DIMS(array) + PyArray_NDIM(array));
        std::vector<PyObject*> objects;
        objects.reserve(static_cast<std::size_t>(count) + 2);
        objects.push_back(new_reference(plan));  // no exception from here on: these are owned
        objects.push_back(new_reference(type_of(array)));
        for (Py_ssize_t i = 0; objects.back() != nullptr && i < count; ++i) {
            objects.push_back(unchanging(arguments[i]));
        }
        PyErr_Clear();
        if (objects.back() != nullptr) {
            shape_.swap(shape);
            objects_.swap(objects);
        }
        for (PyObject* object : objects) Py_XDECREF(object);
    }

    void clear() {
        std::vector<PyObject*> gone;
        gone.swap(objects_);
        seen_ = nullptr;
        for (PyObject* object : gone) Py_DECREF(object);
    }

  private:
    static PyObject* type_of(PyArrayObject* array) {
        return reinterpret_cast<PyObject*>(PyArray_DESCR(array));
    }

    std::vector<PyObject*> objects_;  // the plan, the element type and the arguments; owned
    std::vector<npy_intp> shape_;
    const PyObject* seen_ = nullptr;  // what was found before; only compared
};

struct Memory {
    Table table;
    LastCall last;

    void clear() {
        table.clear();
        last.clear();
    }
};

struct PyPlans {
    PyObject base;
    Memory* memory;
};

Memory& memory_of(PyObject* self) { return *reinterpret_cast<PyPlans*>(self)->memory; }

PyObject* make(PyTypeObject* type, PyObject* arguments, PyObject*) {
    if (!PyArg_ParseTuple(arguments, "")) return nullptr;
    return guarded([&] {
        auto memory = std::make_unique<Memory>();
        auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
        PyObject* self = allocate(type, 0);
        if (self != nullptr) reinterpret_cast<PyPlans*>(self)->memory = memory.release();
        return self;
    });
}

int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    const Memory* memory = reinterpret_cast<PyPlans*>(self)->memory;
    if (memory == nullptr) return 0;
    Py_VISIT(memory->last.plan());
    return memory->table.each([&](const Entry& entry) {
        Py_VISIT(entry.kind);
        return visit(entry.plan, arg);
    });
}

int forget(PyObject* self) {
    memory_of(self).clear();
    return 0;
}

void destroy(PyObject* self) {
    PyObject_GC_UnTrack(self);
    PyTypeObject* type = Py_TYPE(self);
    delete reinterpret_cast<PyPlans*>(self)->memory;
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(reinterpret_cast<PyObject*>(type));
}

// Read (array, arguments) as a key: 1 if there is one, 0 if there is none, -1 with an exception
// set.
int read_call(PyObject* const* arguments, Key& key) {
    // A tuple of our own would be no safer: it can't change.
    if (!PyTuple_CheckExact(arguments[1])) {
        refuse(PyExc_TypeError, "arguments must be a tuple");
        return -1;
    }
    std::vector<PyObject*> each;
    for (Py_ssize_t i = 0; i < PyTuple_Size(arguments[1]); ++i) {
        each.push_back(PyTuple_GetItem(arguments[1], i));
    }
    const auto count = static_cast<Py_ssize_t>(each.size());
    if (read_key(arguments[0], each.data(), count, key)) return 1;
    return PyErr_Occurred() == nullptr ? 0 : -1;
}

PyObject* find(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
    return guarded([&]() -> PyObject* {
        Key key;
        const int known = count_is(count, 2) ? read_call(arguments, key) : -1;
        if (known < 0) return nullptr;
        PyObject* plan = known == 0 ? nullptr : memory_of(self).table.find(key);
        return plan == nullptr ? new_reference(Py_None) : plan;
    });
}

PyObject* add(PyObject* self, PyObject* const* arguments, Py_ssize_t count) {
    return guarded([&]() -> PyObject* {
        Key key;
        const int known = count_is(count, 3) ? read_call(arguments, key) : -1;
        if (known < 0) return nullptr;
        Table& table = memory_of(self).table;
        if (known != 0 && !Owned(table.find(key))) table.add(key, arguments[2]);
        Py_RETURN_NONE;
    });
}

PyObject* clear(PyObject* self, PyObject*) {
    memory_of(self).clear();
    Py_RETURN_NONE;
}

PyObject* values(PyObject* self, PyObject*) {
    Owned list(PyList_New(0));
    if (!list) return nullptr;
    const auto append = [&](const Entry& entry) { return PyList_Append(list.get(), entry.plan); };
    return memory_of(self).table.each(append) < 0 ? nullptr : list.release();
}

Py_ssize_t length(PyObject* self) { return static_cast<Py_ssize_t>(memory_of(self).table.size()); }

PyMethodDef methods[] = {
    {"find", as_method(find), METH_FASTCALL,
     "find($self, array, arguments, /)\n--\n\n"
     "What is kept for a call; None if nothing is, or if telling it from others takes a closer"
     " look."},
    {"add", as_method(add), METH_FASTCALL,
     "add($self, array, arguments, plan, /)\n--\n\nKeep what was decided for a call."},
    {"clear", clear, METH_NOARGS, "clear($self, /)\n--\n\nForget all calls."},
    {"values", values, METH_NOARGS, "values($self, /)\n--\n\nAll that is kept, in a list."},
    {nullptr, nullptr, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_doc, const_cast<char*>("Plans()\n--\n\nWhat was decided for calls.")},
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_clear, reinterpret_cast<void*>(forget)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_methods, methods},
    {Py_mp_length, reinterpret_cast<void*>(length)},
    {0, nullptr},
};

PyType_Spec spec = {
    "tensorsplit.native._kernel.Plans",      sizeof(PyPlans), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots,
};

}  // namespace

PyObject* find_plan(PyObject* plans, PyObject* data, PyObject* const* arguments, Py_ssize_t count) {
    Memory& memory = memory_of(plans);
    auto* array = is_plain_array(data) ? reinterpret_cast<PyArrayObject*>(data) : nullptr;
    if (array != nullptr && memory.last.is(array, arguments, count)) {
        return new_reference(memory.last.plan());
    }
    Key key;
    if (!read_key(data, arguments, count, key)) return nullptr;
    PyObject* plan = memory.table.find(key);
    if (array != nullptr && plan != nullptr) memory.last.note(array, arguments, count, plan);
    return plan;
}

bool add_plans_type(PyObject* module) {
    names = {PyUnicode_InternFromString("dtype"), PyUnicode_InternFromString("layout"),
             PyUnicode_InternFromString("shape")};
    Owned type(PyType_FromModuleAndSpec(module, &spec, nullptr));
    return names.shape != nullptr && type &&
           PyModule_AddObjectRef(module, "Plans", type.get()) == 0;
}

}  // namespace tensorsplit
