// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The state of a kept link that is written down.
#pragma once

#include <array>

#include "net/links/kept_link.hpp"
#include "system/descriptor.hpp"

namespace doorbell::net {

struct KeptState {
  struct Port {
    std::string interface;
    bool moved = false;  ///< a port of this machine, which has to be given back
    u32 mtu = 0;         ///< before
    bool up = false;
    bool gro = false;
    u32 channels = 0;  ///< 0: not changed
    u64 space = 0;     ///< inode of the namespace made for it; 0 before there is one
    std::string address = {};
  };
  std::array<Port, 2> ports;  ///< tx, rx
  u64 home = 0;               ///< inode of the namespace that they come from
  u32 link_mtu = 0;
  bool complete = false;  ///< false: link_up() is at work, or was killed
};

/// Held by the one that makes or removes a kept link; the kernel lets go of it when its holder ends. Throws
/// Error: no permission, or another holds it for too long.
[[nodiscard]] Descriptor lock_kept_links();

[[nodiscard]] std::optional<KeptState> read_kept_state(const KeptNames& names);
void write_kept_state(const KeptNames& names, const KeptState& state);
void forget_kept_state(const KeptNames& names);

/// For read_kept_state() and its tests. Throws Error when the text is no state.
[[nodiscard]] KeptState parse_kept_state(const std::string& subject, const std::string& text);
[[nodiscard]] std::string kept_state_text(const KeptState& state);

}  // namespace doorbell::net
