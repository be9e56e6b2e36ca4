// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Questions to a running server of the same user, beside what it serves: one JSON text there, one back.
#pragma once

#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "service/patience.hpp"

namespace doorbell::service {

/// Answers in threads of its own until destroyed.
class ControlSocket {
 public:
  /// The answer to a question; it may wait, and throw Error, which the asker gets as his. One call at a time.
  using Answer = std::function<nlohmann::ordered_json(const nlohmann::ordered_json& question)>;
  /// Listens at `path` (mode 0600). Throws Error.
  ControlSocket(const std::string& path, Answer answer);
  ~ControlSocket();
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

/// Asks the server at `path`. Throws Error: the server's, or that it is not there or does not answer.
[[nodiscard]] nlohmann::ordered_json ask_control(const std::string& path,
                                                 const nlohmann::ordered_json& question,
                                                 const Patience& patience = {});

}  // namespace doorbell::service
