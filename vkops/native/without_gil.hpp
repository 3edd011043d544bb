// Included before the source of Kompute's own module, to mark the module as one that does not need Python's
// global lock: otherwise Python enables the lock when the module is imported. One thread at a time may use
// its objects.
#pragma once

#include <pybind11/pybind11.h>

#undef PYBIND11_MODULE
#define PYBIND11_MODULE(name, variable)                               \
    PYBIND11_MODULE_PYINIT(name, ::pybind11::mod_gil_not_used()) \
    PYBIND11_MODULE_EXEC(name, variable)
