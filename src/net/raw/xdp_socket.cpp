// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/raw/xdp_socket.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <sys/socket.h>

#include "system/sysfs.hpp"

namespace doorbell::net::raw {

XdpSocket::XdpSocket(const std::string& title_in_messages, u8* memory, u64 bytes, u32 headroom,
                     const XdpRings& sizes)
    : title(title_in_messages) {
  socket = Descriptor(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
  const int fd = socket.get();
  require(fd >= 0, title, "an AF_XDP socket");
  xdp_umem_reg umem{};
  umem.addr = reinterpret_cast<u64>(memory);
  umem.len = bytes / kChunkBytes * kChunkBytes;
  umem.chunk_size = kChunkBytes;
  umem.headroom = headroom;
  if (setsockopt(fd, SOL_XDP, XDP_UMEM_REG, &umem, sizeof umem) != 0) {
    if (errno == ENOBUFS)
      throw Error(title, fmt::format("{} bytes of frames would pass the locked-memory limit", umem.len),
                  "ulimit -l unlimited");
    refuse(title, fmt::format("registering {} bytes of frames", umem.len), errno);
  }
  set_option(fd, SOL_XDP, XDP_UMEM_FILL_RING, sizes.fill, title, "a fill ring");
  set_option(fd, SOL_XDP, XDP_UMEM_COMPLETION_RING, sizes.completion, title, "a completion ring");
  if (sizes.rx > 0) set_option(fd, SOL_XDP, XDP_RX_RING, sizes.rx, title, "a receive ring");
  if (sizes.tx > 0) set_option(fd, SOL_XDP, XDP_TX_RING, sizes.tx, title, "a send ring");
  xdp_mmap_offsets at{};
  socklen_t n = sizeof at;
  require(getsockopt(fd, SOL_XDP, XDP_MMAP_OFFSETS, &at, &n) == 0 && n == sizeof at, title,
          "XDP_MMAP_OFFSETS");
  fill = {title, fd, XDP_UMEM_PGOFF_FILL_RING, at.fr, sizes.fill};
  completion = {title, fd, XDP_UMEM_PGOFF_COMPLETION_RING, at.cr, sizes.completion};
  if (sizes.rx > 0) rx = {title, fd, XDP_PGOFF_RX_RING, at.rx, sizes.rx};
  if (sizes.tx > 0) tx = {title, fd, XDP_PGOFF_TX_RING, at.tx, sizes.tx};
}

void XdpSocket::bind_to(const std::string& interface, u32 index, u32 queue) {
  sockaddr_xdp at{};
  at.sxdp_family = AF_XDP;
  at.sxdp_ifindex = index;
  at.sxdp_queue_id = queue;
  const auto try_with = [&](u16 flags) {
    at.sxdp_flags = flags;
    // The memory of a socket that has just been closed holds the queue for a while.
    return until_not_busy(
        [&] { return bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at); });
  };
  segments = try_with(XDP_COPY | kXdpUseSg) == 0;
  if (segments || (errno == EINVAL && try_with(XDP_COPY) == 0)) return;
  const std::string what = fmt::format("queue {} of {}", queue, interface);
  if (errno == EBUSY) throw Error(title, what + " is another socket's", "give each flow a queue");
  if (errno == EINVAL) throw Error(title, "there is no " + what);
  refuse(title, "binding to " + what, errno);
}

}  // namespace doorbell::net::raw
