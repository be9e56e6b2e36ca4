// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How busy an NVIDIA GPU is, by the library that nvidia-smi uses (NVML), which is opened at run time.
#pragma once

#include <doorbell/gpu.hpp>

#include <memory>
#include <optional>
#include <string>

namespace doorbell::gpu {

/// A GPU's own reading for the last fraction of a second (the driver's sampling period, 1/6 to 1 s).
struct Utilisation {
  u32 sm_percent = 0;      ///< of the time a kernel ran
  u32 memory_percent = 0;  ///< of the time its memory was read or written
};

/// Set-up and readings throw Error; nothing else does. One thread at a time.
class Nvml {
 public:
  /// Opens the library and finds the GPU by its PCI address. Throws Error (ExitCode::absent): no library, no
  /// such GPU there, one of another vendor. DOORBELL_LIBNVML names another file.
  explicit Nvml(const Info& gpu);
  ~Nvml();
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  [[nodiscard]] Utilisation utilisation();
  /// Bytes of its memory that are allocated, by all programs.
  [[nodiscard]] u64 memory_used();

 private:
  struct Library;
  std::unique_ptr<Library> library_;
  void* device_ = nullptr;
};

/// The mean over a window of what look() has read in it.
class UtilisationMeter {
 public:
  /// Never throws: where NVML cannot be used, why_not() says so.
  explicit UtilisationMeter(const Info& gpu);
  /// Forgets what has been read.
  void begin() { looks_ = 0, sm_ = memory_ = 0, memory_used_ = 0, last_ns_ = 0; }
  /// Reads, unless it has within the last 50 ms. Call it now and then, and with `last` at the window's end.
  void look(u64 now_ns, bool last = false);

  struct Mean {
    double sm_percent = 0, memory_percent = 0;
    u64 memory_used_bytes = 0;  ///< the most
    u32 looks = 0;
  };
  /// Null when there was no reading.
  [[nodiscard]] std::optional<Mean> mean() const;
  /// "" while readings succeed.
  [[nodiscard]] const std::string& why_not() const { return why_not_; }

 private:
  std::unique_ptr<Nvml> nvml_;
  std::string why_not_;
  u64 last_ns_ = 0;
  u32 looks_ = 0;
  u64 sm_ = 0, memory_ = 0, memory_used_ = 0;
};

}  // namespace doorbell::gpu
