// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Names of NVMe status codes, as the specification spells them. Host code only.
#pragma once

#include <doorbell/nvme/wire.hpp>

#include <string>

namespace doorbell::nvme {

/// "LBA Out of Range"; "Status type 2 code 0x99" for one without a name here. Takes the status type
/// and code as Status::type_and_code() gives them.
[[nodiscard]] std::string status_name(u16 type_and_code);

}  // namespace doorbell::nvme
