// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/dpdk/plan.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <optional>
#include <utility>

#include "net/raw/frames.hpp"
#include "net/settings.hpp"
#include "options/spec.hpp"

namespace doorbell::net::dpdk {

namespace {

using options::Kind;

/// Those that a user may choose; the others are the link's.
constexpr Driver kChosen[] = {Driver::af_packet, Driver::af_xdp, Driver::tap};

/// net_ring's, which it makes whether they are used or not.
constexpr u32 kRingQueues = 16;
/// An AF_PACKET ring of one direction: as long as it may be, and no shorter than serves.
constexpr u32 kPacketRingBytes = 16u << 20, kLeastPacketRingBytes = 256u << 10;
/// That driver takes no frame that is longer than Ethernet's.
constexpr u32 kTapMtu = 1500;
/// Descriptors and metadata in front of a frame in an AF_PACKET ring.
constexpr u32 kPacketRingOverhead = 128;

/// Of AF_XDP: a page without an mbuf (128), its headroom (128) and its pool's header (64). 64 less, because a
/// pool's objects have an odd number of cache lines, which spreads them over memory channels.
constexpr u32 kXdpBuffer = 4096 - 320 - 64;
/// Bytes of that buffer which the kernel keeps in front of a frame.
constexpr u32 kXdpHeadroom = 256;

struct Engine {
  std::optional<Driver> driver;
  u32 buffer_bytes = 0;
};

options::OptionTable engine_keys() {
  options::OptionTable t;
  t.add({.name = "buffer",
         .kind = Kind::size,
         .default_text = "0",
         .max = 65535,
         .help =
             "data bytes of a receive buffer; longer frames come in several and are put together. 0: as many "
             "as the longest frame has"});
  return t;
}

/// "dpdk:af_xdp,buffer=2048"
Engine parse_engine(const StreamRequest& request) {
  const std::string& text = request.engine;
  const std::string& setting = setting::engine;
  Engine e;
  const std::size_t colon = text.find(':');
  if (colon == std::string::npos) return e;
  std::string keys = text.substr(colon + 1);
  const std::string first = keys.substr(0, keys.find(','));
  if (first.find('=') == std::string::npos) {
    const auto* const found = std::ranges::find(kChosen, first, name);
    if (found == std::end(kChosen))
      throw Error(setting, fmt::format("'{}' is no driver of dpdk", first),
                  fmt::format("write {}", kEngineSyntax));
    e.driver = *found;
    keys.erase(0, std::min(keys.size(), first.size() + 1));
  }
  if (keys.empty()) return e;
  const options::Options o = options::parse_spec(setting + " dpdk", engine_keys(), "dpdk:" + keys);
  e.buffer_bytes = static_cast<u32>(o.bytes("buffer"));
  return e;
}

options::OptionTable memif_keys() {
  options::OptionTable t;
  t.add(
      {.name = "socket", .kind = Kind::path, .help = "Unix socket over which the two ends find each other"});
  t.add({.name = "id",
         .kind = Kind::integer,
         .default_text = "0",
         .max = 65535,
         .help = "number of the device on the socket"});
  return t;
}

struct Memif {
  std::string socket;
  u64 id = 0;
};

/// In a folder that only this user writes.
std::string default_socket() {
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/') return fmt::format("{}/doorbell-memif.sock", runtime);
  return geteuid() == 0 ? "/run/doorbell-memif.sock" : "";
}

/// "memif:socket=/run/a.sock,id=1"
Memif parse_memif(const std::string& text, const std::string& suffix) {
  const std::string title = setting::link + " memif";
  const options::Options o = options::parse_spec(title, memif_keys(), text);
  Memif m = {o.has("socket") ? o.text("socket") : default_socket(), o.integer("id")};
  if (!m.socket.empty()) m.socket += suffix;
  constexpr std::size_t kLongest = sizeof(sockaddr_un::sun_path) - 1;
  if (m.socket.empty() || m.socket.size() > kLongest)
    throw Error(title,
                m.socket.empty() ? "there is no folder for this user's sockets (XDG_RUNTIME_DIR)"
                                 : fmt::format("'{}' is too long for a socket", m.socket),
                fmt::format("give socket=PATH, 1..{} bytes", kLongest - suffix.size()));
  return m;
}

/// The ends of "0000:01:00.0,0000:01:00.1"; DPDK wants the domain.
std::pair<std::string, std::string> pci_addresses(const std::string& text) {
  const auto full = [](std::string a) { return std::ranges::count(a, ':') == 1 ? "0000:" + a : a; };
  const std::size_t comma = text.find(',');
  return {full(text.substr(0, comma)), full(text.substr(comma + 1))};
}

Driver driver_of(const Engine& engine, const Link& link, const StreamRequest& request) {
  const std::string& of_link = setting::link;
  const std::string dpdk = setting::engine + " dpdk";
  const std::string text = link.name();
  const std::string kind = text.substr(0, text.find(':'));
  std::optional<Driver> by_link;
  if (kind == "ring") by_link = Driver::ring;
  if (kind == "null") by_link = Driver::null;
  if (kind == "memif") by_link = Driver::memif;
  if (kind == "tap") by_link = Driver::tap;
  // Of the ends that lie in this process.
  const auto has = [&](End end, bool here) { return !here || !link.interface(end).empty(); };
  const bool interfaces = has(End::tx, request.has_tx) && has(End::rx, request.has_rx);
  if (!by_link && !interfaces && link.kind() == "hardware") by_link = Driver::pci;
  if (text == "lo")
    throw Error(fmt::format("{} {} lo", dpdk, of_link),
                "its two ends are one interface, which shows each frame twice",
                fmt::format("use {} veth", of_link));
  if (text.starts_with("ring:"))
    throw Error(fmt::format("{} {}", of_link, text), "DPDK's ring takes no keys",
                fmt::format("use {} ring, or {} ring", of_link, setting::engine));
  if (!by_link && !interfaces)
    throw Error(dpdk, fmt::format("{} has no interfaces that DPDK could open", text),
                fmt::format("use {} ring, memif, tap, veth, interfaces, or PCI addresses", of_link));
  if (engine.driver && by_link && *engine.driver != *by_link)
    throw Error(fmt::format("{}:{}", dpdk, name(*engine.driver)),
                fmt::format("{} is a device of its own", text), "leave the driver out");
  if (engine.driver == Driver::tap && !by_link)
    throw Error(dpdk + ":tap", fmt::format("{} has interfaces already", text),
                fmt::format("use {} tap", of_link));
  return by_link ? *by_link : engine.driver.value_or(Driver::af_packet);
}

/// Of an AF_PACKET ring. A block holds one or two: the driver wants whole frames in a block, the kernel whole
/// pages.
u32 packet_slot(u32 frame_bytes) {
  return std::max(2048u, std::bit_ceil(frame_bytes + kPacketRingOverhead));
}

/// Whether the kernel lets this process lock so much: the driver locks its rings, and without privileges
/// there is a limit.
bool lockable(u64 bytes) {
  void* const m = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_LOCKED, -1, 0);
  if (m == MAP_FAILED) return false;
  munmap(m, bytes);
  return true;
}

/// The rings of one direction, when so many queues have one of each direction.
u32 packet_ring_bytes(u32 queues) {
  u32 bytes = kPacketRingBytes;
  while (bytes > kLeastPacketRingBytes && !lockable(u64{2} * queues * bytes)) bytes /= 2;
  return bytes;
}

DeviceSpec af_packet(const std::string& interface, u32 queues, u32 frame_bytes, u32 ring_bytes) {
  const u32 slot = packet_slot(frame_bytes);
  return {"vdev", "net_af_packet",
          fmt::format("iface={},qpairs={},framesz={},blocksz={},framecnt={}", interface, queues, slot,
                      std::max(4096u, slot), ring_bytes / slot)};
}

DeviceSpec af_xdp(const std::string& interface, u32 queues) {
  return {"vdev", "net_af_xdp", fmt::format("iface={},start_queue=0,queue_count={}", interface, queues)};
}

void choose_buffer(Plan& plan, u32 wanted, const std::string& engine) {
  // DPDK keeps a buffer's length, with 128 bytes of headroom, in 16 bits.
  u32 least = 128, whole = std::max(least, (plan.frame_bytes + 63) / 64 * 64), most = (65535 - 128) / 64 * 64;
  switch (plan.driver) {
    case Driver::af_packet:
    case Driver::tap:
      // That driver refuses buffers that do not hold a slot of its ring.
      least = whole = packet_slot(plan.frame_bytes);
      break;
    case Driver::af_xdp:
      // The kernel takes chunks of at most a page, which an mbuf and its headroom are part of.
      least = whole = most = kXdpBuffer;
      if (plan.frame_bytes > kXdpBuffer - kXdpHeadroom)
        throw Error(fmt::format("a payload of {} bytes", plan.frame_bytes - plan.header_bytes),
                    fmt::format("AF_XDP by DPDK carries frames of up to {} bytes, {} of them headers",
                                kXdpBuffer - kXdpHeadroom, plan.header_bytes),
                    fmt::format("use a smaller payload, or {} dpdk:af_packet", engine));
      break;
    case Driver::pci:
      // NICs count in steps of 1 KiB.
      whole = std::max(2048u, (plan.frame_bytes + 1023) / 1024 * 1024);
      break;
    case Driver::ring:
    case Driver::null:
    case Driver::memif:
      break;
  }
  plan.buffer_bytes = wanted != 0 ? wanted : std::min(whole, most);
  if (plan.buffer_bytes < least || plan.buffer_bytes > most)
    throw Error(engine + " dpdk,buffer", fmt::format("{} is not in {}..{}", plan.buffer_bytes, least, most));
}

}  // namespace

Plan make_plan(const StreamRequest& request, const Link& link, const std::string& socket_suffix) {
  const Engine engine = parse_engine(request);
  Plan plan;
  plan.driver = driver_of(engine, link, request);
  plan.header_bytes = raw::header_bytes(request.encapsulation);
  plan.frame_bytes = request.payload_bytes + plan.header_bytes;
  choose_buffer(plan, engine.buffer_bytes, setting::engine);
  const bool both = request.has_tx && request.has_rx;
  const auto need_both = [&] {
    if (!both)
      throw Error(fmt::format("{} {}", setting::link, link.name()), "both of its ends lie in one process",
                  "run both ends in this process, or use memif, interfaces or ports");
  };
  u32 most_flows = ~0u, most_rx_queues = ~0u, ring_bytes = 0;
  switch (plan.driver) {
    case Driver::ring:
      need_both();
      most_flows = kRingQueues;
      plan.loop = plan.queue_of_each_flow = true;
      plan.tx = plan.rx = {"vdev", "net_ring", ""};
      break;
    case Driver::null:
      // Its receiving end makes packets without end, none of which is the stream's.
      plan.loop = both;
      plan.queue_of_each_flow = true;
      plan.tx = plan.rx = {"vdev", "net_null", fmt::format("size={}", plan.frame_bytes)};
      break;
    case Driver::memif: {
      // A frame is one buffer of the shared memory; the receiver's socket is the one that listens.
      const u32 buffer = std::min(65535u / 64 * 64, (plan.frame_bytes + 63) / 64 * 64);
      const Memif m = parse_memif(link.name(), socket_suffix);
      plan.socket = m.socket;
      const auto end = [&](const char* role) {
        return DeviceSpec{"vdev", "net_memif",
                          fmt::format("role={},id={},socket={},socket-abstract=no,bsize={},rsize=10", role,
                                      m.id, m.socket, buffer)};
      };
      plan.queue_of_each_flow = true;
      plan.tx = end("client"), plan.rx = end("server");
      break;
    }
    case Driver::af_packet:
      // The driver spreads packets over sockets by their hash, so flows would not arrive where they belong.
      most_rx_queues = 1;
      ring_bytes = packet_ring_bytes(request.flows + 1);
      plan.tx = af_packet(link.interface(End::tx), request.flows, plan.frame_bytes, ring_bytes);
      plan.rx = af_packet(link.interface(End::rx), 1, plan.frame_bytes, ring_bytes);
      break;
    case Driver::af_xdp:
      most_rx_queues = 1;
      plan.tx = af_xdp(link.interface(End::tx), request.flows);
      plan.rx = af_xdp(link.interface(End::rx), 1);
      break;
    case Driver::tap: {
      need_both();
      most_rx_queues = 1;
      if (plan.frame_bytes - raw::kEthernetBytes > kTapMtu)
        throw Error(fmt::format("a payload of {} bytes", request.payload_bytes),
                    fmt::format("DPDK's tap driver carries packets of up to {} bytes, {} of them headers",
                                kTapMtu, plan.header_bytes - raw::kEthernetBytes));
      // A frame written to the tap's file arrives at its interface, where AF_PACKET takes it.
      const std::string interface = fmt::format("dbtap{}", getpid() % 1'000'000);
      plan.tx = {"vdev", "net_tap", "iface=" + interface};
      plan.rx = af_packet(interface, 1, plan.frame_bytes, packet_ring_bytes(1));
      break;
    }
    case Driver::pci:
      plan.tx = {"pci", pci_addresses(link.name()).first, ""};
      plan.rx = {"pci", pci_addresses(link.name()).second, ""};
      if (request.encapsulation != Encapsulation::udp4 && request.rx_queues > 1) most_rx_queues = 1;
      break;
  }
  if (request.flows > most_flows || request.rx_queues > most_rx_queues)
    throw Error(fmt::format("{} flows to {} receive queues", request.flows, request.rx_queues),
                request.flows > most_flows
                    ? fmt::format("DPDK's {} driver has 1..{} flows", name(plan.driver), most_flows)
                    : fmt::format("DPDK's {} driver has 1 receive queue here", name(plan.driver)));
  if (plan.queue_of_each_flow && request.rx_queues > request.flows)
    throw Error(fmt::format("{} receive queues", request.rx_queues),
                fmt::format("there are {} flows, so some would receive nothing", request.flows));
  return plan;
}

}  // namespace doorbell::net::dpdk
