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
        const auto v1_1 = VK_API_VERSION_1_1, v1_2 = VK_API_VERSION_1_2, v1_3 = VK_API_VERSION_1_3;
        keep<vk::PhysicalDevice16BitStorageFeatures>(adapter, "VK_KHR_16bit_storage", v1_1);
        keep<vk::PhysicalDevice8BitStorageFeatures>(adapter, "VK_KHR_8bit_storage", v1_2);
        keep<vk::PhysicalDeviceShaderFloat16Int8Features>(
          adapter, "VK_KHR_shader_float16_int8", v1_2);
        keep<vk::PhysicalDeviceShaderAtomicInt64Features>(
          adapter, "VK_KHR_shader_atomic_int64", v1_2);
        keep<vk::PhysicalDeviceShaderAtomicFloatFeaturesEXT>(adapter, "VK_EXT_shader_atomic_float");
        keep<vk::PhysicalDeviceShaderAtomicFloat2FeaturesEXT>(adapter, "VK_EXT_shader_atomic_float2");
        keep<vk::PhysicalDeviceShaderSubgroupExtendedTypesFeatures>(
          adapter, "VK_KHR_shader_subgroup_extended_types", v1_2);
        keep<vk::PhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR>(
          adapter, "VK_KHR_shader_subgroup_uniform_control_flow");
        keep<vk::PhysicalDeviceSubgroupSizeControlFeatures>(
          adapter, "VK_EXT_subgroup_size_control", v1_3);
        keep<vk::PhysicalDeviceScalarBlockLayoutFeatures>(
          adapter, "VK_EXT_scalar_block_layout", v1_2);
        keep<vk::PhysicalDeviceUniformBufferStandardLayoutFeatures>(
          adapter, "VK_KHR_uniform_buffer_standard_layout", v1_2);
        keep<vk::PhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR>(
          adapter, "VK_KHR_workgroup_memory_explicit_layout");
        keep<vk::PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures>(
          adapter, "VK_KHR_zero_initialize_workgroup_memory", v1_3);
        keep<vk::PhysicalDeviceMaintenance4Features>(adapter, "VK_KHR_maintenance4", v1_3);
        keep<vk::PhysicalDeviceVariablePointersFeatures>(adapter, "VK_KHR_variable_pointers", v1_1);
        keep<vk::PhysicalDeviceVulkanMemoryModelFeatures>(
          adapter, "VK_KHR_vulkan_memory_model", v1_2);
        keep<vk::PhysicalDeviceShaderIntegerDotProductFeatures>(
          adapter, "VK_KHR_shader_integer_dot_product", v1_3);
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
        // Capabilities of shaders that have no feature of their own in Vulkan.
        for (const auto& [extension, version] : EXTENSIONS) {
            if (adapter.has(extension)) extensions_.push_back(extension);
            if (supported(adapter, extension, version)) names_.push_back(extension);
        }
        if (supported(adapter, EXTENSIONS[0].first, v1_2)) {
            FloatControls controls;
            adapter.physical->getProperties2(&controls.get<vk::PhysicalDeviceProperties2>());
            for (const auto& [name, value] : members(controls))
                if (*value) names_.push_back(name);
        }
    }

    // The names of all features that could be there.
    static std::vector<const char*> all()
    {
        Chain chain;
        std::vector<const char*> found;
        FloatControls controls;
        for (const auto& [name, value] : members(chain)) found.push_back(name);
        for (const auto& [name, value] : members(controls)) found.push_back(name);
        for (const auto& [name, version] : EXTENSIONS) found.push_back(name);
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
      vk::PhysicalDeviceShaderSubgroupUniformControlFlowFeaturesKHR,
      vk::PhysicalDeviceSubgroupSizeControlFeatures, vk::PhysicalDeviceScalarBlockLayoutFeatures,
      vk::PhysicalDeviceUniformBufferStandardLayoutFeatures,
      vk::PhysicalDeviceWorkgroupMemoryExplicitLayoutFeaturesKHR,
      vk::PhysicalDeviceZeroInitializeWorkgroupMemoryFeatures,
      vk::PhysicalDeviceMaintenance4Features, vk::PhysicalDeviceVariablePointersFeatures, vk::PhysicalDeviceVulkanMemoryModelFeatures,
      vk::PhysicalDeviceShaderIntegerDotProductFeatures, vk::PhysicalDeviceRobustness2FeaturesEXT>;
    using FloatControls = vk::StructureChain<vk::PhysicalDeviceProperties2,
      vk::PhysicalDeviceFloatControlsProperties>;
    static constexpr std::uint32_t NEVER = ~0u;  // a version of Vulkan
    // Extensions, and the versions that contain them. The second needs the first.
    static constexpr std::pair<const char*, std::uint32_t> EXTENSIONS[] = {
        { "VK_KHR_shader_float_controls", VK_API_VERSION_1_2 },
        { "VK_KHR_spirv_1_4", VK_API_VERSION_1_2 },
        { "VK_EXT_descriptor_indexing", VK_API_VERSION_1_2 },
    };
    Chain chain_;
    std::vector<const char*> names_, extensions_;

    static bool supported(const Adapter& adapter, const char* extension, std::uint32_t version)
    {
        return adapter.has(extension) || adapter.properties().apiVersion >= version;
    }

    // Keep the features of an extension that the adapter has, also as a part of its version.
    template <class Structure>
    void keep(const Adapter& adapter, const char* extension, std::uint32_t version = NEVER)
    {
        if (adapter.has(extension)) extensions_.push_back(extension);
        if (!supported(adapter, extension, version)) chain_.unlink<Structure>();
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
            MEMBER(ShaderSubgroupUniformControlFlowFeaturesKHR, shaderSubgroupUniformControlFlow),
            MEMBER(SubgroupSizeControlFeatures, subgroupSizeControl),
            MEMBER(SubgroupSizeControlFeatures, computeFullSubgroups),
            MEMBER(ScalarBlockLayoutFeatures, scalarBlockLayout),
            MEMBER(UniformBufferStandardLayoutFeatures, uniformBufferStandardLayout),
            MEMBER(WorkgroupMemoryExplicitLayoutFeaturesKHR, workgroupMemoryExplicitLayout),
            MEMBER(WorkgroupMemoryExplicitLayoutFeaturesKHR, workgroupMemoryExplicitLayout8BitAccess),
            MEMBER(WorkgroupMemoryExplicitLayoutFeaturesKHR, workgroupMemoryExplicitLayout16BitAccess),
            MEMBER(ZeroInitializeWorkgroupMemoryFeatures, shaderZeroInitializeWorkgroupMemory),
            MEMBER(Maintenance4Features, maintenance4),
            MEMBER(VariablePointersFeatures, variablePointersStorageBuffer),
            MEMBER(VariablePointersFeatures, variablePointers),
            MEMBER(VulkanMemoryModelFeatures, vulkanMemoryModel),
            MEMBER(VulkanMemoryModelFeatures, vulkanMemoryModelDeviceScope),
            MEMBER(ShaderIntegerDotProductFeatures, shaderIntegerDotProduct),
            MEMBER(Robustness2FeaturesEXT, robustBufferAccess2),
        };
#undef MEMBER
    }

    static std::vector<std::pair<const char*, vk::Bool32*>> members(FloatControls& chain)
    {
        auto& controls = chain.get<vk::PhysicalDeviceFloatControlsProperties>();
#define WIDTHS(name)                                                                               \
    { #name "16", &controls.name##16 }, { #name "32", &controls.name##32 },                        \
      { #name "64", &controls.name##64 }
        return { WIDTHS(shaderDenormPreserveFloat), WIDTHS(shaderDenormFlushToZeroFloat),
            WIDTHS(shaderSignedZeroInfNanPreserveFloat), WIDTHS(shaderRoundingModeRTEFloat),
            WIDTHS(shaderRoundingModeRTZFloat) };
#undef WIDTHS
    }
};
