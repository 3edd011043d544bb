/* What the layer knows of objects by their handles. */
#pragma once

#include "devices.h"
#include "requests.h"

enum what { MEMORY, MODULE, CACHE, FENCE };
struct object {
    struct object *next;
    enum what what;
    uint64_t handle, size, hash; /* size: bytes of memory, or of a cache's data; hash: of a module's code */
    uint32_t type;               /* of memory */
    int imported;
    char *bytes, *real; /* of non-coherent memory: what the host sees, and the driver's; data of a cache */
    int64_t ready;      /* when a fence is signalled at the earliest; 0: when the driver says so */
};
static struct object *objects[4096];
static uint64_t used[VK_MAX_MEMORY_HEAPS];
#define KEY(handle) ((uint64_t)(uintptr_t)(handle))

static struct object **place(enum what what, uint64_t handle)
{
    struct object **at = &objects[(handle >> 4 ^ handle >> 16) % COUNT(objects)];
    while (*at && ((*at)->what != what || (*at)->handle != handle)) at = &(*at)->next;
    return at;
}
/* The object of a handle; null if there is none, and it is not to be made. */
static struct object *object(enum what what, uint64_t handle, int make)
{
    lock();
    struct object **at = place(what, handle), *found = *at;
    if (!found && make) {
        found = *at = calloc(1, sizeof *found);
        found->what = what, found->handle = handle;
    }
    unlock();
    return found;
}
static void drop(enum what what, uint64_t handle)
{
    lock();
    struct object **at = place(what, handle), *found = *at;
    if (found) {
        *at = found->next;
        if (what == MEMORY && kind && !found->imported) used[kind->types[found->type].heapIndex] -= found->size;
        free(found->bytes), free(found);
    }
    unlock();
}
