// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/dropin/adapter.hpp"

#include <algorithm>
#include <exception>
#include <random>

#include "rdma/roce/carriers.hpp"
#include "rdma/roce/faults.hpp"

namespace doorbell::dropin {

namespace {

/// 127.77.x.y, all of which every Linux has without asking; x and y are 1 to 254.
u32 random_address(std::random_device& random) {
  const u32 x = 1 + random() % 254, y = 1 + random() % 254;
  return 127U << 24 | 77U << 16 | x << 8 | y;
}

roce::CarrierKind kind_of(const std::string& carrier) {
  return carrier == "ring"  ? roce::CarrierKind::ring
         : carrier == "udp" ? roce::CarrierKind::udp
                            : roce::CarrierKind::automatic;
}

/// One file for each device.
std::string trace_of(const Settings& settings, u32 device) {
  if (settings.trace.empty()) return {};
  std::string name = named_file(settings.trace);
  if (device == 0) return name;
  const std::size_t folder = name.rfind('/'), dot = name.rfind('.');
  const bool extension = dot != std::string::npos && (folder == std::string::npos || dot > folder);
  return name.insert(extension ? dot : name.size(), "-doorbell" + std::to_string(device));
}

}  // namespace

std::shared_ptr<Adapter> Adapter::make(const Settings& settings, u32 device, roce::Listener listener,
                                       std::string& why) {
  // Another process may have the address that is drawn.
  constexpr int kDraws = 64;
  std::random_device random;
  for (int draw = 0; draw < (settings.address == 0 ? kDraws : 1); ++draw) {
    const u32 address = settings.address == 0 ? random_address(random) : settings.address + device;
    try {
      roce::CarrierOptions options;
      options.self = {address, settings.port};
      options.kind = kind_of(settings.carrier);
      options.trace = trace_of(settings, device);
      options.name = "doorbell" + std::to_string(device);
      options.faults = settings.faults;
      options.seed = settings.seed;
      options.fault_log = named_file(settings.fault_log);
      roce::CompletionFaults faults = roce::parse_faults(settings.faults).completions;
      faults.seed = settings.seed;
      std::unique_ptr<roce::Carrier> carrier = roce::make_carrier(options);
      const u32 largest = carrier->largest_mtu();
      if (settings.mtu > largest) {
        why = std::string(kMtuVariable) + " is " + std::to_string(settings.mtu) +
              ", and the network of its address takes " + std::to_string(largest) + " at most";
        return nullptr;
      }
      return std::make_shared<Adapter>(std::move(carrier), device, settings.mtu != 0 ? settings.mtu : largest,
                                       listener, faults, options.fault_log);
    } catch (const std::exception& e) {
      why = e.what();
    }
  }
  return nullptr;
}

Adapter::Adapter(std::unique_ptr<roce::Carrier> carrier, u32 device, u32 mtu, roce::Listener listener,
                 const roce::CompletionFaults& faults, const std::string& fault_log)
    : device_(device),
      mtu_(mtu),
      self_(carrier->self()),
      carrier_(std::move(carrier)),
      nic_(roce::Nic::make(*carrier_, std::move(listener), {}, faults, fault_log)),
      attendant_(std::make_unique<roce::Attendant>(*nic_, *carrier_)),
      rings_(*nic_) {}

void Adapter::leave_to_parent() {
  carrier_->leave_to_parent();
  attendant_->leave_to_parent();
}

}  // namespace doorbell::dropin
