// The optional features that shaders can use.
#pragma once

#include "adapters.hpp"

// The features of an adapter that shaders can use, or those that a device is opened with: not the
// robust ones if the validation layer is to report accesses out of bounds.
class Features
{
  public:
    explicit Features(const Adapter& adapter, bool robust = true)
    {
        keep<vk::PhysicalDevice16BitStorageFeatures>(adapter, "VK_KHR_16bit_storage");
        keep<vk::PhysicalDevice8BitStorageFeatures>(adapter, "VK_KHR_8bit_storage");
        keep<vk::PhysicalDeviceShaderFloat16Int8Features>(adapter, "VK_KHR_shader_float16_int8");
        keep<vk::PhysicalDeviceShaderAtomicInt64Features>(adapter, "VK_KHR_shader_atomic_int64");
        keep<vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT>(adapter, "VK_EXT_shader_atomic_float");
        keep<vk::PhysicalDeviceShaderAtomicFloat2FeaturesEXT>(adapter, "VK_EXT_shader_atomic_float2");
        keep<vk::PhysicalDeviceShaderSubgroupExtendedTypesFeatures>(
          adapter, "VK_KHR_shader_subgroup_extended_types");
        keep<vk::PhysicalDeviceSubgroupSizeControlFeatures>(adapter, "VK_EXT_subgroup_size_control");
        keep<vk::PhysicalDeviceScalarBlockLayoutFeatures>(adapter, "VK_EXT_scalar_block_layout");
        keep<vk::PhysicalDeviceUniformBufferStandardLayoutFeatures>(
          adapter, "VK_KHR_uniform_buffer_standard_layout");
        keep<vk::PhysicalDeviceVariablePointersFeatures>(adapter, "VK_KHR_variable_pointers");
        keep<vk::PhysicalDeviceVulkanMemoryModelFeatures>(adapter, "VK_KHR_vulkan_memory_model");
        keep<vk::PhysicalDeviceShaderIntegerDotProductFeatures>(
          adapter, "VK_KHR_shader_integer_dot_product");
        keep<vk::PhysicalDeviceRobustness2FeaturesEXT>(adapter, "VK_EXT_robustness2");
        Chain found = chain_;  // all features, also those that shaders do not use
        adapter.physical->getFeatures2(&found.get<vk::PhysicalDeviceFeatures2>());
        if (!robust)
            found.get<vk::PhysicalDeviceFeatures2>().features.robustBufferAccess =
              found.get<vk::PhysicalDeviceRobustness2FeaturesEXT>().robustBufferAccess2 = false;
        const auto from = members(found), to = members(chain_);
        for (std::size_t i = 0; i < to.size(); ++i) {
            *to[i].second = *from[i].second;
            if (*to[i].second) names_.push_back(to[i].first);
        }
    }

    // The names of all features that could be there.
    static std::vector<const char*> all()
    {
        Chain chain;
        std::vector<const char*> found;
        for (const auto& [name, value] : members(chain)) found.push_back(name);
        return found;
    }
    const std::vector<const char*>& names() const { return names_; }
    const std::vector<const char*>& extensions() const { return extensions_; }
    // What vk::DeviceCreateInfo points to.
    const void* chain() const { return &chain_.get<vk::PhysicalDeviceFeatures2>(); }

  private:
    using Chain = vk::StructureChain<vk::PhysicalDeviceFeatures2,
      vk::PhysicalDevice16BitStorageFeatures, vk::PhysicalDevice8BitStorageFeatures,
      vk::PhysicalDeviceShaderFloat16Int8Features, vk::PhysicalDeviceShaderAtomicInt64Features,
      vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT,
      vk::PhysicalDeviceShaderAtomicFloat2FeaturesEXT,
      vk::PhysicalDeviceShaderSubgroupExtendedTypesFeatures,
      vk::PhysicalDeviceSubgroupSizeControlFeatures, vk::PhysicalDeviceScalarBlockLayoutFeatures,
      vk::PhysicalDeviceUniformBufferStandardLayoutFeatures,
      vk::PhysicalDeviceVariablePointersFeatures, vk::PhysicalDeviceVulkanMemoryModelFeatures,
      vk::PhysicalDeviceShaderIntegerDotProductFeatures, vk::PhysicalDeviceRobustness2FeaturesEXT>;
    Chain chain_;
    std::vector<const char*> names_, extensions_;

    template <class Structure>
    void keep(const Adapter& adapter, const char* extension)
    {
        if (adapter.has(extension))
            extensions_.push_back(extension);
        else
            chain_.unlink<Structure>();
    }

    static std::vector<std::pair<const char*, vk::Bool32*>> members(Chain& chain)
    {
#define MEMBER(structure, name) { #name, &chain.get<vk::PhysicalDevice##structure>().name }
        auto& core = chain.get<vk::PhysicalDeviceFeatures2>().features;
        return {
            { "robustBufferAccess", &core.robustBufferAccess },
            { "shaderFloat64", &core.shaderFloat64 },
            { "shaderInt16", &core.shaderInt16 },
            { "shaderInt64", &core.shaderInt64 },
            MEMBER(16BitStorageFeatures, storageBuffer16BitAccess),
            MEMBER(16BitStorageFeatures, uniformAndStorageBuffer16BitAccess),
            MEMBER(16BitStorageFeatures, storagePushConstant16),
            MEMBER(8BitStorageFeatures, storageBuffer8BitAccess),
            MEMBER(8BitStorageFeatures, uniformAndStorageBuffer8BitAccess),
            MEMBER(8BitStorageFeatures, storagePushConstant8),
            MEMBER(ShaderFloat16Int8Features, shaderFloat16),
            MEMBER(ShaderFloat16Int8Features, shaderInt8),
            MEMBER(ShaderAtomicInt64Features, shaderBufferInt64Atomics),
            MEMBER(ShaderAtomicInt64Features, shaderSharedInt64Atomics),
            MEMBER(ShaderAtomicFloatFeaturesEXT, shaderBufferFloat32Atomics),
            MEMBER(ShaderAtomicFloatFeaturesEXT, shaderBufferFloat32AtomicAdd),
            MEMBER(ShaderAtomicFloatFeaturesEXT, shaderBufferFloat64Atomics),
            MEMBER(ShaderAtomicFloatFeaturesEXT, shaderBufferFloat64AtomicAdd),
            MEMBER(ShaderAtomicFloatFeaturesEXT, shaderSharedFloat32Atomics),
            MEMBER(ShaderAtomicFloatFeaturesEXT, shaderSharedFloat32AtomicAdd),
            MEMBER(ShaderAtomicFloatFeaturesEXT, shaderSharedFloat64Atomics),
            MEMBER(ShaderAtomicFloatFeaturesEXT, shaderSharedFloat64AtomicAdd),
            MEMBER(ShaderAtomicFloat2FeaturesEXT, shaderBufferFloat16Atomics),
            MEMBER(ShaderAtomicFloat2FeaturesEXT, shaderBufferFloat16AtomicAdd),
            MEMBER(ShaderAtomicFloat2FeaturesEXT, shaderBufferFloat16AtomicMinMax),
            MEMBER(ShaderAtomicFloat2FeaturesEXT, shaderBufferFloat32AtomicMinMax),
            MEMBER(ShaderAtomicFloat2FeaturesEXT, shaderBufferFloat64AtomicMinMax),
            MEMBER(ShaderAtomicFloat2FeaturesEXT, shaderSharedFloat16Atomics),
            MEMBER(ShaderAtomicFloat2FeaturesEXT, shaderSharedFloat16AtomicAdd),
            MEMBER(ShaderAtomicFloat2FeaturesEXT, shaderSharedFloat16AtomicMinMax),
            MEMBER(ShaderAtomicFloat2FeaturesEXT, shaderSharedFloat32AtomicMinMax),
            MEMBER(ShaderAtomicFloat2FeaturesEXT, shaderSharedFloat64AtomicMinMax),
            MEMBER(ShaderSubgroupExtendedTypesFeatures, shaderSubgroupExtendedTypes),
            MEMBER(SubgroupSizeControlFeatures, subgroupSizeControl),
            MEMBER(SubgroupSizeControlFeatures, computeFullSubgroups),
            MEMBER(ScalarBlockLayoutFeatures, scalarBlockLayout),
            MEMBER(UniformBufferStandardLayoutFeatures, uniformBufferStandardLayout),
            MEMBER(VariablePointersFeatures, variablePointersStorageBuffer),
            MEMBER(VariablePointersFeatures, variablePointers),
            MEMBER(VulkanMemoryModelFeatures, vulkanMemoryModel),
            MEMBER(VulkanMemoryModelFeatures, vulkanMemoryModelDeviceScope),
            MEMBER(ShaderIntegerDotProductFeatures, shaderIntegerDotProduct),
            MEMBER(Robustness2FeaturesEXT, robustBufferAccess2),
        };
#undef MEMBER
    }
};
