// Ranges of device memory: free ranges, and ranges that Python objects own.
#pragma once

#include "adapters.hpp"
#include "exclusive.hpp"

#include <structmember.h>

// The free ranges of a heap. Adjacent ranges are always merged. Each range has the number of the last
// submission that uses it.
class FreeList
{
  public:
    const std::uint64_t size;
    std::uint64_t free = 0;  // bytes

    explicit FreeList(std::uint64_t size_) : size(size_) { give(0, size, 0); }

    // Take `nbytes` from the beginning of the smallest range that is large enough. Return the start, or
    // `size` if no range is large enough. `used` is set to the number of the range if that number is larger.
    std::uint64_t take(std::uint64_t nbytes, std::uint64_t& used)
    {
        const auto smallest = by_size_.lower_bound({ nbytes, 0 });
        if (smallest == by_size_.end()) return size;
        const auto start = smallest->second;
        const auto [available, number] = remove(ranges_.find(start));
        if (available > nbytes) give(start + nbytes, available - nbytes, number);
        used = std::max(used, number);
        return start;
    }
    // If all memory is free, stop giving ranges. Return whether all memory is free.
    bool close_if_empty()
    {
        if (free != size) return false;
        by_size_.clear();
        return true;
    }
    void give(std::uint64_t start, std::uint64_t nbytes, std::uint64_t used)
    {
        const auto join = [&](Ranges::iterator range) {
            start = std::min(start, range->first);
            const auto [more, number] = remove(range);
            nbytes += more;
            used = std::max(used, number);
        };
        const auto next = ranges_.lower_bound(start);
        const auto before = next == ranges_.begin() ? ranges_.end() : std::prev(next);
        if (next != ranges_.end() && next->first == start + nbytes) join(next);
        if (before != ranges_.end() && before->first + before->second.first == start) join(before);
        free += nbytes;
        ranges_.emplace(start, Pair(nbytes, used));
        by_size_.emplace(nbytes, start);
    }

  private:
    using Pair = std::pair<std::uint64_t, std::uint64_t>;
    using Ranges = std::map<std::uint64_t, Pair>;
    Ranges ranges_;           // start: (bytes, number)
    std::set<Pair> by_size_;  // (bytes, start)

    Pair remove(Ranges::iterator range)
    {
        const auto values = range->second;
        by_size_.erase({ values.first, range->first });
        ranges_.erase(range);
        free -= values.first;
        return values;
    }
};

// The memory of one owner. Its ranges become free when Python frees this object. A finalizer in Python is no
// alternative: an interrupt (KeyboardInterrupt) in it would be lost. This is not a class of pybind11, because
// objects of pybind11 take longer to create and to read.
struct Allocation
{
    PyObject_HEAD
    std::uint64_t used, written;  // the last submissions that use and write it
    PyObject* extents;            // a tuple of (memory, start, bytes)
    std::vector<std::tuple<std::shared_ptr<FreeList>, std::uint64_t, std::uint64_t>> ranges;

    inline static PyTypeObject type{};

    static Allocation& of(py::handle object)
    {
        if (!Py_IS_TYPE(object.ptr(), &type)) throw py::type_error("must be an Allocation");
        return *reinterpret_cast<Allocation*>(object.ptr());
    }
    // Note the number of a call that uses it, and whether the call writes it.
    void note(std::uint64_t number, bool is_written)
    {
        used = number;
        if (is_written) written = number;
    }
    const FreeList* list() const { return std::get<0>(ranges[0]).get(); }
    std::uint64_t start() const { return std::get<1>(ranges[0]); }
    py::handle memory(std::size_t range) const
    {
        return PyTuple_GET_ITEM(PyTuple_GET_ITEM(extents, range), 0);
    }

    // Allocate bytes in ranges of `most` bytes and a smaller last one. Each range is taken from the first of
    // the `memories` with room; their attribute `ranges` is a FreeList. `extent` converts a tuple to an
    // Extent. If no memory has room for a range, return the size of that range.
    static py::object allocate(const py::object& extent, const py::list& memories,
                               std::uint64_t nbytes, std::uint64_t most)
    {
        const auto object = py::reinterpret_steal<py::object>(type.tp_alloc(&type, 0));
        if (!object) throw py::error_already_set();
        auto& self = *reinterpret_cast<Allocation*>(object.ptr());
        new (&self.ranges) decltype(ranges);
        py::tuple extents((nbytes + most - 1) / most);
        self.ranges.reserve(extents.size());  // push_back cannot fail later, and lose a range that was taken
        const py::tuple all(memories);  // a copy: other threads may change the list
        for (std::size_t i = 0; i < extents.size(); ++i) {
            const auto size = std::min(nbytes - i * most, most);
            const auto has_room = [&](py::handle memory) {
                const auto list = memory.attr("ranges").cast<std::shared_ptr<FreeList>>();
                const auto start = list->take(size, self.used);
                if (start != list->size) self.ranges.emplace_back(list, start, size);
                return start != list->size;
            };
            const auto memory = std::find_if(all.begin(), all.end(), has_room);
            if (memory == all.end()) return py::int_(size);
            extents[i] = extent(py::make_tuple(*memory, std::get<1>(self.ranges[i]), size));
        }
        self.written = self.used;
        self.extents = extents.release().ptr();
        return object;
    }
    static void define()
    {
        static PyMemberDef members[] = {
            { "used", T_ULONGLONG, offsetof(Allocation, used), 0, nullptr },
            { "written", T_ULONGLONG, offsetof(Allocation, written), 0, nullptr },
            { "extents", T_OBJECT, offsetof(Allocation, extents), READONLY, nullptr },
            {},
        };
        Py_SET_REFCNT(&type, 1);
        type.tp_name = "vkops_native.Allocation";
        type.tp_basicsize = sizeof(Allocation);
        type.tp_flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_HAVE_GC;
        type.tp_members = members;
        type.tp_traverse = [](PyObject* object, visitproc visit, void* arg) {
            Py_VISIT(reinterpret_cast<Allocation*>(object)->extents);
            return 0;
        };
        type.tp_dealloc = [](PyObject* object) {
            PyObject_GC_UnTrack(object);
            auto& self = *reinterpret_cast<Allocation*>(object);
            try {
                const Exclusive exclusive;
                for (const auto& [list, start, size] : self.ranges) list->give(start, size, self.used);
            } catch (const std::bad_alloc&) {  // the range stays taken: a destructor cannot report this
            }
            self.ranges.~vector();
            Py_XDECREF(self.extents);
            type.tp_free(object);
        };
        if (PyType_Ready(&type)) throw py::error_already_set();
    }
};
