// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How errors cross doorbell.h: nothing throws into a C program.
#pragma once

#include <doorbell/error.hpp>

#include <exception>
#include <string>
#include <type_traits>

#define DOORBELL_C_API extern "C" __attribute__((visibility("default")))

namespace doorbell::c_api {

struct LastError {
  std::string text, hint;
  int code = 0;
};
[[nodiscard]] LastError& last_error() noexcept;
void note_error(std::string text, std::string hint, int code) noexcept;

/// Returns the result of `function`; for an exception, which is noted, -1 or a null pointer.
template <class Function>
auto guarded(Function function) noexcept -> std::invoke_result_t<Function> {
  using Value = std::invoke_result_t<Function>;
  try {
    return function();
  } catch (const Error& e) {
    note_error(e.what(), e.hint(), static_cast<int>(e.code()));
  } catch (const std::exception& e) {
    note_error(e.what(), "", static_cast<int>(ExitCode::usage));
  }
  if constexpr (std::is_pointer_v<Value>) return nullptr;
  else if constexpr (!std::is_void_v<Value>) return Value(-1);
}

/// Throws Error if `pointer`, which is called `what`, is null.
template <class T>
T& require(T* pointer, const char* what) {
  if (pointer == nullptr) throw Error(what, "it is a null pointer");
  return *pointer;
}

}  // namespace doorbell::c_api
