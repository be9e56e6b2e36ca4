// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A driver over a software card, whose calls a test makes as a program makes ioctls.
#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <memory>
#include <vector>

#include "eventually.hpp"
#include "qdma/server/driver_model.hpp"

namespace doorbell::qdma {

/// A call under way.
struct PendingCall {
  DriverModel::Reply reply;
  std::atomic<bool> over{false};
  std::shared_ptr<DriverModel::InFlight> transfer;
  i64 wait() {
    EXPECT_TRUE(test::eventually([&] { return over.load(); }));
    return reply.result;
  }
};

class DriverRig {
 public:
  explicit DriverRig(const std::string& spec = "model", const model::FaultRates& faults = {},
                     const DriverLimits& limits = {}, DriverModel::Later later = {})
      : card(make_model_card(spec, use_of(faults))),
        driver(card, limits, std::move(later)),
        control(driver.open()) {}

  std::unique_ptr<PendingCall> begin(const std::shared_ptr<DriverModel::Node>& node, u32 number,
                                     std::span<const u8> structure, std::vector<int> descriptors = {},
                                     u64 deadline_ns = 0) {
    auto call = std::make_unique<PendingCall>();
    PendingCall* c = call.get();
    call->transfer = driver.call(
        node,
        {.number = number, .structure = structure, .descriptors = descriptors, .deadline_ns = deadline_ns},
        [c](DriverModel::Reply r) {
          c->reply = std::move(r);
          c->over.store(true);
        });
    return call;
  }
  template <class T>
  std::unique_ptr<PendingCall> begin_structure(const std::shared_ptr<DriverModel::Node>& node, u32 number,
                                               const T& structure, std::vector<int> descriptors = {},
                                               u64 deadline_ns = 0) {
    return begin(node, number, std::span(reinterpret_cast<const u8*>(&structure), sizeof structure),
                 std::move(descriptors), deadline_ns);
  }
  /// A call with its structure, which is written back as the driver does.
  template <class T>
  i64 call(const std::shared_ptr<DriverModel::Node>& node, u32 number, T& structure,
           std::vector<int> descriptors = {}, u64 deadline_ns = 0) {
    auto c = begin_structure(node, number, structure, std::move(descriptors), deadline_ns);
    const i64 result = c->wait();
    if (result >= 0 && !c->reply.structure.empty()) {
      EXPECT_EQ(c->reply.structure.size(), sizeof structure);
      std::memcpy(static_cast<void*>(&structure), c->reply.structure.data(), sizeof structure);
    }
    last = std::move(c->reply);
    return result;
  }
  i64 bytes_call(const std::shared_ptr<DriverModel::Node>& node, u32 number, std::span<const u8> bytes) {
    auto c = begin(node, number, bytes);
    const i64 result = c->wait();
    last = std::move(c->reply);
    return result;
  }

  i64 add(QpairAdd& a) { return call(control, kCallQpairAdd, a); }
  i64 operate(u32 id, u32 op) {
    QpairOp o{.qid = id, .op = op};
    return call(control, kCallQpairOp, o);
  }
  u32 queue_pair(QpairAdd a = {}) {
    EXPECT_EQ(add(a), 0);
    EXPECT_EQ(operate(a.qid, 0), 0);
    return a.qid;
  }
  std::shared_ptr<DriverModel::Node> descriptor(std::vector<u32> ids) {
    QpairGetFd g;
    g.qpair_count = static_cast<u32>(ids.size());
    std::copy(ids.begin(), ids.end(), g.qpair_ids.begin());
    EXPECT_EQ(call(control, kCallQpairGetFd, g), 0);
    return last.node;
  }
  Descriptor buffer(u64 bytes) {
    BufCreate b{.length = bytes};
    EXPECT_EQ(call(control, kCallBufCreate, b), 0);
    return std::move(last.descriptor);
  }

  std::shared_ptr<ModelCard> card;
  DriverModel driver;
  std::shared_ptr<DriverModel::Node> control;
  DriverModel::Reply last;  ///< of the last call()

 private:
  static model::Use use_of(const model::FaultRates& faults) {
    model::Use use;
    use.faults = faults;
    return use;
  }
};

/// A mapping of a buffer.
class Mapping {
 public:
  Mapping(int fd, u64 bytes) : bytes_(bytes) {
    void* p = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    EXPECT_NE(p, MAP_FAILED);
    data_ = static_cast<u8*>(p);
  }
  ~Mapping() { munmap(data_, bytes_); }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  [[nodiscard]] u8* data() const { return data_; }

 private:
  u64 bytes_;
  u8* data_;
};

}  // namespace doorbell::qdma
