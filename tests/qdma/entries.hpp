// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The entries through which the conformance suite reaches a card. One more is a row in conformance_test.cpp.
#pragma once

#include <doorbell/qdma/card.hpp>
#include <sys/mman.h>

#include <cerrno>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "qdma/driver.hpp"

namespace doorbell::qdma::test {

/// A buffer of an entry, mapped; -1 for one that was refused.
struct EntryBuffer {
  int fd = -1;
  u8* data = nullptr;
  u64 bytes = 0;
  EntryBuffer() = default;
  EntryBuffer(int f, u64 n) : fd(f), bytes(n) {
    void* p = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_SHARED, f, 0);
    data = p == MAP_FAILED ? nullptr : static_cast<u8*>(p);
  }
  EntryBuffer(EntryBuffer&& o) noexcept
      : fd(std::exchange(o.fd, -1)), data(std::exchange(o.data, nullptr)), bytes(o.bytes) {}
  EntryBuffer& operator=(EntryBuffer&&) = delete;
  ~EntryBuffer() {
    if (data != nullptr) munmap(data, bytes);
    if (fd >= 0) ::close(fd);
  }
};

/// The calls that every entry can make. Results: at least 0, or a negative errno.
class Entry {
 public:
  virtual ~Entry() = default;
  virtual i64 info(Info& out) = 0;
  virtual i64 add(QpairAdd& add) = 0;
  virtual i64 operate(u32 qid, QueueOp op) = 0;
  virtual i64 get_fd(std::span<const u32> ids, u32 flags) = 0;
  /// 0, with the buffer in `out`.
  virtual i64 create_buffer(u64 bytes, std::unique_ptr<EntryBuffer>& out) = 0;
  /// In one call; `parts` receives a result for each if the entry reports them.
  virtual i64 batch(int fd, std::span<const SubXfer> parts, double deadline_s,
                    std::vector<SubResult>& results) = 0;
  /// Through both channels, any length.
  virtual i64 transfer(int fd, Direction direction, const EntryBuffer& buffer, u64 offset, u64 address,
                       u64 bytes) = 0;
  virtual void close(int fd) = 0;
  /// Below the library, for calls that no library makes; null where there is none.
  virtual Driver* driver() { return nullptr; }
};

struct EntryRow {
  std::string name;
  /// Opens a card of its own, or (server, daemon) a connection to one; `slow`: a megabyte a second.
  std::function<std::unique_ptr<Entry>(bool slow)> open;
  bool reports_parts = true;              ///< results of each sub-transfer, also of a call that failed
  bool keeps_deadlines = true;            ///< in a plain call
  u32 most_queue_pairs = kMaxQueuePairs;  ///< that a program may have; a daemon's are its user's quota
  int over_most = EBUSY;                  ///< what one more of them is
  int unknown_call = ENOTTY;
};

/// The library's objects' paths, over an open driver.
[[nodiscard]] std::unique_ptr<Entry> library_entry(std::shared_ptr<Driver> driver);
/// slash_qdma.h, with a name for slash_qdma_open().
[[nodiscard]] std::unique_ptr<Entry> c_entry(const std::string& name);

}  // namespace doorbell::qdma::test
