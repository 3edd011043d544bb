// Included before all of Kompute's own module: marks it as one that needs no global lock of Python, which
// would else be switched on again when it is imported. Its objects are for one thread at a time.
#pragma once

#include <pybind11/pybind11.h>

#undef PYBIND11_MODULE
#define PYBIND11_MODULE(name, variable)                               \
    PYBIND11_MODULE_PYINIT(name, ::pybind11::mod_gil_not_used()) \
    PYBIND11_MODULE_EXEC(name, variable)
