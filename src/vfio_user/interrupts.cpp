// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "vfio_user/interrupts.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "system/sysfs.hpp"

namespace doorbell::vfio_user {

namespace {

/// To add to anything else could wait, or change what is not meant.
bool is_eventfd(int fd) {
  return link_name(fmt::format("/proc/self/fd/{}", fd)) == "anon_inode:[eventfd]";
}

}  // namespace

u32 Interrupts::count(u32 type) const {
  switch (type) {
    case Irq::intx:
    case Irq::err:
    case Irq::req:
      return 1;
    case Irq::msix:
      return vectors_;
    default:
      return 0;
  }
}

u32 Interrupts::connected() const {
  u32 n = 0;
  for (u32 v = 0; v < vectors_; ++v) n += msix_[v].fd.load() >= 0 ? 1 : 0;
  return n + (intx_.fd.load() >= 0 ? 1 : 0);
}

void Interrupts::signal(int fd) {
  // One that is full has been written, and not read yet: the client finds it.
  if (signals_.add(fd)) delivered_.fetch_add(1, std::memory_order_relaxed);
}

void Interrupts::deliver_msix(u32 vector) {
  // The pending bit is stored before the descriptor is loaded, and set() does the opposite, so one of the two
  // sees the other's store. Whoever takes the bit writes.
  const int fd = msix_[vector].fd.load();
  if (fd < 0 || !msix_allowed_.load() || msix_masked_.load()) return;
  const u64 bit = u64{1} << (vector % 64);
  if ((pending_[vector / 64].fetch_and(~bit) & bit) != 0) signal(fd);
}

void Interrupts::raise(u32 vector) {
  if (vector >= vectors_) return;
  raised_.fetch_add(1, std::memory_order_relaxed);
  if (msix_allowed_.load()) {
    pending_[vector / 64].fetch_or(u64{1} << (vector % 64));
    return deliver_msix(vector);
  }
  const int fd = intx_.fd.load();
  if (fd >= 0 && intx_allowed_.load() && !intx_asserted_.exchange(true)) signal(fd);
}

void Interrupts::allow(bool msix, bool msix_masked, bool intx) {
  msix_masked_.store(msix_masked);
  intx_allowed_.store(intx);
  msix_allowed_.store(msix);
  for (u32 v = 0; v < vectors_; ++v) deliver_msix(v);
}

void Interrupts::connect(Line& line, Descriptor file) {
  // The flag is the client's, too, who may want to wait.
  if (file.get() >= 0 && !never_wait())
    ::fcntl(file.get(), F_SETFL, ::fcntl(file.get(), F_GETFL) | O_NONBLOCK);
  line.fd.store(file.get());
  // A device thread may be about to write the old one.
  if (line.file.get() >= 0) replaced_.push_back(std::move(line.file));
  line.file = std::move(file);
}

int Interrupts::set(const IrqSet& s, std::span<const u8> data, std::span<Descriptor> files) {
  if (const int error = check(s, count(s.index), data.size(), files.size()); error != 0) return error;
  for (const Descriptor& file : files)
    if (!is_eventfd(file.get())) return EINVAL;
  const auto line = [&](u32 at) -> Line& {
    return s.index == Irq::msix   ? msix_[at]
           : s.index == Irq::intx ? intx_
           : s.index == Irq::err  ? err_
                                  : req_;
  };
  if (s.count == 0) {
    for (u32 v = 0; v < count(s.index); ++v) connect(line(v), {});
    if (s.index == Irq::intx) intx_asserted_.store(false);
    return 0;
  }
  for (u32 i = 0; i < s.count; ++i) {
    const u32 v = s.start + i;
    if ((s.flags & IrqSet::kEventfd) != 0 && (s.flags & IrqSet::kTrigger) != 0) {
      connect(line(v), files.empty() ? Descriptor() : std::move(files[i]));
      if (s.index == Irq::intx) intx_asserted_.store(false);
      continue;
    }
    if ((s.flags & IrqSet::kBool) != 0 && data[i] == 0) continue;
    if ((s.flags & IrqSet::kUnmask) != 0 && s.index == Irq::intx) intx_asserted_.store(false);
    if ((s.flags & IrqSet::kMask) != 0 && s.index == Irq::intx) intx_asserted_.store(true);
    // A loop back: as if the device had raised it.
    if ((s.flags & IrqSet::kTrigger) != 0)
      if (const int fd = line(v).fd.load(); fd >= 0) signal(fd);
  }
  if (s.index == Irq::msix)
    for (u32 v = s.start; v < s.start + s.count; ++v) deliver_msix(v);
  return 0;
}

void Interrupts::forget_pending() {
  for (auto& word : pending_) word.store(0);
  intx_asserted_.store(false);
}

void Interrupts::reset() {
  for (Line& line : msix_) connect(line, {});
  for (Line* line : {&intx_, &err_, &req_}) connect(*line, {});
  allow(false, false, true);
  forget_pending();
}

}  // namespace doorbell::vfio_user
