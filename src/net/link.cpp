// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/link.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "net/links/interface_link.hpp"
#include "net/links/namespaces.hpp"
#include "net/settings.hpp"

namespace doorbell::net {

namespace {

/// A link that is only named here: memory of this program, or functions that a stream's own driver opens.
class NamedLink : public Link {
 public:
  NamedLink(std::string name, std::string kind) : name_(std::move(name)), kind_(std::move(kind)) {}
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] std::string kind() const override { return kind_; }
  [[nodiscard]] nlohmann::ordered_json facts() override { return {{"name", name_}, {"kind", kind_}}; }

 private:
  std::string name_, kind_;
};

template <const char* Name>
bool is(const LinkRequest& request) {
  return request.spec == Name;
}
constexpr char kLo[] = "lo";
constexpr char kNull[] = "null";
constexpr char kTap[] = "tap";

std::unique_ptr<Link> open_in_memory(const LinkRequest& request) {
  return std::make_unique<NamedLink>(request.spec, "model");
}

/// Its keys are the engine's.
bool is_ring(const LinkRequest& request) {
  return request.spec == "ring" || request.spec.starts_with("ring:");
}

/// Its keys are DPDK's.
bool is_memif(const LinkRequest& request) {
  return request.spec == "memif" || request.spec.starts_with("memif:");
}

bool is_veth(const LinkRequest& request) {
  return request.spec == "veth" || request.spec.starts_with("veth:");
}

/// "0000:01:00.0", the domain may be left out.
bool is_pci_address(std::string_view text) {
  constexpr std::string_view kForm = "xxxx:xx:xx.x";
  const std::string_view form = text.size() == kForm.size() ? kForm : kForm.substr(5);
  if (text.size() != form.size()) return false;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (form[i] == 'x' ? std::isxdigit(static_cast<unsigned char>(text[i])) == 0 : text[i] != form[i])
      return false;
  return true;
}

bool is_pci_pair(const LinkRequest& request) {
  const std::string_view spec = request.spec;
  const std::size_t comma = spec.find(',');
  return comma != std::string_view::npos && is_pci_address(spec.substr(0, comma)) &&
         is_pci_address(spec.substr(comma + 1));
}

std::unique_ptr<Link> open_pci(const LinkRequest& request) {
  const std::size_t comma = request.spec.find(',');
  if (request.spec.substr(0, comma) == request.spec.substr(comma + 1))
    throw Error(fmt::format("{} {}", setting::link, request.spec), "both ends are the same function",
                "give the addresses of two ports");
  return std::make_unique<NamedLink>(request.spec, "hardware");
}

BackendStatus usable(const char* what) {
  return {true, what};
}

}  // namespace

const std::vector<LinkKind>& link_kinds() {
  static const std::vector<LinkKind> all = {
      {kLo, kLo, "kernel", [] { return usable("the loopback interface, both ends at 127.0.0.1"); }, is<kLo>,
       open_lo},
      {"veth", "veth[:KEY=VALUE,...]", "kernel", namespaces_status, is_veth, open_veth},
      {"ring", "ring[:KEY=VALUE,...]", "model", [] { return usable("rings in this program's memory"); },
       is_ring, open_in_memory},
      {"memif", "memif[:socket=PATH,id=N]", "model",
       [] { return usable("memory that two DPDK ports share, of one process or of two"); }, is_memif,
       open_in_memory},
      {kNull, kNull, "model", [] { return usable("a device of DPDK that drops what it is given"); },
       is<kNull>, open_in_memory},
      {kTap, kTap, "kernel", [] { return usable("an interface that DPDK makes"); }, is<kTap>,
       [](const LinkRequest& request) { return std::make_unique<NamedLink>(request.spec, "kernel"); }},
      {"pci", "PCI addresses of two ports: 0000:01:00.0,0000:01:00.1", "hardware",
       [] { return usable("two ports that an engine's own driver opens"); }, is_pci_pair, open_pci},
      {"interfaces", "two interfaces, [NAMESPACE/]INTERFACE,[NAMESPACE/]INTERFACE", "hardware",
       [] { return usable("two interfaces that are there already"); },
       [](const LinkRequest& request) { return is_interface_pair(request.spec); }, open_interfaces},
  };
  return all;
}

std::unique_ptr<Link> open_link(const LinkRequest& request) {
  if (const LinkKind* const kind = find_backend(link_kinds(), request)) return kind->open(request);
  throw Error(
      fmt::format("{} '{}'", setting::link, request.spec), "no link has this name",
      fmt::format("give {}; one interface alone goes with {}", syntaxes(link_kinds()), setting::connect));
}

}  // namespace doorbell::net
