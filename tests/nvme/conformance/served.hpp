// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The model behind a vfio-user server at a socket of its own, with its log.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "eventually.hpp"
#include "nvme/serve/nvme_server.hpp"

namespace doorbell::nvme::conformance {

/// Lines, kept.
class KeptLog final : public service::Log {
 public:
  explicit KeptLog(std::vector<std::string>& lines, std::mutex& mutex) : lines_(lines), mutex_(mutex) {}
  void write(const service::LogEntry& entry) override {
    const std::scoped_lock lock(mutex_);
    lines_.push_back(entry.text);
  }

 private:
  std::vector<std::string>& lines_;
  std::mutex& mutex_;
};

/// A server at a socket of its own, with its log.
struct Served {
  explicit Served(const std::string& spec, bool share_doorbells = true) {
    char name[] = "/tmp/doorbell-vfio-user-XXXXXX";
    folder = mkdtemp(name);
    path = folder + "/s";
    NvmeServerOptions o = parse_served_spec(spec);
    o.share_doorbells = share_doorbells;
    server.emplace(o, log);
    server->listen(path);
  }
  ~Served() {
    server.reset();
    std::filesystem::remove_all(folder);
  }
  /// By kind, as soon as all that were injected are there.
  std::map<std::string, u64> faults_in_log() {
    u64 all = 0;
    const auto status = server->status();
    for (const auto& [kind, n] : status["model"]["injected"].items()) all += n.get<u64>();
    EXPECT_TRUE(test::eventually([&] { return server->status()["faults_logged"].get<u64>() == all; }));
    log.flush();
    std::map<std::string, u64> n;
    const std::scoped_lock lock(mutex);
    for (const std::string& line : lines) {
      std::istringstream in(line);
      std::string word, kind;
      in >> word >> kind;
      if (word == "fault") ++n[kind.substr(0, kind.find(':'))];
    }
    return n;
  }
  std::vector<std::string> lines;
  std::mutex mutex;
  service::QueuedLog log{std::make_unique<KeptLog>(lines, mutex), service::Priority::info};
  std::string folder, path;
  std::optional<NvmeServer> server;
};

}  // namespace doorbell::nvme::conformance
