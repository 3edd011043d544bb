// A library of its own that uses a device and a tensor of vkops: it fills words of a buffer.
#include <cstdint>
#include <vulkan/vulkan.h>

extern "C" int fill(VkDevice device, VkQueue queue, std::uint32_t family, VkBuffer buffer,
                    std::uint64_t offset, std::uint64_t size, std::uint32_t word)
{
    VkCommandPoolCreateInfo pool_info{ VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO };
    pool_info.queueFamilyIndex = family;
    VkCommandPool pool;
    if (vkCreateCommandPool(device, &pool_info, nullptr, &pool) != VK_SUCCESS) return 1;
    VkCommandBufferAllocateInfo info{ VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO };
    info.commandPool = pool;
    info.commandBufferCount = 1;
    VkCommandBuffer commands;
    vkAllocateCommandBuffers(device, &info, &commands);
    const VkCommandBufferBeginInfo begin{ VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO };
    vkBeginCommandBuffer(commands, &begin);
    vkCmdFillBuffer(commands, buffer, offset, size, word);
    // What vkops submits afterwards must see it. What it has submitted before ends with such a barrier.
    VkMemoryBarrier barrier{ VK_STRUCTURE_TYPE_MEMORY_BARRIER };
    barrier.srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT;
    barrier.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
    vkCmdPipelineBarrier(commands, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0,
                         1, &barrier, 0, nullptr, 0, nullptr);
    vkEndCommandBuffer(commands);
    VkSubmitInfo submission{ VK_STRUCTURE_TYPE_SUBMIT_INFO };
    submission.commandBufferCount = 1;
    submission.pCommandBuffers = &commands;
    const auto result = vkQueueSubmit(queue, 1, &submission, VK_NULL_HANDLE);
    vkQueueWaitIdle(queue);
    vkDestroyCommandPool(device, pool, nullptr);
    return result != VK_SUCCESS;
}
