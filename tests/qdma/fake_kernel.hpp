// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The layers below a KernelDriver in tests: the driver model behind ioctl(), and one that writes down what it
// was asked.
#pragma once

#include <fcntl.h>

#include <cstring>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "qdma/linux/kernel_driver.hpp"
#include "qdma/model/card.hpp"
#include "qdma/server/driver_model.hpp"

namespace doorbell::qdma::test {

/// The driver's calls as the kernel would serve them, over a software card.
class FakeKernel {
 public:
  explicit FakeKernel(const std::string& spec, bool old_driver = false)
      : model_(make_model_card(spec)), old_driver_(old_driver) {}
  [[nodiscard]] SystemCalls calls() {
    SystemCalls s = real_system_calls();
    s.context = this;
    s.kernel_files = false;
    s.open = [](void* self, const char*) { return static_cast<FakeKernel*>(self)->add(nullptr); };
    s.ioctl = [](void* self, int fd, unsigned long number, void* p) {
      return static_cast<FakeKernel*>(self)->ioctl(fd, static_cast<u32>(number), static_cast<u8*>(p));
    };
    s.close = [](void* self, int fd) { static_cast<FakeKernel*>(self)->close(fd); };
    return s;
  }

 private:
  /// A descriptor that stands for the node; null: a new control node.
  int add(std::shared_ptr<DriverModel::Node> node) {
    const int fd = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    const std::lock_guard lock(mutex_);
    nodes_[fd] = node ? std::move(node) : model_.open();
    return fd;
  }
  void close(int fd) {
    std::shared_ptr<DriverModel::Node> node;
    {
      const std::lock_guard lock(mutex_);
      if (const auto it = nodes_.find(fd); it != nodes_.end()) {
        node = std::move(it->second);
        nodes_.erase(it);
      }
    }
    if (node) model_.close(*node);
    ::close(fd);
  }
  int ioctl(int fd, u32 number, u8* p) {
    std::shared_ptr<DriverModel::Node> node;
    {
      const std::lock_guard lock(mutex_);
      if (const auto it = nodes_.find(fd); it != nodes_.end()) node = it->second;
    }
    const auto fail = [](i64 error) {
      errno = static_cast<int>(error);
      return -1;
    };
    if (!node) return fail(EBADF);
    if (old_driver_ && number == kCallQpairAdd) return fail(ENOTTY);
    u32 size = 0;
    std::memcpy(&size, p, sizeof size);
    std::vector<u8> structure(p, p + size);
    std::vector<int> descriptors;
    if (number == kCallTransfer) {
      Transfer t;
      std::memcpy(&t, p, sizeof t);
      for (u32 i = 0; i < std::min(t.count, kMaxSubTransfers); ++i) {
        if (t.xfers[i].buf_fd < 0 || fcntl(t.xfers[i].buf_fd, F_GETFD) < 0) continue;
        descriptors.push_back(t.xfers[i].buf_fd);
        t.xfers[i].buf_fd = static_cast<int>(descriptors.size()) - 1;
      }
      std::memcpy(structure.data(), &t, sizeof t);
    }
    std::promise<DriverModel::Reply> promise;
    auto replied = promise.get_future();
    model_.call(node, {.number = number, .structure = structure, .descriptors = descriptors},
                [&](DriverModel::Reply r) { promise.set_value(std::move(r)); });
    DriverModel::Reply r = replied.get();
    if (r.result < 0) return fail(-r.result);
    if (number != kCallTransfer)
      std::memcpy(p, r.structure.data(), std::min<std::size_t>(size, r.structure.size()));
    if (r.descriptor.get() >= 0) return r.descriptor.release();
    if (r.node) return add(std::move(r.node));
    return static_cast<int>(r.result);
  }

  DriverModel model_;
  bool old_driver_;
  std::mutex mutex_;
  std::map<int, std::shared_ptr<DriverModel::Node>> nodes_;
};

/// Writes down every call and answers as it is told.
struct RecordingKernel {
  struct Call {
    int fd;
    unsigned long number;
    std::vector<u8> bytes;
  };
  std::vector<Call> calls;
  std::map<unsigned long, int> errors;  ///< what a number is refused with
  u64 takes_ns = 0;                     ///< the time that each call takes
  u64 now = 1;
  u64 moved = 0;

  [[nodiscard]] SystemCalls system() {
    SystemCalls s;
    s.context = this;
    s.open = [](void*, const char*) { return 1000; };
    s.close = [](void*, int) {};
    s.now_ns = [](void* self) { return static_cast<RecordingKernel*>(self)->now; };
    s.ioctl = [](void* self, int fd, unsigned long number, void* p) {
      auto& k = *static_cast<RecordingKernel*>(self);
      const auto* bytes = static_cast<const u8*>(p);
      k.calls.push_back({fd, number, {bytes, bytes + (number >> 16 & 0x3fff)}});
      k.now += k.takes_ns;
      if (const auto it = k.errors.find(number); it != k.errors.end()) {
        errno = it->second;
        return -1;
      }
      if (number != kCallTransfer) return 0;
      Transfer t;
      std::memcpy(&t, p, sizeof t);
      u64 total = 0;
      for (u32 i = 0; i < t.count; ++i) total += t.xfers[i].length;
      k.moved += total;
      return static_cast<int>(static_cast<u32>(total));  // as the kernel's long becomes an int
    };
    return s;
  }
};

}  // namespace doorbell::qdma::test
