// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A client's memory that is not shared: the device's threads ask for it by messages, which the thread of the
// sockets sends and whose answers it takes.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "memory/remote_memory.hpp"
#include "vfio_user/wire.hpp"

namespace doorbell::vfio_user {

class MessageDma final : public RemoteMemory {
 public:
  /// The most that a client is asked for at a time. QEMU (to 11.1) gives its socket an answer once, and drops
  /// what did not fit into the socket's buffer, which has 208 KiB by default.
  static constexpr u64 kMostRead = u64{64} << 10;
  /// `send` has a message sent to the client of this session. Any thread calls it, and it does not wait.
  using Send = std::function<void(u64 session, std::vector<u8> message)>;
  /// `give_up`: a client has not answered for `limit_ns`. The same.
  MessageDma(Send send, std::function<void(u64 session)> give_up, u64 limit_ns)
      : send_(std::move(send)), give_up_(std::move(give_up)), limit_ns_(limit_ns) {}

  /// From now on a client is there, who takes `most` bytes in a message.
  void open(u64 session, u64 most);
  /// He has gone. What waits ends.
  void close();
  /// All that waits ends, and nothing new begins until the object goes: for a device that has to stop
  /// although its client may not answer before it has.
  class Pause {
   public:
    explicit Pause(MessageDma& dma) : dma_(dma) { dma_.refuse(true); }
    ~Pause() { dma_.refuse(false); }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    MessageDma& dma_;
  };

  [[nodiscard]] bool read(Iova from, void* to, u64 bytes, const std::function<void()>& meanwhile) override;
  [[nodiscard]] bool write(Iova to, const void* from, u64 bytes,
                           const std::function<void()>& meanwhile) override;

  /// An answer of this session. False if nothing waits for it, or it is none to what was asked.
  [[nodiscard]] bool answer(u64 session, const Header& header, std::span<const u8> payload);

  [[nodiscard]] u64 reads() const { return reads_.load(std::memory_order_relaxed); }
  [[nodiscard]] u64 writes() const { return writes_.load(std::memory_order_relaxed); }
  [[nodiscard]] u64 refused() const { return refused_.load(std::memory_order_relaxed); }

 private:
  struct Request {
    Command command;
    DmaAccess access;
    void* to = nullptr;  ///< of a read
    bool done = false, good = false;
  };
  [[nodiscard]] bool ask(Request& request, std::span<const u8> data, const std::function<void()>& meanwhile);
  void refuse(bool on);
  void end_all();

  Send send_;
  std::function<void(u64)> give_up_;
  u64 limit_ns_;
  std::mutex mutex_;
  std::condition_variable answered_;
  std::map<u16, Request*> waiting_;
  u64 session_ = 0;
  u64 most_ = 0;  ///< 0: nobody is there
  u32 paused_ = 0;
  u16 next_id_ = 0;
  std::atomic<u64> reads_{0}, writes_{0}, refused_{0};
};

}  // namespace doorbell::vfio_user
