// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Two settings of one command, run in turns until it is shown which is faster, or a time is over. Each run is
// a process and one observation.
#pragma once

#include <doorbell/config.hpp>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "sweep/compare.hpp"
#include "sweep/record.hpp"

namespace doorbell::sweep {

/// After so many runs of each side the figures are looked at, and once more when the time is over. Who looks
/// more often finds differences that are none; so the error that is allowed in all is divided among the
/// looks.
inline constexpr std::array<std::size_t, 5> kLooks = {4, 8, 16, 32, 64};
/// The level of each look's intervals, with which those of all looks together hold at kLevel or more.
[[nodiscard]] double level_of_each_look();

struct Turning {
  std::array<std::vector<std::string>, 2> words;  ///< of A and B: the command and its options
  std::array<std::string, 2> programs = {"/proc/self/exe", "/proc/self/exe"};
  double limit_s = 60;
  u64 seed = 1;  ///< of the order: in each two rounds A is first once, and B
  Rules rules;   ///< their level is replaced by that of each look
};

struct TurnsState {
  double elapsed_s = 0;
  std::size_t side = 0;                  ///< which is running: 0 is A
  std::array<std::size_t, 2> runs = {};  ///< finished
  const Comparison* look = nullptr;      ///< the last one
};

struct TurnsWatch {
  std::function<bool()> stop;  ///< true: end, with what there is
  std::function<void(const TurnsState&)> progress = {};
};

enum class TurnsEnd {
  decided,      ///< no figure is undecided
  time,         ///< the time is over
  interrupted,  ///< by TurnsWatch::stop
  failed,       ///< a run did not end with 0: the last of `runs`
};
/// The name in JSON.
[[nodiscard]] const char* name(TurnsEnd end);

struct Turns {
  struct Run {
    std::size_t side = 0;
    Record record;  ///< its Result is not kept, but for a failed one
  };
  std::vector<Run> runs;
  std::array<Measured, 2> measured;
  std::array<u64, 2> checked = {};    ///< operations whose data was checked
  std::array<u64, 2> unchecked = {};  ///< cells of runs in which nothing was
  Comparison comparison;              ///< of the last look; has no cells if a side has no run
  std::size_t looks = 0;
  TurnsEnd end = TurnsEnd::time;
  double elapsed_s = 0;

  [[nodiscard]] std::size_t runs_of(std::size_t side) const;
  /// 2 for wrong data on either side (Record::code() of the failed run), 130, 1 where the time did not
  /// suffice for a run of each side, else the comparison's.
  [[nodiscard]] int code() const;
};

/// Runs both sides in turns. No run is begun that the time will probably not suffice for, and one that it
/// does not suffice for is ended and left out. Throws doorbell::Error if a program cannot be started.
[[nodiscard]] Turns run_in_turns(const Turning& what, const TurnsWatch& watch);

/// The part that the schema of a comparison has for one in turns alone.
[[nodiscard]] nlohmann::ordered_json to_json(const Turns& turns, const Turning& what);
/// One sentence: which is faster, by how much, and whether the data was right.
[[nodiscard]] std::string sentence(const Turns& turns, double threshold_percent);

}  // namespace doorbell::sweep
