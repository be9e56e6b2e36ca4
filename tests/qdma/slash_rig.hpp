// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A card server with the sockets of AMD's emulation, in this process.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "eventually.hpp"
#include "qdma/model/model_card.hpp"
#include "qdma/server/card_server.hpp"
#include "qdma/slash_client.hpp"

namespace doorbell::qdma::slash {

struct SlashRig {
  explicit SlashRig(const std::string& spec = "model", const model::Use& use = {},
                    const ServerLimits& limits = {})
      : server(make_model_card(spec, use), limits) {
    server.listen_slash(folder.path, [this](const std::string& line) {
      const std::lock_guard lock(mutex);
      notes.push_back(line);
    });
  }
  [[nodiscard]] std::string path(const char* file) const { return folder.path + "/" + file; }
  [[nodiscard]] SlashClient qdma() const { return SlashClient(path(kQdmaFile)); }
  [[nodiscard]] SlashClient control() const { return SlashClient(path(kControlFile)); }
  [[nodiscard]] SlashClient hotplug() const { return SlashClient(path(kHotplugFile)); }
  /// Lines about calls, so far.
  std::vector<std::string> noted() {
    const std::lock_guard lock(mutex);
    return notes;
  }
  bool empty() {
    return doorbell::test::eventually([&] {
      const ServerCounts c = server.counts();
      return c.connections == 0 && c.descriptors == 0 && c.buffers == 0 && c.queue_pairs == 0 &&
             c.closing == 0;
    });
  }

  /// A name that is free, and goes with what the server makes there.
  struct Folder {
    Folder() {
      char name[] = "/tmp/doorbell-slash-test-XXXXXX";
      path = mkdtemp(name);
      rmdir(path.c_str());
    }
    ~Folder() { EXPECT_FALSE(std::filesystem::exists(path)) << "the server leaves its folder"; }
    std::string path;
  };
  const Folder folder;
  std::mutex mutex;
  std::vector<std::string> notes;
  CardServer server;
};

[[nodiscard]] inline HotplugTarget target(const std::string& place) {
  HotplugTarget t;
  place.copy(t.place.data(), t.place.size());
  return t;
}

/// Whether the other end has closed it.
inline bool has_ended(const SlashClient& client) {
  pollfd p{client.fd(), POLLIN, 0};
  u8 byte = 0;
  return poll(&p, 1, static_cast<int>(doorbell::test::kWaitLimitS * 1000)) == 1 &&
         recv(client.fd(), &byte, 1, MSG_DONTWAIT) <= 0;
}

}  // namespace doorbell::qdma::slash
