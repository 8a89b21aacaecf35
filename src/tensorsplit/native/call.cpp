#include "call.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "arrays.hpp"
#include "parts.hpp"
#include "plans.hpp"
#include "prepared.hpp"
#include "python.hpp"
#include "tensors.hpp"
#include "vectorcall.hpp"

namespace tensorsplit {
namespace {

constexpr Py_ssize_t most_parameters = 16;

// All objects are owned.
struct PyCall {
    PyObject base;
    Vectorcall vectorcall;
    PyObject* dictionary;
    PyObject* weak_references;
    PyObject* function;
    PyObject* names;                       // of all parameters; the last two are `copy` and `out`
    PyObject* defaults;                    // of the last of them
    PyObject* plans;                       // None if it joins parts
    Py_ssize_t positional;                 // how many parameters may be given by position
    Py_ssize_t parameters;                 // how many there are
    PyObject* parameter[most_parameters];  // their names, and
    PyObject* value[most_parameters];      // their defaults; borrowed, null if there is none
};

constexpr PyObject* PyCall::* owned[] = {&PyCall::dictionary, &PyCall::function, &PyCall::names,
                                         &PyCall::defaults, &PyCall::plans};

PyCall& call_of(PyObject* self) { return *reinterpret_cast<PyCall*>(self); }

// Match arguments to parameters, as references that are borrowed; false if Python has to, for what
// it refuses, and for names that are equal but other objects.
bool match(const PyCall& call, PyObject* const* arguments, Py_ssize_t count, PyObject* names,
           PyObject** matched) {
    if (count > call.positional) return false;
    for (Py_ssize_t at = 0; at < count; ++at) matched[at] = arguments[at];
    for (Py_ssize_t at = count; at < call.parameters; ++at) matched[at] = call.value[at];
    const Py_ssize_t named = names == nullptr ? 0 : PyTuple_Size(names);
    for (Py_ssize_t i = 0; i < named; ++i) {
        PyObject* name = PyTuple_GetItem(names, i);
        Py_ssize_t at = count;
        while (at < call.parameters && call.parameter[at] != name) ++at;
        if (at == call.parameters) return false;
        matched[at] = arguments[count + i];
    }
    for (Py_ssize_t at = count; at < call.parameters; ++at) {
        if (matched[at] == nullptr) return false;
    }
    return true;
}

// The parameters of a function that joins.
enum Joining { parts, axis, keepdims, like, copy, out, joining };

PyObject* join(PyObject* const* given) {
    if (given[like] != Py_None) return nullptr;
    return join_at_once(given[parts], given[axis], given[keepdims], given[copy], given[out]);
}

// The parts, or the whole of them; null, maybe without an exception, if a closer look is needed.
PyObject* answer(const PyCall& call, PyObject* const* arguments, Py_ssize_t count,
                 PyObject* names) {
    PyObject* matched[most_parameters];
    if (!match(call, arguments, count, names, matched)) return nullptr;
    if (call.plans == Py_None) return join(matched);
    if (!is_plain_array(matched[0]) && !is_tensor(matched[0])) return nullptr;  // Python splits it
    const Py_ssize_t last = call.parameters - 1;
    Owned plan(find_plan(call.plans, matched[0], matched + 1, last - 2));
    return plan ? split_at_once(plan, matched[0], matched[last - 1], matched[last]) : nullptr;
}

PyObject* vectorcall(PyObject* self, PyObject* const* arguments, std::size_t flags,
                     PyObject* names) {
    const Py_ssize_t count = positional_of(flags);
    const PyCall& call = call_of(self);
    PyObject* made = guarded([&] { return answer(call, arguments, count, names); });
    if (made != nullptr || PyErr_Occurred() != nullptr) return made;
    return call_python(new_reference(call.function), nullptr, arguments, count, names);
}

// For callers that know nothing of vectorcall.
PyObject* call_with(PyObject* self, PyObject* arguments, PyObject* named) {
    return guarded([&]() -> PyObject* {
        std::vector<PyObject*> values;
        for (Py_ssize_t i = 0; i < PyTuple_Size(arguments); ++i) {
            values.push_back(PyTuple_GetItem(arguments, i));
        }
        Owned names(named == nullptr ? nullptr : PySequence_Tuple(named));
        if (named != nullptr && !names) return nullptr;
        for (Py_ssize_t i = 0; names && i < PyTuple_Size(names.get()); ++i) {
            values.push_back(PyDict_GetItemWithError(named, PyTuple_GetItem(names.get(), i)));
            if (values.back() == nullptr) return nullptr;
        }
        const auto count = static_cast<std::size_t>(PyTuple_Size(arguments));
        PyObject *given = names.get(), *answer = nullptr;
        names.keep_during([&] { answer = vectorcall(self, values.data(), count, given); });
        return answer;
    });
}

// As a function of Python does it; its methods are bound to that function.
PyObject* bind(PyObject* self, PyObject* instance, PyObject* owner) {
    if (instance == nullptr) return new_reference(self);
    PyObject* function = call_of(self).function;
    auto get = reinterpret_cast<descrgetfunc>(PyType_GetSlot(Py_TYPE(function), Py_tp_descr_get));
    return get(function, instance, owner);
}

PyObject* show(PyObject* self) { return PyObject_Repr(call_of(self).function); }

// What `inspect` and others ask a function of Python for.
PyObject* of_function(PyObject* self, void* name) {
    return PyObject_GetAttrString(call_of(self).function, static_cast<const char*>(name));
}

constexpr PyGetSetDef forwarded(const char* name) {
    return {name, of_function, nullptr, nullptr, const_cast<char*>(name)};
}

// By its name, as functions are.
PyObject* reduce(PyObject* self, PyObject*) { return PyObject_GetAttrString(self, "__qualname__"); }

// A circle leads through a dictionary, a function or plans, which break it when they are cleared.
int traverse(PyObject* self, visitproc visit, void* arg) {
    Py_VISIT(Py_TYPE(self));
    for (const auto object : owned) Py_VISIT(call_of(self).*object);
    return 0;
}

void destroy(PyObject* self) {
    PyObject_GC_UnTrack(self);
    PyTypeObject* type = Py_TYPE(self);
    if (call_of(self).weak_references != nullptr) PyObject_ClearWeakRefs(self);
    for (const auto object : owned) Py_CLEAR(call_of(self).*object);
    reinterpret_cast<freefunc>(PyType_GetSlot(type, Py_tp_free))(self);
    Py_DECREF(reinterpret_cast<PyObject*>(type));
}

PyObject* make(PyTypeObject* type, PyObject* arguments, PyObject*) {
    PyObject *function, *names, *defaults, *plans;
    Py_ssize_t positional;
    if (!PyArg_ParseTuple(arguments, "OO!nO!O", &function, &PyTuple_Type, &names, &positional,
                          &PyTuple_Type, &defaults, &plans)) {
        return nullptr;
    }
    const Py_ssize_t count = PyTuple_Size(names), optional = PyTuple_Size(defaults);
    const bool joins = plans == Py_None;
    if (count < 3 || count > most_parameters || (joins && count != joining) || positional > count ||
        optional > count) {
        refuse(PyExc_ValueError, "these are no parameters of a split or a join");
        return nullptr;
    }
    PyObject* module = PyType_GetModule(type);
    const Owned known(module == nullptr ? nullptr : PyObject_GetAttrString(module, "Plans"));
    if (!known) return nullptr;
    const void* binds = PyType_GetSlot(Py_TYPE(function), Py_tp_descr_get);
    if (binds == nullptr ||
        (!joins && reinterpret_cast<PyObject*>(Py_TYPE(plans)) != known.get())) {
        refuse(PyExc_TypeError, "give a function, and Plans or None");
        return nullptr;
    }
    auto allocate = reinterpret_cast<allocfunc>(PyType_GetSlot(type, Py_tp_alloc));
    PyObject* self = allocate(type, 0);
    if (self == nullptr) return nullptr;
    PyCall& call = call_of(self);
    call.vectorcall = vectorcall;
    call.function = new_reference(function);
    call.names = new_reference(names);
    call.defaults = new_reference(defaults);
    call.plans = new_reference(plans);
    call.positional = positional;
    call.parameters = count;
    for (Py_ssize_t at = 0; at < count; ++at) {
        const Py_ssize_t place = at - (count - optional);
        call.parameter[at] = PyTuple_GetItem(names, at);
        call.value[at] = place < 0 ? nullptr : PyTuple_GetItem(defaults, place);
    }
    return self;
}

PyMethodDef methods[] = {
    {"__reduce__", reduce, METH_NOARGS, "Pickled by its name."},
    {nullptr, nullptr, 0, nullptr},
};

PyGetSetDef attributes[] = {
    {"__dict__", PyObject_GenericGetDict, PyObject_GenericSetDict, nullptr, nullptr},
    forwarded("__class__"),  // so that `help` calls it a function, and `isinstance` does
    forwarded("__builtins__"),
    forwarded("__closure__"),
    forwarded("__code__"),
    forwarded("__defaults__"),
    forwarded("__globals__"),
    forwarded("__kwdefaults__"),
    {nullptr, nullptr, nullptr, nullptr, nullptr},
};

PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(PyCall, vectorcall), READONLY, nullptr},
    {"__dictoffset__", T_PYSSIZET, offsetof(PyCall, dictionary), READONLY, nullptr},
    {"__weaklistoffset__", T_PYSSIZET, offsetof(PyCall, weak_references), READONLY, nullptr},
    {nullptr, 0, 0, 0, nullptr},
};

PyType_Slot slots[] = {
    {Py_tp_doc,
     const_cast<char*>("Call(function, names, positional, defaults, plans, /)\n--\n\n"
                       "A function that splits, which is not asked again what it decided before;"
                       " or, with None for plans, one that joins.")},
    {Py_tp_new, reinterpret_cast<void*>(make)},
    {Py_tp_call, reinterpret_cast<void*>(call_with)},
    {Py_tp_descr_get, reinterpret_cast<void*>(bind)},
    {Py_tp_repr, reinterpret_cast<void*>(show)},
    {Py_tp_traverse, reinterpret_cast<void*>(traverse)},
    {Py_tp_dealloc, reinterpret_cast<void*>(destroy)},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_members, members},
    {0, nullptr},
};

PyType_Spec spec = {
    "tensorsplit.native._kernel.Call",
    sizeof(PyCall),
    0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC | Py_TPFLAGS_HAVE_VECTORCALL |
        Py_TPFLAGS_METHOD_DESCRIPTOR,
    slots,
};

}  // namespace

bool add_call_type(PyObject* module) {
    Owned type(PyType_FromModuleAndSpec(module, &spec, nullptr));
    return type && PyModule_AddObjectRef(module, "Call", type.get()) == 0;
}

}  // namespace tensorsplit
