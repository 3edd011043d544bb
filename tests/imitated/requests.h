/* What tests ask of the layer: failures, losses, delays, records. They call the exported functions. */
#pragma once

#include <pthread.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <vulkan/vulkan.h>

#define EXPORT __attribute__((visibility("default")))

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* of all that is static and changes */
static void lock(void) { pthread_mutex_lock(&mutex); }
static void unlock(void) { pthread_mutex_unlock(&mutex); }

static const char *lost_by;
static int loss_reported, hangs, call_count, recording;
static int64_t slowness; /* nanoseconds */
static struct { char name[64]; int skipped, count; VkResult result; } failing;
static char *text;
static size_t text_size, text_room;

/* From now on the device runs nothing. The function of that name (vkQueueSubmit ...) reports that once;
   afterwards all report success, as drivers may. */
EXPORT void lose(const char *name) { lost_by = strdup(name); loss_reported = 0; }
EXPORT void mend(void) { lost_by = 0; }
/* The device goes on, and its fences are not signalled until it is released. */
EXPORT void hang(void) { hangs = 1; }
EXPORT void release(void) { hangs = 0; }
/* Submissions from now on take at least so many microseconds. */
EXPORT void slow(int64_t microseconds) { slowness = microseconds * 1000; }
/* After `skipped` more calls of a function ("": of all that can fail), `count` calls do nothing and
   return the result. */
EXPORT void fail(const char *name, int skipped, int count, VkResult result)
{
    lock();
    snprintf(failing.name, sizeof failing.name, "%s", name);
    failing.skipped = skipped, failing.count = count, failing.result = result;
    unlock();
}
EXPORT int still_failing(void) { return failing.count; }
/* Forget the records and begin new ones, or none; count the calls that can fail from 0. */
EXPORT void record(int on) { lock(), recording = on, text_size = call_count = 0, unlock(); }
EXPORT int calls(void) { return call_count; }
/* The calls that can fail, and those that record commands, a line each. */
EXPORT const char *records(void)
{
    static char *copy; /* other threads add to the text */
    lock();
    free(copy);
    copy = strdup(text_size ? text : "");
    unlock();
    return copy;
}

static void note(const char *name, const char *format, va_list values)
{
    if (!recording) return;
    if (text_room - text_size < 1024) text = realloc(text, text_room = 2 * text_room + 4096);
    text_size += sprintf(text + text_size, "%s", name);
    text_size += vsnprintf(text + text_size, 512, format, values);
    text_size += sprintf(text + text_size, "\n");
}
static void note_command(const char *name, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    lock(), note(name, format, values), unlock();
    va_end(values);
}
/* Count and record a call that can fail. Whether it ends here, with this result. */
static int ends(const char *name, int can_report_loss, VkResult *result, const char *format, ...)
{
    va_list values;
    int ended = 0;
    lock();
    ++call_count;
    if (lost_by && can_report_loss) {
        const int reports = !loss_reported && !strcmp(lost_by, name);
        const int runs = !loss_reported && !strcmp(name, "vkGetFenceStatus") && !strcmp(lost_by, "vkWaitForFences");
        if (reports) loss_reported = 1;
        *result = reports ? VK_ERROR_DEVICE_LOST : runs ? VK_NOT_READY : VK_SUCCESS;
        ended = 1;
    } else if (failing.count && (!*failing.name || !strcmp(failing.name, name))) {
        ended = !failing.skipped;
        --*(ended ? &failing.count : &failing.skipped);
        if (ended) *result = failing.result;
    }
    va_start(values, format);
    note(name, format, values);
    va_end(values);
    if (ended && recording) text_size += sprintf(text + text_size - 1, " failed=%d\n", *result) - 1;
    unlock();
    return ended;
}
/* A use of Vulkan that is wrong: the call returns this result, and the reason is printed. */
static VkResult misuse(const char *name, const char *reason)
{
    fprintf(stderr, "imitated driver: vk%s: %s\n", name, reason);
    return VK_ERROR_VALIDATION_FAILED_EXT;
}
static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000ll + time.tv_nsec;
}
