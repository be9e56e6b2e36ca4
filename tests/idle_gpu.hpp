// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A GPU that has memory (the host's) and does nothing: what tests derive from whose subject asks for a GPU's
// addresses or dma-bufs and runs no kernel.
#pragma once

#include <doorbell/gpu.hpp>

#include <cstdlib>
#include <span>
#include <string>

namespace doorbell {

class IdleGpu : public gpu::Gpu {
 public:
  [[nodiscard]] const gpu::Info& info() const override { return info_; }
  [[nodiscard]] void* allocate(u64 bytes) override {
    constexpr u64 kAligned = 65536;  // a GPU's pages
    return std::aligned_alloc(kAligned, (bytes + kAligned - 1) / kAligned * kAligned);
  }
  void free(void* p) noexcept override { std::free(p); }
  [[nodiscard]] void* allocate_pinned(u64 bytes) override { return allocate(bytes); }
  void free_pinned(void* p) noexcept override { std::free(p); }
  [[nodiscard]] void* register_host(void* p, u64, bool) override { return p; }
  void unregister_host(void*) noexcept override {}
  void copy(void*, const void*, u64) override {}
  void copy(std::span<const gpu::Copy>) override {}
  void fill_zero(void*, u64) override {}
  void reach(gpu::Gpu&) override {}
  [[nodiscard]] gpu::Stream create_stream() override { return {}; }
  [[nodiscard]] gpu::Stream create_urgent_stream() override { return create_stream(); }
  void destroy(gpu::Stream) noexcept override {}
  [[nodiscard]] gpu::Kernel kernel(const std::string&) override { return {}; }
  void launch(gpu::Kernel, const Launch&, gpu::Stream, std::span<void*>) override {}
  void start_copy(const gpu::Copy& c, gpu::Stream) override { copy(c.to, c.from, c.bytes); }
  [[nodiscard]] gpu::Event create_event() override { return {}; }
  void destroy(gpu::Event) noexcept override {}
  void record(gpu::Event, gpu::Stream) override {}
  void follow(gpu::Stream, gpu::Event) override {}
  [[nodiscard]] bool finished(gpu::Stream) override { return true; }
  [[nodiscard]] bool wait(gpu::Stream, u64) override { return true; }
  [[nodiscard]] int export_dmabuf(void*, u64) override { return -1; }

 private:
  gpu::Info info_;
};

}  // namespace doorbell
