// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// `doorbell net --listen`: the receiving end of a run; a client sends the options.
#pragma once

#include "net/peer/remote.hpp"

namespace doorbell::net {

struct ServeOptions {
  exchange::SocketName at;
  std::string link;  ///< the interface of this end; "": whichever the route takes
  Place place = Place::pageable;
  bool split = false;
  std::string polling = "auto";
  bool windows_on_gpu = false;
  ToGpu to_gpu = ToGpu::copy;
  int gpu = 0;
  std::vector<int> cores;
  double wait_s = 86400;
  double timeout_s = 10;
};

struct ServeResult {
  u64 cells = 0;
  u64 received = 0;
  u64 checked = 0;
  u64 errors = 0;
  /// The client's view of the run: its exit code and its verdict.
  int code = 0;
  std::string verdict;
};

/// Serves one client. `watch.progress` gets the address and each cell. Throws Error.
[[nodiscard]] ServeResult serve(const ServeOptions& options, const measure::RunWatch& watch);

}  // namespace doorbell::net
