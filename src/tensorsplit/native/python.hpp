// What all code that talks to Python needs.
#pragma once

#include "numpy.hpp"

#include <new>

namespace tensorsplit {

// A reference that is given up at the end of a scope.
class Owned {
  public:
    explicit Owned(PyObject* object) : object_(object) {}
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    ~Owned() { Py_XDECREF(object_); }

    PyObject* get() const { return object_; }
    PyObject* release() {
        PyObject* object = object_;
        object_ = nullptr;
        return object;
    }
    explicit operator bool() const { return object_ != nullptr; }

    // Run what lets other Python threads run. When Python ends in the meantime it may end this
    // thread too, by unwinding it (until 3.13); then the object must not be touched any more.
    template <class Action>
    void keep_during(Action action) {
        PyObject* object = release();
        try {
            action();
        } catch (const std::bad_alloc&) {
            object_ = object;
            throw;
        }
        object_ = object;
    }

  private:
    PyObject* object_;
};

inline PyObject* new_reference(PyObject* object) {
    Py_INCREF(object);
    return object;
}

inline bool refuse(PyObject* kind, const char* why) {
    PyErr_SetString(kind, why);
    return false;
}

inline bool count_is(Py_ssize_t given, Py_ssize_t wanted) {
    return given == wanted || refuse(PyExc_TypeError, "wrong number of arguments");
}

// What `action` returns, which may lack memory; null with an exception set.
template <class Action>
PyObject* guarded(Action action) {
    try {
        return action();
    } catch (const std::bad_alloc&) {
        return PyErr_NoMemory();
    }
}

template <class Function>
PyCFunction as_method(Function function) {
    // The way that Python itself suggests; a direct cast would be warned of.
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace tensorsplit
