// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A shared library that the program does not link: opened at run time, where it is there.
#pragma once

#include <span>
#include <string>
#include <type_traits>

namespace doorbell {

/// A function's address, which takes the type of the pointer that it initialises.
class Symbol {
 public:
  explicit Symbol(void* address) : address_(address) {}
  template <class Function>
  requires std::is_function_v<Function>
  operator Function*() const { return reinterpret_cast<Function*>(address_); }

 private:
  void* address_;
};

class Library {
 public:
  /// Opens the first of `names` that loads. The environment variable `override_name`, when set, names
  /// the only file to try. Throws doorbell::Error (ExitCode::absent) with every reason when none loads;
  /// `install` is what its hint says to do ("install the GPU's driver").
  Library(const char* override_name, std::span<const char* const> names, const char* install);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  /// The name or path that was opened.
  [[nodiscard]] const std::string& name() const { return name_; }
  /// A null pointer when the library has no such function.
  [[nodiscard]] Symbol find(const char* function) const noexcept;
  [[nodiscard]] bool has(const char* function) const noexcept;
  /// Throws doorbell::Error (ExitCode::absent) when the library has no such function. `newer`, when
  /// given, is another name for it, which is tried first.
  [[nodiscard]] Symbol need(const char* function, const char* newer = nullptr) const;

 private:
  std::string name_;
  const char* install_;
  void* handle_ = nullptr;
};

}  // namespace doorbell
