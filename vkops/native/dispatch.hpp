// Dispatches of compute shaders on parts of memory.
#pragma once

#include "images.hpp"

// The number of a binding, the type of its descriptors, and how many it has; Bindings has them by set.
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

// Words that get addresses when memory is bound. `starts` has the offset of each tensor in its memory, and
// 0 as its last entry. The word `places[i]` is a number of units of `unit` bytes, relative to
// `starts[bases[i]]`; a negative `bases[i]` counts from the end of `starts`.
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

// The resource of a descriptor, and the objects that keep it alive: a range of memory, also as texels; an
// image, a sampler or both; or read-only data of the dispatch, which are bytes or a table with addresses. Such
// data have no owners: memory is reserved for them when the dispatch is recorded.
struct Descriptor
{
    std::array<std::shared_ptr<void>, 2> owners;
    vk::DescriptorBufferInfo buffer;
    vk::DescriptorImageInfo image;
    vk::BufferView texels;
    std::array<std::uint64_t, 3> key{};  // serial numbers, offsets and sizes: equal keys can share a set
    std::string bytes;
    std::shared_ptr<Table> table;
    std::vector<std::uint32_t> starts;

    void refer(const Range& range)
    {
        buffer = range;
        key = { range.serial, range.offset, range.range };
    }
    void refer(std::shared_ptr<Memory> memory, std::uint64_t offset, std::uint64_t nbytes)
    {
        refer(Range(*memory, offset, nbytes));
        owners[0] = memory;
    }
    void place(Commands& commands, bool many)
    {
        refer(commands.place(table ? table->words.nbytes() : bytes.size(), [&](char* to) {
            table ? table->write(to, starts) : void(bytes.copy(to, bytes.size()));
        }, many));
    }
};

// The counts of workgroups: three numbers, or the offset of three words in memory.
struct Groups
{
    static constexpr std::uint64_t MANY = 64;
    std::array<std::uint32_t, 3> counts{};
    std::shared_ptr<Memory> memory;
    std::uint64_t offset = 0;
};

// A dispatch of a pipeline; `name` is the shader's. `all` are the descriptors in the order of its bindings.
// `nbytes` is the number of bytes that it reads and writes; if it is 0, profiles count the bytes that are
// bound.
inline std::shared_ptr<Operation> dispatch(std::shared_ptr<Pipeline> pipeline, const std::string& name,
                                           std::vector<Descriptor> all, Groups groups,
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
        for (const auto& each : all) nbytes += each.buffer.range;
    const auto [x, y, z] = groups.counts;
    const bool many = groups.memory || std::uint64_t(x) * y * z > Groups::MANY;
    auto reserve = [=, all = std::move(all),
                    writes = std::vector<vk::WriteDescriptorSet>()](Commands& commands) mutable {
        auto each = all.begin();
        for (std::size_t number = 0; number < pipeline->sets.size(); ++number) {
            const auto& bindings = pipeline->bindings[number];
            if (bindings.empty()) continue;
            writes.clear();
            Key key{ pipeline->serial, number };
            for (const auto& [binding, type, count] : bindings)
                for (std::uint32_t i = 0; i < count; ++i, ++each) {
                    if (!each->owners[0]) each->place(commands, many);
                    key.insert(key.end(), each->key.begin(), each->key.end());
                    writes.emplace_back(vk::DescriptorSet(), binding, i, 1, vk::DescriptorType(type),
                                        &each->image, &each->buffer, &each->texels);
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
    return std::make_shared<Operation>(Label{ name, nbytes }, record, ordered, std::move(reserve));
}

// A step of a plan: copies, or a dispatch of a kernel with a table and `bindings` other bindings. If there is
// less memory than bindings, the remaining bindings use the last memory.
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
        std::vector<Descriptor> all(1 + bindings);
        all[0].table = table;
        all[0].starts = starts;
        for (std::size_t i = 0; i < bindings; ++i) {
            const auto& memory = memories[std::min(i, memories.size() - 1)];
            all[1 + i].refer(memory, 0, memory->size);
        }
        return dispatch(pipeline, pipeline->name, std::move(all), groups, {}, ordered, nbytes);
    }
};
