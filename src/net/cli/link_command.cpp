// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// `doorbell net-link`: a link that stays.

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "net/cli/parts.hpp"
#include "net/links/kept_link.hpp"

namespace doorbell::cli {

namespace {

net::KeptNames names_of(const Options& options) {
  net::KeptNames names;
  options.read_into(names);
  return names;
}

void check_net_link(const Options& options) {
  if (options.text("action") == "up") return;
  for (const std::string& name : options.given_names())
    if (name != "action" && name != "tx-namespace" && name != "rx-namespace")
      throw Error("--" + name, fmt::format("net link {} does not take it", options.text("action")),
                  "it is for doorbell net link up");
}

int up(const Options& options) {
  net::KeptLink link;
  link.names = names_of(options);
  if (options.has("ports")) {
    const std::string& ports = options.text("ports");
    const std::size_t comma = ports.find(',');
    link.tx_port = ports.substr(0, comma);
    link.rx_port = comma == std::string::npos ? "" : ports.substr(comma + 1);
    if (link.tx_port.empty() || link.rx_port.empty())
      throw Error("--ports", fmt::format("'{}' is not two interfaces", ports), "give such as eth1,eth2");
  }
  options.read_into(link);
  if (options.given("gso") && !link.tx_port.empty())
    throw Error("--gso", "it is for a veth pair; a port's driver does it its own way", "leave it out");
  const std::string name = net::link_up(link);
  fmt::print("{} is up; datagrams of {} bytes arrive, there and back\n", name, link.mtu);
  const std::string_view address = std::string_view(link.rx_address).substr(0, link.rx_address.find('/'));
  fmt::print("  {}  {}, sends\n  {}  {}, receives\n", link.names.tx, link.tx_address, link.names.rx,
             link.rx_address);
  fmt::print("a run over it, by one command:  doorbell net udp --link {}\n", name);
  fmt::print("or by two, the first one first: sudo ip netns exec {} doorbell net -s\n", link.names.rx);
  fmt::print("                                sudo ip netns exec {} doorbell net tcp -c {}\n", link.names.tx,
             address);
  return 0;
}

int verify(const Options& options) {
  bool wrong = false;
  for (const net::Finding& f : net::link_verify(names_of(options))) {
    using State = net::Finding::State;
    const char* const mark = f.state == State::good ? "ok" : f.state == State::wrong ? "wrong" : "unknown";
    fmt::print("{:7} {}\n", mark, f.text);
    if (!f.hint.empty()) fmt::print("        {}\n", f.hint);
    wrong = wrong || f.state == State::wrong;
  }
  return wrong ? static_cast<int>(ExitCode::usage) : 0;
}

int down(const Options& options) {
  for (const std::string& line : net::link_down(names_of(options))) fmt::print("{}\n", line);
  return 0;
}

int run_net_link(const Options& options, Context&) {
  check_net_link(options);
  const std::string& action = options.text("action");
  return action == "up" ? up(options) : action == "verify" ? verify(options) : down(options);
}

void add_options(OptionTable& t) {
  const net::KeptLink defaults;
  t.add({.name = "action",
         .metavar = "ACTION",
         .choices = {"up", "verify", "down"},
         .help = "make the link, look whether it is in order, or remove it",
         .operand = true,
         .required = true});
  t.group("Link").add({.name = "tx-namespace",
                       .metavar = "NAME",
                       .default_text = defaults.names.tx,
                       .help = "network namespace of the sending end",
                       .into = &net::KeptNames::tx});
  t.add({.name = "rx-namespace",
         .metavar = "NAME",
         .default_text = defaults.names.rx,
         .help = "network namespace of the receiving end",
         .into = &net::KeptNames::rx});
  t.add({.name = "ports",
         .metavar = "IF1,IF2",
         .offers = interface_pairs,
         .help = "two interfaces of this machine that a cable connects. Without them a veth pair is made"});
  t.add({.name = "tx-address",
         .metavar = "ADDRESS/BITS",
         .default_text = defaults.tx_address,
         .help = "IPv4 address of the sending end",
         .into = &net::KeptLink::tx_address});
  t.add({.name = "rx-address",
         .metavar = "ADDRESS/BITS",
         .default_text = defaults.rx_address,
         .help = "IPv4 address of the receiving end",
         .into = &net::KeptLink::rx_address});
  t.add({.name = "mtu",
         .default_text = fmt::format("{}", defaults.mtu),
         .min = 576,
         .max = 65535,
         .help = "bytes that an IP packet may have",
         .unit = "bytes",
         .into = &net::KeptLink::mtu});
  t.add(
      {.name = "queues",
       .min = 1,
       .max = 1024,
       .help = "queues of each interface. Without it, one for a veth pair, and as many as it has for a port",
       .into = &net::KeptLink::queues});
  t.add({.name = "gro",
         .default_text = "on",
         .choices = {"on", "off"},
         .help = "generic receive offload at the receiving end",
         .into = {"on", &net::KeptLink::gro}});
  t.add(
      {.name = "gso",
       .default_text = "on",
       .choices = {"on", "off"},
       .help =
           "off: the sending end of a veth pair splits datagrams of many segments, as most NICs' drivers do",
       .into = {"on", &net::KeptLink::gso}});
}

}  // namespace

Command net_link_command() {
  Command c;
  c.name = "net-link";
  c.summary = "make, check or remove a link between two network namespaces that stays";
  c.description = {
      "Makes two network namespaces and connects them: by a veth pair, or by two ports of this machine with a "
      "cable between them. Packets between namespaces must take the cable, where in one namespace the kernel "
      "would hand them to itself. Other programs find the ends by `ip netns exec`. Needs root.",
      "A port that has an address or belongs to a bridge is in use, and is refused. While the link is up its ports "
      "are gone from the namespace that they were in; down gives them back with the settings that they had, and "
      "so does up when a net-link up before it was killed.",
      "verify says what is wrong: a missing namespace, an interface that is off, another MTU, packets that do not "
      "arrive, or packets that a NIC hands from port to port itself, which the counter rx_packets_phy shows. Its "
      "exit code is 1 then.",
      "A run needs none of this for itself: doorbell net --link veth makes a pair that ends with the run."};
  add_options(c.options);
  c.examples = {{.command = "sudo doorbell net-link up",
                 .text = "A veth pair between the namespaces db_tx and db_rx.",
                 .needs = Needs::device},
                {.command = "sudo doorbell net-link up --ports eth1,eth2 && sudo doorbell net-link verify",
                 .text = "Two ports with a cable between them; is it really used?",
                 .needs = Needs::device},
                {.command = "sudo doorbell net-link down",
                 .text = "Give the ports back and remove the namespaces.",
                 .needs = Needs::device}};
  c.check = check_net_link;
  c.run = run_net_link;
  c.group = "This machine";
  c.stoppable = false;
  return c;
}

}  // namespace doorbell::cli
