// `Call` as a Python type: a function of Python that is not called for what it has decided before.
#pragma once

#include "numpy.hpp"

namespace tensorsplit {

// Add the type to the module, which has the other types already; false with an exception set.
bool add_call_type(PyObject* module);

}  // namespace tensorsplit
