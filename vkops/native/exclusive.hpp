// One thread at a time in the functions of the module, also where Python has no global lock.
#pragma once

#include <pybind11/critical_section.h>
#include <pybind11/pybind11.h>

namespace py = pybind11;

// While it lives, no other thread runs a function of this module. With Python's global lock it does nothing:
// the thread has that. Without it, this is a critical section of Python, which is left wherever a thread would
// release the global lock: while it runs something `without_lock`, or waits for the lock of an object. A thread
// may enter it again, for example in a signal handler.
class Exclusive
{
  public:
    Exclusive() : section_(object()) {}

  private:
    const py::scoped_critical_section section_;

    static py::handle object()
    {
#ifdef Py_GIL_DISABLED
        static const auto made = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
        return made;
#else
        return {};
#endif
    }
};

// A class of Python all of whose functions are Exclusive.
template <class Made, class... Options>
class ExclusiveClass : public py::class_<Made, Options...>
{
    using Base = py::class_<Made, Options...>;
    using Guard = py::call_guard<Exclusive>;

    template <class Function>
    static py::cpp_function guarded(Function&& function)
    {
        return { py::method_adaptor<Made>(std::forward<Function>(function)), Guard() };
    }

  public:
    using Base::Base;

    template <class Function, class... Extra>
    ExclusiveClass& def(const char* name, Function&& function, const Extra&... extra)
    {
        Base::def(name, std::forward<Function>(function), Guard(), extra...);
        return *this;
    }
    template <class Init, class... Extra, class = std::enable_if_t<std::is_class_v<std::decay_t<Init>>>>
    ExclusiveClass& def(Init&& init, const Extra&... extra)
    {
        std::forward<Init>(init).execute(static_cast<Base&>(*this), Guard(), extra...);
        return *this;
    }
    template <class Get>
    ExclusiveClass& def_property_readonly(const char* name, Get&& get)
    {
        Base::def_property_readonly(name, guarded(std::forward<Get>(get)));
        return *this;
    }
    template <class Get, class Set>
    ExclusiveClass& def_property(const char* name, Get&& get, Set&& set)
    {
        Base::def_property(name, guarded(std::forward<Get>(get)), guarded(std::forward<Set>(set)));
        return *this;
    }
    template <class Value>
    ExclusiveClass& def_readonly(const char* name, Value Made::*member)
    {
        return def_property_readonly(name, [member](const Made& self) { return self.*member; });
    }
};

// Add a function to a module that is Exclusive.
template <class Function, class... Extra>
void define(py::module_& module, const char* name, Function&& function, const Extra&... extra)
{
    module.def(name, std::forward<Function>(function), py::call_guard<Exclusive>(), extra...);
}
