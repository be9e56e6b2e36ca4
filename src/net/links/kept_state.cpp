// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/links/kept_state.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "report/file.hpp"
#include "system/clock.hpp"
#include "system/sysfs.hpp"

namespace doorbell::net {

namespace {

using StateJson = nlohmann::ordered_json;
constexpr char kStateFolder[] = "/run/doorbell";
constexpr u64 kLockLimitNs = 60'000'000'000;
constexpr int kLockPollMs = 50;

std::string state_file(const KeptNames& names) {
  return fmt::format("{}/net-link,{},{}.json", kStateFolder, names.tx, names.rx);
}

}  // namespace

Descriptor lock_kept_links() {
  const std::string file = fmt::format("{}/net-links.lock", kStateFolder);
  const bool folder = mkdir(kStateFolder, 0755) == 0 || errno == EEXIST;
  Descriptor fd(folder ? open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600) : -1);
  if (fd.get() < 0)
    throw Error(file, reason(errno), errno == EACCES || errno == EROFS ? "links that stay need root" : "");
  const u64 deadline = wall_ns() + kLockLimitNs;
  while (flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK && errno != EINTR) throw Error(file, reason(errno));
    if (wall_ns() > deadline)
      throw Error(file, "another doorbell has been making or removing a link for a minute",
                  "wait for it, or end it");
    poll(nullptr, 0, kLockPollMs);
  }
  return fd;
}

std::string kept_state_text(const KeptState& state) {
  StateJson ports = StateJson::array();
  for (const KeptState::Port& p : state.ports)
    ports.push_back({{"interface", p.interface},
                     {"moved", p.moved},
                     {"mtu", p.mtu},
                     {"up", p.up},
                     {"gro", p.gro},
                     {"channels", p.channels},
                     {"namespace", p.space},
                     {"address", p.address}});
  return StateJson{{"ports", ports},
                   {"home", state.home},
                   {"link_mtu", state.link_mtu},
                   {"complete", state.complete}}
             .dump(2) +
         "\n";
}

KeptState parse_kept_state(const std::string& subject, const std::string& text) {
  try {
    const StateJson json = StateJson::parse(text);
    KeptState state;
    state.home = json.at("home").get<u64>();
    state.link_mtu = json.at("link_mtu").get<u32>();
    state.complete = json.at("complete").get<bool>();
    for (std::size_t i = 0; i < state.ports.size(); ++i) {
      const StateJson& port = json.at("ports").at(i);
      KeptState::Port& p = state.ports[i];
      p.interface = port.at("interface").get<std::string>();
      p.moved = port.at("moved").get<bool>();
      p.mtu = port.at("mtu").get<u32>();
      p.up = port.at("up").get<bool>();
      p.gro = port.at("gro").get<bool>();
      p.channels = port.at("channels").get<u32>();
      p.space = port.at("namespace").get<u64>();
      p.address = port.at("address").get<std::string>();
    }
    return state;
  } catch (const StateJson::exception& e) {
    throw Error(subject, fmt::format("is not what doorbell writes there: {}", e.what()),
                "remove it, and the namespaces with `ip netns del`");
  }
}

std::optional<KeptState> read_kept_state(const KeptNames& names) {
  const std::string file = state_file(names);
  if (!present(file)) return {};
  std::ifstream in(file);
  if (!in) throw Error(file, "cannot be read", "links that stay need root");
  return parse_kept_state(file, {std::istreambuf_iterator<char>(in), {}});
}

void write_kept_state(const KeptNames& names, const KeptState& state) {
  report::write_file(state_file(names), kept_state_text(state));
}

void forget_kept_state(const KeptNames& names) {
  const std::string file = state_file(names);
  if (unlink(file.c_str()) != 0 && errno != ENOENT) throw Error(file, "cannot be removed: " + reason(errno));
}

}  // namespace doorbell::net
