// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Whatever a controller says of itself, the driver takes it or refuses it with an Error.

#include <doorbell/error.hpp>
#include <doorbell/nvme/controller.hpp>

#include <algorithm>
#include <memory>

#include "fuzz/fuzz.hpp"
#include "nvme/scripted_controller.hpp"

using namespace doorbell;
using namespace doorbell::nvme;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const u8* bytes, std::size_t size) {
  FuzzedDataProvider in(bytes, size);
  ScriptedController::Script script;
  script.cap =
      (in.ConsumeIntegral<u64>() & ~(u64{0xff} << 24)) | (in.ConsumeBool() ? u64{1} << 37 : 0);  // CAP.TO 0
  if (in.ConsumeBool()) script.cap &= ~(u64{0xff} << 48) & ~(u64{0xc} << 32);
  script.granted = in.ConsumeIntegral<u32>();
  if (in.ConsumeIntegralInRange<u32>(0, 9) == 0)
    script.refuse[in.ConsumeIntegralInRange<u8>(0, 9)] = in.ConsumeIntegralInRange<u16>(1, 0x7ff);
  script.identify = [&](u8, u8* page) {
    for (u32 n = in.ConsumeIntegralInRange<u32>(0, 40); n > 0; --n)
      page[in.ConsumeIntegralInRange<u32>(0, identify::bytes - 1)] = in.ConsumeIntegral<u8>();
    for (const u32 at : {identify::mdts, identify::flbas, identify::dps, identify::lbaf, identify::lbaf + 2,
                         identify::nsze + 7, identify::maxcmd, identify::serial, identify::model + 39})
      if (in.ConsumeBool()) page[at] = in.ConsumeIntegral<u8>();
  };
  try {
    OpenOptions options;
    options.timeout_s = 1;
    Controller c(std::make_unique<ScriptedController>(std::move(script)), options);
    const ControllerInfo& info = c.info();
    require(info.serial.size() <= 20 && info.model.size() <= 40 && info.firmware.size() <= 8);
    require(info.max_queue_entries >= 1 && info.max_queue_entries <= 65536);
    const u32 granted = c.request_queues(4);
    require(granted >= 1 && granted <= 65536);
    const NamespaceInfo n = c.identify_namespace(1);
    require(n.lba_bytes >= 512 && n.lba_bytes <= 65536 && (n.lba_bytes & (n.lba_bytes - 1)) == 0 &&
            n.blocks > 0);
    const IoQueuePair q =
        c.create_queue_pair(1, std::min(info.max_queue_entries, 8u), Place::pageable, Place::pageable);
    require(q.memory(Initiator::cpu).sq_doorbell != nullptr);
  } catch (const Error&) {
    // Refused: that is an answer.
  }
  return 0;
}
