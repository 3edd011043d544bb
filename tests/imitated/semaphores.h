/* Semaphores of the layer, as another driver in the same process gets them: a file that has their handles. */
#pragma once

#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>
#include <vulkan/vulkan.h>

struct shared {
    VkDevice device;
    VkSemaphore semaphore;
    PFN_vkWaitSemaphores wait;
    PFN_vkSignalSemaphore signal;
};

static inline struct shared *read_semaphore(int file) /* null if it is none */
{
    struct shared *found = malloc(sizeof *found);
    if (pread(file, found, sizeof *found, 0) == (ssize_t)sizeof *found) return found;
    free(found);
    return 0;
}
static inline void wait_for_semaphore(const struct shared *shared, uint64_t value)
{
    const VkSemaphoreWaitInfo info = { VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO, 0, 0, 1, &shared->semaphore, &value };
    shared->wait(shared->device, &info, UINT64_MAX);
}
static inline void signal_semaphore(const struct shared *shared, uint64_t value)
{
    const VkSemaphoreSignalInfo info = { VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, 0, shared->semaphore, value };
    shared->signal(shared->device, &info);
}
