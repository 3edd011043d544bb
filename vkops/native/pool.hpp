// Ranges of device memory: those that are free, and those that objects of Python own.
#pragma once

#include "adapters.hpp"

#include <structmember.h>

using Pair = std::pair<std::uint64_t, std::uint64_t>;

// The free ranges of memory; neighbours are always joined. Each has the number of the last submission
// that uses it.
class FreeList
{
  public:
    const std::uint64_t size;
    std::uint64_t free = 0;  // bytes

    explicit FreeList(std::uint64_t size_) : size(size_) { give(0, size, 0); }

    // Take the first of the smallest ranges that fit, or the beginning of it; return its start, or
    // `size` if none fits. `used` becomes the number of the range if that is later.
    std::uint64_t take(std::uint64_t nbytes, unsigned long long& used)
    {
        const auto smallest = by_size_.lower_bound({ nbytes, 0 });
        if (smallest == by_size_.end()) return size;
        const auto start = smallest->second;
        const auto [available, number] = remove(ranges_.find(start));
        if (available > nbytes) add(start + nbytes, available - nbytes, number);
        used = std::max<std::uint64_t>(used, number);
        return start;
    }
    void give(std::uint64_t start, std::uint64_t nbytes, std::uint64_t used)
    {
        const auto next = ranges_.lower_bound(start);
        const auto before = next == ranges_.begin() ? ranges_.end() : std::prev(next);
        for (const auto near : { before, next }) {
            if (near == ranges_.end()) continue;
            const auto first = near->first;
            if (first + near->second.first != start && first != start + nbytes) continue;
            const auto [more, number] = remove(near);
            start = std::min(start, first);
            nbytes += more;
            used = std::max(used, number);
        }
        add(start, nbytes, used);
    }

  private:
    std::map<std::uint64_t, Pair> ranges_;  // start: (bytes, number)
    std::set<Pair> by_size_;                // (bytes, start)

    void add(std::uint64_t start, std::uint64_t nbytes, std::uint64_t used)
    {
        ranges_.emplace(start, Pair(nbytes, used));
        by_size_.emplace(nbytes, start);
        free += nbytes;
    }
    Pair remove(std::map<std::uint64_t, Pair>::iterator at)
    {
        const auto range = at->second;
        by_size_.erase({ range.first, at->first });
        ranges_.erase(at);
        free -= range.first;
        return range;
    }
};

// The memory of one owner. Its ranges are free again as soon as Python frees this object: a finalizer in
// Python would lose an interrupt. Not a class of pybind11, whose objects take longer to make and to read.
struct Allocation
{
    PyObject_HEAD
    unsigned long long used, written;  // the last submissions that use and write it
    PyObject* extents;                 // a tuple of (memory, start, bytes)
    std::vector<std::tuple<std::shared_ptr<FreeList>, std::uint64_t, std::uint64_t>> ranges;

    inline static PyTypeObject* type = nullptr;

    static Allocation& of(py::handle object)
    {
        if (!Py_IS_TYPE(object.ptr(), type)) throw py::type_error("must be an Allocation");
        return *reinterpret_cast<Allocation*>(object.ptr());
    }
    // The first range.
    const FreeList* list() const { return std::get<0>(ranges[0]).get(); }
    std::uint64_t start() const { return std::get<1>(ranges[0]); }
    py::handle memory() const { return PyTuple_GET_ITEM(PyTuple_GET_ITEM(extents, 0), 0); }

    // Allocate bytes, in ranges of `most` bytes and a rest. Memories have the attribute `ranges`, a
    // FreeList; `extent` is the class of the extents. If no memory has room for one of the ranges,
    // return its size.
    static py::object allocate(py::handle extent, const py::list& memories, std::uint64_t nbytes,
                               std::uint64_t most)
    {
        const auto made = py::reinterpret_steal<py::object>(type->tp_alloc(type, 0));
        if (!made) throw py::error_already_set();
        auto& self = *reinterpret_cast<Allocation*>(made.ptr());
        new (&self.ranges) decltype(ranges);
        const auto count = (nbytes + most - 1) / most;
        self.ranges.reserve(count);  // a range that was taken cannot be lost
        py::tuple extents(count);
        for (std::size_t i = 0; i < count; ++i) {
            const auto size = std::min(nbytes - i * most, most);
            const auto memory = self.take(memories, size);
            if (!memory) return py::int_(size);
            const auto values = py::make_tuple(memory, std::get<1>(self.ranges[i]), size);
            // tuple.__new__: that of the class is a function of Python.
            const auto one = PyTuple_Type.tp_new(reinterpret_cast<PyTypeObject*>(extent.ptr()),
                                                 py::make_tuple(values).ptr(), nullptr);
            if (!one) throw py::error_already_set();
            PyTuple_SET_ITEM(extents.ptr(), i, one);
        }
        self.written = self.used;
        self.extents = extents.release().ptr();
        return made;
    }
    // Take a range of the first memory that has room; return that memory, or null.
    py::object take(const py::list& memories, std::uint64_t size)
    {
        for (const auto memory : memories) {
            const auto list = memory.attr("ranges").cast<std::shared_ptr<FreeList>>();
            const auto start = list->take(size, used);
            if (start == list->size) continue;
            ranges.emplace_back(list, start, size);
            return py::reinterpret_borrow<py::object>(memory);
        }
        return {};
    }

    static void define()
    {
        const auto dealloc = +[](PyObject* object) {
            PyObject_GC_UnTrack(object);
            auto& self = *reinterpret_cast<Allocation*>(object);
            for (const auto& [list, start, nbytes] : self.ranges) list->give(start, nbytes, self.used);
            self.ranges.~vector();
            Py_XDECREF(self.extents);
            const auto own = Py_TYPE(object);
            own->tp_free(object);
            Py_DECREF(own);
        };
        const auto traverse = +[](PyObject* object, visitproc visit, void* arg) {
            Py_VISIT(Py_TYPE(object));
            Py_VISIT(reinterpret_cast<Allocation*>(object)->extents);
            return 0;
        };
        static PyMemberDef members[] = {
            { "used", T_ULONGLONG, offsetof(Allocation, used), 0, nullptr },
            { "written", T_ULONGLONG, offsetof(Allocation, written), 0, nullptr },
            { "extents", T_OBJECT, offsetof(Allocation, extents), READONLY, nullptr },
            {},
        };
        PyType_Slot slots[] = { { Py_tp_dealloc, reinterpret_cast<void*>(dealloc) },
                                { Py_tp_traverse, reinterpret_cast<void*>(traverse) },
                                { Py_tp_members, members },
                                {} };
        PyType_Spec spec = { "vkops_native.Allocation", sizeof(Allocation), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC, slots };
        type = reinterpret_cast<PyTypeObject*>(PyType_FromSpec(&spec));
        if (!type) throw py::error_already_set();
    }
};
