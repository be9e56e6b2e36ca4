// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A controller for tests of the driver: it answers admin commands as a script requires, or not at all.
#pragma once

#include <doorbell/error.hpp>
#include <doorbell/nvme/wire.hpp>

#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "memory/software_address_space.hpp"
#include "nvme/controller_interface.hpp"

namespace doorbell::nvme {

/// A controller that does what the test says. It works inside the driver's own register reads, so that
/// nothing depends on threads.
class ScriptedController final : public ControllerInterface {
 public:
  struct Script {
    u64 cap = 63 | u64{1} << 37;  // 64 entries, CAP.TO 0, NVM command set
    u32 csts_at_open = 0;
    u32 cc_at_open = 0;
    bool never_ready = false;
    bool fatal = false;
    u64 deaf_after = ~u64{0};       // admin commands that are answered
    u64 gone_after = ~u64{0};       // admin commands before everything reads as ones
    std::map<u8, u16> refuse = {};  // opcode: status
    u32 granted = 7 | 7 << 16;
    std::function<void(u8 cns, u8* page)> identify = {};
    bool gone_at_shutdown = false;
    u64 fatal_after = ~u64{0};  // admin commands before CSTS.CFS is set
    u32 shutdown_looks = 0;     // reads of CSTS before a shutdown has ended
    u32 stop_looks = 0;         // reads of CSTS, after EN = 0, before RDY is 0
    std::function<void(const ScriptedController&)> at_end = {};  // when it is destroyed
    DoorbellForwarder* forwarder = nullptr;
    bool extra_completion = false;  // one of a command that was never sent, before each answer
  };
  explicit ScriptedController(Script script)
      : script_(std::move(script)), registers_(Place::pageable, 16384) {
    put(reg::cap, static_cast<u32>(script_.cap));
    put(reg::cap + 4, static_cast<u32>(script_.cap >> 32));
    put(reg::vs, 0x10400);
    put(reg::csts, script_.csts_at_open);
    put(reg::cc, script_.cc_at_open);
  }
  ~ScriptedController() override {
    if (script_.at_end) script_.at_end(*this);
  }
  ScriptedController(const ScriptedController&) = delete;
  ScriptedController& operator=(const ScriptedController&) = delete;
  [[nodiscard]] std::string kind() const override { return "model"; }
  [[nodiscard]] std::string name() const override { return "scripted"; }
  [[nodiscard]] u32 read32(u32 offset) override {
    serve();
    if (offset == reg::csts) look_at_status();
    return gone_ ? ~0u : get(offset);
  }
  [[nodiscard]] u64 read64(u32 offset) override {
    return gone_ ? ~u64{0} : u64{get(offset + 4)} << 32 | get(offset);
  }
  void write32(u32 offset, u32 value) override {
    writes.emplace_back(offset, value);
    if (offset == reg::cc) {
      const bool on = (value & cc::enable) != 0, was = (get(reg::cc) & cc::enable) != 0;
      if (on && !was) put(reg::csts, script_.fatal ? csts::fatal : script_.never_ready ? 0u : csts::ready);
      if (!on && was) {
        cut_short = shutdown_looks_ > 0;
        stop_looks_ = script_.stop_looks;
        if (stop_looks_ == 0) put(reg::csts, 0);
      }
      if ((value & cc::shutdown_mask) != 0 && script_.gone_at_shutdown) gone_ = true;
      if ((value & cc::shutdown_mask) != 0) {
        shutdown_looks_ = script_.shutdown_looks;
        if (shutdown_looks_ == 0) put(reg::csts, get(reg::csts) | csts::shutdown_complete);
      }
      at_ = head_ = 0;
      phase_ = 1;
    }
    put(offset, value);
  }
  void write64(u32 offset, u64 value) override {
    put(offset, static_cast<u32>(value));
    put(offset + 4, static_cast<u32>(value >> 32));
  }
  [[nodiscard]] AddressSpace& address_space() override { return space_; }
  [[nodiscard]] u32* cpu_register(u64 offset) override {
    if (offset > registers_.bytes() - 4) throw Error("scripted", "a register outside the BAR");
    return reinterpret_cast<u32*>(registers_.host() + offset);
  }
  [[nodiscard]] u32* gpu_register(u64) override { return nullptr; }

  [[nodiscard]] DoorbellForwarder* forwarder() override { return script_.forwarder; }

  /// The value of CC or CSTS, without the effects of a read.
  [[nodiscard]] u32 peek(u32 offset) const {
    return load_acquire(reinterpret_cast<const u32*>(registers_.host() + offset));
  }
  /// The values that were written to CC, in order.
  [[nodiscard]] std::vector<u32> cc_writes() const {
    std::vector<u32> all;
    for (const auto& [offset, value] : writes)
      if (offset == reg::cc) all.push_back(value);
    return all;
  }

  std::vector<std::pair<u32, u32>> writes;
  u64 answered = 0;
  bool cut_short = false;  ///< EN was cleared during a shutdown

 private:
  void look_at_status() {
    if (shutdown_looks_ > 0 && --shutdown_looks_ == 0)
      put(reg::csts, get(reg::csts) | csts::shutdown_complete);
    if (stop_looks_ > 0 && --stop_looks_ == 0) put(reg::csts, 0);
  }
  u32 get(u32 offset) { return load_acquire(cpu_register(offset)); }
  void put(u32 offset, u32 value) { store_release(cpu_register(offset), value); }
  u8* memory(Iova at, u64 n) { return view_.find(at, n, Access::read).address; }
  u8* writable(Iova at, u64 n) { return view_.find(at, n, Access::write).address; }

  void serve() {
    if ((get(reg::csts) & csts::ready) == 0 || gone_) return;
    const u32 entries = (get(reg::aqa) & 0xfff) + 1;
    while (head_ != get(reg::doorbells)) {
      if (answered >= script_.gone_after) gone_ = true;
      if (answered >= script_.fatal_after) {
        put(reg::csts, csts::ready | csts::fatal);
        return;
      }
      if (answered >= script_.deaf_after || gone_) return;
      Sqe e;
      std::memcpy(static_cast<void*>(&e), memory(read64(reg::asq) + u64{head_} * kSqeBytes, kSqeBytes),
                  sizeof e);
      head_ = (head_ + 1) % entries;
      ++answered;
      Cqe c;
      c.cid = e.cid;
      if (const auto refused = script_.refuse.find(e.opcode); refused != script_.refuse.end())
        c.status = static_cast<u16>(refused->second << 1);
      else if (e.opcode == static_cast<u8>(AdminOpcode::identify)) identify(e);
      else if (e.opcode == static_cast<u8>(AdminOpcode::set_features)) c.dw0 = script_.granted;
      if (script_.extra_completion) {
        Cqe other;
        other.cid = 0x7abc;
        complete(other, entries);
      }
      complete(c, entries);
    }
  }
  void complete(Cqe c, u32 entries) {
    c.sq_head = static_cast<u16>(head_);
    c.status = static_cast<u16>(c.status | phase_);
    auto* cq = reinterpret_cast<Word16*>(writable(read64(reg::acq), u64{entries} * kCqeBytes));
    store16_release(cq + at_, encode_cqe(c));
    if (++at_ == entries) {
      at_ = 0;
      phase_ ^= 1;
    }
  }
  void identify(const Sqe& e) {
    u8* page = writable(e.prp1, identify::bytes);
    std::memset(page, 0, identify::bytes);
    const auto cns = static_cast<u8>(e.cdw10);
    if (cns == 1) {
      std::memset(page + identify::serial, ' ',
                  identify::serial_bytes + identify::model_bytes + identify::firmware_bytes);
      std::memcpy(page + identify::model, "A model", 7);
    } else {
      page[identify::nsze] = 100;
      page[identify::lbaf + 2] = 9;
    }
    if (script_.identify) script_.identify(cns, page);
  }

  Script script_;
  Region registers_;
  SoftwareAddressSpace space_;
  SoftwareAddressSpace::View view_{space_};
  u32 head_ = 0;
  u32 at_ = 0;
  u32 phase_ = 1;
  u32 shutdown_looks_ = 0;
  u32 stop_looks_ = 0;
  bool gone_ = false;
};

}  // namespace doorbell::nvme
