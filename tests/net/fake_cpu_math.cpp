// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Stands in for OpenBLAS and FFTW: the calls that doorbell makes, computed plainly, and wrong where a test
// says so. Loaded at run time, as they are.

#include "net/fake_cpu_math.hpp"

#include <cmath>
#include <complex>
#include <cstdlib>
#include <memory>
#include <numbers>
#include <utility>
#include <vector>

namespace {

using Wrong = FakeCpuMath::Wrong;
using Complex = std::complex<float>;

/// In a program that does not say what it wants, the environment does: the number of one of Wrong.
FakeCpuMath by_environment() {
  const char* const wrong = std::getenv("DOORBELL_FAKE_CPU_MATH_WRONG");
  return {.wrong = static_cast<Wrong>(wrong != nullptr ? std::atoi(wrong) : 0)};
}
FakeCpuMath nobody = by_environment();
FakeCpuMath* told = &nobody;

struct Plan {
  int n = 0, batch = 0;
};

void transform(const Complex* in, Complex* out, int n) {
  std::vector<std::complex<double>> roots;
  for (int i = 0; i < n; ++i) roots.push_back(std::polar(1.0, -2 * std::numbers::pi * i / n));
  for (int k = 0; k < n; ++k) {
    std::complex<double> sum = 0;
    for (int i = 0; i < n; ++i)
      sum += std::complex<double>(in[i]) *
             roots[static_cast<std::size_t>(k) * static_cast<std::size_t>(i) % static_cast<std::size_t>(n)];
    out[k] = Complex(sum);
  }
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

void fake_cpu_math_use(FakeCpuMath* t) {
  told = t;
}

void openblas_set_num_threads(int) {}

void cblas_sgemm(int, int, int, int m, int n, int k, float alpha, const float* a, int lda, const float* b,
                 int ldb, float, float* c, int ldc) {
  for (int i = 0; i < m; ++i) {
    float* const row = c + i * ldc;
    for (int j = 0; j < n; ++j) row[j] = 0;
    for (int l = 0; l < k; ++l)
      for (int j = 0; j < n; ++j)
        row[j] +=
            alpha * a[i * lda + l] * (told->wrong == Wrong::transposed ? b[j * ldb + l] : b[l * ldb + j]);
  }
  // Another place in each product.
  const int at = told->products++ * 37;
  if (told->wrong == Wrong::row)
    for (int j = 0; j < n; ++j) c[at % m * ldc + j] = 1e6f;
  if (told->wrong == Wrong::element) c[at % m * ldc + at * 5 % n] = 1e6f;
  if (told->wrong == Wrong::columns)
    for (int i = 0; i < m; ++i) std::swap(c[i * ldc + 3], c[i * ldc + n - 1]);
}

void* fftwf_plan_many_dft(int, const int* n, int how_many, float (*)[2], const int*, int, int, float (*)[2],
                          const int*, int, int, int, unsigned) {
  return new Plan{*n, how_many};
}
void fftwf_execute_dft(void* plan, float (*in)[2], float (*out)[2]) {
  const Plan& p = *static_cast<Plan*>(plan);
  for (int t = 0; t < p.batch; ++t)
    transform(reinterpret_cast<const Complex*>(in) + t * p.n, reinterpret_cast<Complex*>(out) + t * p.n, p.n);
  ++told->transforms;
  if (told->wrong == Wrong::bin) out[(p.batch - 1) * p.n + 77][0] += 0.1f;
}
void fftwf_destroy_plan(void* plan) {
  delete static_cast<Plan*>(plan);
}
}
#pragma GCC visibility pop
