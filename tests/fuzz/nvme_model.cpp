// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The software controller fed with any submission entry and any doorbell value, on the fuzzer's own
// thread, while memory comes and goes: it must not crash, hang, write where the host did not allow it to, or
// raise an interrupt that no queue has.

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <vector>

#include "fuzz/fuzz.hpp"
#include "memory/software_address_space.hpp"
#include "nvme/model/admin.hpp"
#include "nvme/model/thread_service.hpp"

using namespace doorbell;
using namespace doorbell::nvme;
using fuzz::require;

namespace {

constexpr u32 kAdminEntries = 8, kIoEntries = 8;
constexpr u64 kRegion = 32 * 1024;

ModelConfig config_from(FuzzedDataProvider& in) {
  ModelConfig c;
  c.capacity_bytes = u64{1} << 20;
  c.media = in.ConsumeBool() ? ModelConfig::Media::ram : ModelConfig::Media::null;
  c.lba_bytes = in.ConsumeBool() ? 512 : 4096;
  c.max_queues = 4;
  c.max_entries = in.PickValueInArray<u32>({2, 8, 64, 4096});
  c.stride = in.ConsumeIntegralInRange<u32>(0, 4);
  c.mdts = in.ConsumeIntegralInRange<u32>(0, 4);
  c.latency_ns = in.ConsumeBool() ? 1 : 0;
  c.shadow_doorbells = in.ConsumeBool();
  c.formats = in.PickValueInArray<u32>({1, 2, 64});
  c.format = in.ConsumeBool();
  c.delay_ns = 1000;
  c.seed = in.ConsumeIntegral<u8>();
  if (in.ConsumeBool())
    for (double& p : c.faults.probability) p = in.ConsumeBool() ? 0.2 : 0;
  c.faults.probability[static_cast<u32>(model::Fault::removal)] = 0;  // it would end every run at once
  return c;
}

constexpr u32 kVectors = 3;

struct Sink final : InterruptSink {
  void raise(u16 vector) noexcept override { require(vector < kVectors); }
};

/// Shared state with what is decided before the first engine.
struct Connected : ModelShared {
  Connected(const ModelConfig& config, InterruptSink* sink, bool foreign) : ModelShared(config) {
    interrupts.connect(sink, kVectors);
    foreign_memory = foreign;
  }
};

struct Rig {
  Rig(const ModelConfig& config, bool interrupts, bool foreign)
      : shared(config, interrupts ? &sink : nullptr, foreign),
        registers(Place::pageable, sq_doorbell_offset(config.max_queues + 1, config.stride)) {
    std::memset(constant.region().host(), 0x5a, kRegion);
    require(admin->enable((kAdminEntries - 1) << 16 | (kAdminEntries - 1), sq[0].iova(), cq[0].iova()));
    submit(0, create_cq_command(1, 1, kIoEntries, cq[1].iova(), interrupts, 1));
    submit(0, create_sq_command(2, 1, 1, kIoEntries, sq[1].iova()));
    poll();
  }

  u32* word(u64 offset) {
    return reinterpret_cast<u32*>(registers.host() + offset % registers.bytes() / 4 * 4);
  }
  void submit(u32 qid, const Sqe& e) {
    std::memcpy(sq[qid].region().host() + u64{tail[qid]} * kSqeBytes, &e, sizeof e);
    tail[qid] = (tail[qid] + 1) % kIoEntries;
    store_release(word(sq_doorbell_offset(qid, shared.config.stride)), tail[qid]);
  }
  void poll() {
    for (int i = 0; i < 4; ++i) {
      (void)admin->poll();
      (void)service.engines().front()->poll();
    }
  }
  /// An address: inside one of the regions more often than not, aligned more often than not.
  u64 address(FuzzedDataProvider& in) {
    const u32 kind = in.ConsumeIntegralInRange<u32>(0, 7);
    const u64 offset = in.ConsumeIntegralInRange<u64>(0, kRegion + 4096);
    const u64 at = kind < 4 ? offset & ~u64{4095} : kind == 4 ? offset & ~u64{7} : offset;
    switch (in.ConsumeIntegralInRange<u32>(0, 5)) {
      case 0:
        return in.ConsumeIntegral<u64>();
      case 5:
        return passing ? passing->iova() + at % 12288 : ~u64{0} - 4095;
      case 1:
        return constant.iova() + at;
      case 2:
        return target.iova() + at;
      default:
        return data.iova() + at;
    }
  }

  /// As ModelController::change_memory().
  template <class Change>
  void change_memory(Change change) {
    require(service.pause(change));
    admin->find_queue();
  }

  Sink sink;
  Connected shared;
  SoftwareAddressSpace space;
  Region registers;
  Mapped sq[2] = {{space, Region(Place::pageable, 4096), Access::read},
                  {space, Region(Place::pageable, 4096), Access::read}};
  Mapped cq[2] = {{space, Region(Place::pageable, 4096), Access::write},
                  {space, Region(Place::pageable, 4096), Access::write}};
  Mapped data{space, Region(Place::pageable, kRegion), Access::read_write};
  Mapped constant{space, Region(Place::pageable, kRegion), Access::read};
  Mapped target{space, Region(Place::pageable, kRegion), Access::write};
  std::optional<Mapped> passing;
  // Its one engine has no thread of its own.
  ThreadService service{shared, space, nullptr, registers.host()};
  std::unique_ptr<AdminProcessor> admin = std::make_unique<AdminProcessor>(
      shared, RegisterPage{registers.host(), registers.bytes()}, service.engines().front()->dma(), service);
  u32 tail[2] = {};
};

Sqe entry_from(FuzzedDataProvider& in, Rig& rig, bool admin) {
  Sqe e;
  constexpr u8 kAdmin[] = {0x00, 0x01, 0x02, 0x04, 0x05, 0x06, 0x08, 0x09, 0x0a, 0x0c, 0x7c, 0x80, 0x84};
  constexpr u8 kIo[] = {0x00, 0x01, 0x02, 0x05, 0x08, 0x09, 0x0c};
  const u8 any = in.ConsumeIntegral<u8>();
  e.opcode = any < 16 ? in.ConsumeIntegral<u8>()
             : admin  ? kAdmin[any % sizeof kAdmin]
                      : kIo[any % sizeof kIo];
  e.flags = in.ConsumeIntegralInRange<u32>(0, 15) == 0 ? in.ConsumeIntegral<u8>() : u8{0};
  e.cid = in.ConsumeIntegral<u8>();
  e.nsid = in.PickValueInArray<u32>({1, 1, 1, 0, 2, 0xffffffff});
  e.prp1 = rig.address(in);
  e.prp2 = rig.address(in);
  e.cdw10 = in.ConsumeBool() ? in.ConsumeIntegral<u32>() : in.ConsumeIntegral<u8>();
  e.cdw11 = in.ConsumeBool() ? in.ConsumeIntegral<u32>() : in.ConsumeIntegralInRange<u32>(0, 3);
  e.cdw12 = in.ConsumeBool() ? in.ConsumeIntegral<u32>() : in.ConsumeIntegralInRange<u32>(0, 31);
  if (admin && in.ConsumeBool()) {  // plausible queues
    e.cdw10 = in.ConsumeIntegralInRange<u32>(0, 70) << 16 | in.ConsumeIntegralInRange<u32>(0, 5);
    e.cdw11 = in.ConsumeIntegralInRange<u32>(0, 5) << 16 | (in.ConsumeBool() ? 3 : 1);
  } else if (admin && in.ConsumeBool()) {  // a log page or a feature that there is
    e.cdw10 = in.ConsumeIntegralInRange<u32>(0, 4096) << 16 |
              in.PickValueInArray<u32>({0, 1, 2, 3, 4, 5, 0x12, 0x81, 0xe, 0x16});
    e.cdw11 = in.ConsumeIntegralInRange<u32>(0, 3);
    e.cdw13 = in.ConsumeBool() ? in.ConsumeIntegral<u32>() : 0;
  }
  return e;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8* bytes, std::size_t size) {
  FuzzedDataProvider in(bytes, size);
  const ModelConfig config = config_from(in);
  const bool interrupts = in.ConsumeBool(), foreign = in.ConsumeBool();
  Rig rig(config, interrupts, foreign);
  // List pages that lead somewhere, and a few that do not.
  auto* list = reinterpret_cast<u64*>(rig.data.region().host());
  for (u64 i = 0; i < kRegion / 8; ++i) list[i] = rig.data.iova() + i * 4096 % kRegion;
  for (int i = 0; i < 16 && in.remaining_bytes() > 0; ++i)
    list[in.ConsumeIntegralInRange<u64>(0, kRegion / 8 - 1)] = rig.address(in);
  for (int step = 0; step < 200 && in.remaining_bytes() > 0; ++step) {
    switch (in.ConsumeIntegralInRange<u32>(0, 10)) {
      case 8:
        rig.shared.interrupts.mask(in.ConsumeIntegral<u8>());
        break;
      case 9:
        rig.shared.interrupts.unmask(in.ConsumeIntegral<u8>());
        break;
      case 10:
        rig.change_memory([&] {
          if (rig.passing) rig.passing.reset();
          else rig.passing.emplace(rig.space, Region(Place::pageable, 8192), Access::read_write);
        });
        break;
      case 0:
        rig.submit(0, entry_from(in, rig, true));
        break;
      case 1:
        store_release(rig.word(reg::doorbells + in.ConsumeIntegralInRange<u64>(0, 1024)),
                      in.ConsumeIntegral<u32>());
        break;
      case 2:
        store_release(rig.word(reg::doorbells + in.ConsumeIntegralInRange<u64>(0, 64)),
                      in.ConsumeIntegralInRange<u32>(0, 16));
        break;
      case 3:
        store_release(
            rig.word(cq_doorbell_offset(in.ConsumeIntegralInRange<u32>(0, 1), rig.shared.config.stride)),
            in.ConsumeIntegralInRange<u32>(0, kIoEntries));
        break;
      case 4:
        list[in.ConsumeIntegralInRange<u64>(0, kRegion / 8 - 1)] = in.ConsumeIntegral<u64>();
        break;
      default:
        rig.submit(1, entry_from(in, rig, false));
    }
    if (in.ConsumeBool()) rig.poll();
  }
  rig.poll();
  const u8* constant = rig.constant.region().host();
  require(std::all_of(constant, constant + kRegion, [](u8 b) { return b == 0x5a; }));
  require(std::all_of(rig.sq[1].region().host() + kIoEntries * kSqeBytes, rig.sq[1].region().host() + 4096,
                      [](u8 b) { return b == 0; }));
  rig.admin->disable();
  rig.poll();
  return 0;
}
