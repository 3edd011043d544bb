// Images in memory of pools, their views, samplers, and copies between images and buffers.
#pragma once

#include "copies.hpp"

// An image of Vulkan in the layout GENERAL, whose views choose formats with texels of the same size.
class Image : public DeviceObject
{
  public:
    // Format, VkImageViewType, first level, levels, first layer, layers, and whether it is stored to.
    using View = std::tuple<std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t,
                            std::uint32_t, bool>;
    // Format, dimensions, levels, layers, and whether views are sampled and stored to.
    struct Form
    {
        vk::Format format;
        std::uint32_t dims, levels, layers;
        bool sampled, stored;

        vk::ImageType type() const { return vk::ImageType(dims - 1); }
        vk::ImageUsageFlags usage() const
        {
            using Usage = vk::ImageUsageFlagBits;
            auto all = Usage::eTransferSrc | Usage::eTransferDst;
            if (sampled) all |= Usage::eSampled;
            if (stored) all |= Usage::eStorage;
            return all;
        }
        vk::ImageCreateFlags flags(bool cube) const
        {
            using Flag = vk::ImageCreateFlagBits;
            const auto all = Flag::eMutableFormat | Flag::eExtendedUsage;
            return cube ? all | Flag::eCubeCompatible : all;
        }
    };

    const Form form;
    vk::Image image;
    vk::MemoryRequirements needs;

    Image(const Device& owner, Form form_, const std::array<std::uint32_t, 3>& size)
      : DeviceObject(owner.device), form(form_)
    {
        const bool cube = form.dims == 2 && form.layers >= 6 && size[0] == size[1];
        image = keep(device_->createImage({ form.flags(cube), form.type(), form.format,
          { size[0], size[1], size[2] }, form.levels, form.layers, vk::SampleCountFlagBits::e1,
          vk::ImageTiling::eOptimal, form.usage() }));
        needs = device_->getImageMemoryRequirements(image);
    }
    void bind(std::shared_ptr<Memory> memory, std::uint64_t start)
    {
        if (!(needs.memoryTypeBits >> memory->type & 1))
            throw std::runtime_error("the driver allows no image in this memory");
        memory->bind(image, start);
        memory_ = memory;
    }
    vk::ImageView view(const View& key)
    {
        auto& found = views_[key];
        if (!found) {
            using Usage = vk::ImageUsageFlagBits;
            const auto& [format, type, level, levels, layer, layers, stored] = key;
            const vk::ImageViewUsageCreateInfo usage(stored ? Usage::eStorage : Usage::eSampled);
            vk::ImageViewCreateInfo info({}, image, vk::ImageViewType(type), vk::Format(format), {},
              { vk::ImageAspectFlagBits::eColor, level, levels, layer, layers });
            info.pNext = &usage;
            found = keep(device_->createImageView(info));
        }
        return found;
    }
    // Give it its layout and zeros, once, before all else.
    void record_zeros(Commands& commands) const
    {
        using Access = vk::AccessFlagBits;
        const vk::ImageSubresourceRange all(vk::ImageAspectFlagBits::eColor, 0, form.levels, 0,
                                            form.layers);
        const vk::ImageMemoryBarrier barrier(Access::eShaderWrite | Access::eTransferWrite,
          Access::eTransferWrite, vk::ImageLayout::eUndefined, GENERAL, VK_QUEUE_FAMILY_IGNORED,
          VK_QUEUE_FAMILY_IGNORED, image, all);
        commands.buffer.pipelineBarrier(SHADER | TRANSFER, TRANSFER, {}, {}, {}, barrier);
        commands.buffer.clearColorImage(image, GENERAL, vk::ClearColorValue(), all);
    }
    // The most texels along each side, levels, layers and bytes of images of a form; none if there
    // are no such images.
    static std::optional<std::tuple<std::array<std::uint32_t, 3>, std::uint32_t, std::uint32_t,
                                    std::uint64_t>>
    limits(const Device& owner, const Form& form)
    {
        vk::ImageFormatProperties found;
        if (owner.adapter->physical->getImageFormatProperties(form.format, form.type(),
              vk::ImageTiling::eOptimal, form.usage(), form.flags(false), &found) !=
            vk::Result::eSuccess)
            return {};
        const auto& [width, height, depth] = found.maxExtent;
        return { { { width, height, depth }, found.maxMipLevels, found.maxArrayLayers,
                   found.maxResourceSize } };
    }

  private:
    std::shared_ptr<Memory> memory_;  // keeps it alive
    std::map<View, vk::ImageView> views_;
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
        regions.emplace_back(buffer->offset + at(i, 0), 0, 0,
          vk::ImageSubresourceLayers(vk::ImageAspectFlagBits::eColor, number(1), number(2), number(3)),
          vk::Offset3D(place(4), place(5), place(6)), vk::Extent3D(number(7), number(8), number(9)));
    }
    return copy_boxes({ "copy of an image" }, image, buffer, into_image, regions, ordered);
}
