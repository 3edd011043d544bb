/* The devices that the layer imitates, and Vulkan's minimum limits. */
#pragma once

#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vulkan.h>

#define COUNT(array) (sizeof(array) / sizeof(*(array)))

enum { LOCAL = 1, VISIBLE = 2, COHERENT = 4, CACHED = 8 }; /* of VkMemoryPropertyFlagBits */
#define DISCRETE VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU
#define INTEGRATED VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU

#define DISCRETE_TYPES(heap_of_both) \
    4, { { LOCAL, 0 }, { VISIBLE | COHERENT, 1 }, { LOCAL | VISIBLE | COHERENT, heap_of_both }, \
         { VISIBLE | COHERENT | CACHED, 1 } }
#define INTEGRATED_TYPES(coherent) \
    3, { { LOCAL, 0 }, { LOCAL | VISIBLE | COHERENT, 0 }, { LOCAL | VISIBLE | CACHED | coherent, 0 } }

static const struct kind {
    const char *name;
    VkPhysicalDeviceType type;
    uint32_t heap_count;
    VkMemoryHeap heaps[3]; /* 0 bytes: as many as the first heap of the driver */
    uint32_t type_count;
    VkMemoryType types[4];
} KINDS[] = {
    { "discrete", DISCRETE, 2, { { 0, LOCAL }, { 0, 0 } }, DISCRETE_TYPES(0) },
    { "small-bar", DISCRETE, 3, { { 0, LOCAL }, { 0, 0 }, { 256 << 20, LOCAL } }, DISCRETE_TYPES(2) },
    { "integrated", INTEGRATED, 1, { { 0, LOCAL } }, INTEGRATED_TYPES(0) },
    { "integrated-coherent", INTEGRATED, 1, { { 0, LOCAL } }, INTEGRATED_TYPES(COHERENT) },
    { "minimum", DISCRETE, 2, { { 0, LOCAL }, { 0, 0 } }, DISCRETE_TYPES(0) },
};
static const struct kind *kind; /* null: the device of the driver */
static int minimum;
static const char *hidden = "";
static int exports; /* semaphores */
/* Whether there is a family of queues for transfers, beside the one of the driver. */
static int has_transfers(void) { return kind && kind->type == DISCRETE && getenv("VKOPS_TRANSFER_FAMILY"); }

__attribute__((constructor)) static void read_environment(void)
{
    const char *name = getenv("VKOPS_IMITATED"), *extensions = getenv("VKOPS_HIDDEN_EXTENSIONS");
    for (size_t i = 0; name && i < COUNT(KINDS); ++i)
        if (!strcmp(KINDS[i].name, name)) kind = &KINDS[i];
    if (name && *name && !kind) fprintf(stderr, "VKOPS_IMITATED: there is no '%s'\n", name), abort();
    minimum = kind && !strcmp(kind->name, "minimum");
    if (extensions) hidden = extensions;
    exports = getenv("VKOPS_EXPORTED_SEMAPHORES") && !minimum;
}

/* Extensions that VKOPS_ADDED adds to the driver, with the types of their features and the members. */
static const struct { const char *extension; int type, members; } ADDED[] = {
    { "VK_NV_shader_subgroup_partitioned", 0, 0 }, { "VK_KHR_portability_subset", 0, 0 },
    { "VK_KHR_shader_quad_control", 1000235000, 1 }, { "VK_KHR_shader_subgroup_rotate", 1000416000, 2 },
    { "VK_KHR_shader_maximal_reconvergence", 1000434000, 1 },
    { "VK_KHR_cooperative_matrix", 1000506000, 2 }, { "VK_KHR_shader_float_controls2", 1000528000, 1 },
    { "VK_KHR_shader_expect_assume", 1000544000, 1 },
};
struct shape { int type; void *next; uint32_t m, n, k; int types[4]; VkBool32 saturating; int scope; };
static const struct shape SHAPES[] = {
    { 0, 0, 16, 16, 16, { 0, 0, 1, 1 }, 0, 3 }, { 0, 0, 8, 16, 32, { 7, 3, 5, 5 }, 1, 3 },
    { 0, 0, 16, 16, 16, { 1000141000, 1000141000, 1, 9 }, 0, 2 },
};

/* The required limits of Vulkan 1.1, as far as they concern what is not drawn. */
static void reduce(VkPhysicalDeviceLimits *limits)
{
    const VkPhysicalDeviceLimits required = {
        .maxImageDimension1D = 4096, .maxImageDimension2D = 4096, .maxImageDimension3D = 256,
        .maxImageDimensionCube = 4096, .maxImageArrayLayers = 256, .maxTexelBufferElements = 65536,
        .maxUniformBufferRange = 16384, .maxStorageBufferRange = 1 << 27, .maxPushConstantsSize = 128,
        .maxMemoryAllocationCount = 4096, .maxSamplerAllocationCount = 4000,
        .bufferImageGranularity = 131072, .maxBoundDescriptorSets = 4,
        .maxPerStageDescriptorSamplers = 16, .maxPerStageDescriptorUniformBuffers = 12,
        .maxPerStageDescriptorStorageBuffers = 4, .maxPerStageDescriptorSampledImages = 16,
        .maxPerStageDescriptorStorageImages = 4, .maxPerStageDescriptorInputAttachments = 4,
        .maxPerStageResources = 128, .maxDescriptorSetSamplers = 96,
        .maxDescriptorSetUniformBuffers = 72, .maxDescriptorSetUniformBuffersDynamic = 8,
        .maxDescriptorSetStorageBuffers = 24, .maxDescriptorSetStorageBuffersDynamic = 4,
        .maxDescriptorSetSampledImages = 96, .maxDescriptorSetStorageImages = 24,
        .maxDescriptorSetInputAttachments = 4, .maxComputeSharedMemorySize = 16384,
        .maxComputeWorkGroupCount = { 65535, 65535, 65535 }, .maxComputeWorkGroupInvocations = 128,
        .maxComputeWorkGroupSize = { 128, 128, 64 }, .maxDrawIndirectCount = 1, .maxSamplerLodBias = 2,
        .maxSamplerAnisotropy = 1, .minMemoryMapAlignment = 64, .minTexelBufferOffsetAlignment = 256,
        .minUniformBufferOffsetAlignment = 256, .minStorageBufferOffsetAlignment = 256,
        .minTexelOffset = -8, .maxTexelOffset = 7, .optimalBufferCopyOffsetAlignment = 1,
        .optimalBufferCopyRowPitchAlignment = 1, .nonCoherentAtomSize = 256,
        .sampledImageColorSampleCounts = 1, .sampledImageIntegerSampleCounts = 1,
        .storageImageSampleCounts = 1, .maxSampleMaskWords = 1,
    };
    *limits = required;
}
