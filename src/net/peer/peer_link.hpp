// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A link between two processes, of which this one has an end: what it knows of the other, the other has said.
#pragma once

#include "net/link.hpp"

namespace doorbell::net {

class PeerLink final : public Link {
 public:
  /// `interface`: of this end, "" for whichever the route takes; or a device that only an engine's own driver
  /// opens ("memif", a PCI address), which has no address here. `host`: of the sender, the receiver's host.
  /// `listens_at`: of a receiver, the address at which its user lets it listen; packets arrive there too if
  /// it is an IPv4 address, else at any. Throws Error for an interface that there is not, or that is down.
  PeerLink(End mine, const std::string& interface, const std::string& host,
           const std::string& listens_at = "");

  /// For a process that knows the other end without having talked to it: "02:00:00:00:00:01". Throws Error.
  void set_other_mac(const std::string& mac);
  /// Tells the other end's process of this end and learns of that one's. Both call it. The way to that
  /// process, which outlives the link, is kept for opening streams. Throws Error.
  void meet(exchange::Exchange& other);

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] std::string kind() const override;
  [[nodiscard]] std::string interface(End end) const override {
    return end == mine_ ? own_.interface : std::string();
  }
  [[nodiscard]] std::string ip(End end) const override { return of(end).ip; }
  [[nodiscard]] Mac mac(End end) const override { return of(end).mac; }
  [[nodiscard]] exchange::Exchange* other_process() override { return other_process_; }
  [[nodiscard]] u32 mtu() const override { return std::min(own_.mtu, other_.mtu); }
  [[nodiscard]] u64 interface_drops(End end) override;
  [[nodiscard]] u32 queue_drops() override;
  [[nodiscard]] nlohmann::ordered_json facts() override;

 private:
  struct Side {
    std::string interface, ip;
    Mac mac{};
    u32 mtu = 65536;
  };
  [[nodiscard]] nlohmann::ordered_json message() const;
  void join(const nlohmann::ordered_json& other);
  [[nodiscard]] const Side& of(End end) const { return end == mine_ ? own_ : other_; }

  End mine_;
  std::string host_;
  std::string device_;  ///< "" for an interface
  Side own_, other_;
  exchange::Exchange* other_process_ = nullptr;
};

}  // namespace doorbell::net
