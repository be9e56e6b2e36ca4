// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "system/json_instances.hpp"

DOORBELL_JSON_INSTANCES()
