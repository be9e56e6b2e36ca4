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

#include "nvme/backends.hpp"
#include "nvme/doorbell_words.hpp"
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
  static constexpr u64 kBar = 0xe0'0000'0000;  ///< far from every address of this process

  void forward(u16 qid) override;
  void by_initiator(bool on) override;

  [[nodiscard]] u32* word(u64 offset) { return reinterpret_cast<u32*>(words_.host() + offset); }
  void check_register(u64 offset) const;
  /// For DoorbellWords.
  [[nodiscard]] auto memory_of_queues() const {
    return [this](Iova at, u64 bytes) {
      return memory_.holds(at, bytes) ? reinterpret_cast<const u8*>(at) : nullptr;
    };
  }
  [[nodiscard]] auto message() {
    return [this](u64 offset, u32 value) { link_.post_write(kBar + offset, value); };
  }
  void start_over();
  void let_fetch();
  void look_at_status();
  void run();

  QemuConfig config_;
  double timeout_s_;
  std::string name_;
  QemuMemory memory_;
  QemuProcess process_;
  QemuLink link_;
  Region words_;  // the first BAR pages, as the initiators see them
  DoorbellWords doorbells_;
  std::mutex sweep_;  ///< held while the thread looks at the doorbells
  std::atomic<u64> next_look_{0};
  bool by_initiator_ = false;  ///< under sweep_
  bool stop_ = false;          ///< under sweep_
  std::condition_variable wake_;
  std::thread thread_;
};

}  // namespace doorbell::nvme
