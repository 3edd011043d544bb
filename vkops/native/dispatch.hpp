// Dispatches of compute shaders on parts of memory.
#pragma once

#include "images.hpp"

// The number of a binding, its type of descriptor, and how many it has; by descriptor set.
using Binding = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t>;
using Bindings = std::vector<std::vector<Binding>>;

// The bytes that push constants take: Vulkan wants a multiple of 4.
inline std::uint32_t push_size(std::size_t nbytes) { return std::uint32_t((nbytes + 3) / 4 * 4); }

// A compute pipeline.
class Pipeline : public DeviceObject
{
  public:
    std::string name;  // of the kernel, or of the shader that was compiled last with the same code
    vk::Pipeline pipeline;
    vk::PipelineLayout layout;
    std::vector<vk::DescriptorSetLayout> sets;
    const Bindings bindings;
    std::vector<DescriptorCounts> counts;

    Pipeline(std::shared_ptr<vk::Device> device, const std::string& spirv, const std::string& entry,
             Bindings bindings_, std::uint32_t push_nbytes, const void* next = nullptr,
             vk::PipelineCreateFlags flags = {}, vk::PipelineCache cache = {})
      : DeviceObject(device), bindings(std::move(bindings_))
    {
        for (const auto& set : bindings) {
            std::vector<vk::DescriptorSetLayoutBinding> declared;
            DescriptorCounts numbers{};
            for (const auto& [number, type, count] : set) {
                declared.emplace_back(number, vk::DescriptorType(type), count,
                                      vk::ShaderStageFlagBits::eCompute);
                numbers.at(type) += count;
            }
            sets.push_back(keep(device->createDescriptorSetLayout({ {}, declared })));
            counts.push_back(numbers);
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
        vk::ComputePipelineCreateInfo info(flags, stage, layout);
        info.pNext = next;
        pipeline = keep(device->createComputePipeline(cache, info).value);
    }
};

// Words in which addresses are missing. `starts` has the first byte of each tensor in its memory, and 0
// last; the place `places[i]` counts pieces of `unit` bytes from `starts[bases[i]]`, from the end of
// `starts` if that is negative.
template <class Word>
struct Addressed
{
    template <class Number>
    using Array = py::array_t<Number, py::array::c_style | py::array::forcecast>;
    const Array<Word> words;
    const Array<std::int64_t> places, bases;
    const Word unit;

    void write(void* to, const std::vector<std::uint32_t>& starts) const
    {
        std::memcpy(to, words.data(), words.nbytes());
        const auto written = static_cast<Word*>(to);
        for (py::ssize_t i = 0; i < places.size(); ++i) {
            const auto base = bases.data()[i];
            written[places.data()[i]] += starts[base < 0 ? starts.size() + base : base] / unit;
        }
    }
};
using Table = Addressed<std::uint32_t>;  // a region table
using Runs = Addressed<std::uint64_t>;   // of each run: the place in the source and the target, bytes

// What a shader is bound to: a part of memory, or bytes of its own, which it only reads: some that are
// given, or a table at addresses. If it has a view, the shader is bound to that: of an image, a sampler
// or both, or of the memory as texels.
struct BoundBytes
{
    std::shared_ptr<Memory> memory;
    std::uint64_t offset = 0, nbytes = 0;
    std::string bytes;
    std::shared_ptr<Table> table;
    std::vector<std::uint32_t> starts;
    std::shared_ptr<void> view;  // keeps alive what the next two name
    vk::DescriptorImageInfo image;
    vk::BufferView texels;
    Key key;  // of the view
};

// The counts of workgroups: three numbers, or the offset of three words in memory.
struct Groups
{
    static constexpr std::uint64_t MANY = 64;
    std::array<std::uint32_t, 3> counts{};
    std::shared_ptr<Memory> memory;
    std::uint64_t offset = 0;
};

inline Range memory_of(const BoundBytes& bound, bool many, Commands& commands)
{
    if (bound.memory) return { *bound.memory, bound.offset, bound.nbytes };
    const auto& [bytes, table] = std::tie(bound.bytes, bound.table);
    return commands.place(table ? table->words.nbytes() : bytes.size(), [&](char* to) {
        table ? table->write(to, bound.starts) : void(bytes.copy(to, bytes.size()));
    }, many);
}

// A dispatch of a pipeline, by the name of the shader; `all` are in the order of its bindings. `nbytes` is
// what it reads and writes; without it, profiles count the bytes that it is bound to.
inline std::shared_ptr<Operation> dispatch(std::shared_ptr<Pipeline> pipeline, const std::string& name,
                                           std::vector<BoundBytes> all, Groups groups,
                                           std::string push, bool ordered,
                                           std::uint64_t nbytes = 0)
{
    push.resize(push_size(push.size()));
    std::size_t expected = 0;
    for (const auto& set : pipeline->bindings)
        for (const auto& binding : set) expected += std::get<2>(binding);
    if (all.size() != expected)
        throw py::value_error("bound: must be one for each descriptor of the pipeline");
    if (!nbytes)
        for (const auto& each : all) nbytes += each.nbytes;
    const auto [x, y, z] = groups.counts;
    const bool many = groups.memory || std::uint64_t(x) * y * z > Groups::MANY;
    const auto reserve = [=, infos = std::vector<vk::DescriptorBufferInfo>(),
                          images = std::vector<vk::DescriptorImageInfo>(),
                          texels = std::vector<vk::BufferView>(),
                          writes = std::vector<vk::WriteDescriptorSet>()](Commands& commands) mutable {
        auto bound = all.begin();
        for (std::size_t number = 0; number < pipeline->sets.size(); ++number) {
            const auto& bindings = pipeline->bindings[number];
            if (bindings.empty()) continue;
            std::size_t total = 0;
            for (const auto& binding : bindings) total += std::get<2>(binding);
            infos.resize(total);
            images.resize(total);
            texels.resize(total);
            writes.clear();
            Key key{ pipeline->serial, number };
            std::size_t at = 0;
            for (const auto& [binding, type, count] : bindings) {
                writes.emplace_back(vk::DescriptorSet(), binding, 0, count, vk::DescriptorType(type),
                                    &images[at], &infos[at], &texels[at]);
                for (std::uint32_t i = 0; i < count; ++i, ++bound, ++at) {
                    if (bound->view) {
                        images[at] = bound->image;
                        texels[at] = bound->texels;
                        key.insert(key.end(), bound->key.begin(), bound->key.end());
                        continue;
                    }
                    const auto range = memory_of(*bound, many, commands);
                    key.insert(key.end(), { range.serial, range.offset, range.range });
                    infos[at] = range;
                }
            }
            commands.sets.push_back(
              commands.descriptors(pipeline->sets[number], pipeline->counts[number], key, writes));
        }
    };
    const auto record = [=](Commands& commands) {
        const auto& buffer = commands.buffer;
        constexpr auto COMPUTE = vk::PipelineBindPoint::eCompute;
        buffer.bindPipeline(COMPUTE, pipeline->pipeline);
        for (std::uint32_t number = 0; number < pipeline->sets.size(); ++number) {
            if (pipeline->bindings[number].empty()) continue;
            buffer.bindDescriptorSets(COMPUTE, pipeline->layout, number, commands.sets.front(), {});
            commands.sets.pop_front();
        }
        if (!push.empty())
            buffer.pushConstants(pipeline->layout, vk::ShaderStageFlagBits::eCompute, 0,
                                 std::uint32_t(push.size()), push.data());
        if (groups.memory)
            buffer.dispatchIndirect(groups.memory->buffer, groups.offset);
        else
            buffer.dispatch(groups.counts[0], groups.counts[1], groups.counts[2]);
    };
    return std::make_shared<Operation>(Label{ name, nbytes }, record, ordered, reserve);
}

// A step of a plan: a dispatch of a kernel with a table and so many other bindings, or copies. All
// bindings without a memory of their own have the last one.
struct Step
{
    std::shared_ptr<Pipeline> pipeline;
    std::shared_ptr<Table> table;
    std::size_t bindings = 0;
    Groups groups;
    bool ordered = true;
    std::uint64_t nbytes = 0;  // that the dispatch reads and writes
    std::shared_ptr<Runs> runs;

    std::shared_ptr<Operation> bind(const std::vector<std::shared_ptr<Memory>>& memories,
                                    const std::vector<std::uint32_t>& starts) const
    {
        if (runs) {
            std::vector<vk::BufferCopy> regions(runs->words.size() / 3);
            runs->write(regions.data(), starts);
            return copy_regions(memories[0], memories[0], regions, ordered);
        }
        std::vector<BoundBytes> all(1);
        all[0].table = table;
        all[0].starts = starts;
        for (std::size_t i = 0; i < bindings; ++i) {
            const auto& memory = memories[std::min(i, memories.size() - 1)];
            all.push_back({ memory, 0, memory->size, {}, {}, {}, {}, {}, {}, {} });
        }
        return dispatch(pipeline, pipeline->name, std::move(all), groups, {}, ordered, nbytes);
    }
};
