// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Helpers of the tests with the fake libcxi (fake_libcxi.cpp): its log of calls, the objects made and
// destroyed, the objects of a loopback, a GPU.
#pragma once

#include <dlfcn.h>
#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>

#include "cxi/libcxi/cassini.hpp"
#include "cxi/libcxi/library.hpp"
#include "cxi/loopback.hpp"
#include "errors.hpp"
#include "idle_gpu.hpp"

namespace doorbell::cxi {

namespace fs = std::filesystem;
using test::expect_says;
using Call = CallError::Call;
using Lines = std::vector<std::string>;

/// The fake that DOORBELL_LIBCXI names.
template <class Function>
Function* in_fake(const char* name) {
  void* const library = ::dlopen(std::getenv("DOORBELL_LIBCXI"), RTLD_NOW | RTLD_LOCAL);
  return reinterpret_cast<Function*>(::dlsym(library, name));
}
inline Lines calls() {
  std::istringstream log(in_fake<const char*()>("fake_cxi_log")());
  Lines lines;
  for (std::string line; std::getline(log, line);) lines.push_back(line);
  return lines;
}
inline int alive() {
  return in_fake<int()>("fake_cxi_alive")();
}
inline void forget() {
  in_fake<void()>("fake_cxi_forget")();
}

/// The object that a call makes, or destroys: "cq1" of "alloc_cmdq(...) = cq1" or "destroy_cmdq(cq1)".
inline std::string made_by(const std::string& line) {
  const auto at = line.rfind(" = ");
  return at == std::string::npos ? "" : line.substr(at + 3);
}
inline std::string gone_by(const std::string& line) {
  const bool destroys =
      line.starts_with("destroy_") || line.starts_with("unmap") || line.starts_with("close_");
  const auto open = line.find('(');
  return destroys ? line.substr(open + 1, line.size() - open - 2) : "";
}

/// Everything that was made is gone, in the reverse order.
inline void expect_reverse_tear_down() {
  Lines made, gone;
  for (const std::string& line : calls()) {
    if (!made_by(line).empty()) made.push_back(made_by(line));
    if (!gone_by(line).empty()) gone.push_back(gone_by(line));
  }
  std::reverse(made.begin(), made.end());
  EXPECT_EQ(gone, made);
  EXPECT_EQ(alive(), 0);
}

struct Refusal {
  std::string said = "no error";
  std::string hint;
  ExitCode exit = ExitCode::ok;
  bool by_call = false;
  Call call = Call::other;
  int code = 0;
};
inline Refusal refusal_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const CallError& e) {
    return {e.what(), e.hint(), e.code(), true, e.call(), e.errno_code()};
  } catch (const Error& e) {
    return {e.what(), e.hint(), e.code()};
  }
  return {};
}

/// A GPU that exports dma-bufs and lends its pages; "device" addresses of registered pages are shifted.
class FakeGpu final : public IdleGpu {
 public:
  static constexpr u64 kShift = u64{1} << 40;
  [[nodiscard]] void* register_host(void* p, u64 bytes, bool mmio) override {
    if (mmio && refuse_registers) throw Error("registers", "not for this GPU", "another driver");
    registered.push_back({p, bytes, mmio});
    return static_cast<u8*>(p) + kShift;
  }
  void unregister_host(void* p) noexcept override {
    std::erase_if(registered, [&](const Given& g) { return g.p == p; });
    calls_at_release = calls();
  }
  [[nodiscard]] int export_dmabuf(void*, u64) override { return exported = ::dup(STDOUT_FILENO); }
  void copy(void* to, const void* from, u64 bytes) override { std::memcpy(to, from, bytes); }
  void copy(std::span<const gpu::Copy> all) override {
    for (const gpu::Copy& c : all) copy(c.to, c.from, c.bytes);
  }

  struct Given {
    void* p;
    u64 bytes;
    bool mmio;
  };
  std::vector<Given> registered;
  Lines calls_at_release;
  bool refuse_registers = false;
  int exported = -1;
};

/// The objects that the loopback tool makes, in its order; members go in the reverse one.
struct Loopback {
  explicit Loopback(u32 service = 1, u32 transfers = 15)
      : endpoint(device.open(service)),
        tx_events(endpoint->create_event_queue(u64{transfers + 1} * 64, Place::pageable)),
        source(device.allocate(Place::pageable, 8192, nullptr)),
        source_md(endpoint->map(source, Access::read_write)),
        transmit(endpoint->create_command_queue({.slots = 4 * transfers + 1})),
        counter(endpoint->create_counter(false, Place::pageable)),
        triggered(endpoint->create_command_queue(
            {.kind = CommandQueueKind::triggered, .slots = 1, .events = tx_events.get()})),
        rx_events(endpoint->create_event_queue(4096, Place::pageable)),
        sink(device.allocate(Place::pageable, 8192, nullptr)),
        sink_md(endpoint->map(sink, Access::read_write)),
        target(endpoint->create_command_queue({.kind = CommandQueueKind::target, .slots = 1})),
        entry(endpoint->create_portals_entry(*rx_events, 0)) {}

  LibcxiCassini device{"cxi0"};
  std::unique_ptr<Endpoint> endpoint;
  std::unique_ptr<EventQueueObject> tx_events;
  Region source;
  std::unique_ptr<MemoryDescriptor> source_md;
  std::unique_ptr<CommandQueueObject> transmit;
  std::unique_ptr<CounterObject> counter;
  std::unique_ptr<CommandQueueObject> triggered;
  std::unique_ptr<EventQueueObject> rx_events;
  Region sink;
  std::unique_ptr<MemoryDescriptor> sink_md;
  std::unique_ptr<CommandQueueObject> target;
  std::unique_ptr<PortalsEntry> entry;
};

class LibcxiFake : public testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kVariables) ::unsetenv(name);
    use(FAKE_LIBCXI);
  }
  void TearDown() override {
    if (fs::exists(std::getenv("DOORBELL_LIBCXI"))) {
      EXPECT_EQ(alive(), 0);
    }
    for (const char* name : kVariables) ::unsetenv(name);
  }
  static void set(const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); }
  static void use(const char* library) {
    set("DOORBELL_LIBCXI", library);
    if (fs::exists(library)) forget();
  }

 private:
  static constexpr std::array kVariables = {"DOORBELL_LIBCXI", "FAKE_CXI_FAIL", "FAKE_CXI_WRONG",
                                            "FAKE_CXI_SERVICES"};
};

}  // namespace doorbell::cxi
