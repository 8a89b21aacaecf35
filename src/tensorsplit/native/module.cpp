// The functions of the module.
#define TENSORSPLIT_IMPORTS_NUMPY
#include "numpy.hpp"

#include <cstddef>

#include "blocks_type.hpp"
#include "call.hpp"
#include "copy.hpp"
#include "cpu.hpp"
#include "parts.hpp"
#include "plans.hpp"
#include "pool.hpp"
#include "prepared.hpp"
#include "python.hpp"
#include "tensors.hpp"
#include "ways.hpp"

namespace tensorsplit {
namespace {

PyObject* copies(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    return guarded([&]() -> PyObject* {
        Division division;
        auto* array = count_is(count, 4) ? read_request(arguments, division) : nullptr;
        if (array == nullptr) return nullptr;
        return list_copies({array, division}, nullptr);
    });
}

PyObject* copy_into(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    return guarded([&]() -> PyObject* {
        Division division;
        auto* array = count_is(count, 5) ? read_request(arguments, division) : nullptr;
        if (array == nullptr) return nullptr;
        return copy_to_each({array, division}, arguments[4]);
    });
}

PyObject* join(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
    return guarded([&]() -> PyObject* {
        if (!count_is(count, 5)) return nullptr;
        PyObject* whole =
            join_at_once(arguments[0], arguments[1], arguments[2], arguments[3], arguments[4]);
        return whole != nullptr || PyErr_Occurred() != nullptr ? whole : new_reference(Py_None);
    });
}

PyObject* use(PyObject*, PyObject* name) {
    Owned bytes(PyUnicode_AsUTF8String(name));
    if (!bytes) return nullptr;
    const char* text = PyBytes_AsString(bytes.get());
    const Kernels* found = *text == '\0' ? &best_kernels() : find_kernels(text);
    if (found == nullptr) {
        refuse(PyExc_ValueError, "the processor has no such kernels");
        return nullptr;
    }
    use_kernels(*found);
    return PyUnicode_FromString(found->name);
}

// Read a count of `least` or more; SIZE_MAX with an exception set.
std::size_t read_count(PyObject* count, Py_ssize_t least) {
    const Py_ssize_t number = PyLong_AsSsize_t(count);
    if (number == -1 && PyErr_Occurred() != nullptr) return SIZE_MAX;
    if (number >= least) return static_cast<std::size_t>(number);
    PyErr_Format(PyExc_ValueError, "it must be %zd or more", least);
    return SIZE_MAX;
}

PyObject* use_threads(PyObject*, PyObject* argument) {
    const std::size_t count = read_count(argument, 1);
    if (count == SIZE_MAX) return nullptr;
    return guarded([&] {
        set_threads(count);
        forget_choices();
        return new_reference(Py_None);
    });
}

PyObject* use_non_temporal_from(PyObject*, PyObject* argument) {
    const std::size_t bytes = read_count(argument, 0);
    if (bytes == SIZE_MAX) return nullptr;
    return guarded([&] {
        set_non_temporal_from(bytes);
        return new_reference(Py_None);
    });
}

PyObject* cache(PyObject*, PyObject*) {
    const Cache cache = last_level_cache();
    return Py_BuildValue("(nsn)", static_cast<Py_ssize_t>(cache.bytes), cache.origin,
                         static_cast<Py_ssize_t>(guessed_non_temporal_from()));
}

const char* name_of(Stores stores) {
    switch (stores) {
        case Stores::prefetched:
            return "prefetched";
        case Stores::non_temporal:
            return "non-temporal";
        default:
            return "plain";
    }
}

PyObject* as_bool(bool value) { return value ? Py_True : Py_False; }

PyObject* choices(PyObject*, PyObject*) {
    return guarded([]() -> PyObject* {
        Owned list(PyList_New(0));
        for (const Choice& each : list_choices()) {
            if (!list) return nullptr;
            Owned entry(Py_BuildValue(
                "(OOOOnnn(snd)(snd))", as_bool(each.kind.is_joined), as_bool(each.kind.is_tiles),
                as_bool(each.kind.is_even), as_bool(each.kind.lines_in_step),
                static_cast<Py_ssize_t>(1) << each.kind.columns,
                static_cast<Py_ssize_t>(1) << each.kind.width, static_cast<Py_ssize_t>(each.bytes),
                name_of(each.way.stores), static_cast<Py_ssize_t>(each.way.threads), each.time,
                name_of(each.other.stores), static_cast<Py_ssize_t>(each.other.threads),
                each.time_of_other));
            if (!entry || PyList_Append(list.get(), entry.get()) < 0) return nullptr;
        }
        return list.release();
    });
}

PyMethodDef methods[] = {
    {"copies", as_method(copies), METH_FASTCALL,
     "copies(array, axis, sizes, keepdims)\n--\n\n"
     "The parts as new arrays; None if NumPy has to copy them."},
    {"copy_into", as_method(copy_into), METH_FASTCALL,
     "copy_into(array, axis, sizes, keepdims, out)\n--\n\n"
     "Write the parts; False, with nothing written, if `out` needs a closer look."},
    {"join", as_method(join), METH_FASTCALL,
     "join(parts, axis, keepdims, copy, out)\n--\n\n"
     "The array that parts are joined to; None, with nothing written, if they need a closer look."},
    {"use", use, METH_O, "use(name)\n--\n\nSelect kernels; the best ones if it is empty."},
    {"use_threads", use_threads, METH_O, "use_threads(count)\n--\n\nBound the threads."},
    {"use_non_temporal_from", use_non_temporal_from, METH_O,
     "use_non_temporal_from(bytes)\n--\n\nFrom how many bytes on stores are non-temporal; 0 to "
     "measure it."},
    {"cache", cache, METH_NOARGS,
     "cache()\n--\n\nThe bytes of the largest cache, what says so, and from how many bytes on "
     "stores are non-temporal before that is measured."},
    {"choices", choices, METH_NOARGS,
     "choices()\n--\n\nWhat was measured: whether parts are joined, whether elements lie apart, "
     "whether columns are of one width, whether they begin at the same place of a cache line, how "
     "many there are, the bytes of one, those of the array, and for the way chosen and the one it "
     "was compared with its stores, its threads, and its nanoseconds a byte."},
    {nullptr, nullptr, 0, nullptr},
};

// The types, names and what torch gave are those of one interpreter; another one would replace
// them. So only the main one, whose number is 0, may have the module: Python's own slot for that
// came with 3.12, and does not bind interpreters that are made the old way.
bool is_main_interpreter() {
    const bool is_main = PyInterpreterState_GetID(PyInterpreterState_Get()) == 0;
    return is_main || refuse(PyExc_ImportError, "only the main interpreter can have the kernel");
}

int execute(PyObject* module) {
    const bool done = is_main_interpreter() && PyArray_ImportNumPyAPI() == 0 &&
                      add_blocks_type(module) && add_plans_type(module) &&
                      add_prepared_type(module) && add_call_type(module) &&
                      add_tensor_functions(module);
    return done ? 0 : -1;
}

PyModuleDef_Slot slots[] = {
    {Py_mod_exec, reinterpret_cast<void*>(execute)},
    {0, nullptr},
};

PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    "tensorsplit.native._kernel",
    "Copies of the parts of an array.",
    0,
    methods,
    slots,
    nullptr,
    nullptr,
    nullptr,
};

}  // namespace
}  // namespace tensorsplit

PyMODINIT_FUNC PyInit__kernel() { return PyModuleDef_Init(&tensorsplit::definition); }
