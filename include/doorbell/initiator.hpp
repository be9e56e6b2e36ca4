// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Who drives a queue, and so whose addresses of it count.
#pragma once

namespace doorbell {

enum class Initiator { cpu, gpu };

}  // namespace doorbell
