// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// QEMU's emulated NVMe controller without a guest: a process of its own, memory that both share, and
// messages for what is a register on hardware.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "nvme/backends.hpp"
#include "nvme/qemu/link.hpp"
#include "nvme/qemu/memory.hpp"
#include "nvme/qemu/process.hpp"

namespace doorbell::nvme {

/// Doorbells and CSTS are words in memory that an initiator reads and writes as if they were registers;
/// the forwarder carries them. Like the model it sees only the last value of a doorbell.
class QemuController final : public ControllerInterface, private DoorbellForwarder {
 public:
  /// A QEMU that answers nothing for `timeout_s`, clamped to 1 to 10 s, counts as gone.
  QemuController(const QemuConfig& config, std::string name, std::shared_ptr<gpu::Gpu> gpu,
                 double timeout_s = 10);
  ~QemuController() override;

  [[nodiscard]] std::string kind() const override { return "emulated"; }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] u32 read32(u32 offset) override;
  [[nodiscard]] u64 read64(u32 offset) override;
  void write32(u32 offset, u32 value) override;
  void write64(u32 offset, u64 value) override;
  [[nodiscard]] AddressSpace& address_space() override { return memory_; }
  [[nodiscard]] u32* cpu_register(u64 offset) override;
  [[nodiscard]] u32* gpu_register(u64 offset) override;
  [[nodiscard]] DoorbellForwarder* forwarder() override { return this; }
  [[nodiscard]] bool moves_data() const override { return config_.media != QemuConfig::Media::null; }
  [[nodiscard]] bool scratch() const override;
  [[nodiscard]] std::string image() const override;
  [[nodiscard]] nlohmann::ordered_json counters() override;

  /// For tests: the process.
  [[nodiscard]] pid_t pid() const { return process_.pid(); }

 private:
  void forward(u16 qid) override;
  void by_initiator(bool on) override;

  [[nodiscard]] u32* word(u64 offset) { return reinterpret_cast<u32*>(words_.host() + offset); }
  void check_register(u64 offset) const;
  bool forward_word(u32 index);
  bool forward_pair(u16 qid);
  void start_over();
  void let_fetch();
  void see_created_queues(u32 tail);
  void look_at_status();
  void run();

  QemuConfig config_;
  double timeout_s_;
  std::string name_;
  QemuMemory memory_;
  QemuProcess process_;
  QemuLink link_;
  Region words_;                             // the first BAR pages, as the initiators see them
  std::vector<std::atomic<u32>> forwarded_;  // each doorbell's last value that was sent
  std::atomic<u32> pairs_{1};  // queue pairs that may have been created, the admin queue counted
  u32 admin_seen_ = 0;         // admin SQ entries looked at
  u32 admin_entries_ = 0;
  Iova asq_ = 0;
  std::mutex admin_mutex_;
  std::mutex sweep_;  ///< held while the thread looks at the doorbells
  std::atomic<u64> next_look_{0};
  bool by_initiator_ = false;  ///< under sweep_
  bool stop_ = false;          ///< under sweep_
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace doorbell::nvme
