// Images in memory of pools, their views, samplers, and copies between images and buffers.
#pragma once

#include "copies.hpp"

constexpr auto GENERAL = vk::ImageLayout::eGeneral;
constexpr auto COLOR = vk::ImageAspectFlagBits::eColor;

// An image of Vulkan in the layout GENERAL, whose views choose formats with texels of the same size.
class Image : public DeviceObject
{
  public:
    // Format, VkImageViewType, first level, levels, first layer, layers, and whether it is stored to.
    using View = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
                            std::uint32_t, bool>;
    // Format, dimensions, levels, layers, samples, and whether views are sampled and stored to.
    using Form = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
                            bool, bool>;
    using Size = std::array<std::uint32_t, 3>;

    const vk::ImageCreateInfo info;
    vk::Image image;
    vk::MemoryRequirements needs;

    Image(const Device& owner, const Form& form, const Size& size)
      : DeviceObject(owner.device), info(info_of(form, size))
    {
        image = keep(device_->createImage(info));
        needs = device_->getImageMemoryRequirements(image);
    }
    void bind(std::shared_ptr<Memory> memory, std::uint64_t start)
    {
        if (!(needs.memoryTypeBits >> memory->type & 1))
            throw Failure("the driver allows no image in this memory");
        memory->bind(image, start);
        memory_ = memory;
    }
    vk::ImageView view(const View& key)
    {
        auto& view = views_[key];
        if (!view) {
            using Usage = vk::ImageUsageFlagBits;
            const auto& [format, type, level, levels, layer, layers, stored] = key;
            const vk::ImageViewUsageCreateInfo usage(stored ? Usage::eStorage : Usage::eSampled);
            vk::ImageViewCreateInfo info({}, image, vk::ImageViewType(type), vk::Format(format), {},
              { COLOR, level, levels, layer, layers });
            info.pNext = &usage;
            view = keep(device_->createImageView(info));
        }
        return view;
    }
    // Change it to its layout, and fill it with zeros. This is the first command that uses the image.
    void record_zeros(Commands& commands) const
    {
        using Access = vk::AccessFlagBits;
        const vk::ImageSubresourceRange all(COLOR, 0, info.mipLevels, 0, info.arrayLayers);
        const vk::ImageMemoryBarrier barrier(
          Access::eShaderWrite | Access::eTransferWrite, Access::eTransferRead | Access::eTransferWrite,
          vk::ImageLayout::eUndefined, GENERAL, VK_QUEUE_FAMILY_IGNORED, VK_QUEUE_FAMILY_IGNORED, image, all);
        commands.buffer.pipelineBarrier(SHADER | TRANSFER, TRANSFER, {}, {}, {}, barrier);
        commands.buffer.clearColorImage(image, GENERAL, vk::ClearColorValue(), all);
    }
    // The largest sizes, numbers of levels and layers, and bytes of images of a form, and a bit for each number
    // of samples; empty if the device does not support the form.
    static std::optional<std::tuple<Size, std::uint32_t, std::uint32_t, std::uint64_t, std::uint32_t>>
    limits(const Device& owner, const Form& form)
    {
        const auto info = info_of(form, { 1, 0, 0 });  // which no cube has
        vk::ImageFormatProperties limits;
        if (owner.adapter->physical->getImageFormatProperties(info.format, info.imageType,
              info.tiling, info.usage, info.flags, &limits) != vk::Result::eSuccess)
            return {};
        const auto& [width, height, depth] = limits.maxExtent;
        return { { { width, height, depth }, limits.maxMipLevels, limits.maxArrayLayers,
                   limits.maxResourceSize, std::uint32_t(limits.sampleCounts) } };
    }

  private:
    std::shared_ptr<Memory> memory_;  // keeps it alive
    std::map<View, vk::ImageView> views_;

    static vk::ImageCreateInfo info_of(const Form& form, const Size& size)
    {
        using Flag = vk::ImageCreateFlagBits;
        using Usage = vk::ImageUsageFlagBits;
        const auto& [format, dims, levels, layers, samples, sampled, stored] = form;
        auto flags = Flag::eMutableFormat | Flag::eExtendedUsage;
        if (dims == 2 && layers >= 6 && size[0] == size[1] && samples == 1) flags |= Flag::eCubeCompatible;
        auto usage = Usage::eTransferSrc | Usage::eTransferDst;
        if (sampled) usage |= Usage::eSampled;
        if (stored) usage |= Usage::eStorage;
        return { flags, vk::ImageType(dims - 1), vk::Format(format), { size[0], size[1], size[2] },
                 levels, layers, vk::SampleCountFlagBits(samples), vk::ImageTiling::eOptimal, usage };
    }
};

// How textures are read: `address` is a VkSamplerAddressMode.
class Sampler : public DeviceObject
{
  public:
    vk::Sampler sampler;

    Sampler(const Device& owner, bool linear, std::uint32_t address, bool normalized)
      : DeviceObject(owner.device)
    {
        vk::SamplerCreateInfo info;
        info.magFilter = info.minFilter = linear ? vk::Filter::eLinear : vk::Filter::eNearest;
        info.addressModeU = info.addressModeV = info.addressModeW = vk::SamplerAddressMode(address);
        info.unnormalizedCoordinates = !normalized;
        if (normalized) {
            if (linear) info.mipmapMode = vk::SamplerMipmapMode::eLinear;
            info.maxLod = VK_LOD_CLAMP_NONE;
        }
        sampler = keep(device_->createSampler(info));
    }
};

// Copies between an image and memory: the rows of `boxes` are (offset in the buffer, level,
// first layer, layers, x, y, z, width, height, depth); texels are packed in the buffer.
inline std::shared_ptr<Operation> copy_image(std::shared_ptr<Image> image,
                                             std::shared_ptr<Memory> buffer, bool into_image,
                                             const Rows& boxes, bool ordered)
{
    const auto at = boxes.unchecked<2>();
    std::vector<vk::BufferImageCopy> regions;
    for (py::ssize_t i = 0; i < boxes.shape(0); ++i) {
        const auto number = [&](int column) { return std::uint32_t(at(i, column)); };
        const auto place = [&](int column) { return std::int32_t(at(i, column)); };
        regions.emplace_back(at(i, 0), 0, 0,
          vk::ImageSubresourceLayers(COLOR, number(1), number(2), number(3)),
          vk::Offset3D(place(4), place(5), place(6)), vk::Extent3D(number(7), number(8), number(9)));
    }
    return std::make_shared<Operation>(Label{ "copy of an image" }, [=](Commands& commands) {
        if (into_image)
            commands.buffer.copyBufferToImage(buffer->buffer, image->image, GENERAL, regions);
        else
            commands.buffer.copyImageToBuffer(image->image, GENERAL, buffer->buffer, regions);
    }, ordered);
}
