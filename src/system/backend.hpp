// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One way to reach the devices of a path: what each path's backends.cpp lists.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace doorbell {

/// Whether a back end can be used on this machine.
struct BackendStatus {
  bool usable = false;
  std::string detail;  ///< with what, or why not, on one line
};

/// `Request` names a device of the path, and what it is opened for.
template <class Device, class Request>
struct Backend {
  std::string name;    ///< "model"
  std::string syntax;  ///< of its devices' names: "model[:KEY=VALUE,...]"
  std::string kind;    ///< of its devices: "model", "emulated" or "hardware" (which a driver may emulate)
  std::function<BackendStatus()> status;                                ///< never throws
  std::function<bool(const Request& request)> accepts;                  ///< by its name alone
  std::function<std::unique_ptr<Device>(const Request& request)> open;  ///< throws Error
  /// Reads what the name says of the device, without opening it. Throws Error for what open() does not know.
  std::function<void(const Request& request)> check = {};
};

/// The one that the request's name is of, or null.
template <class Device, class Request>
[[nodiscard]] const Backend<Device, Request>* find_backend(
    const std::vector<Backend<Device, Request>>& backends, const Request& request) {
  for (const auto& b : backends)
    if (b.accepts(request)) return &b;
  return nullptr;
}

/// How the names of their devices look, with commas between.
template <class Device, class Request>
[[nodiscard]] std::string syntaxes(const std::vector<Backend<Device, Request>>& backends) {
  std::string all;
  for (const auto& b : backends) all += (all.empty() ? "" : ", ") + b.syntax;
  return all;
}

/// Checks as much of a request as is possible without opening its device: what the device's name says is
/// read. Throws Error.
template <class Device, class Request>
void check_request(const std::vector<Backend<Device, Request>>& backends, const Request& request) {
  if (const auto* const b = find_backend(backends, request); b != nullptr && b->check) b->check(request);
}

}  // namespace doorbell
