// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The bytes of a card's memory that a run uses. doorbelld shares its card among users, so a run over it is
// given memory that nobody else has; on every other card, and with raw access, a run goes by address.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "qdma/card_lock.hpp"
#include "qdma/daemon/client.hpp"
#include "qdma/driver.hpp"

namespace doorbell::qdma {

/// A part of the card's memory that a run may use.
struct MemoryPart {
  std::string_view name;
  u64 base = 0;
  u64 bytes = 0;
};
/// "ddr", "hbm", "hbm-high".
[[nodiscard]] const std::vector<MemoryPart>& card_memories();
/// Throws Error.
[[nodiscard]] const MemoryPart& card_memory(std::string_view name);

/// How a run comes by card memory.
struct MemoryAccess {
  bool raw = false;          ///< over doorbelld too by address, which takes the right raw-mem-access
  bool allow_write = false;  ///< raw: also where others hold buffers
};

/// Whether the card's owner chooses the run's addresses.
[[nodiscard]] bool memory_is_given(const std::string& spec, const MemoryAccess& access);
/// Throws Error for access that the card does not have, and for `by_address`, a setting that says where the
/// run's bytes lie, if that is not for the run to say.
void check_access(const std::string& spec, const MemoryAccess& access);
void check_access(const std::string& spec, const MemoryAccess& access, const Setting& by_address);

class RunMemory {
 public:
  /// `driver` is the card of this name.
  RunMemory(const std::string& spec, std::shared_ptr<Driver> driver, const MemoryAccess& access);

  /// The addresses are those of buffers that the card's owner has given, not the run's choice.
  [[nodiscard]] bool given() const { return client_ != nullptr && !access_.raw; }
  /// The address of so many bytes, whole granules, that are the run's alone: at `offset` of the memory, or
  /// where they are given. They stay so until this object and the driver have gone. `setting` is what the
  /// need for memory follows from. Throws Error: also where others hold some of them.
  [[nodiscard]] u64 place(const MemoryPart& memory, u64 offset, u64 bytes, const Setting& setting);
  /// All that was given may be given again by place().
  void reuse();

 private:
  struct Piece {
    daemon::CardBuffer buffer;
    u64 used = 0;
  };
  [[nodiscard]] u64 take(Piece& piece, u64 bytes);
  [[nodiscard]] daemon::CardBuffer open(const MemoryPart& memory, u64 bytes);
  [[nodiscard]] Piece new_piece(const MemoryPart& memory, u64 bytes, u64 wanted, const Setting& setting);
  void ask_for(const MemoryPart& memory, u64 address, u64 bytes);

  std::string spec_;
  std::shared_ptr<Driver> driver_;
  daemon::DaemonClient* client_;  ///< the daemon behind the driver, or null
  MemoryAccess access_;
  CardLock lock_;
  std::map<std::string_view, std::vector<Piece>>
      pieces_;  ///< by memory; the connection's end gives them back
};

}  // namespace doorbell::qdma
