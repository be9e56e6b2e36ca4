// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The server's work for each command.
#include <fcntl.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "vfio_user/server_loop.hpp"

namespace doorbell::vfio_user {

namespace {

std::vector<u8> payload_of(std::span<const u8> bytes, std::size_t room = 0) {
  std::vector<u8> out;
  out.reserve(bytes.size() + room);
  out.assign(bytes.begin(), bytes.end());
  return out;
}

}  // namespace

u64 Server::Loop::bytes_of_region(u32 region) const {
  switch (region) {
    case Region::bar0:
      return device_.bar0().bytes;
    case Region::bar4:
    case Region::bar5:
      return ConfigSpace::kTableBytes;
    case Region::config:
      return ConfigSpace::kBytes;
    default:
      return 0;
  }
}

Server::Loop::Answer Server::Loop::execute(const Header& header, std::span<const u8> payload, Files& files) {
  const auto c = static_cast<Command>(header.command);
  if (!files.empty() && c != Command::dma_map && c != Command::set_irqs) {
    unexpected_ += files.size();
    // SPDK's driver sends its descriptor with DMA_UNMAP too.
    if (c != Command::dma_unmap) return {.error = EINVAL, .close = !current_->greeted};
    files.clear();
  }
  if (!current_->greeted && c != Command::version) return {.error = EINVAL, .close = true};
  switch (c) {
    case Command::version:
      return agree(payload);
    case Command::dma_map:
      return dma_map(payload, std::move(files));
    case Command::dma_unmap:
      return dma_unmap(payload);
    case Command::device_get_info:
      return device_info(payload);
    case Command::get_region_info:
      return region_info(payload);
    case Command::get_irq_info:
      return irq_info(payload);
    case Command::set_irqs:
      return set_irqs(payload, files);
    case Command::region_read:
      return region_read(payload);
    case Command::region_write:
      return region_write(payload);
    case Command::device_reset:
      return reset_device();
    default:
      return {.error = EINVAL};  // migration, dirty pages, ioeventfds, and what is no command
  }
}

Server::Loop::Answer Server::Loop::agree(std::span<const u8> payload) {
  if (current_->greeted) return {.error = EINVAL};
  std::string why;
  const auto theirs = decode_version(payload, why);
  if (!theirs || theirs->major != 0) {
    log(service::Priority::notice,
        theirs ? fmt::format("a client speaks version {}", theirs->major) : "a client's version: " + why,
        current_->peer);
    return {.error = EINVAL, .close = true};
  }
  current_->greeted = true;
  ++clients_;
  log(service::Priority::info, "a client has come", current_->peer);
  dma_.open(current_->id, theirs->capabilities.max_data_xfer_size);
  const Capabilities ours{.max_msg_fds = 8, .max_dma_maps = DmaMaps::kMostMaps};
  // Without a text the client has no room for one, perhaps.
  return {.payload =
              encode_version(0, std::min<u16>(theirs->minor, 1), payload.size() > 4 ? &ours : nullptr)};
}

Server::Loop::Answer Server::Loop::dma_map(std::span<const u8> payload, Files files) {
  const auto what = first_of<DmaMap>(payload);
  if (!what || what->argsz < sizeof *what || files.size() > 1) {
    unexpected_ += files.empty() ? 0 : files.size() - 1;
    return {.error = EINVAL};
  }
  const OwnRegisters own{config_.bar0(), device_.bar0().bytes};
  // Memory that only messages reach is looked up at each access. A queue may wait for memory that is here.
  if (files.empty()) return {.error = static_cast<u32>(maps_.map(*what, -1, own))};
  return {.wait = [this, what = *what, own, file = std::make_shared<Files>(std::move(files))] {
    int error = 0;
    device_.change_memory([&] { error = maps_.map(what, file->front().get(), own); });
    return static_cast<u32>(error);
  }};
}

Server::Loop::Answer Server::Loop::dma_unmap(std::span<const u8> payload) {
  const auto what = first_of<DmaUnmap>(payload);
  if (!what || what->argsz < sizeof *what) return {.error = EINVAL};
  Answer a{.payload = payload_of(bytes_of(*what))};
  if (maps_.is_here(*what)) {
    a.wait = [this, what = *what] {
      int error = 0;
      device_.change_memory([&] { error = maps_.unmap(what); });
      return static_cast<u32>(error);
    };
  } else {
    // Messages for it that are on their way are the client's to refuse: he may not answer them before this is
    // answered, so nothing waits for them.
    a.error = static_cast<u32>(maps_.unmap(*what));
  }
  return a;
}

Server::Loop::Answer Server::Loop::device_info(std::span<const u8> payload) const {
  const auto asked = first_of<DeviceInfo>(payload);
  if (!asked || asked->argsz < sizeof *asked) return {.error = EINVAL};
  return {.payload = payload_of(bytes_of(DeviceInfo{
              .flags = DeviceInfo::kReset | DeviceInfo::kPci, .regions = kRegions, .irqs = kIrqs}))};
}

Server::Loop::Answer Server::Loop::region_info(std::span<const u8> payload) const {
  const auto asked = first_of<RegionInfo>(payload);
  if (!asked || asked->argsz < sizeof *asked || asked->index >= kRegions) return {.error = EINVAL};
  RegionInfo info{.index = asked->index, .size = bytes_of_region(asked->index)};
  if (info.size != 0) info.flags = RegionInfo::kRead | RegionInfo::kWrite;
  const Bar0 bar = device_.bar0();
  const bool maps = asked->index == Region::bar0 && bar.area.size != 0 && bar.file >= 0;
  bool fits = false;
  if (maps) info.flags |= RegionInfo::kMmap;
  const auto areas = std::span(&bar.area, maps ? 1 : 0);
  std::vector<u8> answer = encode_region(info, areas, asked->argsz, fits);
  if (!maps) return {.payload = std::move(answer)};
  Descriptor file(fits ? ::fcntl(bar.file, F_DUPFD_CLOEXEC, 0) : -1);
  if (fits && file.get() >= 0) return {.payload = std::move(answer), .file = std::move(file)};
  // A region is mappable where the descriptor is there.
  info.flags &= ~RegionInfo::kMmap;
  answer = encode_region(info, areas, 0, fits);
  return {.payload = std::move(answer)};
}

Server::Loop::Answer Server::Loop::irq_info(std::span<const u8> payload) const {
  const auto asked = first_of<IrqInfo>(payload);
  if (!asked || asked->argsz < sizeof *asked || asked->index >= kIrqs) return {.error = EINVAL};
  return {.payload = payload_of(bytes_of(IrqInfo{
              .flags = IrqInfo::kEventfd, .index = asked->index, .count = interrupts_.count(asked->index)}))};
}

Server::Loop::Answer Server::Loop::set_irqs(std::span<const u8> payload, const Files& files) {
  const auto what = first_of<IrqSet>(payload);
  if (!what || what->argsz < sizeof *what || what->index >= kIrqs) return {.error = EINVAL};
  std::vector<Descriptor> own;
  for (const auto& file : files) {
    own.emplace_back(::fcntl(file.get(), F_DUPFD_CLOEXEC, 0));
    if (own.back().get() < 0) return {.error = EMFILE};
  }
  const int error = interrupts_.set(*what, payload.subspan(sizeof *what), own);
  if (error != 0) return {.error = static_cast<u32>(error)};
  if (what->index == Irq::intx) device_.raise_again();
  if (!interrupts_.has_replaced()) return {};
  return {.wait = [this] {
    device_.change_memory([this] { interrupts_.close_replaced(); });
    return 0u;
  }};
}

Server::Loop::Answer Server::Loop::region_read(std::span<const u8> payload) {
  const auto what = first_of<RegionAccess>(payload);
  if (!what || !within(what->offset, what->count, bytes_of_region(what->region)) || what->count > kMostData)
    return {.error = EINVAL};
  std::vector<u8> answer = payload_of(bytes_of(*what), what->count);
  answer.resize(sizeof *what + what->count);
  const auto to = std::span(answer).subspan(sizeof *what);
  const auto at = static_cast<u32>(what->offset);
  if (what->region == Region::bar0) {
    if (const int error = device_.read(what->offset, to); error != 0)
      return {.error = static_cast<u32>(error)};
  } else if (what->region == Region::config) {
    config_.read(at, to);
  } else if (what->region == Region::bar4) {
    std::copy_n(table_.begin() + at, to.size(), to.begin());
  } else {
    for (u32 i = 0; i < to.size() && at + i < Interrupts::kMostVectors / 8; ++i)
      to[i] = static_cast<u8>(interrupts_.pending((at + i) / 8) >> ((at + i) % 8 * 8));
  }
  return {.payload = std::move(answer)};
}

Server::Loop::Answer Server::Loop::region_write(std::span<const u8> payload) {
  const auto what = first_of<RegionAccess>(payload);
  if (!what || !within(what->offset, what->count, bytes_of_region(what->region)) ||
      payload.size() - sizeof *what != what->count)
    return {.error = EINVAL};
  const auto data = payload.subspan(sizeof *what);
  std::vector<u8> answer = payload_of(bytes_of(*what));
  const auto at = static_cast<u32>(what->offset);
  if (what->region == Region::config) return write_config(at, data, std::move(answer));
  if (what->region == Region::bar4) std::ranges::copy(data, table_.begin() + at);
  if (what->region != Region::bar0) return {.payload = std::move(answer)};
  const Device::Way way = device_.way_of_write(what->offset, data);
  if (way == Device::Way::at_once) {
    const int error = device_.write(what->offset, data);
    return {.error = static_cast<u32>(error), .payload = std::move(answer)};
  }
  return {.payload = std::move(answer), .wait = [this, way, offset = what->offset, data = payload_of(data)] {
            std::optional<MessageDma::Pause> pause;
            if (way == Device::Way::ends_work) pause.emplace(dma_);
            return static_cast<u32>(device_.write(offset, data));
          }};
}

void Server::Loop::allow_interrupts() {
  interrupts_.allow(config_.msix_enabled(), config_.msix_masked(), config_.intx_enabled());
  device_.raise_again();
}

Server::Loop::Answer Server::Loop::write_config(u32 offset, std::span<const u8> data,
                                                std::vector<u8> payload) {
  const ConfigSpace::Changes changes = config_.write(offset, data);
  if (changes.interrupts && !changes.reset) allow_interrupts();
  if (!changes.reset) return {.payload = std::move(payload)};
  Answer a = reset_device();
  a.payload = std::move(payload);
  return a;
}

Server::Loop::Answer Server::Loop::reset_device() {
  ++resets_;
  config_.reset();
  allow_interrupts();
  return {.wait = [this] {
    const MessageDma::Pause pause(dma_);
    device_.reset();
    interrupts_.forget_pending();
    return 0u;
  }};
}

}  // namespace doorbell::vfio_user
