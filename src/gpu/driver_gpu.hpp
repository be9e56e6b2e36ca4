// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One open GPU over a Driver: everything that is the same for all runtimes.
#pragma once

#include "gpu/driver.hpp"

#include <doorbell/error.hpp>

#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace doorbell::gpu {

class DriverGpu final : public Gpu {
 public:
  DriverGpu(std::shared_ptr<Driver> driver, int ordinal, Info info);
  ~DriverGpu() override;
  DriverGpu(const DriverGpu&) = delete;
  DriverGpu& operator=(const DriverGpu&) = delete;

  const Info& info() const override { return info_; }
  void* allocate(u64 bytes) override;
  void free(void* p) noexcept override;
  void* allocate_pinned(u64 bytes) override;
  void free_pinned(void* p) noexcept override;
  void* register_host(void* p, u64 bytes, bool mmio) override;
  void unregister_host(void* p) noexcept override;
  void copy(void* to, const void* from, u64 bytes) override;
  void copy(std::span<const Copy> batch) override;
  void fill_zero(void* p, u64 bytes) override;
  Stream create_stream() override;
  Stream create_urgent_stream() override;
  void destroy(Stream s) noexcept override;
  Kernel kernel(const std::string& name) override;
  void launch(Kernel k, const Launch& shape, Stream s, std::span<void*> args) override;
  void start_copy(const Copy& copy, Stream s) override;
  Event create_event() override;
  void destroy(Event e) noexcept override;
  void record(Event e, Stream s) override;
  void follow(Stream s, Event e) override;
  bool finished(Stream s) override;
  bool wait(Stream s, u64 timeout_ns) override;
  void reach(Gpu& other) override;
  void make_current() override;
  int export_dmabuf(void* p, u64 bytes) override;

 private:
  /// As long as this object lives, the GPU is current on the calling thread; afterwards the previous one is
  /// again.
  class Current {
   public:
    explicit Current(const DriverGpu& gpu) : driver_(*gpu.driver_) {
      const Status status = driver_.enter(gpu.context_, previous_);
      if (status != kSuccess) gpu.raise(status, "make current " + gpu.place());
    }
    ~Current() { driver_.leave(previous_); }
    Current(const Current&) = delete;
    Current& operator=(const Current&) = delete;

   private:
    const Driver& driver_;
    Context previous_ = 0;
  };
  class StreamLease;  // one of the streams that blocking copies use

  enum class Kind { device, pinned, registered };
  struct Held {
    Kind kind;
    void* base;  ///< the driver's address; differs from the key if alignment moved it
  };

  [[noreturn]] void raise(Status status, const std::string& what, ExitCode code = ExitCode::usage,
                          std::string hint = {}) const;
  [[noreturn]] void refuse(const std::string& what, const std::string& why, std::string hint = {}) const;
  std::string place() const;

  // Call these with the GPU current and the mutex held.
  bool busy() noexcept;
  void sweep() noexcept;
  Status give_back(const Held& held) noexcept;
  void load_modules();

  void forget(void* p, Kind kind) noexcept;
  /// `spin`: how long to poll without pauses.
  bool poll_until(void* stream, std::chrono::steady_clock::time_point deadline,
                  std::chrono::nanoseconds spin);
  void drain(StreamLease& lease, const char* what);
  void check_addresses(const Copy& c) const;
  [[noreturn]] void copy_failed(Status status, const Copy& c) const;
  /// Creates a stream or an event and notes it in `kept`.
  void* make(Status (Driver::*create)(void*&) const, std::vector<void*>& kept, const char* what);
  void join(Status (Driver::*call)(void*, void*) const, Event e, Stream s, const char* doing);
  void zero(void* p, u64 bytes);

  std::shared_ptr<Driver> driver_;
  int ordinal_;
  Info info_;
  Context context_ = 0;

  std::mutex mutex_;  // guards everything below
  std::map<void*, Held> held_;
  std::vector<Held> retired_;   // the user gave these up while kernels ran
  std::vector<void*> streams_;  // made by create_stream()
  std::vector<void*> events_;
  std::vector<void*> abandoned_;  // destroyed by the user, or given up, before their work ended
  std::vector<void*> idle_copy_streams_;
  bool modules_loaded_ = false;
  std::vector<void*> modules_;
  std::map<std::string, void*> kernels_;
  std::map<void*, u32> shared_allowed_;
};

}  // namespace doorbell::gpu
