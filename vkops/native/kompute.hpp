// Memory of Kompute's tensors, for the shaders and copies of vkops.
#pragma once

#include "memory.hpp"

// The buffer of a tensor of Kompute, which Kompute owns. It is a storage buffer that can be copied. Its memory
// handle is private to Kompute, so no image or second buffer can be bound to the memory.
class KomputeMemory : public Memory
{
  public:
    KomputeMemory(const Device& owner, std::shared_ptr<kp::Tensor> tensor)
      : Memory(owner, tensor->memorySize()), tensor_(tensor)
    {
        using Flag = vk::MemoryPropertyFlagBits;
        const bool is_host = tensor->tensorType() == kp::Tensor::TensorTypes::eHost;
        const vk::MemoryPropertyFlags flags =
          is_host ? Flag::eHostVisible | Flag::eHostCoherent : vk::MemoryPropertyFlags(Flag::eDeviceLocal);
        buffer = tensor->constructDescriptorBufferInfo().buffer;
        const auto bits = device_->getBufferMemoryRequirements(buffer).memoryTypeBits;
        const auto& memory = owner.adapter->memory;
        // Kompute takes the first type that will do.
        while (!(bits >> type & 1) || (memory.memoryTypes[type].propertyFlags & flags) != flags) ++type;
        if (is_host) data = static_cast<char*>(tensor->rawData());
    }

  private:
    const std::shared_ptr<kp::Tensor> tensor_;
};
