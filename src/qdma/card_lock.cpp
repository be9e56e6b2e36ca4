// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/card_lock.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "qdma/daemon/protocol.hpp"
#include "system/file_lock.hpp"

namespace doorbell::qdma {

namespace {

/// Where the card is reached; "" for one of this process.
std::string place_of(const std::string& spec) {
  const auto colon = spec.find(':');
  const std::string kind = spec.substr(0, colon);
  if (kind != "server" && kind != "kernel" && kind != "daemon") return {};
  return colon == std::string::npos ? daemon::kDefaultSocket : spec.substr(colon + 1);
}

Descriptor lock_file(const std::string& place) {
  struct stat st {};
  if (place.empty() || ::stat(place.c_str(), &st) != 0) return {};
  std::error_code error;
  const auto folder = std::filesystem::temp_directory_path(error);
  if (error) return {};
  const std::string name = folder / fmt::format("doorbell-card-{:x}-{:x}.lock", st.st_dev, st.st_ino);
  constexpr int kFlags = O_RDWR | O_CLOEXEC | O_NOFOLLOW;
  // In a folder for everybody the kernel refuses O_CREAT for another user's file.
  Descriptor file(::open(name.c_str(), kFlags));
  if (file.get() < 0 && errno == ENOENT) {
    file = Descriptor(::open(name.c_str(), kFlags | O_CREAT, 0666));
    if (file.get() >= 0) (void)fchmod(file.get(), 0666);
  }
  return file;
}

}  // namespace

CardLock::CardLock(const std::string& spec) : spec_(spec), file_(lock_file(place_of(spec))) {}

void CardLock::take(u64 begin, u64 bytes, const std::string& setting) {
  if (file_.get() < 0 || bytes == 0) return;
  struct flock wanted {};
  wanted.l_type = F_WRLCK;
  wanted.l_whence = SEEK_SET;
  wanted.l_start = static_cast<off_t>(begin);
  wanted.l_len = static_cast<off_t>(bytes);
  // Another error than these: there are no locks here.
  if (taken_soon(
          [&] { return fcntl(file_.get(), F_SETLK, &wanted) == 0 || (errno != EACCES && errno != EAGAIN); }))
    return;
  struct flock held = wanted;
  const bool known = fcntl(file_.get(), F_GETLK, &held) == 0 && held.l_type != F_UNLCK;
  throw Error(spec_,
              fmt::format("bytes {:#x} to {:#x} of its memory are in use by {}", begin, begin + bytes,
                          known ? process_name(held.l_pid) : "another program"),
              fmt::format("two runs on the same bytes find each other's data: wait for the other one, or use "
                          "other bytes ({})",
                          setting));
}

}  // namespace doorbell::qdma
