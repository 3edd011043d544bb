// Copies with regions and by linear images, and fills, on the memory of Kompute's tensors and on
// memory of the host.
#pragma once

#include "commands.hpp"

#include <pybind11/numpy.h>

using Address = std::uintptr_t;
using Rows = py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>;

constexpr auto GENERAL = vk::ImageLayout::eGeneral;
constexpr auto HOST_ALLOCATION = vk::ExternalMemoryHandleTypeFlagBits::eHostAllocationEXT;

// A buffer that copies read, and its memory.
class CopiedBuffer : protected DeviceObject
{
  public:
    vk::Buffer buffer;
    std::uint64_t offset = 0;  // bytes from the start of the buffer to the data

    virtual ~CopiedBuffer() = default;

  protected:
    explicit CopiedBuffer(const Device& owner) : DeviceObject(owner.device) {}
};

// Memory of the host that the device reads without a copy: the whole pages that hold an array.
class ImportedArray : public CopiedBuffer
{
  public:
    ImportedArray(std::shared_ptr<Device> owner, const py::array& array)
      : CopiedBuffer(*owner), array_(array)
    {
        if (!owner->import_alignment) throw std::runtime_error("host memory cannot be imported");
        const auto unit = owner->import_alignment;
        const auto address = reinterpret_cast<Address>(array.data());
        const auto start = address / unit * unit;
        const auto size = (address + array.nbytes() - start + unit - 1) / unit * unit;
        offset = address - start;

        const auto properties = reinterpret_cast<PFN_vkGetMemoryHostPointerPropertiesEXT>(
          device_->getProcAddr("vkGetMemoryHostPointerPropertiesEXT"));
        VkMemoryHostPointerPropertiesEXT fits{};
        fits.sType = VK_STRUCTURE_TYPE_MEMORY_HOST_POINTER_PROPERTIES_EXT;
        const auto kind = static_cast<VkExternalMemoryHandleTypeFlagBits>(HOST_ALLOCATION);
        const auto pages = reinterpret_cast<void*>(start);
        if (properties(*device_, kind, pages, &fits) != VK_SUCCESS)
            throw std::runtime_error("the driver does not import this host memory");
        const vk::ExternalMemoryBufferCreateInfo external(HOST_ALLOCATION);
        const vk::BufferCreateInfo info({}, size, vk::BufferUsageFlagBits::eTransferSrc,
          vk::SharingMode::eExclusive, 0, nullptr, &external);
        buffer = keep(device_->createBuffer(info));
        const auto types =
          device_->getBufferMemoryRequirements(buffer).memoryTypeBits & fits.memoryTypeBits;
        if (!types) throw std::runtime_error("no memory type fits this host memory");
        std::uint32_t type = 0;
        while (!(types >> type & 1)) ++type;
        const vk::ImportMemoryHostPointerInfoEXT pointer(HOST_ALLOCATION, pages);
        const auto memory = keep(device_->allocateMemory({ size, type, &pointer }));
        device_->bindBufferMemory(buffer, memory, 0);
    }

  private:
    py::array array_;  // keeps the memory alive
};

// Kompute's tensors keep their memory private; an explicit instantiation may name it nevertheless.
const vk::DeviceMemory& memory_of(const kp::Tensor& tensor);
template <auto Member>
struct OpenedTensor
{
    friend const vk::DeviceMemory& memory_of(const kp::Tensor& tensor) { return *(tensor.*Member); }
};
template struct OpenedTensor<&kp::Tensor::mPrimaryMemory>;

// A second buffer over the memory of a tensor: Kompute's own one has no usage flags for uniform
// blocks and indirect dispatches, and none for copies if the tensor is of the type eStorage. Vulkan guarantees that buffers over the same memory see the
// same bytes ("Memory Aliasing"); barriers are needed between them as for one buffer.
class TensorBuffer : public CopiedBuffer
{
  public:
    // Over `nbytes` bytes from byte `start`; 0 bytes are all.
    TensorBuffer(std::shared_ptr<Device> owner, std::shared_ptr<kp::Tensor> tensor,
                 std::uint64_t start, std::uint64_t nbytes)
      : CopiedBuffer(*owner), tensor_(tensor)
    {
        using Usage = vk::BufferUsageFlagBits;
        const auto first = tensor->constructDescriptorBufferInfo();
        buffer = keep(device_->createBuffer({ {}, nbytes ? nbytes : first.range,
          Usage::eTransferSrc | Usage::eTransferDst | Usage::eStorageBuffer |
            Usage::eUniformBuffer | Usage::eIndirectBuffer }));
        // Kompute allocates what its own buffer needs, of one of the types that this may have.
        const auto own = device_->getBufferMemoryRequirements(first.buffer);
        const auto needs = device_->getBufferMemoryRequirements(buffer);
        if (start + needs.size > own.size || start % needs.alignment ||
            own.memoryTypeBits & ~needs.memoryTypeBits)
            throw std::runtime_error("the driver allows no second buffer over this memory");
        device_->bindBufferMemory(buffer, memory_of(*tensor), start);
    }

  private:
    std::shared_ptr<kp::Tensor> tensor_;  // keeps the memory alive
};

// A linear image over a part of a tensor's memory: `height` rows, `pitch` bytes apart, of texels of
// `unit` bytes. Vulkan guarantees that buffers and linear images in the layouts used here see the
// same bytes of memory that they share ("Memory Aliasing").
class LinearImage : DeviceObject
{
  public:
    vk::Image image;
    const std::uint64_t unit;

    LinearImage(std::shared_ptr<Device> owner, std::shared_ptr<kp::Tensor> tensor,
                std::uint64_t offset, std::uint64_t pitch, std::uint32_t height,
                std::uint64_t unit_)
      : DeviceObject(owner->device), unit(unit_), tensor_(tensor)
    {
        image = keep(make(*owner, pitch, height, unit));
        const auto needs = device_->getImageMemoryRequirements(image);
        const auto layout = device_->getImageSubresourceLayout(image, { ASPECT, 0, 0 });
        if (layout.rowPitch != pitch || layout.offset || offset % needs.alignment ||
            offset + needs.size > tensor->constructDescriptorBufferInfo().range)
            throw std::runtime_error("the driver places such an image differently");
        device_->bindImageMemory(image, memory_of(*tensor), offset);
    }

    // Give it the layout that copies need, when it is first used.
    void record_layout(Commands& commands)
    {
        if (commands.note(has_layout_)) return;
        using Access = vk::AccessFlagBits;
        const vk::ImageMemoryBarrier barrier(
          Access::eShaderWrite | Access::eTransferWrite | Access::eHostWrite,
          Access::eTransferRead | Access::eTransferWrite, vk::ImageLayout::ePreinitialized,
          GENERAL, VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED, image, { ASPECT, 0, 1, 0, 1 });
        commands.buffer.pipelineBarrier(SHADER | TRANSFER | HOST, TRANSFER, {}, {}, {}, barrier);
    }

    // The multiple of bytes that the driver's rows have; 0 if it has no such images, or if they
    // cannot have the memory of every tensor.
    static std::uint64_t pitch_alignment(const Device& owner)
    {
        const auto types = owner.adapter->memory.memoryTypeCount;
        std::uint64_t found = 0;
        for (const auto& [unit, format] : FORMATS) {
            vk::ImageFormatProperties limits;
            if (owner.adapter->physical->getImageFormatProperties(format, vk::ImageType::e2D,
                  vk::ImageTiling::eLinear, USAGE, {}, &limits) != vk::Result::eSuccess)
                return 0;
            const auto image = owned(make(owner, unit, 1, unit), owner.device);
            const auto pitch =
              owner.device->getImageSubresourceLayout(*image, { ASPECT, 0, 0 }).rowPitch;
            const auto fits = owner.device->getImageMemoryRequirements(*image).memoryTypeBits;
            if (fits + 1ull < 1ull << types) return 0;
            found = std::max<std::uint64_t>(found, pitch);
        }
        return found;
    }

  private:
    static constexpr auto ASPECT = vk::ImageAspectFlagBits::eColor;
    static constexpr auto USAGE =
      vk::ImageUsageFlagBits::eTransferSrc | vk::ImageUsageFlagBits::eTransferDst;
    static constexpr std::pair<std::uint64_t, vk::Format> FORMATS[] = {
        { 1, vk::Format::eR8Uint }, { 2, vk::Format::eR16Uint }, { 4, vk::Format::eR32Uint },
        { 8, vk::Format::eR32G32Uint }, { 16, vk::Format::eR32G32B32A32Uint },
    };

    std::shared_ptr<kp::Tensor> tensor_;  // keeps the memory alive
    bool has_layout_ = false;

    static vk::Format format(std::uint64_t unit)
    {
        for (const auto& [size, found] : FORMATS)
            if (size == unit) return found;
        throw py::value_error("unit: must be 1, 2, 4, 8 or 16");
    }
    static vk::Image make(const Device& owner, std::uint64_t pitch, std::uint32_t height,
                          std::uint64_t unit)
    {
        return owner.device->createImage({ {}, vk::ImageType::e2D, format(unit),
          { std::uint32_t(pitch / unit), height, 1 }, 1, 1, vk::SampleCountFlagBits::e1,
          vk::ImageTiling::eLinear, USAGE, vk::SharingMode::eExclusive, {},
          vk::ImageLayout::ePreinitialized });
    }
};

// vkCmdCopyImageToBuffer or vkCmdCopyBufferToImage: the rows of `rectangles` are (x, y, width,
// height, offset in the buffer, pitch in the buffer); all but y and height are bytes.
inline Operation copy_rectangles(std::shared_ptr<LinearImage> image,
                                 std::shared_ptr<CopiedBuffer> buffer, bool into_image,
                                 const Rows& rows)
{
    if (!into_image && !std::dynamic_pointer_cast<TensorBuffer>(buffer))
        throw py::value_error("an imported array is only read");
    if (rows.ndim() != 2 || rows.shape(1) != 6 || !rows.shape(0))
        throw py::value_error(
          "rectangles: must be rows of (x, y, width, height, buffer offset, buffer pitch)");
    const auto at = rows.unchecked<2>();
    const auto unit = image->unit;
    const vk::ImageSubresourceLayers layers(vk::ImageAspectFlagBits::eColor, 0, 0, 1);
    std::vector<vk::BufferImageCopy> regions;
    regions.reserve(rows.shape(0));
    for (py::ssize_t i = 0; i < rows.shape(0); ++i)
        regions.emplace_back(buffer->offset + at(i, 4), std::uint32_t(at(i, 5) / unit), 0, layers,
          vk::Offset3D(std::int32_t(at(i, 0) / unit), std::int32_t(at(i, 1)), 0),
          vk::Extent3D(std::uint32_t(at(i, 2) / unit), std::uint32_t(at(i, 3)), 1));
    const auto record = [=](Commands& commands) {
        image->record_layout(commands);
        if (into_image)
            commands.buffer.copyBufferToImage(buffer->buffer, image->image, GENERAL, regions);
        else
            commands.buffer.copyImageToBuffer(image->image, GENERAL, buffer->buffer, regions);
    };
    return { record, [image](Commands& commands) { image->record_layout(commands); } };
}

inline std::vector<vk::BufferCopy> rows_of(const Rows& rows)
{
    if (rows.ndim() != 2 || rows.shape(1) != 3 || !rows.shape(0))
        throw py::value_error("regions: must be rows of (source offset, target offset, bytes)");
    static_assert(sizeof(vk::BufferCopy) == 3 * sizeof(std::uint64_t));
    const auto first = reinterpret_cast<const vk::BufferCopy*>(rows.data());
    return { first, first + rows.shape(0) };
}

// vkCmdCopyBuffer: the rows of `regions` are (source offset, target offset, bytes).
inline Operation copy_regions(std::shared_ptr<CopiedBuffer> source,
                              std::shared_ptr<TensorBuffer> target, const Rows& rows)
{
    auto regions = rows_of(rows);
    for (auto& region : regions) region.srcOffset += source->offset;
    return { [=](Commands& commands) {
        commands.buffer.copyBuffer(source->buffer, target->buffer, regions);
    } };
}

// vkCmdFillBuffer: the rows of `regions` are (0, target offset, bytes).
inline Operation fill_regions(std::shared_ptr<TensorBuffer> target, std::uint32_t word,
                              const Rows& rows)
{
    return { [target, word, regions = rows_of(rows)](Commands& commands) {
        for (const auto& region : regions)
            commands.buffer.fillBuffer(target->buffer, region.dstOffset, region.size, word);
    } };
}
