// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// GPUs of the fake driver libraries (fake_cuda.cpp, fake_hip.cpp), which replace the real ones through the
// environment variables DOORBELL_LIBCUDA and DOORBELL_LIBAMDHIP64. Those of Level Zero are in
// level_zero_test.cpp.
#pragma once

#include <dlfcn.h>
#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <functional>
#include <string>

namespace doorbell::gpu {

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// The count of the fake library at `path` under `what`.
inline int live(const char* what, const char* path = FAKE_CUDA) {
  void* library = ::dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const auto ask = reinterpret_cast<int (*)(const char*)>(::dlsym(library, "fake_cuda_live"));
  const int answer = ask(what);
  ::dlclose(library);
  return answer;
}

/// The error that `call` throws; fails the test when it throws none.
inline Error error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& e) {
    return e;
  }
  ADD_FAILURE() << "no doorbell::Error";
  return {"nothing", "thrown"};
}

class GpuLoader : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kVariables) ::unsetenv(name);
    set("DOORBELL_LIBCUDA", FAKE_CUDA);
    set("DOORBELL_LIBAMDHIP64", "/nonexistent/libamdhip64.so");
    set("DOORBELL_LIBZE_LOADER", "/nonexistent/libze_loader.so.1");
  }
  void TearDown() override {
    for (const char* name : kVariables) ::unsetenv(name);
  }
  static void set(const char* name, const char* value) { ::setenv(name, value, 1); }
  static void unset(const char* name) { ::unsetenv(name); }

  static RuntimeStatus cuda() { return runtimes().at(0); }

 private:
  static constexpr std::array kVariables = {
      "DOORBELL_LIBCUDA",  "DOORBELL_LIBAMDHIP64", "DOORBELL_LIBZE_LOADER",
      "FAKE_CUDA_DEVICES", "FAKE_CUDA_VERSION",    "FAKE_CUDA_FAIL",
      "FAKE_CUDA_SPLIT",   "FAKE_CUDA_HOLD",       "FAKE_CUDA_APART"};
};

/// With GPU 0 of the fake driver open.
class OpenGpu : public GpuLoader {
 protected:
  void SetUp() override {
    GpuLoader::SetUp();
    gpu_ = open(0);
  }
  void TearDown() override {
    unset("FAKE_CUDA_HOLD");
    unset("FAKE_CUDA_FAIL");
    gpu_.reset();
    for (const char* what :
         {"device", "pinned", "registered", "streams", "events", "modules", "contexts", "blocked", "current"})
      EXPECT_EQ(live(what), 0) << what;
    GpuLoader::TearDown();
  }

  /// A kernel handle that the fake driver accepts, whether or not this build has kernels.
  static Kernel any_kernel() {
    static char kernel = 0;
    return {&kernel};
  }
  Stream hold() {
    const Stream s = gpu_->create_stream();
    set("FAKE_CUDA_HOLD", "1");
    gpu_->launch(any_kernel(), {}, s, {});
    return s;
  }

  std::shared_ptr<Gpu> gpu_;
};

/// Whether this build has kernels for GPUs of that kind.
inline bool built_for(Runtime runtime) {
  const auto objects = code_objects();
  return std::any_of(objects.begin(), objects.end(),
                     [&](const CodeObject& o) { return o.runtime == runtime; });
}

}  // namespace doorbell::gpu
