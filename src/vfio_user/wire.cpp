// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "vfio_user/wire.hpp"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <cerrno>
#include <nlohmann/json.hpp>
#include <string_view>

namespace doorbell::vfio_user {

namespace {

constexpr std::array<std::string_view, 19> kNames = {"",
                                                     "VERSION",
                                                     "DMA_MAP",
                                                     "DMA_UNMAP",
                                                     "DEVICE_GET_INFO",
                                                     "DEVICE_GET_REGION_INFO",
                                                     "DEVICE_GET_REGION_IO_FDS",
                                                     "DEVICE_GET_IRQ_INFO",
                                                     "DEVICE_SET_IRQS",
                                                     "REGION_READ",
                                                     "REGION_WRITE",
                                                     "DMA_READ",
                                                     "DMA_WRITE",
                                                     "DEVICE_RESET",
                                                     "DIRTY_PAGES",
                                                     "REGION_WRITE_MULTI",
                                                     "DEVICE_FEATURE",
                                                     "MIG_DATA_READ",
                                                     "MIG_DATA_WRITE"};

struct CapabilityHeader {
  u16 id = 0, version = 0;
  u32 next = 0;  ///< from the start of RegionInfo; 0: the last
};
struct SparseMmap {
  CapabilityHeader header;
  u32 areas = 0, reserved = 0;
};
static_assert(sizeof(CapabilityHeader) == 8 && sizeof(SparseMmap) == 16 && sizeof(Area) == 16);
constexpr u16 kSparseMmap = 1;
/// More capabilities and areas than any device has: a chain that names more is a loop.
constexpr u32 kMostCapabilities = 16, kMostAreas = 64;
/// The most descriptors that a kernel lets a message have is 253; others of the protocol agree on 1024.
constexpr u64 kMostFds = 1024, kMostMaps = u64{1} << 32, kMostTransfer = u64{1} << 40;

void append(std::vector<u8>& to, std::span<const u8> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

/// Takes the whole number `key` of `from`, if it is there. False if it is none or outside least..most.
bool take(const nlohmann::ordered_json& from, const char* key, u64 least, u64 most, u64& into,
          std::string& why) {
  const auto at = from.find(key);
  if (at == from.end()) return true;
  if (!at->is_number_unsigned() || at->get<u64>() < least || at->get<u64>() > most) {
    why = fmt::format("{} is no number in {}..{}", key, least, most);
    return false;
  }
  into = at->get<u64>();
  return true;
}

}  // namespace

std::string name(u16 command) {
  if (command == 0 || command >= kNames.size()) return fmt::format("command {}", command);
  return std::string(kNames[command]);
}

std::vector<u8> encode(Header header, std::span<const u8> payload, std::span<const u8> data) {
  header.size = static_cast<u32>(kHeaderBytes + payload.size() + data.size());
  std::vector<u8> out;
  out.reserve(header.size);
  append(out, bytes_of(header));
  append(out, payload);
  append(out, data);
  return out;
}

std::vector<u8> command(u16 id, Command c, std::span<const u8> payload, std::span<const u8> data,
                        bool no_reply) {
  return encode({.id = id, .command = static_cast<u16>(c), .flags = no_reply ? Header::kNoReply : 0}, payload,
                data);
}

std::vector<u8> reply(const Header& to, u32 error, std::span<const u8> payload, std::span<const u8> data) {
  Header h{.id = to.id, .command = to.command, .flags = Header::kReply};
  if (error == 0) return encode(h, payload, data);
  h.flags |= Header::kError;
  h.error = error;
  return encode(h);
}

std::size_t length_of(std::span<const u8> header, std::size_t longest) {
  const auto h = first_of<Header>(header);
  if (!h || h->size < kHeaderBytes || h->size > longest || (!h->is_command() && !h->is_reply())) return 0;
  return h->size;
}

std::vector<u8> encode_version(u16 major, u16 minor, const Capabilities* c) {
  std::vector<u8> out;
  append(out, bytes_of(major));
  append(out, bytes_of(minor));
  if (c == nullptr) return out;
  const Capabilities usual;
  // Defaults are left out: QEMU reads the answer into the space of its own text.
  nlohmann::ordered_json named = {{"max_msg_fds", c->max_msg_fds},
                                  {"max_data_xfer_size", c->max_data_xfer_size}};
  if (c->max_dma_maps != usual.max_dma_maps) named["max_dma_maps"] = c->max_dma_maps;
  if (c->pgsizes != usual.pgsizes) named["pgsizes"] = c->pgsizes;
  if (c->write_multiple) named["write_multiple"] = true;
  const std::string text = nlohmann::ordered_json{{"capabilities", named}}.dump();
  out.insert(out.end(), text.begin(), text.end());
  out.push_back(0);
  return out;
}

std::optional<Version> decode_version(std::span<const u8> payload, std::string& why) {
  Version v;
  if (payload.size() < 4) {
    why = fmt::format("{} bytes, and the two numbers have 4", payload.size());
    return {};
  }
  std::memcpy(&v.major, payload.data(), sizeof v.major);
  std::memcpy(&v.minor, payload.data() + 2, sizeof v.minor);
  const auto text = payload.subspan(4);
  if (text.empty()) return v;
  if (text.size() > kLongestVersion || text.back() != 0) {
    why = text.back() != 0 ? "the text has no final zero" : fmt::format("the text has {} bytes", text.size());
    return {};
  }
  // Without nesting beyond what the protocol has, whatever comes.
  u32 depth = 0;
  const auto shallow = [&](int, nlohmann::ordered_json::parse_event_t event, nlohmann::ordered_json&) {
    using Event = nlohmann::ordered_json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) ++depth;
    if (event == Event::object_end || event == Event::array_end) --depth;
    return depth <= 8;
  };
  const char* const begin = reinterpret_cast<const char*>(text.data());
  const auto json = nlohmann::ordered_json::parse(begin, begin + text.size() - 1, shallow, false);
  if (!json.is_object()) {
    why = "the text is no JSON object";
    return {};
  }
  const auto all = json.find("capabilities");
  if (all == json.end()) return v;
  if (!all->is_object()) {
    why = "capabilities is no object";
    return {};
  }
  Capabilities& c = v.capabilities;
  if (!take(*all, "max_msg_fds", 0, kMostFds, c.max_msg_fds, why) ||
      !take(*all, "max_data_xfer_size", 1, kMostTransfer, c.max_data_xfer_size, why) ||
      !take(*all, "max_dma_maps", 1, kMostMaps, c.max_dma_maps, why) ||
      !take(*all, "pgsizes", 1, ~u64{0}, c.pgsizes, why))
    return {};
  if (const auto multiple = all->find("write_multiple"); multiple != all->end()) {
    if (!multiple->is_boolean()) {
      why = "write_multiple is neither true nor false";
      return {};
    }
    c.write_multiple = multiple->get<bool>();
  }
  return v;
}

std::vector<u8> encode_region(RegionInfo info, std::span<const Area> areas, u32 room, bool& fits) {
  const u32 needed =
      static_cast<u32>(sizeof info + (areas.empty() ? 0 : sizeof(SparseMmap) + areas.size() * sizeof(Area)));
  info.argsz = needed;
  info.cap_offset = 0;
  info.flags &= ~RegionInfo::kCaps;
  fits = room >= needed;
  std::vector<u8> out;
  if (areas.empty() || !fits) {
    append(out, bytes_of(info));
    return out;
  }
  info.flags |= RegionInfo::kCaps;
  info.cap_offset = sizeof info;
  append(out, bytes_of(info));
  append(out, bytes_of(SparseMmap{.header = {.id = kSparseMmap, .version = 1},
                                  .areas = static_cast<u32>(areas.size())}));
  for (const Area& a : areas) append(out, bytes_of(a));
  return out;
}

std::optional<std::vector<Area>> decode_areas(std::span<const u8> payload, std::string& why) {
  const auto info = first_of<RegionInfo>(payload);
  if (!info) {
    why = fmt::format("{} bytes, and a region's description has {}", payload.size(), sizeof(RegionInfo));
    return {};
  }
  if ((info->flags & RegionInfo::kMmap) == 0) return std::vector<Area>{};
  if ((info->flags & RegionInfo::kCaps) == 0) return std::vector<Area>{{0, info->size}};
  u32 at = info->cap_offset;
  for (u32 i = 0; at != 0 && i < kMostCapabilities; ++i) {
    const auto header = at > payload.size() ? std::optional<CapabilityHeader>{}
                                            : first_of<CapabilityHeader>(payload.subspan(at));
    if (!header || at < sizeof(RegionInfo)) {
      why = fmt::format("a capability at {} of {} bytes", at, payload.size());
      return {};
    }
    if (header->id != kSparseMmap) {
      at = header->next;
      continue;
    }
    const auto sparse = first_of<SparseMmap>(payload.subspan(at));
    if (!sparse || sparse->areas > kMostAreas ||
        payload.size() - at - sizeof *sparse < u64{sparse->areas} * sizeof(Area)) {
      why = "the list of mappable areas goes beyond the message";
      return {};
    }
    std::vector<Area> areas(sparse->areas);
    if (!areas.empty())
      std::memcpy(areas.data(), payload.data() + at + sizeof *sparse, areas.size() * sizeof(Area));
    for (const Area& a : areas) {
      if (a.size != 0 && within(a.offset, a.size, info->size)) continue;
      why = fmt::format("a mappable area at {:#x} with {:#x} bytes, and the region has {:#x}", a.offset,
                        a.size, info->size);
      return {};
    }
    return areas;
  }
  if (at != 0) {
    why = "its capabilities do not end";
    return {};
  }
  return std::vector<Area>{{0, info->size}};
}

int check(const IrqSet& s, u32 have, std::size_t data, std::size_t files) {
  const u32 kind = s.flags & IrqSet::kData, action = s.flags & IrqSet::kAction;
  if (!std::has_single_bit(kind) || !std::has_single_bit(action) || (s.flags & ~(kind | action)) != 0)
    return EINVAL;
  // Without any, the whole type is meant.
  if (s.count == 0)
    return s.start == 0 && s.flags == (IrqSet::kNone | IrqSet::kTrigger) && files == 0 ? 0 : EINVAL;
  if (s.start >= have || s.count > have - s.start) return EINVAL;
  if (s.index >= Irq::err && action != IrqSet::kTrigger) return EINVAL;
  if (kind == IrqSet::kBool && data < s.count) return EINVAL;
  // Without descriptors they are taken back.
  if (kind == IrqSet::kEventfd) return files == s.count || files == 0 ? 0 : EINVAL;
  return files == 0 ? 0 : EINVAL;
}

}  // namespace doorbell::vfio_user
