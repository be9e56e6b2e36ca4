// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/linux/kernel_driver.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "qdma/flow/call_engine.hpp"
#include "system/clock.hpp"
#include "system/sysfs.hpp"

namespace doorbell::qdma {

namespace {

constexpr std::string_view kNodePrefix = "slash_qdma_ctl";
constexpr std::size_t kLargestStructure = sizeof(Transfer);

/// The structure's total bytes do not pass what ioctl() can return.
bool fits_a_call(std::span<const u8> structure) {
  Transfer t;
  std::memcpy(&t, structure.data(), sizeof t);
  u64 total = 0;
  for (u32 i = 0; i < std::min(t.count, kMaxSubTransfers); ++i) {
    if (t.xfers[i].length > kMaxCallBytes) return false;
    total += t.xfers[i].length;
  }
  return total <= kMaxCallBytes;
}

}  // namespace

const SystemCalls& real_system_calls() {
  static const SystemCalls real = {
      .context = nullptr,
      .open = [](void*, const char* path) { return ::open(path, O_RDWR | O_CLOEXEC); },
      .ioctl = [](void*, int fd, unsigned long number,
                  void* structure) { return ::ioctl(fd, number, structure); },
      .close = [](void*, int fd) { ::close(fd); },
      .now_ns = [](void*) { return wall_ns(); },
      .kernel_files = true,
  };
  return real;
}

std::vector<std::string> kernel_nodes(const std::string& folder) {
  std::vector<std::string> nodes;
  std::error_code ignored;
  for (const auto& e : std::filesystem::directory_iterator(folder, ignored))
    if (e.path().filename().string().starts_with(kNodePrefix)) nodes.push_back(e.path().string());
  std::sort(nodes.begin(), nodes.end());
  return nodes;
}

KernelDriver::KernelDriver(const std::string& node, const SystemCalls& system)
    : node_(node), system_(system) {
  const std::string what = fmt::format("card kernel:{}", node_);
  if (!node_.starts_with('/'))
    throw Error(what, "a node's path begins with /", "kernel:/dev/slash_qdma_ctl0");
  fd_ = system_.open(system_.context, node_.c_str());
  if (fd_ >= 0) return;
  const int error = errno;
  const bool absent = error == ENOENT || error == ENODEV || error == ENXIO;
  throw Error(
      what, reason(error),
      error == EACCES || error == EPERM ? "the node's mode is 0600: run as root, or change its owner" : "",
      absent ? ExitCode::absent : ExitCode::usage);
}

KernelDriver::~KernelDriver() {
  system_.close(system_.context, fd_);
}

i64 kernel_transfer_result(i64 result, u64 took_ns) {
  return result == -EIO && took_ns >= kKernelTransferLimitNs ? -ETIMEDOUT : result;
}

i64 KernelDriver::issue(int fd, u32 number, std::span<u8> structure) {
  const int r = system_.ioctl(system_.context, fd, number, structure.data());
  return r < 0 ? -i64{errno} : r;
}

CallResult KernelDriver::call(int fd, u32 number, std::span<u8> structure, const CallOptions&) {
  const int file = fd < 0 ? fd_ : fd;
  const u32 known = structure_size(number);
  if (known == 0) return {.result = -ENOTTY};
  u32 size = 0;
  if (structure.size() < sizeof size) return {.result = -EFAULT};
  std::memcpy(&size, structure.data(), sizeof size);
  if (size < smallest_size(number)) return {.result = -EINVAL};
  if (size > structure.size()) return {.result = -EFAULT};
  const auto own = structure.first(std::min<std::size_t>(size, known));
  const auto unknown = structure.subspan(own.size(), size - own.size());
  if (std::any_of(unknown.begin(), unknown.end(), [](u8 b) { return b != 0; })) return {.result = -E2BIG};
  // A shorter structure could make a queue pair whose id is never returned.
  alignas(8) std::array<u8, kLargestStructure> full{};
  std::copy(own.begin(), own.end(), full.begin());
  const auto set_size = [&](u32 to) { std::memcpy(full.data(), &to, sizeof to); };
  set_size(known);

  CallResult r;
  if (number == kCallTransfer) {
    if (!fits_a_call(full)) return {.result = -EINVAL};
    const u64 begin = system_.now_ns(system_.context);
    const i64 result = issue(file, number, full);
    r.result = kernel_transfer_result(result, system_.now_ns(system_.context) - begin);
    return r;  // nothing is written back
  }
  r.result = issue(file, number, std::span(full).first(known));
  if (number == kCallQpairAdd && r.result == -ENOTTY) {
    QpairAdd add;
    std::memcpy(&add, full.data(), sizeof add);
    if (add.aperture_size != 0) return r;  // this driver cannot do that
    set_size(structure_size(kCallQpairAddOld));
    r.result = issue(file, kCallQpairAddOld, std::span(full).first(structure_size(kCallQpairAddOld)));
  }
  if (r.result < 0) return r;
  std::copy_n(full.begin(), own.size(), structure.begin());
  std::fill(unknown.begin(), unknown.end(), u8{0});
  return r;
}

std::unique_ptr<CallEngine> KernelDriver::uring_engine(int fd) {
  return system_.kernel_files ? uring_commands(fd) : nullptr;
}

}  // namespace doorbell::qdma
