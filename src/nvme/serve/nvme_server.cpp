// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/serve/nvme_server.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "nvme/backends.hpp"
#include "nvme/settings.hpp"

namespace doorbell::nvme {

namespace {

model::FaultRates rates_from(const nlohmann::ordered_json& named) {
  model::FaultRates rates;
  if (!named.is_object()) throw Error("faults", "they are no object of kinds and probabilities");
  const auto& names = model::fault_names();
  for (const auto& [kind, value] : named.items()) {
    const auto at = std::ranges::find(names, kind);
    if (at == names.end())
      throw Error(fmt::format("fault {}", kind), fmt::format("the kinds are {}", fmt::join(names, ", ")));
    if (!value.is_number() || !(value.get<double>() >= 0) || value.get<double>() > 1)
      throw Error(fmt::format("fault {}", kind), fmt::format("{} is not in 0..1", value.dump()));
    rates.probability[static_cast<std::size_t>(at - names.begin())] = value.get<double>();
  }
  return rates;
}

nlohmann::ordered_json json_of(const model::FaultRates& rates) {
  auto j = nlohmann::ordered_json::object();
  for (u32 k = 0; k < model::kFaultKinds; ++k)
    if (rates.probability[k] > 0) j[model::fault_names()[k]] = rates.probability[k];
  return j;
}

}  // namespace

NvmeServerOptions parse_served_spec(const std::string& spec) {
  if (spec != "model" && !spec.starts_with("model:"))
    throw Error(fmt::format("{} {}", setting::controller, spec), "only the software controller can be served",
                "give model or model:KEY=VALUE,...");
  NvmeServerOptions o;
  o.model = parse_model_spec(spec, setting::controller);
  o.name = spec;
  if (o.model.threads == 0) o.model.threads = 1;
  if (o.model.copy_threads == 0) o.model.copy_threads = 1;
  if (o.model.delay_ns == 0) o.model.delay_ns = 1'500'000'000;
  o.model.gpu_memory = false;
  o.model.rests = true;
  return o;
}

NvmeServer::NvmeServer(const NvmeServerOptions& options, service::QueuedLog& log)
    : log_(log),
      options_(options),
      faults_(log),
      function_(options.model, options.name, options.share_doorbells),
      rates_(options.model.faults) {
  if (!options.allow_write && !function_.model().scratch())
    throw Error(options.model.path, "it holds data that is not doorbell's",
                fmt::format("add {} if clients may write to it", setting::allow_write));
  check(rates_);
  function_.model().log_faults(&faults_);
  server_ = std::make_unique<vfio_user::Server>(function_, vfio_user::ServerOptions{.log = &log});
}

NvmeServer::~NvmeServer() {
  control_.reset();
  server_.reset();
  function_.model().log_faults(nullptr);
}

void NvmeServer::listen(const std::string& path) {
  control_.emplace(control_path(path),
                   [this](const nlohmann::ordered_json& question) { return answer(question); });
  server_->listen(path);
}

void NvmeServer::check(const model::FaultRates& rates) const {
  using model::Fault;
  for (const Fault f : {Fault::corrupt, Fault::misplace, Fault::stale})
    if (options_.model.media == ModelConfig::Media::null && rates.of(f) > 0)
      throw Error(fmt::format("{} {}", setting::fault, name(f)),
                  "null media moves no data that could be wrong");
}

void NvmeServer::set_faults(const model::FaultRates& rates) {
  check(rates);
  function_.model().set_faults(rates);
  const std::scoped_lock lock(rates_mutex_);
  rates_ = rates;
}

nlohmann::ordered_json NvmeServer::status() {
  nlohmann::ordered_json now;
  {
    const std::scoped_lock lock(rates_mutex_);
    now = json_of(rates_);
  }
  return {{"controller", options_.name},
          {"doorbells", options_.share_doorbells ? "mapped" : "message"},
          {"gone", function_.model().gone()},
          {"shutdowns", function_.shutdowns()},
          {"server", vfio_user::to_json(server_->counts())},
          {"model", function_.model().counters()},
          {"faults", now},
          {"faults_logged", faults_.written()},
          {"faults_not_logged", faults_.lost()},
          {"log_lines_left_out", log_.lost()}};
}

nlohmann::ordered_json NvmeServer::answer(const nlohmann::ordered_json& question) {
  const std::string what = question.value("ask", std::string());
  if (what == "status") return status();
  if (what != "fault") throw Error("the question", fmt::format("'{}' is not one of status, fault", what));
  const auto named = question.find("rates");
  set_faults(rates_from(named != question.end() ? *named : nlohmann::ordered_json()));
  return status();
}

}  // namespace doorbell::nvme
