// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// What drives a queue, a CPU or a GPU: its addresses of the queue's memory are used.
#pragma once

namespace doorbell {

enum class Initiator { cpu, gpu };

}  // namespace doorbell
