// Copies with regions, and fills.
#pragma once

#include "commands.hpp"

using Rows = py::array_t<std::uint64_t, py::array::c_style | py::array::forcecast>;

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
    for (const auto& region : regions) label.nbytes += 2 * region.size;
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
