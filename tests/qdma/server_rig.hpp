// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A software card and its server, in this process.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "eventually.hpp"
#include "qdma/model/model_card.hpp"
#include "qdma/server/card_server.hpp"
#include "qdma/wire_client.hpp"

namespace doorbell::qdma {

struct ServerRig {
  explicit ServerRig(const std::string& spec = "model", const model::Use& use = {},
                     const ServerLimits& limits = {})
      : server(make_model_card(spec, use), limits) {}
  WireClient greeted() {
    WireClient c(server.connect());
    EXPECT_TRUE(c.hello());
    return c;
  }
  bool empty() {
    return test::eventually([&] {
      const ServerCounts c = server.counts();
      return c.connections == 0 && c.descriptors == 0 && c.buffers == 0 && c.queue_pairs == 0;
    });
  }
  CardServer server;
};

}  // namespace doorbell::qdma
