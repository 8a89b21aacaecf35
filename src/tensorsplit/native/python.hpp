// Helpers for code that uses the Python API.
#pragma once

#include "numpy.hpp"

#include <new>

namespace tensorsplit {

// A reference that is released at the end of a scope.
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

    // Run an action that releases the GIL. If Python ends in the meantime, it may unwind this
    // thread (until 3.13); then the object must not be touched any more.
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

// What `action` returns; null with an exception set if memory runs out.
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
    // As Python's documentation suggests; compilers warn of a direct cast.
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace tensorsplit
