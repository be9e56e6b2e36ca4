// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The two vendors' libraries have the same calls under other names; where their constants differ, a table
// says so.

#include <doorbell/error.hpp>
#include <doorbell/region.hpp>
#include <fmt/format.h>

#include <array>

#include "net/assembly/stream_marks.hpp"
#include "net/workload/checks.hpp"
#include "net/workload/engine.hpp"
#include "system/library.hpp"

namespace doorbell::net {
namespace {

constexpr int kSuccess = 0;

void must(int status, const char* what, const Library& library) {
  if (status != kSuccess)
    throw Error(fmt::format("{} by {}", what, library.name()), fmt::format("its status is {}", status), {},
                ExitCode::data);
}

/// Windows and results in memory that the GPU reaches.
class GpuEngine : public Engine {
 public:
  GpuEngine(const WorkloadShape& shape, u32 slots, std::shared_ptr<gpu::Gpu> gpu, gpu::Stream assembly)
      : shape_(shape),
        gpu_(std::move(gpu)),
        assembly_(assembly),
        stream_(gpu_->create_stream()),
        marks_(gpu_, stream_),
        results_(Place::gpu, shape.result_bytes * slots, gpu_),
        mark_of_(slots) {
    gpu_->make_current();
    if (assembly_.handle == nullptr) return;
    for (u32 i = 0; i < slots; ++i) assembled_.push_back(gpu_->create_event());
  }
  ~GpuEngine() override {
    gpu_->destroy(stream_);
    for (const gpu::Event e : assembled_) gpu_->destroy(e);
  }
  GpuEngine(const GpuEngine&) = delete;
  GpuEngine& operator=(const GpuEngine&) = delete;

  void announce(u32 slot) override {
    if (!assembled_.empty()) gpu_->record(assembled_[slot], assembly_);
  }
  void start(const Window& window, u32 slot) override {
    if (!assembled_.empty()) gpu_->follow(stream_, assembled_[slot]);
    compute(window.device, result(slot));
    mark_of_[slot] = marks_.mark();
  }
  bool wait(u32 slot, u64 limit_ns) override { return marks_.wait(mark_of_[slot], limit_ns); }
  void read_input(const Window& window, u64 offset, void* to, u64 bytes) override {
    gpu_->copy(to, window.device + offset, bytes);
  }
  void read_result(u32 slot, u64 offset, void* to, u64 bytes) override {
    gpu_->copy(to, result(slot) + offset, bytes);
  }

 protected:
  virtual void compute(const u8* in, u8* out) = 0;
  [[nodiscard]] bool cuda() const { return gpu_->info().runtime == gpu::Runtime::cuda; }
  WorkloadShape shape_;
  std::shared_ptr<gpu::Gpu> gpu_;

 private:
  [[nodiscard]] u8* result(u32 slot) const { return results_.device() + slot * shape_.result_bytes; }
  gpu::Stream assembly_;

 protected:
  gpu::Stream stream_;

 private:
  StreamMarks marks_;
  Region results_;
  std::vector<u64> mark_of_;
  std::vector<gpu::Event> assembled_;  ///< of each slot, where there is an assembly
};

// --- cuFFT, hipFFT --------------------------------------------------------------------------------------

constexpr int kComplexToComplex = 0x29, kForward = -1;

constexpr std::array kCufft = {"libcufft.so.12", "libcufft.so.11", "libcufft.so.10", "libcufft.so",
                               "/usr/local/cuda/lib64/libcufft.so"};
constexpr std::array kHipfft = {"libhipfft.so.0", "libhipfft.so", "/opt/rocm/lib/libhipfft.so"};

struct FftLibrary {
  // The two have different kinds of handle: an int, and a pointer. Both fit into one word and are passed
  // alike.
  using Handle = std::uintptr_t;
  Library library;
  int (*plan)(Handle* plan, int n, int type, int batch);
  int (*set_stream)(Handle plan, void* stream);
  int (*execute)(Handle plan, void* in, void* out, int direction);
  int (*destroy)(Handle plan);

  explicit FftLibrary(bool cuda)
      : library(cuda ? Library("DOORBELL_LIBCUFFT", kCufft, "install CUDA's cuFFT")
                     : Library("DOORBELL_LIBHIPFFT", kHipfft, "install ROCm's hipFFT")),
        plan(library.need(cuda ? "cufftPlan1d" : "hipfftPlan1d")),
        set_stream(library.need(cuda ? "cufftSetStream" : "hipfftSetStream")),
        execute(library.need(cuda ? "cufftExecC2C" : "hipfftExecC2C")),
        destroy(library.need(cuda ? "cufftDestroy" : "hipfftDestroy")) {}
};

class GpuFft final : public GpuEngine {
 public:
  GpuFft(const WorkloadShape& shape, u32 slots, const std::shared_ptr<gpu::Gpu>& gpu, gpu::Stream assembly)
      : GpuEngine(shape, slots, gpu, assembly), fft_(cuda()) {
    must(fft_.plan(&plan_, static_cast<int>(shape.n), kComplexToComplex, static_cast<int>(shape.batch)),
         "a plan of transforms", fft_.library);
    must(fft_.set_stream(plan_, stream_.handle), "the choice of a stream", fft_.library);
  }
  ~GpuFft() override { fft_.destroy(plan_); }
  GpuFft(const GpuFft&) = delete;
  GpuFft& operator=(const GpuFft&) = delete;
  [[nodiscard]] std::string name() const override { return fft_.library.name(); }

 private:
  void compute(const u8* in, u8* out) override {
    // Out of place, so the input is only read.
    must(fft_.execute(plan_, const_cast<u8*>(in), out, kForward), "transforms", fft_.library);
  }
  FftLibrary fft_;
  FftLibrary::Handle plan_ = 0;
};

// --- cuBLAS, hipBLAS ------------------------------------------------------------------------------------

constexpr std::array kCublas = {"libcublas.so.13", "libcublas.so.12", "libcublas.so.11", "libcublas.so",
                                "/usr/local/cuda/lib64/libcublas.so"};
// Before 2 its types of numbers had other values.
constexpr std::array kHipblas = {"libhipblas.so.3", "libhipblas.so.2", "/opt/rocm/lib/libhipblas.so.3",
                                 "/opt/rocm/lib/libhipblas.so.2"};

struct BlasLibrary {
  Library library;
  int (*create)(void** handle);
  int (*destroy)(void* handle);
  int (*set_stream)(void* handle, void* stream);
  int (*sgemm)(void* handle, int transpose_a, int transpose_b, int m, int n, int k, const float* alpha,
               const float* a, int lda, const float* b, int ldb, const float* beta, float* c, int ldc);
  int (*gemm_ex)(void* handle, int transpose_a, int transpose_b, int m, int n, int k, const void* alpha,
                 const void* a, int type_a, int lda, const void* b, int type_b, int ldb, const void* beta,
                 void* c, int type_c, int ldc, int compute, int algorithm);
  int no_transpose, compute_float32, any_algorithm;
  static constexpr int kFloat32 = 0, kFloat16 = 2;  // the runtimes' types of numbers

  explicit BlasLibrary(bool cuda)
      : library(cuda ? Library("DOORBELL_LIBCUBLAS", kCublas, "install CUDA's cuBLAS")
                     : Library("DOORBELL_LIBHIPBLAS", kHipblas, "install ROCm's hipBLAS")),
        create(library.need(cuda ? "cublasCreate_v2" : "hipblasCreate")),
        destroy(library.need(cuda ? "cublasDestroy_v2" : "hipblasDestroy")),
        set_stream(library.need(cuda ? "cublasSetStream_v2" : "hipblasSetStream")),
        sgemm(library.need(cuda ? "cublasSgemm_v2" : "hipblasSgemm")),
        gemm_ex(cuda ? library.need("cublasGemmEx") : library.need("hipblasGemmEx", "hipblasGemmEx_v2")),
        no_transpose(cuda ? 0 : 111),
        compute_float32(cuda ? 68 : 2),
        any_algorithm(cuda ? -1 : 160) {
    // TF32 is off by default, and rocBLAS has none: nothing needs to be set here.
  }
};

class GpuGemm final : public GpuEngine {
 public:
  GpuGemm(const WorkloadShape& shape, u32 slots, const std::shared_ptr<gpu::Gpu>& gpu, gpu::Stream assembly)
      : GpuEngine(shape, slots, gpu, assembly),
        blas_(cuda()),
        b_(Place::gpu, u64{shape.n} * shape.n * (half() ? 2 : 4), gpu_) {
    if (half()) {
      const auto b = second_factor_half(shape.n);
      b_.write(0, b.data(), b.size() * 2);
    } else {
      const auto b = second_factor(shape.n, false);
      b_.write(0, b.data(), b.size() * 4);
    }
    must(blas_.create(&handle_), "a start", blas_.library);
    must(blas_.set_stream(handle_, stream_.handle), "the choice of a stream", blas_.library);
  }
  ~GpuGemm() override { blas_.destroy(handle_); }
  GpuGemm(const GpuGemm&) = delete;
  GpuGemm& operator=(const GpuGemm&) = delete;
  [[nodiscard]] std::string name() const override { return blas_.library.name(); }

 private:
  [[nodiscard]] bool half() const { return shape_.kind == WorkloadKind::gemm_fp16; }
  void compute(const u8* in, u8* out) override {
    // The libraries' matrices go by columns, ours by rows: C = A B by rows is C' = B' A' by columns.
    const int n = static_cast<int>(shape_.n);
    const int no = blas_.no_transpose;
    const float one = 1, zero = 0;
    const int status =
        half() ? blas_.gemm_ex(handle_, no, no, n, n, n, &one, b_.device(), BlasLibrary::kFloat16, n, in,
                               BlasLibrary::kFloat16, n, &zero, out, BlasLibrary::kFloat32, n,
                               blas_.compute_float32, blas_.any_algorithm)
               : blas_.sgemm(handle_, no, no, n, n, n, &one, reinterpret_cast<const float*>(b_.device()), n,
                             reinterpret_cast<const float*>(in), n, &zero, reinterpret_cast<float*>(out), n);
    must(status, "a product of matrices", blas_.library);
  }
  BlasLibrary blas_;
  Region b_;
  void* handle_ = nullptr;
};

}  // namespace

std::unique_ptr<Engine> gpu_engine(const WorkloadShape& shape, u32 slots, std::shared_ptr<gpu::Gpu> gpu,
                                   gpu::Stream assembly) {
  if (shape.kind == WorkloadKind::fft) return std::make_unique<GpuFft>(shape, slots, gpu, assembly);
  return std::make_unique<GpuGemm>(shape, slots, gpu, assembly);
}

}  // namespace doorbell::net
