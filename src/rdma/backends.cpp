// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/backends.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "rdma/mlx5dv/device.hpp"
#include "rdma/model/open.hpp"
#include "rdma/verbs/device.hpp"
#include "rdma/verbs/library.hpp"

namespace doorbell::rdma {

namespace {

bool is_model(const std::string& spec) {
  return spec == "model" || spec.starts_with("model:");
}

/// The devices of `P` that are no model.
template <Provider P>
bool is_device_of(const DeviceRequest& request) {
  return request.provider == P && !is_model(request.spec);
}

VerbsConfig config_of(const std::string& spec) {
  const bool named = spec == "verbs" || spec.starts_with("verbs:");
  return parse_verbs_spec(named ? spec : "verbs:" + spec);
}

std::unique_ptr<Device> open_verbs(const DeviceRequest& request) {
  return std::make_unique<VerbsDevice>(config_of(request.spec), request.gpu);
}

std::unique_ptr<Device> open_mlx5(const DeviceRequest& request) {
  return std::make_unique<Mlx5Device>(config_of(request.spec), request.gpu);
}

/// What keeps a vendor's hardware from being driven through its own queues.
const char* missing(Provider p) {
  switch (p) {
    case Provider::bnxt:
      return "no back end: it would need Broadcom's own libbnxt_re with the bnxt_re_dv functions, which Debian's "
             "lacks";
    case Provider::ionic:
      return "no back end: it would need AMD's own libionic with the ionic_dv functions, which Debian lacks";
    case Provider::ernic:
      return "no back end: ERNIC is a block of FPGA designs, and no common user library hands out its queues";
    case Provider::mlx5:
    case Provider::verbs:
    case Provider::cxi:
      break;
  }
  return "";
}

template <Provider P>
Backend without_backend() {
  return {std::string(name(P)),
          "none",
          "hardware",
          [] {
            return BackendStatus{false, missing(P)};
          },
          is_device_of<P>,
          [](const DeviceRequest& request) -> std::unique_ptr<Device> {
            throw Error(fmt::format("--provider {} --device {}", name(P), request.spec), missing(P),
                        "give --provider verbs for the device, or --device model", ExitCode::absent);
          }};
}

}  // namespace

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = {
      {"model", "model[:KEY=VALUE,...]", "model",
       [] {
         return BackendStatus{true, "software NIC: the queues of mlx5, bnxt, ionic and ernic, faults"};
       },
       [](const DeviceRequest& r) { return r.provider != Provider::verbs && is_model(r.spec); }, open_model},
      {"verbs", "NAME[,KEY=VALUE,...], as ibv_devices lists it", "hardware", verbs_status,
       is_device_of<Provider::verbs>, open_verbs},
      {"mlx5", "NAME[,KEY=VALUE,...], as ibv_devices lists it", "hardware", mlx5_status,
       is_device_of<Provider::mlx5>, open_mlx5},
      without_backend<Provider::bnxt>(),
      without_backend<Provider::ionic>(),
      without_backend<Provider::ernic>(),
  };
  return all;
}

const Backend& backend_of(Provider provider, const std::string& spec) {
  for (const Backend& b : backends())
    if (b.accepts({.spec = spec, .provider = provider})) return b;
  throw Error(fmt::format("--provider {} --device {}", name(provider), spec),
              "the model has no libibverbs: it is driven through a vendor's queues",
              "give --provider mlx5, bnxt, ionic or ernic, or the name of an RDMA device");
}

std::unique_ptr<Device> open_device(const DeviceRequest& request) {
  return backend_of(request.provider, request.spec).open(request);
}

}  // namespace doorbell::rdma
