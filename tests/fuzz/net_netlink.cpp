// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Whatever a netlink socket delivers is read within its bytes, or refused with an Error.

#include <doorbell/error.hpp>

#include <vector>

#include "fuzz/fuzz.hpp"
#include "net/links/netlink_message.hpp"

using namespace doorbell;
using namespace doorbell::net::netlink;
using fuzz::require;

namespace {

template <class F>
void refused_or_taken(F f) {
  try {
    f();
  } catch (const Error&) {
    // Refused: that is an answer.
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const u8* bytes, std::size_t size) {
  FuzzedDataProvider in(bytes, size);
  const u32 sequence = in.ConsumeBool() ? 0 : in.ConsumeIntegral<u8>();
  const std::vector<u8> datagram = in.ConsumeRemainingBytes<u8>();
  refused_or_taken([&] {
    const Answer answer = read_answer(datagram, sequence);
    require(answer.error >= 0 && (answer.last || answer.error == 0) && answer.text.size() <= datagram.size());
    for (const Body& body : answer.bodies) {
      require(body.bytes.size() <= datagram.size());
      refused_or_taken([&] { (void)read_interface(body.bytes); });
      refused_or_taken([&] { (void)read_address(body.bytes); });
    }
  });
  // Without the frame round them, which few inputs get right.
  refused_or_taken([&] {
    const Interface i = read_interface(datagram);
    require(i.name.size() <= datagram.size() && i.name.find('\0') == std::string::npos);
  });
  refused_or_taken([&] { require(!read_address(datagram).ipv4 || datagram[0] == 2); });
  refused_or_taken([&] {
    for (const Attribute& a : attributes(datagram))
      require(a.value.empty() || (a.value.data() >= datagram.data() &&
                                  a.value.data() + a.value.size() <= datagram.data() + datagram.size()));
  });
  return 0;
}
