/* A driver of CUDA whose devices are lavapipe's: the library libcuda.so.1, as cuda.bindings calls it. Device 1 has
   the UUID that VKOPS_IMITATED_CUDA is in hexadecimal digits. Its memory is that of the host, each of its streams is
   a thread, and it imports what lavapipe exports, and semaphores of the layer (layer.c). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "semaphores.h"

#define EXPORT __attribute__((visibility("default")))

enum { SUCCESS, INVALID_VALUE, NO_CONTEXT = 201, NOT_FOUND = 500 };

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static void lock(void) { pthread_mutex_lock(&mutex); }
static void unlock(void) { pthread_cond_broadcast(&changed), pthread_mutex_unlock(&mutex); }

/* -- what tests ask ------------------------------------------------------------------------------ */

/* How many memories and semaphores are imported, how often the host has waited for a stream, and how many bytes
   were copied. */
EXPORT int imitated_memories, imitated_semaphores, imitated_waits;
EXPORT uint64_t imitated_copied;
static const char *failing = "";
/* From now on the function of this name fails ("": none). */
EXPORT void imitated_fail(const char *name) { failing = strdup(name); }

#define FAILS(name) (!strcmp(failing, #name))
static __thread int contexts; /* that are pushed in this thread */
#define NEEDS_CONTEXT(name) \
    if (!contexts) return NO_CONTEXT; \
    if (FAILS(name)) return INVALID_VALUE

/* -- streams ------------------------------------------------------------------------------------- */

struct event { uint64_t recorded, done; };
struct memory { void *start; size_t size, offset; };
enum what { COPY, WAIT, SIGNAL, RECORD, AWAIT };
struct task {
    struct task *next;
    enum what what;
    void *to, *from;
    uint64_t number;
};
static struct stream {
    struct task *first, **last;
    pthread_t thread;
    int is_made, is_held;
} defaults[3];

static void run(struct task *task)
{
    struct event *event = task->from;
    if (task->what == COPY) memcpy(task->to, task->from, task->number);
    if (task->what == WAIT) wait_for_semaphore(task->from, task->number);
    if (task->what == SIGNAL) signal_semaphore(task->from, task->number);
    lock();
    if (task->what == COPY) imitated_copied += task->number;
    if (task->what == RECORD && event->done < task->number) event->done = task->number;
    while (task->what == AWAIT && event->done < task->number) pthread_cond_wait(&changed, &mutex);
    unlock();
}
static void *work(void *argument)
{
    struct stream *stream = argument;
    for (;;) {
        lock();
        while (!stream->first || stream->is_held) pthread_cond_wait(&changed, &mutex);
        struct task *task = stream->first;
        unlock();
        run(task);
        lock();
        if (!(stream->first = task->next)) stream->last = &stream->first;
        unlock();
        free(task);
    }
    return 0;
}
static struct stream *stream_of(void *handle)
{
    struct stream *stream = (uintptr_t)handle < 3 ? &defaults[handle ? (uintptr_t)handle : 1] : handle;
    lock();
    if (!stream->is_made) {
        stream->is_made = 1, stream->last = &stream->first;
        pthread_create(&stream->thread, 0, work, stream);
    }
    unlock();
    return stream;
}
/* A stream begins nothing while it is held. */
EXPORT void imitated_hold(void *handle, int on)
{
    struct stream *stream = stream_of(handle);
    lock(), stream->is_held = on, unlock();
}
static int add(void *handle, enum what what, void *to, void *from, uint64_t number)
{
    struct stream *stream = stream_of(handle);
    struct task *made = malloc(sizeof *made);
    *made = (struct task){ 0, what, to, from, number };
    lock();
    *stream->last = made, stream->last = &made->next;
    unlock();
    return SUCCESS;
}
EXPORT int cuStreamCreate(void **made, unsigned flags)
{
    NEEDS_CONTEXT(cuStreamCreate);
    *made = flags == 1 ? calloc(1, sizeof(struct stream)) : 0; /* one that does not wait for the default stream */
    return *made ? SUCCESS : INVALID_VALUE;
}
EXPORT int cuStreamSynchronize(void *handle)
{
    NEEDS_CONTEXT(cuStreamSynchronize);
    struct stream *stream = stream_of(handle);
    lock();
    ++imitated_waits;
    while (stream->first) pthread_cond_wait(&changed, &mutex);
    unlock();
    return SUCCESS;
}
EXPORT int cuEventCreate(struct event **made, unsigned flags)
{
    NEEDS_CONTEXT(cuEventCreate);
    *made = calloc(1, sizeof **made);
    return flags == 2 ? SUCCESS : INVALID_VALUE; /* without times */
}
EXPORT int cuEventRecord(struct event *event, void *stream)
{
    NEEDS_CONTEXT(cuEventRecord);
    return add(stream, RECORD, 0, event, ++event->recorded);
}
EXPORT int cuStreamWaitEvent(void *stream, struct event *event, unsigned flags)
{
    NEEDS_CONTEXT(cuStreamWaitEvent);
    return flags ? INVALID_VALUE : add(stream, AWAIT, 0, event, event->recorded);
}
EXPORT int cuEventSynchronize(struct event *event)
{
    NEEDS_CONTEXT(cuEventSynchronize);
    lock();
    while (event->done < event->recorded) pthread_cond_wait(&changed, &mutex);
    unlock();
    return SUCCESS;
}
EXPORT int cuEventDestroy(struct event *event) { (void)event; return SUCCESS; } /* streams may still use it */
EXPORT int cuMemcpyDtoDAsync(uint64_t to, uint64_t from, size_t nbytes, void *stream)
{
    NEEDS_CONTEXT(cuMemcpyDtoDAsync);
    return add(stream, COPY, (void *)to, (void *)from, nbytes);
}

/* -- devices ------------------------------------------------------------------------------------- */

EXPORT int cuInit(unsigned flags) { return FAILS(cuInit) ? 100 /* no device */ : (int)flags; }
EXPORT int cuDeviceGetCount(int *count) { return *count = 2, SUCCESS; }
EXPORT int cuDeviceGet(int *device, int number) { return *device = 10 + number, SUCCESS; }
EXPORT int cuDeviceGetUuid(unsigned char *uuid, int device)
{
    const char *digits = getenv("VKOPS_IMITATED_CUDA");
    memset(uuid, 7, 16);
    for (int i = 0; device == 11 && i < 16; ++i) sscanf(digits + 2 * i, "%2hhx", &uuid[i]);
    return SUCCESS;
}
EXPORT int cuDevicePrimaryCtxRetain(void **context, int device)
{
    return *context = (void *)(uintptr_t)(100 + device), device == 11 ? SUCCESS : INVALID_VALUE;
}
EXPORT int cuCtxPushCurrent(void *context) { return ++contexts, context == (void *)111 ? SUCCESS : INVALID_VALUE; }
EXPORT int cuCtxPopCurrent(void **context) { return *context = (void *)111, contexts-- > 0 ? SUCCESS : NO_CONTEXT; }
EXPORT int imitated_contexts(void) { return contexts; }
EXPORT int cuDriverGetVersion(int *version) { return *version = 13000, SUCCESS; }
EXPORT int cuGetErrorName(int error, const char **name) { (void)error; return *name = "imitated", SUCCESS; }

/* -- what is imported ---------------------------------------------------------------------------- */

struct handle { int type; union { int fd; void *both[2]; } from; unsigned long long size; unsigned flags, rest[16]; };
struct range { unsigned long long offset, size; unsigned flags, rest[16]; };

/* Mesa's files begin with their size and the distance of the first byte (os_memory_fd.c), SwiftShader's with that byte. */
EXPORT int cuImportExternalMemory(struct memory **made, const struct handle *handle)
{
    NEEDS_CONTEXT(cuImportExternalMemory);
    struct stat about;
    if (handle->type != 1 || handle->flags != 1 || fstat(handle->from.fd, &about)) return INVALID_VALUE;
    size_t *start = mmap(0, about.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, handle->from.fd, 0);
    if (start == MAP_FAILED) return INVALID_VALUE;
    size_t first = start[0] == (size_t)about.st_size ? start[1] : 0;
    if (about.st_size - first < handle->size) return INVALID_VALUE;
    close(handle->from.fd); /* which is CUDA's now */
    *made = malloc(sizeof **made);
    **made = (struct memory){ start, about.st_size, first };
    lock(), ++imitated_memories, unlock();
    return SUCCESS;
}
EXPORT int cuExternalMemoryGetMappedBuffer(uint64_t *address, const struct memory *memory, const struct range *range)
{
    NEEDS_CONTEXT(cuExternalMemoryGetMappedBuffer);
    if (range->offset + range->size > memory->size - memory->offset) return INVALID_VALUE;
    *address = (uint64_t)((char *)memory->start + memory->offset + range->offset);
    return SUCCESS;
}
EXPORT int cuMemFree(uint64_t address) { NEEDS_CONTEXT(cuMemFree); return address ? SUCCESS : INVALID_VALUE; }
EXPORT int cuDestroyExternalMemory(struct memory *memory)
{
    NEEDS_CONTEXT(cuDestroyExternalMemory);
    munmap(memory->start, memory->size), free(memory); /* what is still copied there crashes */
    lock(), --imitated_memories, unlock();
    return SUCCESS;
}

struct semaphore_handle { int type; union { int fd; void *both[2]; } from; unsigned flags, rest[16]; };
/* Of parameters of one semaphore, which begin with the value. */
struct value { unsigned long long value; char rest[136]; };

EXPORT int cuImportExternalSemaphore(struct shared **made, const struct semaphore_handle *handle)
{
    NEEDS_CONTEXT(cuImportExternalSemaphore);
    *made = handle->type == 9 ? read_semaphore(handle->from.fd) : 0;
    if (!*made) return INVALID_VALUE;
    close(handle->from.fd);
    lock(), ++imitated_semaphores, unlock();
    return SUCCESS;
}
EXPORT int cuWaitExternalSemaphoresAsync(struct shared **all, const struct value *values, unsigned count, void *stream)
{
    NEEDS_CONTEXT(cuWaitExternalSemaphoresAsync);
    return count == 1 ? add(stream, WAIT, 0, *all, values->value) : INVALID_VALUE;
}
EXPORT int cuSignalExternalSemaphoresAsync(struct shared **all, const struct value *values, unsigned count, void *stream)
{
    NEEDS_CONTEXT(cuSignalExternalSemaphoresAsync);
    return count == 1 ? add(stream, SIGNAL, 0, *all, values->value) : INVALID_VALUE;
}

/* -- how cuda.bindings finds the functions -------------------------------------------------------- */

EXPORT int cuGetProcAddress_v2(const char *name, void **function, int version, uint64_t flags, int *status)
{
    (void)version, (void)flags;
    Dl_info own;
    dladdr((void *)cuGetProcAddress_v2, &own);
    *function = dlsym(dlopen(own.dli_fname, RTLD_LAZY | RTLD_NOLOAD), name);
    if (status) *status = !*function;
    return *function ? SUCCESS : NOT_FOUND;
}
EXPORT int cuGetProcAddress(const char *name, void **function, int version, uint64_t flags)
{
    return cuGetProcAddress_v2(name, function, version, flags, 0);
}
