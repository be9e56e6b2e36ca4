// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "system/library.hpp"

#include <doorbell/error.hpp>

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>

namespace doorbell {
namespace {

// Such a library keeps threads and exit handlers of its own, so its code stays mapped for ever.
void* open_library(const char* name) {
  return ::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
}

const char* last_error() {
  const char* text = ::dlerror();
  return text != nullptr ? text : "no reason given";
}

}  // namespace

Library::Library(const char* override_name, std::span<const char* const> names, const char* install)
    : install_(install) {
  const char* chosen = std::getenv(override_name);
  if (chosen != nullptr && *chosen != '\0') names = {&chosen, 1};
  std::string reasons;
  for (const char* name : names) {
    handle_ = open_library(name);
    if (handle_ != nullptr) {
      name_ = name;
      return;
    }
    reasons += fmt::format("{}{}", reasons.empty() ? "" : "; ", last_error());
  }
  throw Error(fmt::format("{} cannot be loaded", names.front()), reasons,
              fmt::format("{}, or set {} to the library's path", install, override_name), ExitCode::absent);
}

Library::~Library() {
  if (handle_ != nullptr) ::dlclose(handle_);
}

Symbol Library::find(const char* function) const noexcept {
  return Symbol(::dlsym(handle_, function));
}

bool Library::has(const char* function) const noexcept {
  return ::dlsym(handle_, function) != nullptr;
}

Symbol Library::need(const char* function, const char* newer) const {
  void* address = newer != nullptr ? ::dlsym(handle_, newer) : nullptr;
  if (address == nullptr) address = ::dlsym(handle_, function);
  if (address == nullptr)
    throw Error(fmt::format("{} cannot be used", name_), fmt::format("it has no function {}", function),
                fmt::format("it is too old or the file is something else: {}", install_), ExitCode::absent);
  return Symbol(address);
}

}  // namespace doorbell
