// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How much longer than others large operations of a model may take. A model's bytes are copied by the
// machine that it runs on, which may have much else to do and may give each page at its first use.
#pragma once

#include <doorbell/config.hpp>

namespace doorbell::model {

class CopyAllowance {
 public:
  /// Fewer bytes under way need none.
  static constexpr u64 kLarge = u64{16} << 20;
  /// How many times the time by the lowest rate seen an operation may take.
  static constexpr double kSlack = 8;

  /// None, which is a device's that is no model.
  CopyAllowance() = default;
  /// `bytes_per_s`: the lowest rate that is known so far, above 0.
  explicit CopyAllowance(double bytes_per_s) : bytes_per_s_(bytes_per_s) {}
  /// That of this machine. `model_bytes_per_s`: what the model is limited to; 0: not, or not known. `most`:
  /// bytes that will be under way; where these are few, nothing is measured.
  [[nodiscard]] static CopyAllowance measured(u64 most, double model_bytes_per_s = 0);

  /// Bytes were moved in so many seconds.
  void saw(u64 bytes, double seconds);
  /// Seconds for the operations that are under way together, besides the limit of any operation.
  [[nodiscard]] double seconds(u64 bytes_under_way) const;

 private:
  double bytes_per_s_ = 0;
};

/// Bytes a second that one thread copies now into memory that is used for the first time.
[[nodiscard]] double first_copy_rate();

}  // namespace doorbell::model
