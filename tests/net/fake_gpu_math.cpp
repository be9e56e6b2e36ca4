// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Stands in for cuFFT, cuBLAS, hipFFT and hipBLAS: the calls that doorbell makes, computed plainly on the
// CPU, in the stream that the caller chose. Loaded at run time, as they are.

#include <doorbell/config.hpp>

#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <memory>
#include <numbers>
#include <vector>

#include "net/fake_gpu_math.hpp"

using doorbell::u16;
using doorbell::u32;
using doorbell::u64;

namespace {

FakeGpuMath* hooks = nullptr;

void in_stream(void* stream, std::function<void()> work) {
  ++hooks->calls;
  hooks->enqueue(stream, std::move(work));
}

struct Handle {
  void* stream = nullptr;
  int n = 0, batch = 0;
};

// Plans of cuFFT are small numbers.
std::vector<std::unique_ptr<Handle>>& plans() {
  static std::vector<std::unique_ptr<Handle>> all;
  return all;
}

float half(u16 bits) {
  const int exponent = bits >> 10 & 31;
  const float fraction = static_cast<float>(bits & 1023) / 1024;
  const float v = exponent == 0 ? std::ldexp(fraction, -14) : std::ldexp(1 + fraction, exponent - 15);
  return (bits & 0x8000) != 0 ? -v : v;
}

/// By columns: element (row, column) of a matrix is at row + column * leading.
template <class Read>
int product(void* handle, int m, int n, int k, float alpha, Read a, int lda, Read b, int ldb, float* c,
            int ldc) {
  in_stream(static_cast<Handle*>(handle)->stream, [=] {
    for (int column = 0; column < n; ++column)
      for (int row = 0; row < m; ++row) {
        float sum = 0;
        for (int i = 0; i < k; ++i) sum += a(row + i * lda) * b(i + column * ldb);
        c[row + column * ldc] = alpha * sum;
      }
    if (hooks->spoil) c[m / 2 + n / 3 * ldc] += 1;
  });
  return 0;
}

int transform(Handle& plan, const void* in, void* out) {
  in_stream(plan.stream, [&plan, in, out] {
    using Complex = std::complex<float>;
    const auto n = static_cast<u32>(plan.n);
    std::vector<std::complex<double>> roots(n);
    for (u32 i = 0; i < n; ++i) roots[i] = std::polar(1.0, -2 * std::numbers::pi * i / n);
    for (int t = 0; t < plan.batch; ++t) {
      const auto* const x = static_cast<const Complex*>(in) + t * plan.n;
      auto* const y = static_cast<Complex*>(out) + t * plan.n;
      for (u32 k = 0; k < n; ++k) {
        std::complex<double> sum = 0;
        for (u32 i = 0; i < n; ++i) sum += std::complex<double>(x[i]) * roots[k * i % n];
        y[k] = Complex(sum);
      }
    }
    if (hooks->spoil) static_cast<Complex*>(out)[plan.batch * plan.n - 2] += 0.1f;
  });
  return 0;
}

int plan_one(Handle& plan, int n, int type, int batch) {
  if (hooks->fail_create) return 1;
  if (type != 0x29 || n < 1 || batch < 1) return 4;
  plan.n = n;
  plan.batch = batch;
  return 0;
}

bool is(int value, int wanted) {
  return value == wanted;
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

void fake_gpu_math_use(FakeGpuMath* h) {
  hooks = h;
}

// cuFFT
int cufftPlan1d(int* plan, int n, int type, int batch) {
  plans().push_back(std::make_unique<Handle>());
  *plan = static_cast<int>(plans().size());
  return plan_one(*plans().back(), n, type, batch);
}
int cufftSetStream(int plan, void* stream) {
  plans().at(static_cast<u32>(plan) - 1)->stream = stream;
  return 0;
}
int cufftExecC2C(int plan, void* in, void* out, int direction) {
  return is(direction, -1) ? transform(*plans().at(static_cast<u32>(plan) - 1), in, out) : 4;
}
int cufftDestroy(int plan) {
  plans().at(static_cast<u32>(plan) - 1).reset();
  return 0;
}

// hipFFT
int hipfftPlan1d(Handle** plan, int n, int type, int batch) {
  Handle h;
  const int status = plan_one(h, n, type, batch);
  if (status == 0) *plan = new Handle(h);
  return status;
}
int hipfftSetStream(Handle* plan, void* stream) {
  plan->stream = stream;
  return 0;
}
int hipfftExecC2C(Handle* plan, void* in, void* out, int direction) {
  return is(direction, -1) ? transform(*plan, in, out) : 4;
}
int hipfftDestroy(Handle* plan) {
  delete plan;
  return 0;
}

// cuBLAS
int cublasCreate_v2(void** handle) {
  if (hooks->fail_create) return 1;
  *handle = new Handle;
  return 0;
}
int cublasDestroy_v2(void* handle) {
  delete static_cast<Handle*>(handle);
  return 0;
}
int cublasSetStream_v2(void* handle, void* stream) {
  static_cast<Handle*>(handle)->stream = stream;
  return 0;
}
int cublasSgemm_v2(void* handle, int ta, int tb, int m, int n, int k, const float* alpha, const float* a,
                   int lda, const float* b, int ldb, const float* beta, float* c, int ldc) {
  if (!is(ta, 0) || !is(tb, 0) || *beta != 0) return 7;
  const auto read = [](const float* p) { return [p](int i) { return p[i]; }; };
  return product(handle, m, n, k, *alpha, read(a), lda, read(b), ldb, c, ldc);
}
int cublasGemmEx(void* handle, int ta, int tb, int m, int n, int k, const float* alpha, const u16* a,
                 int type_a, int lda, const u16* b, int type_b, int ldb, const float* beta, float* c,
                 int type_c, int ldc, int compute, int algorithm) {
  const bool asked_well = is(ta, 0) && is(tb, 0) && is(type_a, 2) && is(type_b, 2) && is(type_c, 0) &&
                          is(compute, 68) && is(algorithm, -1) && *beta == 0;
  const auto read = [](const u16* p) { return [p](int i) { return half(p[i]); }; };
  return asked_well ? product(handle, m, n, k, *alpha, read(a), lda, read(b), ldb, c, ldc) : 7;
}

// hipBLAS
int hipblasCreate(void** handle) {
  return cublasCreate_v2(handle);
}
int hipblasDestroy(void* handle) {
  return cublasDestroy_v2(handle);
}
int hipblasSetStream(void* handle, void* stream) {
  return cublasSetStream_v2(handle, stream);
}
int hipblasSgemm(void* handle, int ta, int tb, int m, int n, int k, const float* alpha, const float* a,
                 int lda, const float* b, int ldb, const float* beta, float* c, int ldc) {
  if (!is(ta, 111) || !is(tb, 111)) return 7;
  return cublasSgemm_v2(handle, 0, 0, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
int hipblasGemmEx_v2(void* handle, int ta, int tb, int m, int n, int k, const float* alpha, const u16* a,
                     int type_a, int lda, const u16* b, int type_b, int ldb, const float* beta, float* c,
                     int type_c, int ldc, int compute, int algorithm) {
  if (!is(ta, 111) || !is(tb, 111) || !is(compute, 2) || !is(algorithm, 160)) return 7;
  return cublasGemmEx(handle, 0, 0, m, n, k, alpha, a, type_a, lda, b, type_b, ldb, beta, c, type_c, ldc, 68,
                      -1);
}
}
#pragma GCC visibility pop
