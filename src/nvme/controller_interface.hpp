// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An NVMe controller as its driver sees it: registers and the memory it reaches. Each back end has one
// implementation; everything above (reset, admin commands, queues) is the same for all.
#pragma once

#include <doorbell/address_space.hpp>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

namespace doorbell::nvme {

/// Carries doorbell words from memory to a device whose registers are no memory: what a CPU or GPU
/// stores there reaches the device with the next forward().
class DoorbellForwarder {
 public:
  virtual ~DoorbellForwarder() = default;
  /// Sends the doorbells of one queue pair that changed since the last time. Any thread; one at a time
  /// for one queue.
  virtual void forward(u16 qid) = 0;
  /// True: initiators call forward() themselves. False (at the start): a thread of the device looks at
  /// every word all the time, which is what a GPU initiator needs.
  virtual void by_initiator(bool on) = 0;
};

class ControllerInterface {
 public:
  virtual ~ControllerInterface() = default;
  /// "model", "emulated" or "hardware".
  [[nodiscard]] virtual std::string kind() const = 0;
  /// The controller's full name, resolved from what the user wrote.
  [[nodiscard]] virtual std::string name() const = 0;

  // Registers by byte offset in BAR0. Set-up only.
  [[nodiscard]] virtual u32 read32(u32 offset) = 0;
  [[nodiscard]] virtual u64 read64(u32 offset) = 0;
  virtual void write32(u32 offset, u32 value) = 0;
  virtual void write64(u32 offset, u64 value) = 0;

  [[nodiscard]] virtual AddressSpace& address_space() = 0;
  /// The CPU's address of a 32-bit register, for doorbells and CSTS on the hot path.
  [[nodiscard]] virtual u32* cpu_register(u64 offset) = 0;
  /// The GPU's address of the same; null when this device cannot be rung by the GPU it was opened with.
  [[nodiscard]] virtual u32* gpu_register(u64 offset) = 0;

  /// Null where doorbells are registers that an initiator can write.
  [[nodiscard]] virtual DoorbellForwarder* forwarder() { return nullptr; }
  /// True once the device is to be given back (a hot-unplug request): it must be let go soon.
  [[nodiscard]] virtual bool leaving() { return false; }

  /// False for null media: there is nothing to verify.
  [[nodiscard]] virtual bool moves_data() const { return true; }
  /// True when it holds no data that is not doorbell's own. May read everything that is stored. Set-up only.
  [[nodiscard]] virtual bool scratch() const { return false; }
  /// The regular file whose bytes are the namespace's blocks; "" where they lie elsewhere.
  [[nodiscard]] virtual std::string image() const { return {}; }
  /// The device's own counts, for the Result; null when it counts nothing.
  [[nodiscard]] virtual nlohmann::ordered_json counters() { return nullptr; }
};

class Controller;
/// The interface that a controller was made with.
[[nodiscard]] ControllerInterface& interface_of(Controller& controller);

}  // namespace doorbell::nvme
