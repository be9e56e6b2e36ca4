// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/roce/trace.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>

#include "system/clock.hpp"

namespace doorbell::roce {

namespace {

constexpr u32 kSection = 0x0A0D'0D0A, kInterface = 1, kPacket = 6;
constexpr u16 kLinkIpv4 = 228;
constexpr u16 kOptionName = 2, kOptionResolution = 9, kOptionFlags = 2;
constexpr u8 kNanoseconds = 9;

}  // namespace

Trace::Trace(const std::string& file, const std::string& name)
    : file_(open(file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
  if (file_.get() < 0)
    throw Error("trace " + file, std::string("it cannot be written: ") + std::strerror(errno));
  kept_.reserve(kKept + (8 << 10));
  put_value<u32>(kSection);
  put_value<u32>(28);
  put_value<u32>(0x1A2B'3C4D);  // byte order
  put_value<u16>(1);
  put_value<u16>(0);
  put_value<u64>(~u64{0});  // length of the section: not known
  put_value<u32>(28);
  block_ = kept_.size();
  put_value<u32>(kInterface);
  put_value<u32>(0);
  put_value<u16>(kLinkIpv4);
  put_value<u16>(0);
  put_value<u32>(0);  // no limit to a packet's bytes
  put_value<u16>(kOptionName);
  put_value<u16>(static_cast<u16>(name.size()));
  put(name.data(), name.size());
  pad();
  put_value<u16>(kOptionResolution);
  put_value<u16>(1);
  put_value<u8>(kNanoseconds);
  pad();
  put_value<u32>(0);  // end of options
  const u32 length = static_cast<u32>(kept_.size() - block_ + 4);
  std::memcpy(kept_.data() + block_ + 4, &length, sizeof length);
  put_value(length);
  flush();
}

void Trace::packet(const Route& route, std::span<const u8> bytes, u16 identification, Direction direction) {
  if (finished_) return;
  begin_packet(route, bytes.size(), identification);
  put(bytes.data(), bytes.size());
  end_packet(direction);
}

void Trace::packet(const Route& route, std::span<const u8> bytes, u32 icrc, u16 identification,
                   Direction direction) {
  if (finished_) return;
  begin_packet(route, bytes.size() + sizeof icrc, identification);
  put(bytes.data(), bytes.size());
  put_value(icrc);
  end_packet(direction);
}

void Trace::begin_packet(const Route& route, std::size_t bytes, u16 identification) {
  if (kept_.size() > kKept) flush();
  const u64 now = clock_ns(CLOCK_REALTIME);
  block_ = kept_.size();
  put_value<u32>(kPacket);
  put_value<u32>(0);
  put_value<u32>(0);  // the interface
  put_value(static_cast<u32>(now >> 32));
  put_value(static_cast<u32>(now));
  const u32 size = static_cast<u32>(bytes + kOuterHeaders);
  put_value(size);
  put_value(size);
  std::array<u8, kOuterHeaders> outer;
  write_outer_headers(route, bytes, identification, outer.data());
  put(outer.data(), outer.size());
}

void Trace::end_packet(Direction direction) {
  pad();
  put_value(kOptionFlags);
  put_value<u16>(4);
  put_value(static_cast<u32>(direction));
  put_value<u32>(0);
  const u32 length = static_cast<u32>(kept_.size() - block_ + 4);
  std::memcpy(kept_.data() + block_ + 4, &length, sizeof length);
  put_value(length);
  ++packets_kept_;
}

void Trace::put(const void* bytes, std::size_t size) {
  const u8* const at = static_cast<const u8*>(bytes);
  kept_.insert(kept_.end(), at, at + size);
}

void Trace::pad() {
  while (kept_.size() % 4 != 0) kept_.push_back(0);
}

void Trace::flush() {
  // After a failure part of a block may be in the file: what followed would be read as garbage.
  for (std::size_t at = 0; at < kept_.size() && !failed_;) {
    const ssize_t n = write(file_.get(), kept_.data() + at, kept_.size() - at);
    if (n > 0) at += static_cast<std::size_t>(n);
    else if (n == 0 || errno != EINTR) failed_ = true;
  }
  if (failed_) lost_.add(packets_kept_);
  packets_kept_ = 0;
  kept_.clear();
}

}  // namespace doorbell::roce
