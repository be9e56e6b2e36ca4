// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The ranks of a sweep: rank 0 says what is run and keeps the results, every rank runs what it is told.
#pragma once

#include <doorbell/config.hpp>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "exchange/exchange.hpp"
#include "measure/stop.hpp"
#include "sweep/ranks/launcher.hpp"

namespace doorbell::sweep {

/// One rank as rank 0 knows it. One thread at a time.
struct Member {
  std::string host;
  std::vector<std::string> addresses;  ///< all of its host's
  std::string address;                 ///< where it listens
  std::unique_ptr<exchange::Exchange> control;
  std::string gone;  ///< why it takes no more part; empty: it does
};

/// A process's part in a sweep that an MPI launcher has started.
class Team {
 public:
  /// Every rank calls it: MPI tells all where rank 0 listens, and each connects there. On return rank 0 has a
  /// connection to each rank, itself included. Throws doorbell::Error for a rank that does not come.
  Team(const Launcher& launcher, measure::StopFlag* stop);
  /// Rank 0: says that all is done, and waits until the ranks have received that.
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  [[nodiscard]] u32 rank() const { return launcher_.rank; }
  /// Not rank 0: runs what rank 0 says until the end. Throws doorbell::Error if rank 0 goes.
  void serve();

  /// Rank 0.
  [[nodiscard]] std::vector<std::string> hosts() const;
  [[nodiscard]] Member& member(u32 rank) { return members_[rank]; }
  /// Chooses each rank's address: that in `network`, or if that is empty, the one by which it has reached
  /// rank 0. Throws doorbell::Error for a rank without such an address.
  void choose_addresses(const std::string& network);

 private:
  void collect(exchange::Listener& listener, const std::string& token);
  /// Accepts one connection and gives it to its rank; ignores what is none.
  void admit(exchange::Listener& listener, const std::string& token, const exchange::Wait& wait);
  [[nodiscard]] std::vector<u32> absent() const;

  Launcher launcher_;
  measure::StopFlag* stop_;
  std::vector<Member> members_;               // rank 0
  std::unique_ptr<exchange::Exchange> zero_;  // the connection to rank 0
  std::thread own_;                           // rank 0's own part of the work
};

}  // namespace doorbell::sweep
