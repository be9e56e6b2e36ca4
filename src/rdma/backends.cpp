// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/backends.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "rdma/model/open.hpp"
#include "rdma/model/spec.hpp"
#include "rdma/settings.hpp"
#include "rdma/verbs/library.hpp"
#include "rdma/verbs/nic.hpp"

namespace doorbell::rdma {

namespace {

bool is_model(const std::string& spec) {
  return spec == "model" || spec.starts_with("model:");
}

VerbsConfig config_of(const DeviceRequest& r) {
  const bool named = r.spec == "verbs" || r.spec.starts_with("verbs:");
  return parse_verbs_spec(named ? r.spec : "verbs:" + r.spec);
}

constexpr const char* kNamed = "NAME[,KEY=VALUE,...], as ibv_devices lists it";

/// The back end for a provider's real devices.
Backend hardware(Provider p, const char* syntax) {
  return {.name = std::string(name(p)),
          .syntax = syntax,
          .kind = "hardware",
          .status = {},
          .accepts = [p](const DeviceRequest& r) { return r.provider == p && !is_model(r.spec); },
          .open = {}};
}

Backend through_verbs() {
  Backend b = hardware(Provider::verbs, kNamed);
  b.status = [] { return verbs_status(); };
  b.open = [](const DeviceRequest& r) { return std::make_unique<VerbsNic>(config_of(r), r.gpu); };
  b.check = [](const DeviceRequest& r) { (void)config_of(r); };
  return b;
}

/// The back end for a vendor's own queues on its hardware; if there is none, its status says what is missing.
Backend of_vendor(Provider p) {
  const Vendor& vendor = *vendor_of(p);
  Backend b = hardware(p, vendor.open != nullptr ? kNamed : "none");
  if (vendor.open != nullptr) {
    b.status = vendor.status;
    b.open = [&vendor](const DeviceRequest& r) { return vendor.open(config_of(r), r.gpu); };
    b.check = [](const DeviceRequest& r) { (void)config_of(r); };
    return b;
  }
  b.status = [&vendor] { return BackendStatus{false, vendor.missing}; };
  b.open = [&vendor](const DeviceRequest& r) -> std::unique_ptr<NicDevice> {
    throw Error(fmt::format("{} {} {} {}", setting::provider, name(r.provider), setting::device, r.spec),
                vendor.missing,
                fmt::format("give {} verbs for the device, or {} model", setting::provider, setting::device),
                ExitCode::absent);
  };
  return b;
}

}  // namespace

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = [] {
    std::vector<Backend> list;
    list.push_back(
        {.name = "model",
         .syntax = "model[:KEY=VALUE,...]",
         .kind = "model",
         .status =
             [] {
               return BackendStatus{
                   true, fmt::format("software NIC: the queues of {}, faults", vendors_text("and"))};
             },
         .accepts =
             [](const DeviceRequest& r) { return vendor_of(r.provider) != nullptr && is_model(r.spec); },
         .open = open_model,
         .check = [](const DeviceRequest& r) { (void)parse_model_spec(r.spec, setting::device); }});
    list.push_back(through_verbs());
    for (const Provider p : vendors()) list.push_back(of_vendor(p));
    return list;
  }();
  return all;
}

const Backend& backend_of(Provider provider, const std::string& spec) {
  if (const Backend* const b = find_backend(backends(), {.spec = spec, .provider = provider})) return *b;
  throw Error(
      fmt::format("{} {} {} {}", setting::provider, name(provider), setting::device, spec),
      "the model has no libibverbs: it is driven through a vendor's queues",
      fmt::format("give {} {}, or the name of an RDMA device", setting::provider, vendors_text("or")));
}

std::unique_ptr<NicDevice> open_device(const DeviceRequest& request) {
  return backend_of(request.provider, request.spec).open(request);
}

std::unique_ptr<Nic> open_nic(const NicRequest& r) {
  const bool by_gpu = r.initiator == Initiator::gpu;
  if (r.gpu == nullptr && (by_gpu || r.gpu_memory))
    throw Error(fmt::format("{} {}", setting::device, r.device),
                "a GPU is to use it, and the request names none", "open one by gpu::open()");
  return open_device(
      {.spec = r.device,
       .provider = provider_named(r.provider),
       .gpu = r.gpu,
       .use = {.gpu_memory = r.gpu_memory, .queues = r.queue_pairs, .initiator_threads = by_gpu ? 0u : 1u}});
}

std::vector<std::string> drop_in_devices() {
  std::vector<std::string> names;
  try {
    const VerbsLibrary verbs;
    int count = 0;
    ibv_device** list = verbs.drop_in ? verbs.get_device_list(&count) : nullptr;
    for (int i = 0; list != nullptr && i < count; ++i) names.emplace_back(list[i]->name);
    if (list != nullptr) verbs.free_device_list(list);
  } catch (const Error&) {
  }
  return names;
}

}  // namespace doorbell::rdma
