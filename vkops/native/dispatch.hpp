// Dispatches of compute shaders on parts of tensors' memory.
#pragma once

#include "copies.hpp"

// The number of a binding, and whether it is that of a uniform block; by descriptor set.
using Binding = std::pair<std::uint32_t, bool>;
using Bindings = std::vector<std::vector<Binding>>;

// The bytes that push constants take: Vulkan wants a multiple of 4.
inline std::uint32_t push_size(std::size_t nbytes) { return std::uint32_t((nbytes + 3) / 4 * 4); }

// A compute pipeline.
class Pipeline : DeviceObject
{
  public:
    vk::Pipeline pipeline;
    vk::PipelineLayout layout;
    std::vector<vk::DescriptorSetLayout> sets;
    const Bindings bindings;
    std::vector<DescriptorCounts> counts;

    Pipeline(std::shared_ptr<vk::Device> device, const std::string& spirv, const std::string& entry,
             Bindings bindings_, std::uint32_t push_nbytes, vk::PipelineCreateFlags flags = {})
      : DeviceObject(device), bindings(std::move(bindings_))
    {
        using Type = vk::DescriptorType;
        for (const auto& set : bindings) {
            std::vector<vk::DescriptorSetLayoutBinding> declared;
            DescriptorCounts count;
            for (const auto& [number, uniform] : set) {
                declared.emplace_back(number, uniform ? Type::eUniformBuffer : Type::eStorageBuffer,
                                      1, vk::ShaderStageFlagBits::eCompute);
                ++(uniform ? count.uniform : count.storage);
            }
            sets.push_back(keep(device->createDescriptorSetLayout({ {}, declared })));
            counts.push_back(count);
        }
        const vk::PushConstantRange range(vk::ShaderStageFlagBits::eCompute, 0,
                                          push_size(push_nbytes));
        const auto ranges = vk::ArrayProxyNoTemporaries(push_nbytes ? 1u : 0u, &range);
        layout = keep(device->createPipelineLayout({ {}, sets, ranges }));
        const vk::ShaderModuleCreateInfo code(
          {}, spirv.size(), reinterpret_cast<const std::uint32_t*>(spirv.data()));
        const auto module = owned(device->createShaderModule(code), device);
        const vk::PipelineShaderStageCreateInfo stage(
          {}, vk::ShaderStageFlagBits::eCompute, *module, entry.c_str());
        pipeline = keep(device->createComputePipeline({}, { flags, stage, layout }).value);
    }
};

// Memory that a shader is bound to: a part of a tensor's, or bytes of its own, which it only reads.
struct Part
{
    std::shared_ptr<kp::Tensor> tensor;
    std::shared_ptr<TensorBuffer> buffer;  // for uniform blocks
    std::uint64_t offset = 0, nbytes = 0;
    std::string bytes;
};

// The counts of workgroups: three numbers, or the offset of three words in a buffer.
struct Groups
{
    std::array<std::uint32_t, 3> counts{};
    std::shared_ptr<TensorBuffer> buffer;
    std::uint64_t offset = 0;
};

inline vk::DescriptorBufferInfo memory_of(const Part& part, Commands& commands)
{
    if (part.buffer) return { part.buffer->buffer, part.offset, part.nbytes };
    if (part.tensor)
        return { part.tensor->constructDescriptorBufferInfo().buffer, part.offset, part.nbytes };
    return commands.place(part.bytes);
}

// A dispatch of a pipeline; `parts` are in the order of its bindings.
inline Operation dispatch(std::shared_ptr<Pipeline> pipeline, std::vector<Part> parts,
                          Groups groups, std::string push)
{
    push.resize(push_size(push.size()));
    std::size_t expected = 0;
    for (const auto& set : pipeline->bindings) expected += set.size();
    if (parts.size() != expected)
        throw py::value_error("parts: must be one for each binding of the pipeline");
    return { [=, infos = std::vector<vk::DescriptorBufferInfo>(),
              writes = std::vector<vk::WriteDescriptorSet>()](Commands& commands) mutable {
        const auto& buffer = commands.buffer;
        constexpr auto COMPUTE = vk::PipelineBindPoint::eCompute;
        buffer.bindPipeline(COMPUTE, pipeline->pipeline);
        auto part = parts.begin();
        for (std::uint32_t number = 0; number < pipeline->sets.size(); ++number) {
            const auto& bindings = pipeline->bindings[number];
            if (bindings.empty()) continue;
            const auto set = commands.descriptors(pipeline->sets[number], pipeline->counts[number]);
            infos.resize(bindings.size());
            writes.clear();
            for (std::size_t i = 0; i < bindings.size(); ++i, ++part) {
                const auto [binding, uniform] = bindings[i];
                infos[i] = memory_of(*part, commands);
                writes.emplace_back(set, binding, 0, 1,
                  uniform ? vk::DescriptorType::eUniformBuffer : vk::DescriptorType::eStorageBuffer,
                  nullptr, &infos[i]);
            }
            commands.update(writes);
            buffer.bindDescriptorSets(COMPUTE, pipeline->layout, number, set, {});
        }
        if (!push.empty())
            buffer.pushConstants(pipeline->layout, vk::ShaderStageFlagBits::eCompute, 0,
                                 std::uint32_t(push.size()), push.data());
        if (groups.buffer)
            buffer.dispatchIndirect(groups.buffer->buffer, groups.offset);
        else
            buffer.dispatch(groups.counts[0], groups.counts[1], groups.counts[2]);
    } };
}
