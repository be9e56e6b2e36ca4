// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A model NIC's queue pair from its user's side: memory for the rings, changes of state.
#pragma once

#include "rdma/model/nic.hpp"

namespace doorbell::rdma {

class ModelQueuePair final : public QueuePairObject {
 public:
  ModelQueuePair(ModelNic& nic, const QueuePairShape& shape);
  ~ModelQueuePair() override;

  [[nodiscard]] QueuePairAddress address() const override;
  void initialise(const ConnectionOptions& options) override;
  void connect(const QueuePairAddress& peer, const ConnectionOptions& options) override;
  void reset() override;
  void fail() override;
  [[nodiscard]] QpState state() const override;
  [[nodiscard]] QueuePairMemory memory(Initiator initiator) override;
  [[nodiscard]] u32 max_inline() const override { return shape_.max_inline; }

  /// RTS -> SQD: the request under way ends, and the next one does not begin.
  void drain();
  /// SQD -> RTS.
  void resume();

 private:
  friend class ModelNic;
  void change(QpState to, const std::function<void()>& also = {});
  void clear_rings();
  void make_room_for_late();
  void set_up_rings();
  void start_over();
  [[nodiscard]] QueuePairMemory addresses(bool on_gpu) const;
  [[nodiscard]] EngineBase& engine() const;
  [[nodiscard]] u32* shown_state(u8* registers) const;

  ModelNic& nic_;
  QueuePairShape shape_;
  QueueLayout layout_;
  ModelNic::Registers registers_;
  Mapped rings_;
  Mapped records_;
  Region track_;
  Region late_;  ///< completions that wait, where anything can be late
  std::vector<Word16> staged_, staged_receives_;
  Qp qp_;
  u32 engine_ = 0;
  bool counted_ = false;  ///< counted in the NIC's connected_
};

}  // namespace doorbell::rdma
