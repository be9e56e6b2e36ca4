// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/bench/run_memory.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "qdma/daemon/card_memory.hpp"
#include "qdma/daemon/daemon_driver.hpp"
#include "qdma/settings.hpp"
#include "system/sysfs.hpp"

namespace doorbell::qdma {

namespace {

daemon::DaemonClient* client_of(Driver& driver) {
  auto* const d = dynamic_cast<daemon::DaemonDriver*>(&driver);
  return d == nullptr ? nullptr : &d->client();
}

std::string subject(const std::string& spec) {
  return fmt::format("{} {}", setting::card, spec);
}

}  // namespace

const std::vector<MemoryPart>& card_memories() {
  static const std::vector<MemoryPart> all = {
      {"ddr", kDdrBase, kDdrBytes},
      {"hbm", kHbmBase, kHbmBytes},
      {"hbm-high", kHbmBoundary, kHbmBase + kHbmBytes - kHbmBoundary},
  };
  return all;
}

const MemoryPart& card_memory(std::string_view name) {
  for (const MemoryPart& m : card_memories())
    if (m.name == name) return m;
  throw Error(fmt::format("the card's memory '{}'", name), "there is no such memory",
              "give ddr, hbm or hbm-high");
}

bool memory_is_given(const std::string& spec, const MemoryAccess& access) {
  return daemon::names_daemon(spec) && !access.raw;
}

void check_access(const std::string& spec, const MemoryAccess& access) {
  if (access.raw && !daemon::names_daemon(spec))
    throw Error(setting::raw_memory,
                "it is for a card of doorbelld: on other cards a run goes by address anyway", "leave it out");
}

void check_access(const std::string& spec, const MemoryAccess& access, const Setting& by_address) {
  if (memory_is_given(spec, access))
    throw Error(by_address, "doorbelld gives the run its memory, and chooses where",
                fmt::format("leave it out, or go by address with {}", setting::raw_memory));
}

RunMemory::RunMemory(const std::string& spec, std::shared_ptr<Driver> driver, const MemoryAccess& access)
    : spec_(spec), driver_(std::move(driver)), client_(client_of(*driver_)), access_(access), lock_(spec) {}

u64 RunMemory::place(const MemoryPart& memory, u64 offset, u64 bytes, const Setting& setting) {
  if (!given()) {
    const u64 address = memory.base + offset;
    if (client_ != nullptr) ask_for(memory, address, bytes);
    lock_.take(address, bytes, setting::starting_offset);
    return address;
  }
  std::vector<Piece>& pieces = pieces_[memory.name];
  for (Piece& p : pieces)
    if (p.buffer.bytes - p.used >= bytes) return take(p, bytes);
  // Each buffer costs queue pairs, so that the more a run needs the larger they are.
  const u64 last = pieces.empty() ? 0 : pieces.back().buffer.bytes;
  pieces.push_back(new_piece(memory, bytes, std::min(2 * last, daemon::kRegionBytes), setting));
  return take(pieces.back(), bytes);
}

void RunMemory::reuse() {
  for (auto& [name, pieces] : pieces_)
    for (Piece& p : pieces) p.used = 0;
}

u64 RunMemory::take(Piece& piece, u64 bytes) {
  const u64 address = piece.buffer.address + std::exchange(piece.used, piece.used + bytes);
  // A run by address may have found this memory free, and works there.
  lock_.take(address, bytes, fmt::format("{} of the other run", setting::starting_offset));
  return address;
}

/// A buffer that lies in `memory`. Its own queue pair is not used: a run makes those that it measures.
daemon::CardBuffer RunMemory::open(const MemoryPart& memory, u64 bytes) {
  daemon::BufferOpenRequest r{.channel = kChannel0, .size = bytes};
  if (memory.base >= kDdrBase) return daemon::open_buffer(*client_, r);
  r.type = static_cast<u32>(daemon::AllocationType::hbm_vnoc);
  if (memory.base == kHbmBase) return daemon::open_buffer(*client_, r);
  // Only a region can be asked for by its place.
  r.type = static_cast<u32>(daemon::AllocationType::hbm);
  r.argument = (memory.base - kHbmBase) / daemon::kRegionBytes;
  for (;; ++r.argument) try {
      return daemon::open_buffer(*client_, r);
    } catch (const CardError& e) {
      if (e.number() != ENOMEM || r.argument + 1 == daemon::kRegions) throw;
    }
}

/// Of `wanted` bytes if there are so many, and of `bytes` at least.
RunMemory::Piece RunMemory::new_piece(const MemoryPart& memory, u64 bytes, u64 wanted,
                                      const Setting& setting) {
  if (bytes > daemon::kRegionBytes)
    throw Error(setting,
                fmt::format("{} bytes of card memory are needed in one piece, and doorbelld gives {} at most",
                            bytes, daemon::kRegionBytes),
                fmt::format("use less, or go by address with {}", setting::raw_memory));
  const u64 least = daemon::whole_units(bytes);
  for (u64 ask = std::max(least, wanted);; ask = std::max(least, daemon::whole_units(ask / 2))) try {
      return {.buffer = open(memory, ask), .used = 0};
    } catch (const CardError& e) {
      const bool full = e.number() == ENOMEM || e.number() == EDQUOT || e.number() == EBUSY;
      if (full && ask > least) continue;
      const std::string use_less =
          fmt::format("use less of it ({}), or wait until others have closed their buffers", setting);
      throw Error(subject(spec_),
                  fmt::format("doorbelld gives no {} bytes of {} ({}): {}", least, memory.name,
                              reason(e.number()), e.what()),
                  full                  ? use_less
                  : e.number() == EPERM ? "its roles file gives that right"
                                        : "",
                  e.number() == EINTR ? ExitCode::interrupted : ExitCode::usage);
    }
}

/// Raw access reaches what others hold, so the daemon is asked first. It keeps nobody from opening a buffer
/// there later.
void RunMemory::ask_for(const MemoryPart& memory, u64 address, u64 bytes) {
  daemon::HolderReply held;
  try {
    held = daemon::holder_of(*client_, address, bytes);
  } catch (const CardError& e) {
    if (e.number() == ENOTTY && access_.allow_write) return;
    throw Error(
        setting::raw_memory, e.what(),
        e.number() == EPERM    ? "its roles file gives the right raw-mem-access; without it leave this out"
        : e.number() == ENOTTY ? fmt::format("this daemon cannot say who holds memory: leave it out, or "
                                             "write to whatever is there with {}",
                                             setting::allow_write)
                               : "",
        e.number() == EINTR ? ExitCode::interrupted : ExitCode::usage);
  }
  if (held.buffers == 0 || access_.allow_write) return;
  throw Error(
      setting::raw_memory,
      fmt::format(
          "bytes {:#x} to {:#x} of {} are in use: user {} (connection {}) holds {} bytes from {:#x} on{}",
          address, address + bytes, memory.name, +held.user, +held.connection, +held.bytes, +held.base,
          held.buffers > 1 ? fmt::format(", and there are {} buffers more", held.buffers - 1) : ""),
      fmt::format("leave it out and be given memory, use other bytes of the card, or overwrite these with {}",
                  setting::allow_write));
}

}  // namespace doorbell::qdma
