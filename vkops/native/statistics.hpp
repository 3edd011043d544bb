// What the compiler of a driver makes of a shader; nothing runs.
#pragma once

#include "dispatch.hpp"

// One program that a pipeline became: figures and texts by name, such as registers and machine code.
struct Compiled
{
    std::string name;
    std::uint32_t subgroup_size = 0;
    std::vector<std::pair<std::string, double>> figures;
    std::vector<std::pair<std::string, std::string>> texts;
};

// Compiles shaders for an adapter that has VK_KHR_pipeline_executable_properties.
class Compiler
{
  public:
    explicit Compiler(std::shared_ptr<Adapter> adapter)
    {
        if (!adapter->has(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME))
            throw std::runtime_error("the driver does not tell what it makes of shaders");
        const Features features(*adapter, false);
        auto extensions = features.extensions();
        extensions.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
        vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR told(true);
        told.pNext = const_cast<void*>(features.chain());
        const float priority = 1;
        const vk::DeviceQueueCreateInfo queues({}, 0, 1, &priority);
        vk::DeviceCreateInfo info({}, queues, {}, extensions);
        info.pNext = &told;
        device_ = owned(adapter->physical->createDevice(info), adapter->instance);
        load(executables_, "vkGetPipelineExecutablePropertiesKHR");
        load(figures_, "vkGetPipelineExecutableStatisticsKHR");
        load(texts_, "vkGetPipelineExecutableInternalRepresentationsKHR");
    }

    std::vector<Compiled> compile(const std::string& spirv, const std::string& entry,
                                  const Bindings& bindings, std::uint32_t push_nbytes) const
    {
        using Flag = vk::PipelineCreateFlagBits;
        const Pipeline pipeline(device_, spirv, entry, bindings, push_nbytes, nullptr,
                                Flag::eCaptureStatisticsKHR | Flag::eCaptureInternalRepresentationsKHR);
        const VkPipeline handle = pipeline.pipeline;
        const VkPipelineInfoKHR all{ VK_STRUCTURE_TYPE_PIPELINE_INFO_KHR, nullptr, handle };
        std::vector<Compiled> found;
        for (const auto& each : list<VkPipelineExecutablePropertiesKHR>(
               executables_, all, VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_PROPERTIES_KHR)) {
            const VkPipelineExecutableInfoKHR one{ VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INFO_KHR,
                                                   nullptr, handle, std::uint32_t(found.size()) };
            Compiled made{ each.name, each.subgroupSize, {}, {} };
            for (const auto& figure : list<VkPipelineExecutableStatisticKHR>(
                   figures_, one, VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_STATISTIC_KHR))
                made.figures.emplace_back(figure.name, value(figure));
            read_texts(one, made);
            found.push_back(made);
        }
        return found;
    }

  private:
    std::shared_ptr<vk::Device> device_;
    PFN_vkGetPipelineExecutablePropertiesKHR executables_;
    PFN_vkGetPipelineExecutableStatisticsKHR figures_;
    PFN_vkGetPipelineExecutableInternalRepresentationsKHR texts_;

    template <class Function>
    void load(Function& function, const char* name)
    {
        function = reinterpret_cast<Function>(device_->getProcAddr(name));
    }
    template <class Structure, class Function, class Info>
    std::vector<Structure> list(Function function, const Info& info, VkStructureType type) const
    {
        std::uint32_t count = 0;
        function(*device_, &info, &count, nullptr);
        Structure empty{};
        empty.sType = type;
        std::vector<Structure> found(count, empty);
        function(*device_, &info, &count, found.data());
        return found;
    }
    static double value(const VkPipelineExecutableStatisticKHR& figure)
    {
        switch (figure.format) {
            case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_BOOL32_KHR: return figure.value.b32;
            case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_INT64_KHR: return double(figure.value.i64);
            case VK_PIPELINE_EXECUTABLE_STATISTIC_FORMAT_UINT64_KHR: return double(figure.value.u64);
            default: return figure.value.f64;
        }
    }
    void read_texts(const VkPipelineExecutableInfoKHR& one, Compiled& made) const
    {
        constexpr auto type = VK_STRUCTURE_TYPE_PIPELINE_EXECUTABLE_INTERNAL_REPRESENTATION_KHR;
        auto found = list<VkPipelineExecutableInternalRepresentationKHR>(texts_, one, type);
        std::vector<std::string> texts;
        for (auto& each : found) {
            texts.emplace_back(each.dataSize, '\0');
            each.pData = texts.back().data();
        }
        auto count = std::uint32_t(found.size());
        for (std::size_t i = 0; i < found.size(); ++i) found[i].pData = texts[i].data();
        texts_(*device_, &one, &count, found.data());
        for (std::size_t i = 0; i < found.size(); ++i)
            if (found[i].isText) made.texts.emplace_back(found[i].name, texts[i].c_str());
    }
};
