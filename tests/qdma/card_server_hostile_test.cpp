// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Clients that the card server serves on beside.
#include "errors.hpp"
#include "qdma/model/model_card.hpp"
#include "qdma/server/card_server.hpp"
#include "qdma/wire_client.hpp"
#include "service/lingering_file.hpp"

namespace doorbell::qdma {
namespace {

using service::LingeringFile;

TEST(CardServerHostile, FilesWhoseCloseWaitsHoldNobodyUp) {
  CardServer server(make_model_card("model", {}));
  WireClient hostile(server.connect()), other(server.connect());
  ASSERT_TRUE(hostile.hello());
  ASSERT_TRUE(other.hello());
  std::array<LingeringFile, 6> files;
  // More than a message may have, and more than one.
  EXPECT_TRUE(hostile.send(kCallInfo, Info{}, {files[0].fd(), files[1].fd(), files[2].fd()}));
  WireClient second(server.connect());
  ASSERT_TRUE(second.hello());
  EXPECT_TRUE(second.send(kCallInfo, Info{}, {files[3].fd()}));
  // With an empty message.
  WireClient empty(server.connect());
  EXPECT_TRUE(empty.send_bytes({}, std::array{files[5].fd()}));
  // And one that nobody reads before the socket is closed.
  auto unread = std::make_unique<WireClient>(server.connect());
  EXPECT_TRUE(unread->send(wire::kCancel, u32{0}, {files[4].fd()}));
  for (LingeringFile& f : files) f.give_away();
  unread.reset();
  for (int i = 0; i < 20; ++i) EXPECT_EQ(other.call(kCallInfo, Info{}).header.result, 0);
  WireClient late(server.connect());
  EXPECT_TRUE(late.hello());
  for (LingeringFile& f : files) f.let_go();
}

}  // namespace
}  // namespace doorbell::qdma
