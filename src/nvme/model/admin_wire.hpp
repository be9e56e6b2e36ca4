// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Formats of admin commands and their data that only a controller writes. Sources: NVM Express Base
// specification 1.4 and 2.0; offsets as in linux/nvme.h and libnvme's nvme/types.h.
#pragma once

#include <doorbell/nvme/wire.hpp>

#include <algorithm>
#include <cstring>
#include <string_view>

namespace doorbell::nvme {

namespace cns {
inline constexpr u8 name_space = 0x00, controller = 0x01, active_list = 0x02, descriptors = 0x03,
                    set_name_space = 0x05, set_controller = 0x06, set_active_list = 0x07,
                    independent_name_space = 0x08, allocated_list = 0x10, allocated_name_space = 0x11,
                    attached_controllers = 0x12, controllers = 0x13, command_sets = 0x1c;
}

namespace identify {
// controller, beside what wire.hpp has
inline constexpr u32 rab = 72, oui = 73, oaes = 92, ctratt = 96, frmw = 260, elpe = 262, npss = 263,
                     avscc = 264, warning_temperature = 266, critical_temperature = 268, sanicap = 328,
                     fna = 524, awun = 526, awupf = 528, power_states = 2048;
inline constexpr u16 oacs_format = 1u << 1;
inline constexpr u16 oncs_dataset = 1u << 2, oncs_save_and_select = 1u << 4, oncs_timestamp = 1u << 6,
                     oncs_verify = 1u << 7;
inline constexpr u32 ctratt_host_id_128 = 1u << 0;
inline constexpr u8 lpa_smart_per_namespace = 1u << 0, lpa_effects = 1u << 1, lpa_offset = 1u << 2,
                    lpa_supported_pages = 1u << 5;
inline constexpr u32 sanicap_block_erase = 1u << 1;
// namespace
inline constexpr u32 dlfeat = 33, nguid = 104, eui64 = 120;
inline constexpr u32 nguid_bytes = 16, eui64_bytes = 8;
}  // namespace identify

namespace log {
inline constexpr u8 supported = 0x00, errors = 0x01, smart = 0x02, firmware = 0x03, changed_namespaces = 0x04,
                    effects = 0x05, feature_effects = 0x12, mi_effects = 0x13, sanitize = 0x81;
}

/// SMART / Health Information: the bits of its critical warning, and offsets.
namespace smart {
inline constexpr u8 kTemperatureWarning = 1u << 1, kReliabilityWarning = 1u << 2;
inline constexpr u32 warning = 0, temperature = 1, spare = 3, spare_threshold = 4, units_read = 32,
                     units_written = 48, reads = 64, writes = 80, power_cycles = 112, hours = 128,
                     media_errors = 160, error_entries = 176;
}  // namespace smart

namespace feature {
inline constexpr u8 arbitration = 0x01, power = 0x02, temperature = 0x04, error_recovery = 0x05,
                    write_cache = 0x06, queues = 0x07, coalescing = 0x08, vector = 0x09,
                    write_atomicity = 0x0a, events = 0x0b, timestamp = 0x0e, keep_alive = 0x0f,
                    host_behavior = 0x16, host_id = 0x81;
}

/// A page of zeros that is filled in and sent to the host.
class AdminPage {
 public:
  template <class T>
  void put(u32 at, T v) {
    std::memcpy(bytes_ + at, &v, sizeof v);
  }
  /// Padded with spaces.
  void text(u32 at, u32 width, std::string_view s) {
    std::memset(bytes_ + at, ' ', width);
    std::memcpy(bytes_ + at, s.data(), std::min<std::size_t>(width, s.size()));
  }
  [[nodiscard]] const u8* bytes() const { return bytes_; }
  [[nodiscard]] u8* at(u32 offset) { return bytes_ + offset; }

 private:
  u8 bytes_[identify::bytes] = {};
};

}  // namespace doorbell::nvme
