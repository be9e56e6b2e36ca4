// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An endpoint over libcxi and the objects made on it. Each object keeps alive the objects from which it was
// made, so that destruction always runs in the reverse order of creation. Not yet run on hardware.
#pragma once

#include <doorbell/gpu.hpp>

#include <memory>
#include <string>

#include "cxi/cassini_device.hpp"
#include "cxi/libcxi/library.hpp"

namespace doorbell::cxi {

/// An object of the library, with the function that destroys it. If the library refuses to destroy it,
/// nothing can be done: the object goes when the device is closed.
template <class T>
using Owned = std::unique_ptr<T, int (*)(T*)>;

/// The open device.
struct LibcxiContext {
  /// `spec` names the device. Throws CallError{open}: ExitCode::absent without the library or without the
  /// device.
  LibcxiContext(const std::string& spec, std::shared_ptr<gpu::Gpu> gpu);

  std::string name;               ///< "cxi0"
  std::string title;              ///< of the device in messages about opening it
  std::shared_ptr<gpu::Gpu> gpu;  ///< the GPU that may drive the queues; may be null
  LibcxiLibrary cxi;
  std::unique_ptr<libcxi::OpenNic, void (*)(libcxi::OpenNic*)> nic;
};

/// The objects from which everything on an endpoint is made, in the order of creation.
struct LibcxiProcess {
  /// Throws CallError{service} if there is no such service, and Error if the service has no VNI.
  LibcxiProcess(std::shared_ptr<const LibcxiContext> context, u32 service);

  std::shared_ptr<const LibcxiContext> context;
  u16 vni;
  Owned<libcxi::Lni> lni;
  Owned<libcxi::Domain> domain;
  Owned<libcxi::Cp> profile;

  /// Throws CallError{map}.
  [[nodiscard]] Owned<libcxi::Md> map(const Region& region, Access access) const;
};

class LibcxiEndpoint final : public Endpoint {
 public:
  LibcxiEndpoint(std::shared_ptr<const LibcxiContext> context, u32 service)
      : process_(std::make_shared<const LibcxiProcess>(std::move(context), service)) {}

  [[nodiscard]] Address address() const override;
  [[nodiscard]] std::unique_ptr<MemoryDescriptor> map(const Region& region, Access access) override;
  /// The library clears event queues with the CPU.
  [[nodiscard]] Place event_queue_place(Place wanted) const override {
    return wanted == Place::gpu ? Place::pageable : wanted;
  }
  [[nodiscard]] std::unique_ptr<EventQueueObject> create_event_queue(u64 bytes, Place place) override;
  [[nodiscard]] std::unique_ptr<CommandQueueObject> create_command_queue(
      const CommandQueueShape& shape) override;
  [[nodiscard]] std::unique_ptr<CounterObject> create_counter(bool writeback, Place place) override;
  /// The card writes counts back when a GET command, a SET or a reset asks, and when an operation has failed.
  [[nodiscard]] bool counts_on_request() const override { return true; }
  [[nodiscard]] std::unique_ptr<PortalsEntry> create_portals_entry(EventQueueObject& events, u32 pid_offset,
                                                                   bool matching) override;

 private:
  std::shared_ptr<const LibcxiProcess> process_;
};

}  // namespace doorbell::cxi
