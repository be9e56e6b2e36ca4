// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Faults in the models' tests: how tests ask for them, and what a cell says of them.
#pragma once

#include <string>

#include "measure/bench_run.hpp"
#include "model/fault.hpp"

namespace doorbell {

inline model::FaultRates only(model::Fault f, double p = 1) {
  model::FaultRates r;
  r.probability[static_cast<u32>(f)] = p;
  return r;
}

/// A busy machine may keep a thread from running for a second; nothing that these options ask for calls
/// that late. And no test compares a run with its references: a glance at them is enough.
template <class Options>
Options never_late(Options o) {
  o.timeout_s = 60;
  o.late_after_s = 50;
  o.reference_work = 0.01;
  return o;
}

/// Of the first cell, which is the only one of a run with faults.
inline u64 injected(const measure::BenchResult& r, model::Fault f) {
  return r.cell().extra.at("model").at("injected").at(std::string(name(f))).get<u64>();
}

inline u64 errors(const measure::BenchResult& r, const char* kind) {
  return r.cell().errors.at(kind);
}

}  // namespace doorbell
