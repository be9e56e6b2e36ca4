// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Functions that TCP and UDP share: opening sockets at the ends of a link, their options, waits with
// deadlines.
#pragma once

#include <doorbell/net/queue.hpp>
#include <doorbell/region.hpp>
#include <netinet/in.h>
#include <poll.h>

#include <functional>
#include <optional>
#include <string>

#include "net/stream.hpp"
#include "system/descriptor.hpp"

namespace doorbell::net::sockets {

using Json = nlohmann::ordered_json;

/// How long setting up a connection may take.
inline constexpr u64 kSetupNs = 10'000'000'000;
/// The longest list of a scatter-gather call (UIO_MAXIOV).
inline constexpr u32 kMaxVectors = 1024;

[[nodiscard]] sockaddr_in address_of(const std::string& ip, u16 port);
[[nodiscard]] std::string text_of(const sockaddr_in& address);
/// The address that the socket is bound to.
[[nodiscard]] sockaddr_in local_address(int fd);
[[nodiscard]] bool same(const sockaddr_in& a, const sockaddr_in& b);

/// Advice about that errno, or nothing.
[[nodiscard]] std::string hint_of(int error);
/// A non-blocking socket; `type` is SOCK_STREAM or SOCK_DGRAM. Throws Error.
[[nodiscard]] Descriptor open_socket(int type);
/// Throws Error naming the option.
void set_option(int fd, int level, int option, int value, const std::string& name);
/// The option's value; empty where the kernel does not know it.
[[nodiscard]] std::optional<int> get_option(int fd, int level, int option);

struct BufferBytes {
  u64 given = 0;        ///< what the kernel says that it allows, its own overhead included
  bool forced = false;  ///< beyond the system's limit for ordinary users
};
enum class Direction { send, receive };
/// Asks for a buffer of `bytes`, past the system's limit where that is permitted. 0 asks for nothing.
BufferBytes set_buffer(int fd, Direction direction, u64 bytes);

/// 0 asks for nothing. Throws Error.
void set_busy_poll(int fd, u32 us);

struct Bound {
  Descriptor socket;
  u16 port = 0;
};
/// A socket at `ip` and the first free port from `port` on, or at `port` alone; a stream socket also listens.
/// `prepare` sets options before. Throws Error when there is no such port.
[[nodiscard]] Bound open_bound(int type, const std::string& ip, u32 port, bool next_free,
                               const std::function<void(int fd)>& prepare);

/// Waits for poll(2) `events` of `fd` until `until_ns` of CLOCK_MONOTONIC; returns what came, or 0.
short wait_until(int fd, short events, u64 until_ns);
/// Waits for one of `polls`, at most `limit_ns`; false when nothing came.
bool wait_for(pollfd* polls, std::size_t count, u64 limit_ns);
/// The socket's pending error, which this takes away; 0: none.
[[nodiscard]] int take_error(int fd);

/// Refuses what no socket can do. `kind` is "udp" or "tcp"; `max_payload` that of the link.
void check_request(const StreamRequest& request, const Link& link, const std::string& kind, u64 max_payload,
                   const std::string& why_no_more);
/// The slots of one flow, an odd number: kTemplates, fewer where they would be more than 64 MiB; 3 of
/// payloads above 512 KiB.
[[nodiscard]] u32 slots_of(u32 payload_bytes);
/// Memory for so many packets of the request's payload.
[[nodiscard]] Region slot_memory(const StreamRequest& request);
[[nodiscard]] TxSlots slots_in(const Region& memory, u32 payload_bytes);

/// Checks the request's receive buffers: host memory, and a GPU only where the GPU is to reach them.
[[nodiscard]] std::shared_ptr<gpu::Gpu> gpu_of(const StreamRequest& request);

}  // namespace doorbell::net::sockets
