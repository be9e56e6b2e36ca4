// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Symbols between libibverbs and its providers that have a meaning here: programs that link libmlx5 or libefa
// load them, and their constructors call these. symbols.txt has the others.
#include "rdma/dropin/verbs_abi.hpp"

/// Each provider's constructor: there is no device of it.
DOORBELL_VERBS void verbs_register_driver_34(const void*) {}

DOORBELL_VERBS void __verbs_log(void*, unsigned, const char*, ...) {}

extern "C" {
__attribute__((visibility("default"))) bool verbs_allow_disassociate_destroy = true;
}
