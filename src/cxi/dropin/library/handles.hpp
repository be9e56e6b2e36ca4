// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The objects that the library hands out. Programs see their first member.
#pragma once

#include <cerrno>
#include <memory>
#include <string>

#include "cxi/dropin/library/connection.hpp"
#include "cxi/libcxi/abi.hpp"

#define DOORBELL_LIBCXI extern "C" __attribute__((visibility("default")))

namespace doorbell::cxi::dropin {

/// An object of the Cassini, and the way to it.
struct Handle {
  std::shared_ptr<Connection> connection;
  u32 handle = 0;
  /// 0 or a negative errno.
  [[nodiscard]] int destroy(Kind kind) const {
    return Ask(*connection, Call::destroy, {handle, static_cast<u64>(kind)}).send().result;
  }
};

struct DeviceHandle {
  libcxi::DeviceInfo shown{};
  int file = -1;  ///< where the library has the device's descriptor; programs that write to it get EBADF
  std::shared_ptr<Connection> connection;
};
/// `Shown`: the program's structure.
template <class Shown>
struct Given {
  Shown shown{};
  Handle object;
  [[nodiscard]] static Given* of(const void* seen) { return static_cast<Given*>(const_cast<void*>(seen)); }
};
struct LniShown {
  u32 id;
};
struct PteMapShown {
  u32 nothing;
};
struct WaitShown {
  int file;  ///< for poll(), POLLPRI
};

/// HPE's tests look at the device through the word in front of what they are given.
struct LniGiven {
  DeviceHandle* device = nullptr;
  LniShown shown{};
  Handle object;
  [[nodiscard]] static LniGiven* of(void* seen) {
    return reinterpret_cast<LniGiven*>(static_cast<u8*>(seen) - offsetof(LniGiven, shown));
  }
};
using DomainGiven = Given<libcxi::Domain>;
using ProfileGiven = Given<libcxi::Cp>;
using MapGiven = Given<libcxi::Md>;
using WaitGiven = Given<WaitShown>;
using EntryGiven = Given<libcxi::Pte>;
using EntryMapGiven = Given<PteMapShown>;
struct EventQueueGiven : Given<libcxi::Eq> {
  OwnPages csr;
  u8* next = nullptr;  ///< the queue's memory after resizing
  u32 next_bytes = 0;
};
struct CommandQueueGiven : Given<libcxi::Cq> {
  OwnPages ring, launch;
};
struct CounterGiven : Given<libcxi::Ct> {
  OwnPages doorbell;
};

/// Sends the request, and makes the object if that succeeds.
template <class G>
int take(Ask& ask, const Handle& parent, std::unique_ptr<G>& given, Reply& reply) {
  reply = ask.send();
  if (reply.result != 0) return reply.result;
  given->object = {parent.connection, reply.handle};
  return 0;
}

/// Destroys the object, and what the program had of it.
template <class G>
int give_back(void* seen, Kind kind) {
  if (seen == nullptr) return -EINVAL;
  auto* const given = static_cast<G*>(seen);
  const int error = given->object.destroy(kind);
  // A Cassini that has gone keeps nothing.
  if (error == 0 || error == -ENODEV) delete given;
  return error == -ENODEV ? 0 : error;
}

/// For calls that the software Cassini does not have.
inline int missing(const char* call, int error, const char* why = "the software Cassini does not have it") {
  complain(std::string(call) + ": " + why);
  return -error;
}

}  // namespace doorbell::cxi::dropin
