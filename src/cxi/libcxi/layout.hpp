// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Checks that what libcxi hands out has the layout declared here. The fields were measured with one version;
// without these checks another layout would go unnoticed until its first use.
#pragma once

#include <doorbell/cxi/types.hpp>

#include "cxi/libcxi/library.hpp"

namespace doorbell::cxi {

/// Each function throws an Error that names the object and the field that looks wrong.
void check(const libcxi::OpenNic& nic, u32 number);
void check(const libcxi::Domain& domain, u32 vni, u32 pid_bits);
void check(const libcxi::Cp& profile, u32 vni);
void check(const libcxi::Md& md, u64 address, u64 bytes);
void check(const libcxi::Eq& queue, const libcxi::EqAttributes& asked);
void check(const libcxi::Cq& queue, u32 slots);
/// Of a queue in memory of the caller that the library does not look at.
void check_in_buffer(const libcxi::Cq& queue, u32 slots);
void check(const libcxi::Ct& counter, const void* writeback);
void check(const libcxi::Pte& entry);
/// For objects without public fields; `what` is the name in the error.
void check_made(const void* object, const std::string& what);

}  // namespace doorbell::cxi
