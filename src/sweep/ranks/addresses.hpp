// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The addresses by which other hosts may reach this one.
#pragma once

#include <string>
#include <vector>

namespace doorbell::sweep {

/// Addresses of the interfaces that are up, IPv4 first, without loopback and link-local ones.
[[nodiscard]] std::vector<std::string> own_addresses();

/// "192.0.2.0/24" or an IPv6 network, checked. Throws std::invalid_argument, whose text says what is wrong.
void check_network(const std::string& network);

/// True if a numeric address lies in a checked network.
[[nodiscard]] bool in_network(const std::string& address, const std::string& network);

/// Equal for two processes that share a network stack: the machine's boot and its network namespace.
[[nodiscard]] std::string network_stack();

[[nodiscard]] std::string host_name();

}  // namespace doorbell::sweep
