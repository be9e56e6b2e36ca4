// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rma/operation_work.hpp"

template class doorbell::Checker<doorbell::OneLane, doorbell::rma::OpPayload<doorbell::OneLane>>;
