// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/io_work.hpp"

template class doorbell::Checker<doorbell::OneLane, doorbell::nvme::IoPayload<doorbell::OneLane>>;
