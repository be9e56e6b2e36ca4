// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How a test and fake_gpu_math work together.
#pragma once

#include <functional>

struct FakeGpuMath {
  std::function<void(void* stream, std::function<void()> work)> enqueue;
  int calls = 0;
  bool spoil = false;        ///< results are slightly wrong
  bool fail_create = false;  ///< handles and plans
};
