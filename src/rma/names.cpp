// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include "rma/names.hpp"

namespace doorbell::rma {

const std::vector<std::string>& op_names() {
  static const std::vector<std::string> names = {"write",    "write-imm", "read",        "send",
                                                 "send-imm", "fetch-add", "compare-swap"};
  return names;
}

std::string_view name(Op op) {
  return op_names()[static_cast<std::size_t>(op)];
}

std::string status_name(u16 status) {
  switch (static_cast<Status>(status)) {
    case Status::ok:
      return "success";
    case Status::local_length:
      return "local length error";
    case Status::local_qp_op:
      return "local QP operation error";
    case Status::local_eec_op:
      return "local EE context operation error";
    case Status::local_protection:
      return "local protection error";
    case Status::flushed:
      return "work request flushed";
    case Status::memory_window:
      return "memory window bind error";
    case Status::bad_response:
      return "bad response";
    case Status::local_access:
      return "local access error";
    case Status::remote_invalid_request:
      return "remote invalid request";
    case Status::remote_access:
      return "remote access error";
    case Status::remote_operation:
      return "remote operation error";
    case Status::retry_exceeded:
      return "transport retry counter exceeded";
    case Status::rnr_retry_exceeded:
      return "RNR retry counter exceeded";
    case Status::remote_aborted:
      return "remote aborted";
    case Status::fatal:
      return "fatal error";
    case Status::response_timeout:
      return "response time-out";
    case Status::general:
      break;
  }
  return status == static_cast<u16>(Status::general) ? "general error" : fmt::format("status {}", status);
}

}  // namespace doorbell::rma
