// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The software controller for drivers of other processes: a vfio-user server, the log of its faults, and a
// socket for questions while it runs.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "nvme/serve/fault_writer.hpp"
#include "nvme/serve/function.hpp"
#include "service/control_socket.hpp"
#include "vfio_user/server.hpp"

namespace doorbell::nvme {

struct NvmeServerOptions {
  ModelConfig model;
  std::string name = "model";   ///< as the user named it
  bool share_doorbells = true;  ///< clients may map them
  bool allow_write = false;     ///< to a file that holds what is not doorbell's
};

/// The keys of a controller's name, and what a server sets by itself.
[[nodiscard]] NvmeServerOptions parse_served_spec(const std::string& spec);

class NvmeServer {
 public:
  /// Makes the controller. `log` outlives the server. Throws Error.
  NvmeServer(const NvmeServerOptions& options, service::QueuedLog& log);
  ~NvmeServer();
  NvmeServer(const NvmeServer&) = delete;
  NvmeServer& operator=(const NvmeServer&) = delete;

  /// Serves at `path`, and answers questions at control_path(path). Throws Error.
  void listen(const std::string& path);
  [[nodiscard]] static std::string control_path(const std::string& path) { return path + ".control"; }

  [[nodiscard]] vfio_user::Server& server() { return *server_; }
  [[nodiscard]] ModelFunction& function() { return function_; }
  /// Counts of the server and the controller. Any thread.
  [[nodiscard]] nlohmann::ordered_json status();
  /// Other faults from now on. Any thread. Throws Error.
  void set_faults(const model::FaultRates& rates);

 private:
  void check(const model::FaultRates& rates) const;
  [[nodiscard]] nlohmann::ordered_json answer(const nlohmann::ordered_json& question);

  service::QueuedLog& log_;
  NvmeServerOptions options_;
  FaultWriter faults_;
  ModelFunction function_;
  std::mutex rates_mutex_;
  model::FaultRates rates_;
  std::unique_ptr<vfio_user::Server> server_;
  std::optional<service::ControlSocket> control_;
};

}  // namespace doorbell::nvme
