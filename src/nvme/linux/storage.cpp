// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/storage.hpp"
#include "nvme/settings.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "measure/cpu_runner.hpp"
#include "nvme/linux/file.hpp"
#include "nvme/linux/uring.hpp"
#include "system/clock.hpp"
#include "system/sysfs.hpp"

namespace doorbell::nvme {

namespace {

/// The kernel takes pointers: an I/O's address is its buffer's.
class PointerSpace final : public AddressSpace {
 public:
  Iova map(const Region& region, Access) override { return reinterpret_cast<Iova>(region.host()); }
  void unmap(Iova) noexcept override {}
};

class FileStorage final : public Storage {
 public:
  explicit FileStorage(const BenchOptions& o)
      : o_(checked(o)),
        may_write_(o.write_io > 0 && o.default_counts && !o.allow_write && may_write(o)),
        file_(o.file, o.file_options, o.write_io > 0 && (o.allow_write || !o.default_counts || may_write_)) {}

  std::string kind() override { return "kernel"; }
  std::string name() override { return "file:" + o_.file; }
  ControllerInfo info() override {
    ControllerInfo i;
    i.max_queue_entries = 32768;
    i.max_transfer_bytes = u64{1} << 30;
    return i;
  }
  NamespaceInfo name_space(u32) override {
    NamespaceInfo n;
    n.nsid = 1;
    n.lba_bytes = file_.block_bytes();
    n.blocks = file_.bytes() / n.lba_bytes;
    return n;
  }
  u32 grant(u32 queues) override { return queues; }
  bool scratch() override { return o_.default_counts ? may_write_ : file_.scratch(); }
  std::string image() override { return file_.regular() ? o_.file : std::string(); }

  QueueBuffers& create_queues(const QueueShape& shape) override {
    buffers_ = std::make_unique<QueueBuffers>(space_, nullptr, shape);
    for (u32 q = 0; q < shape.queues; ++q) {
      IoQueue& io = buffers_->queues()[q];
      io.memory.qid = static_cast<u16>(q + 1);
      const Region& data = buffers_->data(q);
      if (o_.file_options.sync) sync_.push_back(std::make_unique<SyncEngine>(file_.fd()));
      else
        rings_.push_back(std::make_unique<UringEngine>(
            file_.fd(), shape.window, std::span(data.host(), data.bytes()), o_.file_options));
    }
    shape_ = shape;
    if (!rings_.empty()) try_one(*rings_.front(), buffers_->data(0).host());
    file_.keep();
    return *buffers_;
  }

  std::unique_ptr<IoRunner> runner(u32 window) override {
    if (o_.file_options.sync) return run_with(sync_, window);
    return run_with(rings_, window);
  }

  measure::StatusName status_names() const override {
    return [](u16 code) { return code == kShortTransfer ? "short transfer" : reason(code & 0xff); };
  }

 private:
  static const BenchOptions& checked(const BenchOptions& o) {
    if (o.initiator == Initiator::gpu)
      throw Error(setting::initiator + " gpu", "the kernel's I/O calls are made by CPU threads",
                  fmt::format("use {} cpu", setting::initiator));
    if (o.file_options.sync && std::max(o.in_flight, o.batch) > 1)
      throw Error(setting::engine + " sync", "each thread has one call in progress",
                  fmt::format("give {} 1 and {} N for N threads, or {} io_uring", setting::batch,
                              setting::num_queues, setting::engine));
    return o;
  }
  /// Whether writes that are only a default may happen: where they destroy nothing.
  static bool may_write(const BenchOptions& o) { return DataFile(o.file, o.file_options, false).scratch(); }

  /// Reads the first block: what this file or device cannot do is known before anything is measured.
  void try_one(UringEngine& ring, u8* data) const {
    constexpr u64 kLimitNs = 10'000'000'000;
    ring.put({.write = false, .cid = 0, .data = data, .bytes = file_.block_bytes(), .offset = 0});
    (void)ring.submit(false);
    FileIoDone done;
    const u64 begin = wall_ns();
    while (!ring.take(&done, true))
      if (wall_ns() - begin > kLimitNs)
        throw Error(subject(), "a first read does not complete", {}, ExitCode::data);
    if (done.result < 0)
      throw Error(subject(), fmt::format("a first read fails: {}", reason(-done.result)),
                  done.result == -EOPNOTSUPP && o_.file_options.iopoll
                      ? fmt::format("its device has no poll queues: leave {} out", setting::iopoll)
                      : "");
    std::memset(data, 0, file_.block_bytes());
  }
  [[nodiscard]] std::string subject() const { return setting::file + o_.file; }

  template <class Engine>
  std::unique_ptr<IoRunner> run_with(const std::vector<std::unique_ptr<Engine>>& engines, u32 window) {
    using Queue = KernelQueuePair<Engine>;
    std::vector<typename Queue::State> states;
    for (u32 q = 0; q < shape_.queues; ++q)
      states.push_back({.engine = engines[q].get(),
                        .lba_bytes = file_.block_bytes(),
                        .io_bytes = static_cast<u32>(shape_.io_bytes),
                        .entries = window + 1,
                        .qid = static_cast<u16>(q + 1)});
    // A thread a queue: its calls may sleep.
    return std::make_unique<measure::CpuRunner<IoWork<Queue>>>(
        shape_.queues, o_.checkers(shape_.queues, 0, shape_.io_bytes), window, states);
  }

  const BenchOptions& o_;
  bool may_write_;  ///< asked before the file is opened, which is for writing only then
  DataFile file_;
  QueueShape shape_;
  PointerSpace space_;
  std::unique_ptr<QueueBuffers> buffers_;
  // These end first: the kernel may still be writing to the buffers.
  std::vector<std::unique_ptr<UringEngine>> rings_;
  std::vector<std::unique_ptr<SyncEngine>> sync_;
};

}  // namespace

std::unique_ptr<Storage> open_file(const BenchOptions& options) {
  return std::make_unique<FileStorage>(options);
}

}  // namespace doorbell::nvme
