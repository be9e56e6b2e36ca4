// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "model/dma.hpp"

#include <doorbell/gpu.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#include "gpu/code_objects.hpp"
#include "memory/stream_copy.hpp"

namespace doorbell::model {

namespace {
constexpr u64 kStagingBytes = u64{4} << 20;
constexpr std::chrono::seconds kAgentDeadline{1};
// From this size on, a call of the copy engine (about 8 us, then 50 GB/s) is faster than the agent's one
// block, which reads over PCIe at 14 GB/s.
constexpr u64 kCopyEngineBytes = u64{256} << 10;

// A mapping of this size does not stay in a cache that others use too, and each store reads its line first.
// Short pieces are not worth the wait for their stores.
constexpr u64 kLargeMapping = u64{64} << 20;
constexpr u64 kStreamFrom = 4096;

bool follows(const gpu::Copy& last, const void* to, const void* from) {
  return static_cast<const u8*>(last.to) + last.bytes == to &&
         static_cast<const u8*>(last.from) + last.bytes == from;
}
}  // namespace

struct DmaAgent::Impl {
  Region rings;
  gpu::Stream stream;
};

DmaAgent::DmaAgent(std::shared_ptr<gpu::Gpu> gpu, u32 rings, bool kernel) : gpu_(std::move(gpu)) {
  if (!kernel || !gpu::has_kernels(gpu_->info().runtime)) return;
  impl_ = std::make_unique<Impl>();
  impl_->rings = Region(Place::pinned, sizeof(DmaRing) * rings, gpu_);
  impl_->stream = gpu_->create_stream();
  void* base = impl_->rings.device();
  std::array<void*, 1> args = {&base};
  gpu_->launch(gpu_->kernel("doorbell_dma_agent"), {.blocks = rings, .threads = 256, .shared_bytes = 0},
               impl_->stream, args);
}

DmaAgent::~DmaAgent() {
  if (!impl_) return;
  auto* rings = reinterpret_cast<DmaRing*>(impl_->rings.host());
  for (u64 i = 0; i < impl_->rings.bytes() / sizeof(DmaRing); ++i) store_release(&rings[i].abort, 1);
  // The memory of an agent that does not end is not freed, because a running kernel may still use it.
  if (gpu_->wait(impl_->stream, 2'000'000'000)) gpu_->destroy(impl_->stream);
}

DmaRing* DmaAgent::ring(u32 i) {
  return impl_ ? reinterpret_cast<DmaRing*>(impl_->rings.host()) + i : nullptr;
}

DmaEngine::DmaEngine(const SoftwareAddressSpace& space, DmaAgent* agent, u32 ring) : view_(space) {
  if (agent == nullptr) return;
  ring_ = agent->ring(ring);
  engine_.reserve(kCopyRing);
  gpu_ = agent->gpu().get();
  staging_ = Region(Place::pinned, kStagingBytes, agent->gpu());
}

DmaEngine::~DmaEngine() = default;

DmaEngine::Lookup DmaEngine::look(Iova iova, u64 bytes, Access access) {
  Lookup place{.reachable = true};
  // Mappings side by side may be pieces of one file, in its order.
  bool whole = true;
  for (u64 have = 0; have < bytes;) {
    const auto t = view_.part(iova + have, bytes - have, access);
    if (t.bytes == 0) return {};
    if (have == 0) place.host = t.address;
    whole = whole && t.address != nullptr && !t.gpu && t.address == place.host + have;
    have += t.bytes;
  }
  if (!whole) place.host = nullptr;
  return place;
}

u8* DmaEngine::host(Iova iova, u64 bytes, Access access) {
  const Lookup place = look(iova, bytes, access);
  return place.reachable ? place.host : view_.fault().address;
}

bool DmaEngine::reachable(Iova iova, u64 bytes, Access access) {
  return look(iova, bytes, access).reachable || view_.fault().address != nullptr;
}

bool DmaEngine::fetch_part(const SoftwareAddressSpace::View::Target& t, Iova from, void* to) {
  if (t.remote != nullptr)
    return t.remote->read(from, to, t.bytes, meanwhile_) || view_.fault().address != nullptr;
  if (!t.gpu) {
    std::memcpy(to, t.address, t.bytes);
    return true;
  }
  if (gpu_ == nullptr) return false;
  collect(to, t.address, t.bytes, view_.mapping_end());
  return true;
}

bool DmaEngine::fetch(Iova from, void* to, u64 bytes) {
  auto t = view_.part(from, bytes, Access::read);
  if (t.bytes == bytes) [[likely]]
    return bytes == 0 || fetch_part(t, from, to);
  // Nothing is moved of what is not there as a whole.
  if (!reachable(from, bytes, Access::read)) return false;
  for (u64 done = 0; done < bytes; done += t.bytes) {
    t = view_.part(from + done, bytes - done, Access::read);
    if (t.bytes == 0 || !fetch_part(t, from + done, static_cast<u8*>(to) + done)) return false;
  }
  return true;
}

bool DmaEngine::deliver_part(const SoftwareAddressSpace::View::Target& t, Iova to, const void* from) {
  if (t.remote != nullptr)
    return t.remote->write(to, from, t.bytes, meanwhile_) || view_.fault().address != nullptr;
  if (!t.gpu) {
    if (t.bytes >= kStreamFrom && view_.mapping_bytes() >= kLargeMapping)
      stream_copy(t.address, static_cast<const u8*>(from), t.bytes);
    else std::memcpy(t.address, from, t.bytes);
    return true;
  }
  if (gpu_ == nullptr) return false;
  spread(t.address, from, t.bytes, view_.mapping_end());
  return true;
}

bool DmaEngine::deliver(Iova to, const void* from, u64 bytes) {
  auto t = view_.part(to, bytes, Access::write);
  if (t.bytes == bytes) [[likely]]
    return bytes == 0 || deliver_part(t, to, from);
  if (!reachable(to, bytes, Access::write)) return false;
  for (u64 done = 0; done < bytes; done += t.bytes) {
    t = view_.part(to + done, bytes - done, Access::write);
    if (t.bytes == 0 || !deliver_part(t, to + done, static_cast<const u8*>(from) + done)) return false;
  }
  return true;
}

void DmaEngine::collect(void* to, const u8* gpu_from, u64 bytes, const u8* within) {
  for (u64 done = 0; done < bytes;) {
    const u64 n = std::min(bytes - done, kStagingBytes / 2);
    u8* at = stage(n);
    submit(at, gpu_from + done, n, within);
    landings_.push_back({static_cast<u8*>(to) + done, at, n});
    done += n;
  }
}

void DmaEngine::spread(u8* gpu_to, const void* from, u64 bytes, const u8* within) {
  for (u64 done = 0; done < bytes;) {
    const u64 n = std::min(bytes - done, kStagingBytes / 2);
    u8* at = stage(n);
    std::memcpy(at, static_cast<const u8*>(from) + done, n);
    submit(gpu_to + done, at, n, within);
    done += n;
  }
}

bool DmaEngine::copy(const DmaPlace& to, const DmaPlace& from, u64 bytes) {
  if (gpu_ == nullptr) return false;
  if (!from.gpu && from.device == nullptr) {
    spread(to.address, from.address, bytes, nullptr);
  } else if (!to.gpu && to.device == nullptr) {
    collect(to.address, from.address, bytes, nullptr);
  } else if (bytes >= kCopyEngineBytes) {
    engine_.push_back({to.device, from.device, bytes});
    within_ = nullptr;
  } else {
    if (full()) broken_ = !commit() || broken_;
    submit(to.device, from.device, bytes, nullptr);
  }
  return true;
}

u8* DmaEngine::stage(u64 bytes) {
  bytes = (bytes + 15) / 16 * 16;
  if (staged_ + bytes > staging_.bytes() || full()) broken_ = !commit() || broken_;
  u8* at = staging_.host() + staged_;
  staged_ += bytes;
  return at;
}

void DmaEngine::submit(void* to, const void* from, u64 bytes, const u8* within) {
  if (ring_ == nullptr) {
    // Pages of one mapping that follow each other are one call of the copy engine, which may span no two
    // allocations.
    if (within != nullptr && within == within_ && !engine_.empty() && follows(engine_.back(), to, from)) {
      engine_.back().bytes += bytes;
      return;
    }
    engine_.push_back({to, from, bytes});
    within_ = within;
    return;
  }
  CopyDescriptor& d = ring_->descriptors[ticket_ % kCopyRing];
  d.to = reinterpret_cast<u64>(to);
  d.from = reinterpret_cast<u64>(from);
  d.bytes = bytes;
  d.kind = 0;
  ++ticket_;
  ++queued_;
  store_release(&d.ticket, ticket_);  // the copy's fields come before the word that makes them valid
}

bool DmaEngine::commit() {
  if (!engine_.empty()) {
    try {
      gpu_->copy(engine_);
    } catch (const std::exception&) {
      broken_ = true;  // no error can be returned here, so as with an agent that does not answer
    }
    engine_.clear();
  }
  if (queued_ > 0) broken_ = !agent_is_done() || broken_;
  if (!broken_)
    for (const Landing& l : landings_) std::memcpy(l.to, l.from, l.bytes);
  landings_.clear();
  queued_ = 0;
  staged_ = 0;
  return !broken_;
}

bool DmaEngine::agent_is_done() {
  const auto give_up = std::chrono::steady_clock::now() + kAgentDeadline;
  // The acquire orders the copies that the agent finished before this thread's use of their data.
  for (u32 spins = 0; load_acquire(&ring_->done) != ticket_; ++spins) {
    cpu_relax();
    if ((spins & 0xfff) == 0xfff && std::chrono::steady_clock::now() > give_up) return false;
  }
  return true;
}

}  // namespace doorbell::model
