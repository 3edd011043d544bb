// One thread at a time in the functions of the module, also where Python has no global lock.
#pragma once

#include <pybind11/critical_section.h>
#include <pybind11/pybind11.h>

namespace py = pybind11;

// While such an object exists, no other thread runs a function of this module. In a Python with the global
// lock it does nothing, because the thread holds that lock. In a Python without it, the object is a critical
// section, which Python leaves wherever a thread would release the global lock: in `without_lock`, and while
// it waits for the lock of an object. A thread may enter it again, for example in a signal handler.
class Exclusive
{
  public:
    Exclusive() : section_(object()) {}

  private:
    const py::scoped_critical_section section_;

    static py::handle object()
    {
#ifdef Py_GIL_DISABLED
        static const auto guard = PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type));
        return guard;
#else
        return {};
#endif
    }
};

// A Python class; each of its functions runs with an Exclusive.
template <class Class, class... Options>
class ExclusiveClass : public py::class_<Class, Options...>
{
    using Base = py::class_<Class, Options...>;
    using Guard = py::call_guard<Exclusive>;

    template <class Function>
    static py::cpp_function guarded(Function&& function)
    {
        return { py::method_adaptor<Class>(std::forward<Function>(function)), Guard() };
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
    ExclusiveClass& def_readonly(const char* name, Value Class::*member)
    {
        return def_property_readonly(name, [member](const Class& self) { return self.*member; });
    }
};

// Add a function to a module; it runs with an Exclusive.
template <class Function, class... Extra>
void define(py::module_& module, const char* name, Function&& function, const Extra&... extra)
{
    module.def(name, std::forward<Function>(function), py::call_guard<Exclusive>(), extra...);
}
