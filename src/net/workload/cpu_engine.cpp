// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <doorbell/region.hpp>
#include <fmt/format.h>

#include <array>
#include <complex>
#include <cstring>
#include <mutex>

#include "net/workload/checks.hpp"
#include "net/workload/engine.hpp"
#include "system/library.hpp"

namespace doorbell::net {
namespace {

/// Results in host memory, and windows there. The work is done by the thread that waits for it: a CPU
/// has no other unit that could do it meanwhile.
class CpuEngine : public Engine {
 public:
  CpuEngine(const WorkloadShape& shape, u32 slots)
      : shape_(shape), results_(Place::pageable, shape.result_bytes * slots), windows_(slots) {
    results_.populate();
  }
  void start(const Window& window, u32 slot) override { windows_[slot] = window.host; }
  [[nodiscard]] bool computes_in_wait() const override { return true; }
  bool wait(u32 slot, u64) override {
    compute(windows_[slot], result(slot));
    return true;
  }
  void read_input(const Window& window, u64 offset, void* to, u64 bytes) override {
    std::memcpy(to, window.host + offset, bytes);
  }
  void read_result(u32 slot, u64 offset, void* to, u64 bytes) override {
    std::memcpy(to, result(slot) + offset, bytes);
  }

 protected:
  virtual void compute(const u8* in, u8* out) = 0;
  WorkloadShape shape_;

 private:
  [[nodiscard]] u8* result(u32 slot) const { return results_.host() + slot * shape_.result_bytes; }
  Region results_;
  std::vector<const u8*> windows_;
};

// --- FFTW: of its interface, what is used here ------------------------------------------------------------

using FftwComplex = float[2];
using FftwPlan = void*;
constexpr int kFftwForward = -1;
constexpr unsigned kFftwUnaligned = 1u << 1, kFftwPreserveInput = 1u << 4, kFftwEstimate = 1u << 6;

struct Fftw {
  Library library;
  FftwPlan (*plan_many)(int rank, const int* n, int how_many, FftwComplex* in, const int* in_embed,
                        int in_stride, int in_distance, FftwComplex* out, const int* out_embed,
                        int out_stride, int out_distance, int sign, unsigned flags);
  void (*execute)(FftwPlan, FftwComplex* in, FftwComplex* out);
  void (*destroy)(FftwPlan);

  static constexpr std::array<const char*, 2> kNames = {"libfftw3f.so.3", "libfftw3f.so"};
  Fftw()
      : library("DOORBELL_LIBFFTW3F", kNames, "install FFTW for single precision (libfftw3-single3)"),
        plan_many(library.need("fftwf_plan_many_dft")),
        execute(library.need("fftwf_execute_dft")),
        destroy(library.need("fftwf_destroy_plan")) {}
  /// Only execution may run in several threads.
  static std::mutex& planner() {
    static std::mutex mutex;
    return mutex;
  }
};

class CpuFft final : public CpuEngine {
 public:
  CpuFft(const WorkloadShape& shape, u32 slots) : CpuEngine(shape, slots) {
    const int n = static_cast<int>(shape.n);
    // An estimated plan touches no data; the addresses come with each execution.
    alignas(16) std::array<FftwComplex, 2> none = {};
    const std::lock_guard lock(Fftw::planner());
    plan_ = fftw_.plan_many(1, &n, static_cast<int>(shape.batch), &none[0], nullptr, 1, n, &none[1], nullptr,
                            1, n, kFftwForward, kFftwEstimate | kFftwPreserveInput | kFftwUnaligned);
    if (plan_ == nullptr)
      throw Error("workload fft", fmt::format("FFTW plans no {} transforms of {}", shape.batch, n));
  }
  ~CpuFft() override {
    const std::lock_guard lock(Fftw::planner());
    fftw_.destroy(plan_);
  }
  CpuFft(const CpuFft&) = delete;
  CpuFft& operator=(const CpuFft&) = delete;
  [[nodiscard]] std::string name() const override { return "FFTW (" + fftw_.library.name() + ")"; }

 private:
  void compute(const u8* in, u8* out) override {
    // The plan preserves its input.
    fftw_.execute(plan_, reinterpret_cast<FftwComplex*>(const_cast<u8*>(in)),
                  reinterpret_cast<FftwComplex*>(out));
  }
  Fftw fftw_;
  FftwPlan plan_ = nullptr;
};

// --- OpenBLAS -----------------------------------------------------------------------------------------

constexpr int kRowMajor = 101, kNoTranspose = 111;

struct OpenBlas {
  Library library;
  void (*sgemm)(int order, int transpose_a, int transpose_b, int m, int n, int k, float alpha, const float* a,
                int lda, const float* b, int ldb, float beta, float* c, int ldc);
  void (*set_threads)(int);

  static constexpr std::array<const char*, 2> kNames = {"libopenblas.so.0", "libopenblas.so"};
  OpenBlas()
      : library("DOORBELL_LIBOPENBLAS", kNames, "install OpenBLAS (libopenblas0)"),
        sgemm(library.need("cblas_sgemm")),
        set_threads(library.need("openblas_set_num_threads")) {}
};

class CpuGemm final : public CpuEngine {
 public:
  CpuGemm(const WorkloadShape& shape, u32 slots)
      : CpuEngine(shape, slots), b_(second_factor(shape.n, shape.kind == WorkloadKind::gemm_fp16)) {
    // Its time is that of this thread, and other threads have the other cores.
    blas_.set_threads(1);
    if (shape.kind == WorkloadKind::gemm_fp16) a_.resize(u64{shape.n} * shape.n);
  }
  [[nodiscard]] std::string name() const override { return "OpenBLAS (" + blas_.library.name() + ")"; }

 private:
  void compute(const u8* in, u8* out) override {
    const auto* a = reinterpret_cast<const float*>(in);
    if (!a_.empty()) {
      for (u64 i = 0; i < a_.size(); ++i) {
        u16 bits;
        std::memcpy(&bits, in + i * 2, 2);
        a_[i] = half_value(bits);
      }
      a = a_.data();
    }
    const int n = static_cast<int>(shape_.n);
    blas_.sgemm(kRowMajor, kNoTranspose, kNoTranspose, n, n, n, 1, a, n, b_.data(), n, 0,
                reinterpret_cast<float*>(out), n);
  }
  OpenBlas blas_;
  std::vector<float> b_;
  std::vector<float> a_;  ///< of binary16 input: the same numbers as float32
};

}  // namespace

std::unique_ptr<Engine> cpu_engine(const WorkloadShape& shape, u32 slots) {
  if (shape.kind == WorkloadKind::fft) return std::make_unique<CpuFft>(shape, slots);
  return std::make_unique<CpuGemm>(shape, slots);
}

}  // namespace doorbell::net
