// The optional features that shaders can use.
#pragma once

#include "adapters.hpp"

#include <sstream>

constexpr std::uint32_t NEVER = ~0u;  // a version of Vulkan
constexpr std::uint32_t VERSION_1_4 = VK_API_VERSION_1_3 + (1 << 12);

// A structure of booleans; some are missing in Vulkan's headers of 2023. It has the extension that defines
// the structure, the version of Vulkan that includes this extension, the VkStructureType, and the members that
// shaders can use, in their order. A number between two members is the number of members to skip.
struct Declaration
{
    const char* extension;
    std::uint32_t version;
    int type;
    const char* members;
    std::uint32_t header = 0;  // the first version of Vulkan's headers that has it, if that is above 239

    // Call a function with the name and the index of each member.
    template <class Use>
    void each(const Use& use) const
    {
        std::istringstream words(members);
        std::size_t place = 0;
        for (std::string word; words >> word;)
            if (std::isdigit(word[0])) place += std::stoul(word);
            else use(word, place++);
    }
};

constexpr Declaration FEATURES[] = {
    { nullptr, 0, 1000059000,  // VkPhysicalDeviceFeatures2
      "robustBufferAccess 1 imageCubeArray 25 shaderImageGatherExtended "
      "shaderStorageImageExtendedFormats shaderStorageImageMultisample "
      "shaderStorageImageReadWithoutFormat shaderStorageImageWriteWithoutFormat "
      "shaderUniformBufferArrayDynamicIndexing "
      "shaderSampledImageArrayDynamicIndexing shaderStorageBufferArrayDynamicIndexing "
      "shaderStorageImageArrayDynamicIndexing 2 shaderFloat64 shaderInt64 shaderInt16 1 "
      "shaderResourceMinLod" },
    { "VK_KHR_16bit_storage", VK_API_VERSION_1_1, 1000083000,
      "storageBuffer16BitAccess uniformAndStorageBuffer16BitAccess storagePushConstant16" },
    { "VK_KHR_8bit_storage", VK_API_VERSION_1_2, 1000177000,
      "storageBuffer8BitAccess uniformAndStorageBuffer8BitAccess storagePushConstant8" },
    { "VK_KHR_shader_float16_int8", VK_API_VERSION_1_2, 1000082000, "shaderFloat16 shaderInt8" },
    { "VK_KHR_shader_atomic_int64", VK_API_VERSION_1_2, 1000180000,
      "shaderBufferInt64Atomics shaderSharedInt64Atomics" },
    { "VK_EXT_shader_atomic_float", NEVER, 1000260000,
      "shaderBufferFloat32Atomics shaderBufferFloat32AtomicAdd shaderBufferFloat64Atomics "
      "shaderBufferFloat64AtomicAdd shaderSharedFloat32Atomics shaderSharedFloat32AtomicAdd "
      "shaderSharedFloat64Atomics shaderSharedFloat64AtomicAdd shaderImageFloat32Atomics "
      "shaderImageFloat32AtomicAdd" },
    { "VK_EXT_shader_atomic_float2", NEVER, 1000273000,
      "shaderBufferFloat16Atomics shaderBufferFloat16AtomicAdd shaderBufferFloat16AtomicMinMax "
      "shaderBufferFloat32AtomicMinMax shaderBufferFloat64AtomicMinMax shaderSharedFloat16Atomics "
      "shaderSharedFloat16AtomicAdd shaderSharedFloat16AtomicMinMax "
      "shaderSharedFloat32AtomicMinMax shaderSharedFloat64AtomicMinMax "
      "shaderImageFloat32AtomicMinMax" },
    { "VK_EXT_shader_image_atomic_int64", NEVER, 1000234000, "shaderImageInt64Atomics" },
    { "VK_KHR_shader_subgroup_extended_types", VK_API_VERSION_1_2, 1000175000,
      "shaderSubgroupExtendedTypes" },
    { "VK_KHR_shader_subgroup_uniform_control_flow", NEVER, 1000323000,
      "shaderSubgroupUniformControlFlow" },
    { "VK_EXT_subgroup_size_control", VK_API_VERSION_1_3, 1000225002,
      "subgroupSizeControl computeFullSubgroups" },
    { "VK_EXT_scalar_block_layout", VK_API_VERSION_1_2, 1000221000, "scalarBlockLayout" },
    { "VK_KHR_uniform_buffer_standard_layout", VK_API_VERSION_1_2, 1000253000,
      "uniformBufferStandardLayout" },
    { "VK_KHR_workgroup_memory_explicit_layout", NEVER, 1000336000,
      "workgroupMemoryExplicitLayout 1 workgroupMemoryExplicitLayout8BitAccess "
      "workgroupMemoryExplicitLayout16BitAccess" },
    { "VK_KHR_zero_initialize_workgroup_memory", VK_API_VERSION_1_3, 1000325000,
      "shaderZeroInitializeWorkgroupMemory" },
    { "VK_KHR_maintenance4", VK_API_VERSION_1_3, 1000413000, "maintenance4" },
    { "VK_KHR_variable_pointers", VK_API_VERSION_1_1, 1000120000,
      "variablePointersStorageBuffer variablePointers" },
    { "VK_KHR_vulkan_memory_model", VK_API_VERSION_1_2, 1000211000,
      "vulkanMemoryModel vulkanMemoryModelDeviceScope" },
    { "VK_KHR_shader_integer_dot_product", VK_API_VERSION_1_3, 1000280000,
      "shaderIntegerDotProduct" },
    { "VK_EXT_descriptor_indexing", VK_API_VERSION_1_2, 1000161001,
      "1 shaderUniformTexelBufferArrayDynamicIndexing shaderStorageTexelBufferArrayDynamicIndexing "
      "shaderUniformBufferArrayNonUniformIndexing shaderSampledImageArrayNonUniformIndexing "
      "shaderStorageBufferArrayNonUniformIndexing shaderStorageImageArrayNonUniformIndexing 1 "
      "shaderUniformTexelBufferArrayNonUniformIndexing "
      "shaderStorageTexelBufferArrayNonUniformIndexing 9 runtimeDescriptorArray" },
    { "VK_KHR_buffer_device_address", VK_API_VERSION_1_2, 1000257000, "bufferDeviceAddress" },
    { "VK_EXT_pipeline_robustness", NEVER, 1000068001, "pipelineRobustness" },
    { "VK_EXT_image_robustness", VK_API_VERSION_1_3, 1000335000, "robustImageAccess" },
    { "VK_EXT_robustness2", NEVER, 1000286000, "robustBufferAccess2 robustImageAccess2" },
    { "VK_KHR_shader_clock", NEVER, 1000181000, "shaderSubgroupClock shaderDeviceClock" },
    { "VK_KHR_shader_quad_control", NEVER, 1000235000, "shaderQuadControl", 276 },
    { "VK_EXT_shader_demote_to_helper_invocation", VK_API_VERSION_1_3, 1000276000,
      "shaderDemoteToHelperInvocation" },
    { "VK_KHR_shader_subgroup_rotate", VERSION_1_4, 1000416000,
      "shaderSubgroupRotate shaderSubgroupRotateClustered", 276 },
    { "VK_KHR_shader_maximal_reconvergence", NEVER, 1000434000, "shaderMaximalReconvergence",
      276 },
    { "VK_KHR_cooperative_matrix", NEVER, 1000506000, "cooperativeMatrix", 255 },
    { "VK_KHR_shader_float_controls2", VERSION_1_4, 1000528000, "shaderFloatControls2", 276 },
    { "VK_KHR_shader_expect_assume", VERSION_1_4, 1000544000, "shaderExpectAssume", 276 },
};

// Properties of adapters that are listed as features.
constexpr Declaration FLOAT_CONTROLS{ "VK_KHR_shader_float_controls", VK_API_VERSION_1_2, 1000197000,
  "2 shaderSignedZeroInfNanPreserveFloat16 shaderSignedZeroInfNanPreserveFloat32 "
  "shaderSignedZeroInfNanPreserveFloat64 shaderDenormPreserveFloat16 shaderDenormPreserveFloat32 "
  "shaderDenormPreserveFloat64 shaderDenormFlushToZeroFloat16 shaderDenormFlushToZeroFloat32 "
  "shaderDenormFlushToZeroFloat64 shaderRoundingModeRTEFloat16 shaderRoundingModeRTEFloat32 "
  "shaderRoundingModeRTEFloat64 shaderRoundingModeRTZFloat16 shaderRoundingModeRTZFloat32 "
  "shaderRoundingModeRTZFloat64" };

// Capabilities of shaders that have no feature of their own in Vulkan: extensions, and the versions that
// contain them. The second needs the first.
constexpr std::pair<const char*, std::uint32_t> EXTENSIONS[] = {
    { FLOAT_CONTROLS.extension, FLOAT_CONTROLS.version },
    { "VK_KHR_spirv_1_4", VK_API_VERSION_1_2 },
    { "VK_EXT_descriptor_indexing", VK_API_VERSION_1_2 },
    { "VK_EXT_shader_subgroup_ballot", NEVER },
    { "VK_EXT_shader_subgroup_vote", NEVER },
    { "VK_NV_shader_subgroup_partitioned", NEVER },
};

// The features of an adapter that shaders can use, or the features that a device is opened with. If `validated`
// is not 0, the validation layer is active, and `validated` is its version of Vulkan's headers. Two kinds of
// features are then left out: robust access, because the layer must see accesses out of bounds, and features
// that are newer than the layer.
class Features
{
  public:
    explicit Features(const Adapter& adapter, std::uint32_t validated = 0)
    {
        const auto robust = !validated;
        std::vector<const Declaration*> declared;
        for (const auto& each : FEATURES)
            if (supported(adapter, each.extension, each.version) &&
                (!validated || each.header <= validated)) {
                if (each.extension) extend(adapter, each.extension);
                declared.push_back(&each);
                structures_.push_back({ each.type });
            }
        for (std::size_t i = 1; i < structures_.size(); ++i) structures_[i - 1].next = &structures_[i];
        adapter.physical->getFeatures2(
          reinterpret_cast<vk::PhysicalDeviceFeatures2*>(structures_.data()));
        std::map<std::string, vk::Bool32*> enabled;
        for (std::size_t i = 0; i < structures_.size(); ++i) {
            const auto values = std::exchange(structures_[i].values, {});  // also what shaders do not use
            declared[i]->each([&](const std::string& name, std::size_t place) {
                const bool is_wanted =
                  robust || (name != "robustBufferAccess" && name != "robustBufferAccess2");
                if (!is_wanted || !values[place]) return;
                structures_[i].values[place] = true;
                names_.push_back(name);
                enabled[name] = &structures_[i].values[place];
            });
        }
        has_addresses_ = enabled.count("bufferDeviceAddress");
        if (enabled.count("pipelineRobustness")) {
            using Behavior = vk::PipelineRobustnessBufferBehaviorEXT;
            const auto behavior = enabled.count("robustBufferAccess2") ? Behavior::eRobustBufferAccess2
                                                                       : Behavior::eRobustBufferAccess;
            if (enabled.count("robustBufferAccess")) robust_pipeline_ = { behavior, behavior };
            for (const auto name : { "robustBufferAccess", "robustBufferAccess2" })
                if (enabled.count(name)) *enabled[name] = false;
        }
        extend(adapter, "VK_KHR_portability_subset");  // Vulkan requires it on adapters that have it
        for (const auto& [extension, version] : EXTENSIONS) {
            extend(adapter, extension);
            if (supported(adapter, extension, version)) names_.push_back(extension);
        }
        if (supported(adapter, FLOAT_CONTROLS.extension, FLOAT_CONTROLS.version)) {
            Structure controls{ FLOAT_CONTROLS.type };
            vk::PhysicalDeviceProperties2 properties;
            properties.pNext = &controls;
            adapter.physical->getProperties2(&properties);
            FLOAT_CONTROLS.each([&](const std::string& name, std::size_t place) {
                if (controls.values[place]) names_.push_back(name);
            });
        }
    }
    Features(const Features&) = delete;  // its structures point to one another

    // The names of all features that an adapter can have.
    static std::vector<std::string> all()
    {
        std::vector<std::string> names;
        const auto add = [&](const std::string& name, std::size_t) { names.push_back(name); };
        for (const auto& each : FEATURES) each.each(add);
        FLOAT_CONTROLS.each(add);
        for (const auto& [name, version] : EXTENSIONS) names.push_back(name);
        return names;
    }
    const std::vector<std::string>& names() const { return names_; }
    const std::vector<const char*>& extensions() const { return extensions_; }
    // The structures for pNext of vk::DeviceCreateInfo.
    const void* chain() const { return structures_.data(); }
    // The structure for pNext of vk::ComputePipelineCreateInfo of a pipeline whose accesses out of bounds are
    // discarded. It is null if the device discards them for all pipelines, or cannot.
    const void* robust_pipeline() const { return robust_pipeline_ ? &*robust_pipeline_ : nullptr; }
    bool has_addresses() const { return has_addresses_; }

  private:
    struct Structure
    {
        int type;
        void* next = nullptr;
        std::array<vk::Bool32, 55> values = {};  // VkPhysicalDeviceFeatures has the most
    };
    std::vector<Structure> structures_;
    std::optional<vk::PipelineRobustnessCreateInfoEXT> robust_pipeline_;
    bool has_addresses_ = false;
    std::vector<std::string> names_;
    std::vector<const char*> extensions_;

    static bool supported(const Adapter& adapter, const char* extension, std::uint32_t version)
    {
        if (!extension) return true;
        // RenderDoc's layer rejects devices with buffer addresses that it cannot replay.
        if (std::string(extension) == "VK_KHR_buffer_device_address" &&
            std::getenv("ENABLE_VULKAN_RENDERDOC_CAPTURE"))
            return false;
        return adapter.has(extension) || adapter.properties().apiVersion >= version;
    }
    // Enable an extension if the adapter has it, once.
    void extend(const Adapter& adapter, const char* extension)
    {
        const bool is_new = std::none_of(extensions_.begin(), extensions_.end(),
          [&](const char* known) { return !std::strcmp(known, extension); });
        if (is_new && adapter.has(extension)) extensions_.push_back(extension);
    }
};
