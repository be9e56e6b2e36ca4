// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/backends.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "rdma/model/open.hpp"
#include "rdma/verbs/device.hpp"
#include "rdma/verbs/library.hpp"

namespace doorbell::rdma {

namespace {

bool is_model(const std::string& spec) {
  return spec == "model" || spec.starts_with("model:");
}

std::unique_ptr<Device> open_verbs(const DeviceRequest& request) {
  const bool named = request.spec == "verbs" || request.spec.starts_with("verbs:");
  return std::make_unique<VerbsDevice>(parse_verbs_spec(named ? request.spec : "verbs:" + request.spec),
                                       request.gpu);
}

}  // namespace

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = {
      {"model", "model[:KEY=VALUE,...]", "model",
       [] {
         return BackendStatus{true, "software NIC: the queues of mlx5, bnxt, ionic and ernic, faults"};
       },
       [](Provider p, const std::string& spec) { return p != Provider::verbs && is_model(spec); },
       open_model},
      {"verbs", "NAME[,KEY=VALUE,...], as ibv_devices lists it", "hardware",
       [] {
         const VerbsStatus s = verbs_status();
         return BackendStatus{s.usable, s.detail};
       },
       [](Provider p, const std::string& spec) { return p == Provider::verbs && !is_model(spec); },
       open_verbs},
  };
  return all;
}

const Backend& backend_of(Provider provider, const std::string& spec) {
  for (const Backend& b : backends())
    if (b.accepts(provider, spec)) return b;
  const std::string what = fmt::format("--provider {} --device {}", name(provider), spec);
  if (provider == Provider::verbs)
    throw Error(what, "the model has no libibverbs: it is driven through a vendor's queues",
                "give --provider mlx5, bnxt, ionic or ernic, or the name of an RDMA device");
  throw Error(
      what,
      fmt::format("no public library hands out the queues of a {} device: only its model can be driven "
                  "directly",
                  name(provider)),
      "give --provider verbs for the device, or --device model", ExitCode::absent);
}

std::unique_ptr<Device> open_device(const DeviceRequest& request) {
  return backend_of(request.provider, request.spec).open(request);
}

}  // namespace doorbell::rdma
