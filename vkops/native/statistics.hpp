// Statistics and machine code of shaders from the driver's compiler; no shader runs.
#pragma once

#include "dispatch.hpp"

// An executable of a pipeline: its name, the subgroup size, statistics by name (such as registers), and texts
// by name (such as machine code).
using Texts = std::vector<std::pair<std::string, std::string>>;
using Compiled =
  std::tuple<std::string, std::uint32_t, std::vector<std::pair<std::string, double>>, Texts>;

// Compiles shaders for an adapter that has VK_KHR_pipeline_executable_properties.
class Compiler
{
  public:
    explicit Compiler(std::shared_ptr<Adapter> adapter)
    {
        if (!adapter->has(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME))
            throw Failure("the driver does not tell what it makes of shaders");
        const Features features(*adapter);
        auto extensions = features.extensions();
        extensions.push_back(VK_KHR_PIPELINE_EXECUTABLE_PROPERTIES_EXTENSION_NAME);
        vk::PhysicalDevicePipelineExecutablePropertiesFeaturesKHR told(true);
        told.pNext = const_cast<void*>(features.chain());
        const float priority = 1;
        const vk::DeviceQueueCreateInfo queues({}, 0, 1, &priority);
        vk::DeviceCreateInfo info({}, queues, {}, extensions);
        info.pNext = &told;
        device_ = owned(adapter->physical->createDevice(info), adapter->instance);
        functions_ = Functions(*adapter->instance, vkGetInstanceProcAddr);
        functions_.init(*device_);
    }

    std::vector<Compiled> compile(const std::string& spirv, const std::string& entry,
                                  const Bindings& bindings, std::uint32_t push_nbytes) const
    {
        using Flag = vk::PipelineCreateFlagBits;
        const Pipeline pipeline(device_, spirv, entry, bindings, push_nbytes, nullptr,
                                Flag::eCaptureStatisticsKHR | Flag::eCaptureInternalRepresentationsKHR);
        std::vector<Compiled> executables;
        for (const auto& each :
             device_->getPipelineExecutablePropertiesKHR({ pipeline.pipeline }, functions_)) {
            const vk::PipelineExecutableInfoKHR one(pipeline.pipeline, std::uint32_t(executables.size()));
            std::vector<std::pair<std::string, double>> figures;
            for (const auto& figure : device_->getPipelineExecutableStatisticsKHR(one, functions_))
                figures.emplace_back(figure.name.data(), value(figure));
            executables.emplace_back(each.name.data(), each.subgroupSize, figures, texts(one));
        }
        return executables;
    }

  private:
    std::shared_ptr<vk::Device> device_;
    Functions functions_;

    static double value(const vk::PipelineExecutableStatisticKHR& figure)
    {
        using Format = vk::PipelineExecutableStatisticFormatKHR;
        switch (figure.format) {
            case Format::eBool32: return figure.value.b32;
            case Format::eInt64: return double(figure.value.i64);
            case Format::eUint64: return double(figure.value.u64);
            default: return figure.value.f64;
        }
    }
    Texts texts(const vk::PipelineExecutableInfoKHR& one) const
    {
        std::vector<vk::PipelineExecutableInternalRepresentationKHR> representations;
        const auto get = [&] {  // vulkan.hpp 1.4.363 has no function for this that returns a vector
            auto count = std::uint32_t(representations.size());
            const auto result = device_->getPipelineExecutableInternalRepresentationsKHR(
              &one, &count, representations.empty() ? nullptr : representations.data(), functions_);
            if (int(result) < 0) throw vk::SystemError(vk::make_error_code(result));
            representations.resize(count);
        };
        get();  // how many there are
        get();  // their names and sizes
        std::vector<std::string> contents;
        for (const auto& each : representations) contents.emplace_back(each.dataSize, '\0');
        for (std::size_t i = 0; i < representations.size(); ++i) representations[i].pData = contents[i].data();
        get();
        Texts texts;
        for (std::size_t i = 0; i < representations.size(); ++i)
            if (representations[i].isText) texts.emplace_back(representations[i].name.data(), contents[i].c_str());
        return texts;
    }
};
