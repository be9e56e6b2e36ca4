// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The holdings of each user, against quotas. A user's connections share one account.
#pragma once

#include <doorbell/config.hpp>
#include <sys/types.h>

#include <map>
#include <memory>
#include <string>

namespace doorbell::qdma::daemon {

/// The most of each that one user may hold at a time.
struct Quotas {
  u32 connections = 64;
  u32 queue_pairs = 64;
  u32 buffers = 64;
  u32 descriptors = 128;  ///< transfer descriptors, those of buffers too
  u64 card_bytes = 16ull << 30;
  u64 host_bytes = 64ull << 30;
  u32 host_buffers = 1024;
  u32 sent_files = 1024;  ///< descriptors of buffers, held for transfers that have not ended
};

/// Amounts of what quotas limit.
struct Holdings {
  u64 connections = 0, queue_pairs = 0, buffers = 0, descriptors = 0, card_bytes = 0;
  u64 host_buffers = 0, host_bytes = 0, sent_files = 0;
  Holdings& operator+=(const Holdings& more);
  Holdings& operator-=(const Holdings& less);
  friend bool operator==(const Holdings&, const Holdings&) = default;
};

class Accounts {
 public:
  explicit Accounts(const Quotas& quotas) : quotas_(quotas) {}

  /// A part of a user's quotas, given back when the last copy of the pointer goes. Not after the Accounts.
  using Charge = std::shared_ptr<const Holdings>;
  /// Null if a quota would be passed; `over` then says which one.
  [[nodiscard]] Charge charge(uid_t user, const Holdings& more, std::string& over);

  [[nodiscard]] const Quotas& quotas() const { return quotas_; }
  [[nodiscard]] const Holdings& total() const { return total_; }
  [[nodiscard]] std::size_t users() const { return users_.size(); }

 private:
  void give_back(uid_t user, const Holdings& less);
  Quotas quotas_;
  Holdings total_;
  struct Account {
    Holdings held;
    u64 charges = 0;  ///< that exist, some of them of nothing
  };
  std::map<uid_t, Account> users_;
};

}  // namespace doorbell::qdma::daemon
