// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "c_api/error.hpp"

#include <doorbell/doorbell.h>

#include <utility>

#include "report/tool.hpp"

namespace doorbell::c_api {

LastError& last_error() noexcept {
  thread_local LastError error;
  return error;
}

void note_error(std::string text, std::string hint, int code) noexcept {
  last_error() = {std::move(text), std::move(hint), code};
}

}  // namespace doorbell::c_api

using doorbell::c_api::last_error;

DOORBELL_C_API const char* doorbell_version(void) {
  return doorbell::report::tool().version.c_str();
}

DOORBELL_C_API const char* doorbell_last_error(void) {
  return last_error().text.c_str();
}

DOORBELL_C_API const char* doorbell_last_hint(void) {
  return last_error().hint.c_str();
}

DOORBELL_C_API int doorbell_last_code(void) {
  return last_error().code;
}
