// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Interfaces that are there already, of hardware or not.
//
// Two machines will need one interface and an address: Side has no other end then, and StreamRequest's has_tx
// and has_rx say which one lies here.

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "net/links/interface_link.hpp"
#include "net/settings.hpp"

namespace doorbell::net {

namespace {

constexpr double kAnswerLimitS = 10;

/// "eth0", or "db_tx/eth0".
struct NamedEnd {
  std::string space;  ///< "": that of this process
  std::string interface;
};

NamedEnd parse_end(const std::string& subject, const std::string& text) {
  NamedEnd end;
  const std::size_t slash = text.rfind('/');
  if (slash != std::string::npos) {
    end.space = text.substr(0, slash);
    if (end.space.empty()) throw Error(subject, fmt::format("'{}' names no network namespace", text));
  }
  end.interface = slash == std::string::npos ? text : text.substr(slash + 1);
  netlink::check_interface_name(subject, end.interface);
  return end;
}

Side open_end(const std::string& subject, const NamedEnd& end) {
  Namespace space = end.space.empty() ? Namespace::current() : Namespace::open(end.space);
  if (!interfaces_in(space).find(end.interface))
    throw Error(subject,
                end.space.empty() ? fmt::format("there is no interface {} here", end.interface)
                                  : fmt::format("there is no interface {} in the network namespace {}",
                                                end.interface, end.space),
                "`ip link` lists them; write NAMESPACE/INTERFACE for one in a namespace");
  Side side(std::move(space), end.interface);
  side.ip = ip_of(side);
  return side;
}

class InterfacePair : public InterfaceLink {
 public:
  InterfacePair(const std::string& spec, Side tx, Side rx)
      : InterfaceLink(spec, std::move(tx), std::move(rx)) {
    software_ =
        !tx_.state.kind.empty() || !rx_.state.kind.empty() || tx_.state.loopback || rx_.state.loopback;
  }
  [[nodiscard]] std::string kind() const override { return software_ ? "kernel" : "hardware"; }
  [[nodiscard]] std::string ip(End end) const override { return crosses() ? InterfaceLink::ip(end) : ""; }
  /// The kernel hands packets between two addresses of one namespace to itself: they never reach the link.
  [[nodiscard]] bool crosses() const {
    return !tx_.space.same(rx_.space) && !tx_.ip.empty() && !rx_.ip.empty();
  }
  [[nodiscard]] nlohmann::ordered_json facts() override {
    auto f = InterfaceLink::facts();
    f["addresses_usable"] = crosses();
    return f;
  }
  void check(const std::string& subject) {
    await_carrier(subject, tx_, kAnswerLimitS);
    await_carrier(subject, rx_, kAnswerLimitS);
    if (crosses()) check_datagrams(subject, tx_, rx_, kAnswerLimitS);
  }

 private:
  bool software_ = false;
};

}  // namespace

bool is_interface_pair(const std::string& spec) {
  const std::size_t comma = spec.find(',');
  return comma != std::string::npos && comma > 0 && comma + 1 < spec.size() &&
         spec.find(',', comma + 1) == std::string::npos && spec.find_first_of(":=") == std::string::npos;
}

std::unique_ptr<Link> open_interfaces(const LinkRequest& request) {
  const std::string subject = fmt::format("{} {}", setting::link, request.spec);
  const std::size_t comma = request.spec.find(',');
  const NamedEnd tx = parse_end(subject, request.spec.substr(0, comma));
  const NamedEnd rx = parse_end(subject, request.spec.substr(comma + 1));
  Side a = open_end(subject, tx), b = open_end(subject, rx);
  if (a.space.same(b.space) && a.state.index == b.state.index)
    throw Error(subject, "both ends are the same interface", "give two that are connected, or lo");
  auto link = std::make_unique<InterfacePair>(request.spec, std::move(a), std::move(b));
  link->check(subject);
  return link;
}

}  // namespace doorbell::net
