// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How the calls of the driver's interface (abi.hpp) reach a card: ioctl() of the kernel's driver, messages to
// a card server, or the daemon's protocol. The client library knows nothing else of a back end.
#pragma once

#include <doorbell/qdma/abi.hpp>
#include <doorbell/qdma/card.hpp>

#include <atomic>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>

#include "model/use.hpp"
#include "qdma/peer/wire.hpp"
#include "qdma/settings.hpp"
#include "service/patience.hpp"
#include "system/backend.hpp"
#include "system/descriptor.hpp"

namespace doorbell::qdma {

using service::Patience;

/// The arguments of a call besides its structure.
struct CallOptions {
  u64 deadline_ns = 0;  ///< of a transfer; 0: the driver's own limit
  /// Receives up to its size results of a transfer's sub-transfers, if the back end reports them.
  std::span<SubResult> parts = {};
  u64 tag = 0;  ///< names a transfer or BUF_CREATE for cancel(); 0: it cannot be cancelled
  /// Set before cancel(), which may come before the card has the transfer; may be null.
  const std::atomic<bool>* cancelled = nullptr;
};

/// The outcome of a call.
struct CallResult {
  i64 result = 0;  ///< at least 0, or a negative errno
  u32 parts = 0;   ///< results written to CallOptions::parts; 0: not reported
};

class CallEngine;

/// An open card. Every function may be called by any thread, also at the same time.
class Driver {
 public:
  virtual ~Driver() = default;
  /// "model" or "hardware".
  [[nodiscard]] virtual std::string kind() const = 0;
  /// The card's full name, for what the user wrote.
  [[nodiscard]] virtual std::string name() const = 0;
  /// Issues the call on the control node (`fd` -1) or on a transfer descriptor of this card. `structure`
  /// begins with its `size`; it is written back as the driver does. Descriptors in it (buf_fd, and one that
  /// is returned) are this process's. Blocks. Never throws.
  [[nodiscard]] virtual CallResult call(int fd, u32 number, std::span<u8> structure,
                                        const CallOptions& options) = 0;
  [[nodiscard]] CallResult call(int fd, u32 number, std::span<u8> structure) {
    return call(fd, number, structure, {});
  }
  /// True if a transfer descriptor of this card is a socket that takes wire.hpp's messages; false: the
  /// kernel's file, for ioctl() and io_uring.
  [[nodiscard]] virtual bool descriptors_are_sockets() const = 0;
  /// Whether a transfer ends at CallOptions::deadline_ns. If not, its call returns when the driver lets it.
  [[nodiscard]] virtual bool keeps_deadlines() const { return true; }
  /// Asks the card to give up the transfer or BUF_CREATE on descriptor `fd` (-1: the control node) that has
  /// this tag, if it can.
  virtual void cancel(int fd, u64 tag) {
    static_cast<void>(fd);
    static_cast<void>(tag);
  }
  /// The text about a call that has failed with `error`.
  [[nodiscard]] virtual std::string why(int error) const;
  /// An io_uring user for transfers on descriptor `fd`; null where there is none. `fd` outlives it.
  [[nodiscard]] virtual std::unique_ptr<CallEngine> uring_engine(int fd);
  /// Whether some process still has a host buffer of this card; none: the driver does not know.
  [[nodiscard]] virtual std::optional<bool> still_held(const wire::HostBufferName& buffer) {
    static_cast<void>(buffer);
    return {};
  }
  /// Closes a descriptor that a call has returned.
  virtual void close(int fd) { ::close(fd); }
  /// The device's own counters and injected faults, for the Result; null if it has none.
  [[nodiscard]] virtual nlohmann::ordered_json counters() { return nullptr; }
};

/// Reads the description that the card gives of itself. At least 0, or a negative errno.
[[nodiscard]] i64 read_info(Driver& card, Info& out);

/// The purpose for which a card is opened. Only `spec` is needed.
struct DriverRequest {
  std::string spec = {};
  model::Use use = {};
  Setting named_by = setting::card;  ///< in messages
  Patience patience = {};            ///< with a card of another process
};

using Backend = doorbell::Backend<Driver, DriverRequest>;

/// model, server, kernel, daemon. A new back end is a line in backends.cpp.
[[nodiscard]] const std::vector<Backend>& backends();

/// Opens the card that the request names. Never replaces one back end by another.
[[nodiscard]] std::unique_ptr<Driver> open_driver(const DriverRequest& request);

/// A Card over a driver that is already open.
[[nodiscard]] Card card_over(std::shared_ptr<Driver> driver);
/// The driver behind a card.
[[nodiscard]] Driver& driver_of(const Card& card);

}  // namespace doorbell::qdma
