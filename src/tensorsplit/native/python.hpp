// Helpers for code that uses the Python API.
#pragma once

#include "numpy.hpp"

#include <exception>
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
    void take(PyObject* object) {
        PyObject* old = object_;
        object_ = object;
        Py_XDECREF(old);
    }
    explicit operator bool() const { return object_ != nullptr; }

    // Run an action that releases the GIL, or Python code, which does so at any time. If Python
    // ends in the meantime, it may unwind this thread (until 3.13); then the object must not be
    // touched any more, so only exceptions of C++ are caught.
    template <class Action>
    void keep_during(Action action) {
        PyObject* object = release();
        try {
            action();
        } catch (const std::exception&) {
            object_ = object;
            throw;
        }
        object_ = object;
    }

  private:
    PyObject* object_;
};

// The same for several objects.
template <class Action>
void keep_all_during(Action action) {
    action();
}
template <class Action, class... Others>
void keep_all_during(Action action, Owned& first, Others&... others) {
    first.keep_during([&] { keep_all_during(action, others...); });
}

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

// What `action` returns; null with an exception set if it throws: a MemoryError if memory runs out,
// else a RuntimeError. Every function that Python calls and that may throw is guarded.
template <class Action>
PyObject* guarded(Action action) {
    try {
        return action();
    } catch (const std::bad_alloc&) {
        return PyErr_NoMemory();
    } catch (const std::exception& error) {
        PyErr_SetString(PyExc_RuntimeError, error.what());
        return nullptr;
    }
}

template <class Function>
PyCFunction as_method(Function function) {
    // As Python's documentation suggests; compilers warn of a direct cast.
    return reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(function));
}

}  // namespace tensorsplit
