// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Makes and checks the payloads of one-sided operations, whatever queues they go through.

#include "measure/check_kernel.hpp"
#include "rma/op_payload.hpp"

using namespace doorbell;

extern "C" __global__ void __launch_bounds__(measure::kCheckThreads)
    doorbell_rma_checks(const measure::CheckJob<rma::OpPhase, rma::OpQueue>* job) {
  measure::run_checkers<rma::OpPayload<GpuWarp>>(job);
}
