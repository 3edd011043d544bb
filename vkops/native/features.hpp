// The optional features that shaders can use.
#pragma once

#include "adapters.hpp"

// Structures, the extensions that have them, the versions of Vulkan that contain these, and members.
// BOTH are features of buffers and of shared memory.
#define VKOPS_FEATURES(X)                                                                          \
    X(16BitStorageFeatures, "VK_KHR_16bit_storage", VK_API_VERSION_1_1,                            \
      HAS(storageBuffer16BitAccess) HAS(uniformAndStorageBuffer16BitAccess)                        \
      HAS(storagePushConstant16))                                                                  \
    X(8BitStorageFeatures, "VK_KHR_8bit_storage", VK_API_VERSION_1_2, HAS(storageBuffer8BitAccess) \
      HAS(uniformAndStorageBuffer8BitAccess) HAS(storagePushConstant8))                            \
    X(ShaderFloat16Int8Features, "VK_KHR_shader_float16_int8", VK_API_VERSION_1_2,                 \
      HAS(shaderFloat16) HAS(shaderInt8))                                                          \
    X(ShaderAtomicInt64Features, "VK_KHR_shader_atomic_int64", VK_API_VERSION_1_2,                 \
      BOTH(Int64Atomics))                                                                          \
    X(ShaderAtomicFloatFeaturesEXT, "VK_EXT_shader_atomic_float", NEVER, BOTH(Float32Atomics)      \
      BOTH(Float32AtomicAdd) BOTH(Float64Atomics) BOTH(Float64AtomicAdd)                           \
      HAS(shaderImageFloat32Atomics) HAS(shaderImageFloat32AtomicAdd))                             \
    X(ShaderAtomicFloat2FeaturesEXT, "VK_EXT_shader_atomic_float2", NEVER, BOTH(Float16Atomics)    \
      BOTH(Float16AtomicAdd) BOTH(Float16AtomicMinMax) BOTH(Float32AtomicMinMax)                   \
      BOTH(Float64AtomicMinMax) HAS(shaderImageFloat32AtomicMinMax))                               \
    X(ShaderImageAtomicInt64FeaturesEXT, "VK_EXT_shader_image_atomic_int64", NEVER,                \
      HAS(shaderImageInt64Atomics))                                                                \
    X(ShaderSubgroupExtendedTypesFeatures, "VK_KHR_shader_subgroup_extended_types",                \
      VK_API_VERSION_1_2, HAS(shaderSubgroupExtendedTypes))                                        \
    X(ShaderSubgroupUniformControlFlowFeaturesKHR, "VK_KHR_shader_subgroup_uniform_control_flow",  \
      NEVER, HAS(shaderSubgroupUniformControlFlow))                                                \
    X(SubgroupSizeControlFeatures, "VK_EXT_subgroup_size_control", VK_API_VERSION_1_3,             \
      HAS(subgroupSizeControl) HAS(computeFullSubgroups))                                          \
    X(ScalarBlockLayoutFeatures, "VK_EXT_scalar_block_layout", VK_API_VERSION_1_2,                 \
      HAS(scalarBlockLayout))                                                                      \
    X(UniformBufferStandardLayoutFeatures, "VK_KHR_uniform_buffer_standard_layout",                \
      VK_API_VERSION_1_2, HAS(uniformBufferStandardLayout))                                        \
    X(WorkgroupMemoryExplicitLayoutFeaturesKHR, "VK_KHR_workgroup_memory_explicit_layout", NEVER,  \
      HAS(workgroupMemoryExplicitLayout) HAS(workgroupMemoryExplicitLayout8BitAccess)              \
      HAS(workgroupMemoryExplicitLayout16BitAccess))                                               \
    X(ZeroInitializeWorkgroupMemoryFeatures, "VK_KHR_zero_initialize_workgroup_memory",            \
      VK_API_VERSION_1_3, HAS(shaderZeroInitializeWorkgroupMemory))                                \
    X(Maintenance4Features, "VK_KHR_maintenance4", VK_API_VERSION_1_3, HAS(maintenance4))          \
    X(VariablePointersFeatures, "VK_KHR_variable_pointers", VK_API_VERSION_1_1,                    \
      HAS(variablePointersStorageBuffer) HAS(variablePointers))                                    \
    X(VulkanMemoryModelFeatures, "VK_KHR_vulkan_memory_model", VK_API_VERSION_1_2,                 \
      HAS(vulkanMemoryModel) HAS(vulkanMemoryModelDeviceScope))                                    \
    X(ShaderIntegerDotProductFeatures, "VK_KHR_shader_integer_dot_product", VK_API_VERSION_1_3,    \
      HAS(shaderIntegerDotProduct))                                                                \
    X(DescriptorIndexingFeatures, "VK_EXT_descriptor_indexing", VK_API_VERSION_1_2,                \
      HAS(shaderStorageBufferArrayNonUniformIndexing)                                              \
      HAS(shaderUniformBufferArrayNonUniformIndexing) HAS(runtimeDescriptorArray)                  \
      HAS(shaderSampledImageArrayNonUniformIndexing) HAS(shaderStorageImageArrayNonUniformIndexing)\
      HAS(shaderUniformTexelBufferArrayDynamicIndexing)                                            \
      HAS(shaderStorageTexelBufferArrayDynamicIndexing)                                            \
      HAS(shaderUniformTexelBufferArrayNonUniformIndexing)                                         \
      HAS(shaderStorageTexelBufferArrayNonUniformIndexing))                                        \
    X(BufferDeviceAddressFeatures, "VK_KHR_buffer_device_address", VK_API_VERSION_1_2,             \
      HAS(bufferDeviceAddress))                                                                    \
    X(PipelineRobustnessFeaturesEXT, "VK_EXT_pipeline_robustness", NEVER, HAS(pipelineRobustness)) \
    X(ImageRobustnessFeatures, "VK_EXT_image_robustness", VK_API_VERSION_1_3,                      \
      HAS(robustImageAccess))                                                                      \
    X(Robustness2FeaturesEXT, "VK_EXT_robustness2", NEVER, HAS(robustBufferAccess2)                \
      HAS(robustImageAccess2))

// Features whose structures Vulkan's headers of 2023 lack, or that shaders alone use: the extensions,
// the versions of Vulkan that contain them, and the types and the members of the structures.
struct PlainFeatures
{
    const char* extension;
    std::uint32_t version;
    int type;
    const char* names[3];
};
// What a structure is: its type, the next one, and a boolean for each member.
struct PlainStructure
{
    int type;
    void* next;
    vk::Bool32 values[3];
};

// The features of an adapter that shaders can use, or those that a device is opened with: not the
// robust ones if the validation layer is to report accesses out of bounds.
class Features
{
  public:
    explicit Features(const Adapter& adapter, bool robust = true)
    {
#define KEEP(structure, extension, version, features)                                              \
    keep<vk::PhysicalDevice##structure>(adapter, extension, version);
        VKOPS_FEATURES(KEEP)
#undef KEEP
        std::vector<const PlainFeatures*> kept;
        for (const auto& each : PLAIN)
            if (supported(adapter, each.extension, each.version)) {
                if (adapter.has(each.extension)) extensions_.push_back(each.extension);
                kept.push_back(&each);
                plain_.push_back({ each.type, nullptr, {} });
            }
        Chain found = chain_;  // all features, also those that shaders do not use
        link_plain(found);
        adapter.physical->getFeatures2(&found.get<vk::PhysicalDeviceFeatures2>());
        for (std::size_t i = 0; i < kept.size(); ++i)
            for (std::size_t k = 0; k < std::size(kept[i]->names); ++k) {
                const char* name = kept[i]->names[k];
                plain_[i].values[k] = name && plain_[i].values[k];
                if (plain_[i].values[k]) names_.push_back(name);
            }
        if (!robust)
            found.get<vk::PhysicalDeviceFeatures2>().features.robustBufferAccess =
              found.get<vk::PhysicalDeviceRobustness2FeaturesEXT>().robustBufferAccess2 = false;
        const auto from = members(found), to = members(chain_);
        for (std::size_t i = 0; i < to.size(); ++i) {
            *to[i].second = *from[i].second;
            if (*to[i].second) names_.push_back(to[i].first);
        }
        auto& core = chain_.get<vk::PhysicalDeviceFeatures2>().features.robustBufferAccess;
        auto& second = chain_.get<vk::PhysicalDeviceRobustness2FeaturesEXT>().robustBufferAccess2;
        if (chain_.get<vk::PhysicalDevicePipelineRobustnessFeaturesEXT>().pipelineRobustness) {
            using Behavior = vk::PipelineRobustnessBufferBehaviorEXT;
            const auto behavior =
              second ? Behavior::eRobustBufferAccess2 : Behavior::eRobustBufferAccess;
            if (core) robust_pipeline_ = { behavior, behavior };
            core = second = false;
        }
        if (adapter.has(PORTABILITY)) extensions_.push_back(PORTABILITY);  // Vulkan demands that
        // Capabilities of shaders that have no feature of their own in Vulkan.
        for (const auto& [extension, version] : EXTENSIONS) {
            const bool is_new = std::none_of(extensions_.begin(), extensions_.end(),
              [&](const char* known) { return !std::strcmp(known, extension); });
            if (is_new && adapter.has(extension)) extensions_.push_back(extension);
            if (supported(adapter, extension, version)) names_.push_back(extension);
        }
        if (supported(adapter, EXTENSIONS[0].first, EXTENSIONS[0].second)) {
            FloatControls controls;
            adapter.physical->getProperties2(&controls.get<vk::PhysicalDeviceProperties2>());
            for (const auto& [name, value] : members(controls))
                if (*value) names_.push_back(name);
        }
        link_plain(chain_);
    }
    Features(const Features&) = delete;  // its structures point to one another

    // The names of all features that could be there.
    static std::vector<const char*> all()
    {
        Chain chain;
        std::vector<const char*> found;
        FloatControls controls;
        for (const auto& [name, value] : members(chain)) found.push_back(name);
        for (const auto& [name, value] : members(controls)) found.push_back(name);
        for (const auto& [name, version] : EXTENSIONS) found.push_back(name);
        for (const auto& each : PLAIN)
            for (const char* name : each.names)
                if (name) found.push_back(name);
        return found;
    }
    const std::vector<const char*>& names() const { return names_; }
    const std::vector<const char*>& extensions() const { return extensions_; }
    // What vk::DeviceCreateInfo points to.
    const void* chain() const { return &chain_.get<vk::PhysicalDeviceFeatures2>(); }
    // What vk::ComputePipelineCreateInfo points to, for a pipeline whose accesses out of bounds the
    // device discards; null if all pipelines are such, or none.
    const void* robust_pipeline() const
    {
        return robust_pipeline_ ? &*robust_pipeline_ : nullptr;
    }
    bool has_addresses() const
    {
        return chain_.get<vk::PhysicalDeviceBufferDeviceAddressFeatures>().bufferDeviceAddress;
    }

  private:
#define LINK(structure, ...) , vk::PhysicalDevice##structure
    using Chain = vk::StructureChain<vk::PhysicalDeviceFeatures2 VKOPS_FEATURES(LINK)>;
#undef LINK
    using FloatControls = vk::StructureChain<vk::PhysicalDeviceProperties2,
      vk::PhysicalDeviceFloatControlsProperties>;
    static constexpr std::uint32_t NEVER = ~0u;  // a version of Vulkan
    static constexpr const char* PORTABILITY = "VK_KHR_portability_subset";
    // Extensions, and the versions that contain them. The second needs the first.
    static constexpr std::pair<const char*, std::uint32_t> EXTENSIONS[] = {
        { "VK_KHR_shader_float_controls", VK_API_VERSION_1_2 },
        { "VK_KHR_spirv_1_4", VK_API_VERSION_1_2 },
        { "VK_EXT_descriptor_indexing", VK_API_VERSION_1_2 },
        { "VK_EXT_shader_subgroup_ballot", NEVER },
        { "VK_EXT_shader_subgroup_vote", NEVER },
        { "VK_NV_shader_subgroup_partitioned", NEVER },
    };
    static constexpr std::uint32_t VERSION_1_4 = VK_API_VERSION_1_3 + (1 << 12);
    static constexpr PlainFeatures PLAIN[] = {
        { "VK_KHR_shader_clock", NEVER, 1000181000, { "shaderSubgroupClock", "shaderDeviceClock" } },
        { "VK_KHR_shader_quad_control", NEVER, 1000235000, { "shaderQuadControl" } },
        { "VK_EXT_shader_demote_to_helper_invocation", VK_API_VERSION_1_3, 1000276000,
          { "shaderDemoteToHelperInvocation" } },
        { "VK_KHR_shader_subgroup_rotate", VERSION_1_4, 1000416000,
          { "shaderSubgroupRotate", "shaderSubgroupRotateClustered" } },
        { "VK_KHR_shader_maximal_reconvergence", NEVER, 1000434000,
          { "shaderMaximalReconvergence" } },
        { "VK_KHR_cooperative_matrix", NEVER, 1000506000, { "cooperativeMatrix" } },
        { "VK_KHR_shader_float_controls2", VERSION_1_4, 1000528000, { "shaderFloatControls2" } },
        { "VK_KHR_shader_expect_assume", VERSION_1_4, 1000544000, { "shaderExpectAssume" } },
    };
    Chain chain_;
    std::vector<PlainStructure> plain_;
    std::optional<vk::PipelineRobustnessCreateInfoEXT> robust_pipeline_;
    std::vector<const char*> names_, extensions_;

    void link_plain(Chain& chain)
    {
        auto& first = chain.get<vk::PhysicalDeviceFeatures2>();
        for (auto& each : plain_) first.pNext = (each.next = first.pNext, &each);
    }

    static bool supported(const Adapter& adapter, const char* extension, std::uint32_t version)
    {
        // RenderDoc's layer opens no device with addresses that it cannot replay.
        if (std::string(extension) == "VK_KHR_buffer_device_address" &&
            std::getenv("ENABLE_VULKAN_RENDERDOC_CAPTURE"))
            return false;
        return adapter.has(extension) || adapter.properties().apiVersion >= version;
    }

    // Keep the features of an extension that the adapter has, also as a part of its version.
    template <class Structure>
    void keep(const Adapter& adapter, const char* extension, std::uint32_t version)
    {
        if (!supported(adapter, extension, version)) chain_.unlink<Structure>();
        else if (adapter.has(extension)) extensions_.push_back(extension);
    }

    static std::vector<std::pair<const char*, vk::Bool32*>> members(Chain& chain)
    {
        auto& core = chain.get<vk::PhysicalDeviceFeatures2>().features;
        std::vector<std::pair<const char*, vk::Bool32*>> found;
#define CORE(name) found.emplace_back(#name, &core.name);
        CORE(robustBufferAccess) CORE(shaderFloat64) CORE(shaderInt16) CORE(shaderInt64)
        CORE(shaderStorageImageExtendedFormats) CORE(shaderStorageImageReadWithoutFormat)
        CORE(shaderStorageImageWriteWithoutFormat) CORE(shaderImageGatherExtended)
        CORE(imageCubeArray) CORE(shaderResourceMinLod)
        CORE(shaderStorageBufferArrayDynamicIndexing) CORE(shaderUniformBufferArrayDynamicIndexing)
        CORE(shaderSampledImageArrayDynamicIndexing) CORE(shaderStorageImageArrayDynamicIndexing)
#undef CORE
#define HAS(name) found.emplace_back(#name, &own.name);
#define BOTH(name) HAS(shaderBuffer##name) HAS(shaderShared##name)
#define ADD(structure, extension, version, features)                                               \
    {                                                                                              \
        auto& own = chain.get<vk::PhysicalDevice##structure>();                                    \
        features                                                                                   \
    }
        VKOPS_FEATURES(ADD)
#undef ADD
#undef BOTH
#undef HAS
        return found;
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
