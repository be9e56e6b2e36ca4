// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <cerrno>
#include <string>

#include "golden/golden.hpp"
#include "qdma/daemon/protocol.hpp"

namespace doorbell::qdma::daemon {
namespace {

/// The body that the golden vector's inputs ask for, encoded by this project.
std::vector<u8> encode_body(Opcode o, const golden::json& in) {
  const auto n = [&](const char* key) { return golden::number(in.at(key)); };
  const auto n32 = [&](const char* key) { return static_cast<u32>(n(key)); };
  const auto body = [](const auto& value) {
    const auto bytes = bytes_of(value);
    return std::vector<u8>(bytes.begin(), bytes.end());
  };
  switch (o) {
    case Opcode::num_devices:
      return body(Zero{static_cast<u8>(n("zero"))});
    case Opcode::buffer_open:
      return body(BufferOpenRequest{n32("dev"), n32("alloc_type"), n32("alloc_dir"), n32("mm_channel"),
                                    n("alloc_arg"), n("size")});
    case Opcode::buffer_close:
      return body(BufferCloseRequest{n32("dev"), n("phys_addr"), n("size")});
    case Opcode::buffer_open_raw:
      return body(
          BufferOpenRawRequest{n32("dev"), n32("alloc_dir"), n32("mm_channel"), n("phys_addr"), n("size")});
    default:
      ADD_FAILURE() << "a golden vector of opcode " << static_cast<u32>(o);
      return {};
  }
}

TEST(DaemonProtocol, EncodesAndParsesTheGoldenRequests) {
  const auto recorded = golden::read_file("qdma");
  u32 seen = 0;
  for (const auto& vector : recorded.at("vectors")) {
    if (vector.at("kind") != "daemon_request") continue;
    ++seen;
    SCOPED_TRACE(vector.at("name").get<std::string>());
    const std::vector<u8> wanted = golden::from_hex(vector.at("bytes_hex"));
    const auto& in = vector.at("inputs");
    const auto opcode = Opcode{static_cast<u16>(golden::number(in.at("opcode")))};
    const auto sequence = static_cast<u32>(golden::number(in.at("seqno")));
    const std::vector<u8> body = encode_body(opcode, in);
    EXPECT_EQ(body.size(), golden::number(in.at("body_bytes")));
    EXPECT_EQ(request_message(opcode, sequence, body), wanted);

    const Parsed parsed = parse_request(wanted);
    ASSERT_TRUE(parsed.request.has_value()) << parsed.malformed.why;
    EXPECT_EQ(parsed.request->opcode(), opcode);
    EXPECT_EQ(parsed.request->header.sequence, sequence);
    EXPECT_EQ(std::vector<u8>(parsed.request->body.begin(), parsed.request->body.end()), body);
  }
  EXPECT_EQ(seen, 4u);
}

TEST(DaemonProtocol, RefusesEveryLengthThatIsNotItsOpcodes) {
  for (const Opcode o : opcodes()) {
    const std::size_t right = *body_bytes(o);
    for (std::size_t length = 0; length < 300; ++length) {
      const std::vector<u8> message = request_message(o, 7, std::vector<u8>(length));
      const Parsed parsed = parse_request(message);
      EXPECT_EQ(parsed.request.has_value(), length == right) << name(o) << " " << length;
      if (!parsed.request) {
        EXPECT_EQ(parsed.malformed.error, EBADMSG);
        EXPECT_EQ(parsed.malformed.sequence, 7u);
      }
      // The length in the header must be that of what has come.
      EXPECT_FALSE(parse_request(std::span(message).first(message.size() - 1)).request);
    }
  }
}

TEST(DaemonProtocol, NamesWhatItDoesNotServe) {
  for (const u16 opcode : {u16{2}, u16{3}, u16{8}, u16{9}, u16{13}, u16{14}, u16{16}, u16{19}, u16{0x8004}}) {
    const Parsed parsed = parse_request(request_message(Opcode{opcode}, 3, std::vector<u8>(4)));
    EXPECT_FALSE(parsed.request);
    EXPECT_EQ(parsed.malformed.error, ENOTTY);
    EXPECT_EQ(code_of(parsed.malformed.error), Code::bad_request);
  }
}

TEST(DaemonProtocol, RefusalsCarryTheErrnoOnlyAfterHello) {
  const std::vector<u8> plain = refusal_message(ESTALE, "old", 9, false);
  EXPECT_EQ(plain, reply_message(Code::noexist, 9));
  const std::vector<u8> full = refusal_message(ESTALE, "old", 9, true);
  ASSERT_EQ(full.size(), sizeof(ReplyHeader) + sizeof(ErrorBody) + 3);
  ErrorBody body;
  std::memcpy(&body, full.data() + sizeof(ReplyHeader), sizeof body);
  EXPECT_EQ(body.error, static_cast<u32>(ESTALE));
  EXPECT_EQ(std::string(full.end() - 3, full.end()), "old");
  EXPECT_LE(refusal_message(ESTALE, std::string(9000, 'x'), 9, true).size(), kMaxMessage);
}

}  // namespace
}  // namespace doorbell::qdma::daemon
