// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The initiator, which drives a queue: a CPU or a GPU. Its addresses of the queue's memory are used.
#pragma once

namespace doorbell {

enum class Initiator { cpu, gpu };

}  // namespace doorbell
