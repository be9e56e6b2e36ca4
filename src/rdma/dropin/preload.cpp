// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// UCX uses a device only if its file in /dev/infiniband is a character device that the process may read and
// write. The drop-in's devices have no files: for their names this object, which is preloaded, asks about
// /dev/null. It is an object of its own, because symbols of it must have no version.
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

namespace {

const char* stands_for(const char* path) {
  constexpr char kOurs[] = "/dev/infiniband/uverbs_doorbell";
  return path != nullptr && std::strncmp(path, kOurs, sizeof kOurs - 1) == 0 ? "/dev/null" : path;
}

template <class Function>
Function* next(const char* name) {
  return reinterpret_cast<Function*>(::dlsym(RTLD_NEXT, name));
}

}  // namespace

#define DOORBELL_PRELOADED extern "C" __attribute__((visibility("default")))

DOORBELL_PRELOADED int stat(const char* path, struct stat* into) noexcept {
  static auto* const real = next<int(const char*, struct stat*)>("stat");
  return real(stands_for(path), into);
}

DOORBELL_PRELOADED int stat64(const char* path, struct stat64* into) noexcept {
  static auto* const real = next<int(const char*, struct stat64*)>("stat64");
  return real(stands_for(path), into);
}

DOORBELL_PRELOADED int access(const char* path, int mode) noexcept {
  static auto* const real = next<int(const char*, int)>("access");
  return real(stands_for(path), mode);
}
