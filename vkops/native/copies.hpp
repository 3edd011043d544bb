// Copies with regions and by linear images, and fills.
#pragma once

#include "commands.hpp"

using Rows = py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>;

constexpr auto GENERAL = vk::ImageLayout::eGeneral;
constexpr auto COLOR = vk::ImageAspectFlagBits::eColor;

// Change an image to the layout of copies. This is the first command that uses the image.
inline void set_layout(const Commands& commands, vk::Image image, vk::ImageLayout before,
                       const vk::ImageSubresourceRange& all)
{
    using Access = vk::AccessFlagBits;
    vk::AccessFlags written = Access::eShaderWrite | Access::eTransferWrite;
    vk::PipelineStageFlags stages = SHADER | TRANSFER;
    if (before == vk::ImageLayout::ePreinitialized) {  // by the host
        written |= Access::eHostWrite;
        stages |= HOST;
    }
    const vk::ImageMemoryBarrier barrier(
      written, Access::eTransferRead | Access::eTransferWrite, before, GENERAL,
      VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED, image, all);
    commands.buffer.pipelineBarrier(stages, TRANSFER, {}, {}, {}, barrier);
}

// A linear image over a part of an allocation: `height` rows, `pitch` bytes apart, of texels of
// `unit` bytes. Vulkan guarantees that buffers and linear images in the layouts used here see the
// same bytes of memory that they share ("Memory Aliasing").
class LinearImage : DeviceObject
{
  public:
    vk::Image image;
    const std::uint64_t unit;

    LinearImage(const Device& owner, std::shared_ptr<Memory> memory, std::uint64_t offset,
                std::uint64_t pitch, std::uint32_t height, std::uint64_t unit_)
      : DeviceObject(owner.device), unit(unit_), memory_(memory)
    {
        image = keep(make(owner, pitch, height, unit));
        const auto needs = device_->getImageMemoryRequirements(image);
        const auto layout = device_->getImageSubresourceLayout(image, { COLOR, 0, 0 });
        if (layout.rowPitch != pitch || layout.offset || offset % needs.alignment ||
            offset + needs.size > memory->size || !(needs.memoryTypeBits >> memory->type & 1))
            throw Failure("the driver places such an image differently");
        memory->bind(image, offset);
    }

    // The smaller of two limits: the rows of an image, and the texels in each row of an image of MAX_ROWS
    // rows. It is 0 if the driver does not support such images.
    static std::uint64_t max_side(const Adapter& adapter)
    {
        constexpr std::uint64_t MAX_ROWS = 4096;  // as in vkops/gpu/copies/rectangles.py
        std::uint64_t limit = ~0u;
        for (const auto& [unit, format] : FORMATS) {
            vk::ImageFormatProperties limits;
            if (adapter.physical->getImageFormatProperties(format, vk::ImageType::e2D,
                  vk::ImageTiling::eLinear, USAGE, {}, &limits) != vk::Result::eSuccess)
                return 0;
            const std::uint64_t width = limits.maxExtent.width, height = limits.maxExtent.height;
            limit = std::min({ limit, width, height, limits.maxResourceSize / MAX_ROWS / unit });
        }
        return limit;
    }

    // The alignment of rows in bytes; 0 if the driver does not support such images.
    static std::uint64_t pitch_alignment(const Device& owner)
    {
        std::uint64_t pitch = 0;
        if (!max_side(*owner.adapter)) return 0;
        for (const auto& [unit, format] : FORMATS) {
            const auto image = owned(make(owner, unit, 1, unit), owner.device);
            const auto layout = owner.device->getImageSubresourceLayout(*image, { COLOR, 0, 0 });
            pitch = std::max<std::uint64_t>(pitch, layout.rowPitch);
        }
        return pitch;
    }

  private:
    static constexpr auto USAGE =
      vk::ImageUsageFlagBits::eTransferSrc | vk::ImageUsageFlagBits::eTransferDst;
    static constexpr std::pair<std::uint64_t, vk::Format> FORMATS[] = {
        { 1, vk::Format::eR8Uint }, { 2, vk::Format::eR16Uint }, { 4, vk::Format::eR32Uint },
        { 8, vk::Format::eR32G32Uint }, { 16, vk::Format::eR32G32B32A32Uint },
    };

    std::shared_ptr<Memory> memory_;  // keeps it alive

    static vk::Format format(std::uint64_t unit)
    {
        for (const auto& [size, format] : FORMATS)
            if (size == unit) return format;
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

// vkCmdCopyImageToBuffer or vkCmdCopyBufferToImage.
template <class AnyImage>
std::shared_ptr<Operation> copy_boxes(const Label& label, std::shared_ptr<AnyImage> image,
                                      std::shared_ptr<Memory> buffer, bool into_image,
                                      std::vector<vk::BufferImageCopy> regions, bool ordered)
{
    return std::make_shared<Operation>(label, [=](Commands& commands) {
        if (into_image)
            commands.buffer.copyBufferToImage(buffer->buffer, image->image, GENERAL, regions);
        else
            commands.buffer.copyImageToBuffer(image->image, GENERAL, buffer->buffer, regions);
    }, ordered);
}

// Copies between a linear image and memory: the rows of `rectangles` are (x, y, width,
// height, offset in the buffer, pitch in the buffer); all but y and height are bytes.
inline std::shared_ptr<Operation> copy_rectangles(std::shared_ptr<LinearImage> image,
                                                  std::shared_ptr<Memory> buffer, bool into_image,
                                                  const Rows& rows, bool ordered)
{
    if (rows.ndim() != 2 || rows.shape(1) != 6 || !rows.shape(0))
        throw py::value_error(
          "rectangles: must be rows of (x, y, width, height, buffer offset, buffer pitch)");
    const auto at = rows.unchecked<2>();
    const auto unit = image->unit;
    const vk::ImageSubresourceLayers layers(COLOR, 0, 0, 1);
    std::vector<vk::BufferImageCopy> regions;
    regions.reserve(rows.shape(0));
    for (py::ssize_t i = 0; i < rows.shape(0); ++i)
        regions.emplace_back(buffer->offset + at(i, 4), std::uint32_t(at(i, 5) / unit), 0, layers,
          vk::Offset3D(std::int32_t(at(i, 0) / unit), std::int32_t(at(i, 1)), 0),
          vk::Extent3D(std::uint32_t(at(i, 2) / unit), std::uint32_t(at(i, 3)), 1));
    std::uint64_t nbytes = 0;
    for (const auto& region : regions)
        nbytes += 2 * unit * region.imageExtent.width * region.imageExtent.height;
    return copy_boxes({ "copy of rectangles", nbytes }, image, buffer, into_image, regions, ordered);
}

inline std::vector<vk::BufferCopy> rows_of(const Rows& rows)
{
    if (rows.ndim() != 2 || rows.shape(1) != 3 || !rows.shape(0))
        throw py::value_error("regions: must be rows of (source offset, target offset, bytes)");
    static_assert(sizeof(vk::BufferCopy) == 3 * sizeof(std::uint64_t));
    const auto first = reinterpret_cast<const vk::BufferCopy*>(rows.data());
    return { first, first + rows.shape(0) };
}

// vkCmdCopyBuffer.
inline std::shared_ptr<Operation> copy_regions(std::shared_ptr<Memory> source,
                                               std::shared_ptr<Memory> target,
                                               std::vector<vk::BufferCopy> regions, bool ordered)
{
    Label label{ "copy" };
    for (auto& region : regions) {
        region.srcOffset += source->offset;
        label.nbytes += 2 * region.size;
    }
    return std::make_shared<Operation>(label, [=, regions = std::move(regions)](Commands& commands) {
        commands.buffer.copyBuffer(source->buffer, target->buffer, regions);
    }, ordered);
}

// vkCmdFillBuffer: the rows of `regions` are (0, target offset, bytes).
inline std::shared_ptr<Operation> fill_regions(std::shared_ptr<Memory> target, std::uint32_t word,
                                               const Rows& rows, bool ordered)
{
    const auto regions = rows_of(rows);
    Label label{ "fill" };
    for (const auto& region : regions) label.nbytes += region.size;
    return std::make_shared<Operation>(label, [=](Commands& commands) {
        for (const auto& region : regions)
            commands.buffer.fillBuffer(target->buffer, region.dstOffset, region.size, word);
    }, ordered);
}

// A copy of bytes that are the operation's own.
inline std::shared_ptr<Operation> copy_bytes(std::shared_ptr<Memory> target, std::uint64_t offset,
                                             std::string bytes)
{
    const auto nbytes = bytes.size();
    const auto record = [=](Commands& commands) {
        const auto placed = commands.data.front();
        commands.data.pop_front();
        commands.buffer.copyBuffer(placed.buffer, target->buffer,
                                   vk::BufferCopy(placed.offset, offset, nbytes));
    };
    return std::make_shared<Operation>(Label{ "upload", 2 * nbytes }, record, true, [=](Commands& commands) {
        commands.data.push_back(
          commands.place(nbytes, [&](char* to) { std::memcpy(to, bytes.data(), nbytes); }));
    });
}
