/* Functions of Vulkan that fail as a test asks for. LD_PRELOAD puts them before those of the loader. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdint.h>
#include <time.h>

enum { SUCCESS = 0, NOT_READY = 1, TIMEOUT = 2, NO_HOST_MEMORY = -1, NO_DEVICE_MEMORY = -2, LOST = -4 };

static void *loader(const char *name) { return dlsym(dlopen("libvulkan.so.1", RTLD_NOW), name); }
#define CALL(name, types, ...) ((int (*) types)loader(name))(__VA_ARGS__)

/* A device that runs nothing any more. One function, which is named, reports that once; afterwards all
   report success, as drivers may. */
static char lost_by;
static int reported;
void lose(char by) { lost_by = by; reported = 0; }
void mend(void) { lost_by = 0; }
static int report(char by) { return by == lost_by && !reported++ ? LOST : SUCCESS; }

/* A device that goes on, and whose fences are not signalled until it is released. */
static int hangs;
void hang(void) { hangs = 1; }
void release(void) { hangs = 0; }

/* Calls of a function that find no memory from now on. */
static int descriptors, submissions, waits;
void no_memory_for_descriptors(int count) { descriptors = count; }
void no_memory_for_submissions(int count) { submissions = count; }
void no_memory_for_waits(int count) { waits = count; }
static int fails(int *count) { return *count > 0 && (*count)--; }

int vkQueueSubmit(void *queue, uint32_t count, const void *info, void *fence)
{
    if (lost_by) return report('s');
    if (fails(&submissions)) return NO_HOST_MEMORY;
    return CALL("vkQueueSubmit", (void *, uint32_t, const void *, void *), queue, count, info, fence);
}

int vkWaitForFences(void *device, uint32_t count, const void *fences, uint32_t all, uint64_t timeout)
{
    if (lost_by) return report('w');
    if (fails(&waits)) return NO_HOST_MEMORY;
    if (hangs) {
        const struct timespec time = { timeout / 1000000000, timeout % 1000000000 };
        nanosleep(&time, 0);
        return TIMEOUT;
    }
    return CALL("vkWaitForFences", (void *, uint32_t, const void *, uint32_t, uint64_t), device, count,
                fences, all, timeout);
}

int vkGetFenceStatus(void *device, void *fence)
{
    if (lost_by) return lost_by == 'w' && !reported ? NOT_READY : report('f');
    if (waits || hangs) return NOT_READY;
    return CALL("vkGetFenceStatus", (void *, void *), device, fence);
}

int vkAllocateDescriptorSets(void *device, const void *info, void *sets)
{
    if (fails(&descriptors)) return NO_DEVICE_MEMORY;
    return CALL("vkAllocateDescriptorSets", (void *, const void *, void *), device, info, sets);
}
