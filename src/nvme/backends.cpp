// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/backends.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "nvme/model/controller.hpp"
#include "nvme/model/spec.hpp"
#include "nvme/qemu/controller.hpp"
#include "nvme/settings.hpp"
#include "nvme/vfio.hpp"
#include "nvme/vfio_user.hpp"

namespace doorbell::nvme {

namespace {

/// "NAME" or "NAME:..."
template <const char* Name>
bool is(const DeviceRequest& request) {
  const std::string& spec = request.spec;
  const std::string_view name = Name;
  return spec.starts_with(name) && (spec.size() == name.size() || spec[name.size()] == ':');
}
constexpr char kModel[] = "model";
constexpr char kQemu[] = "qemu";
constexpr char kVfioUser[] = "vfio-user";

std::unique_ptr<ControllerInterface> open_qemu(const DeviceRequest& request) {
  return std::make_unique<QemuController>(parse_qemu_spec(request.spec, setting::controller), request.spec,
                                          request.gpu, request.timeout_s);
}

std::unique_ptr<ControllerInterface> open_model(const DeviceRequest& request) {
  ModelConfig c = parse_model_spec(request.spec, setting::controller);
  c.max_queues = std::max(c.max_queues, 1u);
  c.check_engine(setting::controller + " model: engine", request.gpu != nullptr, request.use);
  c.rung_by_gpu = request.use.initiator_threads == 0;
  c.writes = request.use.writes;
  c.must_write = request.use.must_write;
  c.fit(request.use);
  using model::Fault;
  for (const Fault f : {Fault::corrupt, Fault::misplace, Fault::stale})
    if (c.media == ModelConfig::Media::null && c.faults.of(f) > 0)
      throw Error(fmt::format("{} {}", setting::fault, name(f)),
                  "null media moves no data that could be wrong", "use model:media=ram");
  return std::make_unique<ModelController>(c, request.spec, request.gpu);
}

}  // namespace

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = {
      {"model", "model[:KEY=VALUE,...]", "model",
       [] {
         return BackendStatus{true, "software controller: SQE/CQE, doorbells, PRPs, faults"};
       },
       is<kModel>, open_model,
       [](const DeviceRequest& r) { (void)parse_model_spec(r.spec, setting::controller); }},
      {"qemu", "qemu[:KEY=VALUE,...]", "emulated", qemu_status, is<kQemu>, open_qemu,
       [](const DeviceRequest& r) { (void)parse_qemu_spec(r.spec, setting::controller); }},
      {"vfio-user", "vfio-user:PATH[,KEY=VALUE,...]", "emulated",
       [] {
         return BackendStatus{true, "a controller that another process serves at a local socket"};
       },
       is<kVfioUser>, open_vfio_user,
       [](const DeviceRequest& r) { (void)parse_vfio_user_spec(r.spec, setting::controller); }},
      {"vfio", "a PCI address, /dev/nvmeN or vfio:ADDRESS[,KEY=VALUE,...]", "hardware", vfio_status,
       [](const DeviceRequest& request) { return is_vfio_spec(request.spec); }, open_vfio},
  };
  return all;
}

const Backend& backend_of(const std::string& spec) {
  if (const Backend* const b = find_backend(backends(), {.spec = spec})) return *b;
  throw Error(
      fmt::format("controller '{}'", spec), "no back end knows this name",
      fmt::format("give {}, or file:PATH; {} makes a new file", syntaxes(backends()), setting::create_bytes));
}

bool needs_gpu(const std::string& spec) {
  return is<kModel>({.spec = spec}) && parse_model_spec(spec).engine == ModelConfig::Engine::gpu;
}

std::unique_ptr<ControllerInterface> open_device(const DeviceRequest& request) {
  return backend_of(request.spec).open(request);
}

}  // namespace doorbell::nvme
