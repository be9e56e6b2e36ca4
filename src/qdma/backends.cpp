// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <filesystem>

#include "qdma/daemon/daemon_driver.hpp"
#include "qdma/driver.hpp"
#include "qdma/linux/kernel_driver.hpp"
#include "qdma/model/card.hpp"
#include "qdma/model/config.hpp"
#include "qdma/peer/socket_driver.hpp"
#include "qdma/server/card_server.hpp"
#include "qdma/settings.hpp"

namespace doorbell::qdma {

namespace {

constexpr std::string_view kServerPrefix = "server:", kKernelPrefix = "kernel:";

bool has_prefix(const DriverRequest& r, std::string_view prefix) {
  return std::string_view(r.spec).starts_with(prefix);
}

std::unique_ptr<Driver> open_model(const DriverRequest& r) {
  if (r.use.faults.of(model::Fault::delay) > 0 && parse_card_spec(r.spec, r.named_by).counted_clock)
    throw Error(setting::fault + " delay", "with clock=counted a delay passes at once, and nothing is late",
                "leave out clock=counted");
  auto server = std::make_shared<CardServer>(make_model_card(r.spec, r.use, r.named_by));
  Descriptor control = server->connect();
  return std::make_unique<SocketDriver>(std::move(control), r.spec, std::move(server));
}

std::unique_ptr<Driver> open_server(const DriverRequest& r) {
  return std::make_unique<SocketDriver>(connect_to(r.spec.substr(kServerPrefix.size()), r.patience), r.spec,
                                        nullptr, r.patience);
}

std::unique_ptr<Driver> open_kernel(const DriverRequest& r) {
  return std::make_unique<KernelDriver>(r.spec.substr(kKernelPrefix.size()));
}

BackendStatus kernel_status() {
  const auto nodes = kernel_nodes();
  if (nodes.empty()) return {false, "no /dev/slash_qdma_ctl*: the driver is not loaded, or there is no card"};
  return {true, fmt::format("{} card{}, the first is {}", nodes.size(), nodes.size() == 1 ? "" : "s",
                            nodes.front())};
}

BackendStatus daemon_status() {
  const bool there = std::filesystem::is_socket(daemon::kDefaultSocket);
  return {there, there ? fmt::format("a card that doorbelld shares, at {}", daemon::kDefaultSocket)
                       : fmt::format("no {}: doorbelld is not running, or has another socket",
                                     daemon::kDefaultSocket)};
}

}  // namespace

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = {
      {"model", "model[:KEY=VALUE,...]", "model",
       [] {
         return BackendStatus{true, "software card: memory, two channels, rings, faults, the driver's calls"};
       },
       [](const DriverRequest& r) { return is_model(r.spec); }, open_model,
       [](const DriverRequest& r) { (void)parse_card_spec(r.spec, r.named_by); }},
      {"server", "server:PATH", "model",
       [] {
         return BackendStatus{true, "software card of another process: doorbell card serve"};
       },
       [](const DriverRequest& r) { return has_prefix(r, kServerPrefix); }, open_server},
      {"kernel", "kernel:/dev/slash_qdma_ctlN", "hardware", kernel_status,
       [](const DriverRequest& r) { return has_prefix(r, kKernelPrefix); }, open_kernel},
      {"daemon", "daemon[:PATH]", "hardware", daemon_status,
       [](const DriverRequest& r) { return daemon::names_daemon(r.spec); },
       [](const DriverRequest& r) { return std::make_unique<daemon::DaemonDriver>(r.spec, r.patience); }},
  };
  return all;
}

i64 read_info(Driver& card, Info& out) {
  const i64 rc = card.call(-1, kCallInfo, {reinterpret_cast<u8*>(&out), sizeof out}).result;
  out.bdf.back() = '\0';
  return rc;
}

std::unique_ptr<Driver> open_driver(const DriverRequest& request) {
  if (const Backend* const b = find_backend(backends(), request)) return b->open(request);
  throw Error(fmt::format("{} {}", request.named_by, request.spec),
              "no back end of this build has such a name", "there are " + syntaxes(backends()));
}

}  // namespace doorbell::qdma
