// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/ranks/team.hpp"

#include <algorithm>
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <random>

#include "exchange/fields.hpp"
#include "sweep/ranks/addresses.hpp"
#include "sweep/ranks/agent.hpp"
#include "sweep/ranks/mpi.hpp"
#include "system/thread.hpp"

namespace doorbell::sweep {

namespace {

using Json = nlohmann::ordered_json;

constexpr exchange::RunKind kRunKind = {.path = "sweep", .default_port = 0};
constexpr double kJoin_s = 120;  // for all ranks to come: a large launch is slow
constexpr double kReach_s = 30;  // for one address of rank 0, and for rank 0 to turn to this rank
constexpr double kMessage_s =
    10;  // for each message of a rank: a stranger that says nothing must not take longer
constexpr double kLeave_s = 10;  // for a rank to end
constexpr std::size_t kMaxAddresses = 16;
constexpr std::size_t kMaxText = 256;
constexpr const char* kLoopback = "127.0.0.1";

/// A rank's message to all others.
struct Word {
  std::string host;
  std::string stack;
  std::string token;  ///< of rank 0; who knows it has been started with it
  u16 port = 0;       ///< of rank 0
  std::vector<std::string> addresses;

  [[nodiscard]] std::string text() const {
    return Json{{"host", host}, {"stack", stack}, {"token", token}, {"port", port}, {"addresses", addresses}}
        .dump(-1, ' ', true, Json::error_handler_t::replace);
  }
};

Word word_of(u32 rank, const std::string& text) {
  const Json j = Json::parse(text, nullptr, false);
  if (!j.is_object()) throw Error(fmt::format("rank {}", rank), "it is not doorbell, or of another release");
  Word w{exchange::text(j, "host", kMaxText),
         exchange::text(j, "stack", kMaxText),
         exchange::text(j, "token", kMaxText),
         static_cast<u16>(exchange::small(j, "port", 0, 0xffff)),
         {}};
  for (const Json& address : exchange::list(j, "addresses", kMaxAddresses))
    if (address.is_string()) w.addresses.push_back(address.get<std::string>());
  return w;
}

std::string random_token() {
  std::random_device random;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", random(), random(), random(), random());
}

/// For IPv4 and IPv6, or for IPv4 on a machine without the other.
std::unique_ptr<exchange::Listener> listen_anywhere() {
  try {
    return std::make_unique<exchange::Listener>(kRunKind, exchange::SocketName{"::", 0});
  } catch (const Error&) {
    return std::make_unique<exchange::Listener>(kRunKind, exchange::SocketName{});
  }
}

/// The connection to rank 0, by the first of its addresses that leads there, and that address.
std::pair<std::unique_ptr<exchange::Exchange>, std::string> reach(const Word& zero,
                                                                  const std::vector<std::string>& addresses,
                                                                  const measure::StopFlag* stop) {
  std::string reasons;
  for (const std::string& address : addresses) {
    try {
      auto found = std::make_unique<exchange::Exchange>(
          exchange::Exchange::connect(kRunKind, {address, zero.port}, kReach_s));
      return {std::move(found), address};
    } catch (const Error& e) {
      reasons += (reasons.empty() ? "" : "; ") + std::string(e.what());
    }
    if (stop->requested()) throw Error("rank 0", "interrupted", "", ExitCode::interrupted);
  }
  throw Error(fmt::format("rank 0 on {}", zero.host), reasons.empty() ? "it has no address" : reasons,
              "ranks talk over TCP: is the network between the hosts open?");
}

}  // namespace

Team::Team(const Launcher& launcher, measure::StopFlag* stop) : launcher_(launcher), stop_(stop) {
  std::unique_ptr<exchange::Listener> listener;
  Word mine{host_name(), network_stack(), "", 0, own_addresses()};
  if (mine.addresses.size() > kMaxAddresses) mine.addresses.resize(kMaxAddresses);
  if (rank() == 0) {
    listener = listen_anywhere();
    mine.port = listener->at().port;
    mine.token = random_token();
  }
  std::vector<Word> words;
  for (const std::string& text : exchange_words(launcher, mine.text(), kJoin_s, stop))
    words.push_back(word_of(static_cast<u32>(words.size()), text));
  const Word& zero = words.front();

  // Loopback only if no rank is anywhere else: the address by which a rank reaches rank 0 is that by which
  // others reach the rank.
  const bool one_stack =
      std::ranges::all_of(words, [&](const Word& w) { return w.stack == words.front().stack; });
  std::vector<std::string> addresses = zero.addresses;
  if (one_stack || rank() == 0) addresses.insert(addresses.begin(), kLoopback);
  const auto connect = [this, zero, addresses, stop] {
    auto [connection, by] = reach(zero, addresses, stop);
    connection->send(
        "join", {{"rank", rank()}, {"token", zero.token}, {"own", connection->own().host}, {"zero", by}});
    return std::move(connection);
  };
  if (rank() != 0) {
    zero_ = connect();
    return;
  }
  for (const Word& w : words) {
    members_.emplace_back();
    members_.back().host = w.host;
    members_.back().addresses = w.addresses;
    if (one_stack) members_.back().addresses.emplace_back(kLoopback);
  }
  own_ = make_thread("rank 0's work", [this, connect] {
    try {
      zero_ = connect();
      work_for(*zero_, stop_);
    } catch (const std::exception&) {
      // The other end of this connection, in this process, sees it close, and says so.
    }
    zero_.reset();
  });
  try {
    collect(*listener, mine.token);
  } catch (...) {
    members_.clear();
    own_.join();
    throw;
  }
}

Team::~Team() {
  for (Member& m : members_) {
    try {
      if (m.control && m.gone.empty()) m.control->send("end", Json::object());
    } catch (const std::exception&) {
      // It has gone, and needs no word of the end.
    }
  }
  // A launcher that sees one rank fail kills the others, which must not happen to one that still works.
  for (Member& m : members_)
    if (m.control && m.gone.empty()) (void)m.control->pending(kLeave_s);
  members_.clear();
  if (own_.joinable()) own_.join();
}

std::vector<u32> Team::absent() const {
  std::vector<u32> found;
  for (u32 r = 0; r < members_.size(); ++r)
    if (!members_[r].control) found.push_back(r);
  return found;
}

void Team::collect(exchange::Listener& listener, const std::string& token) {
  const exchange::Wait wait = exchange::Wait::lasting(kJoin_s, stop_);
  for (;;) {
    const std::vector<u32> missing = absent();
    if (missing.empty()) return;
    try {
      admit(listener, token, wait);
    } catch (const Error& e) {
      if (stop_->requested()) throw Error("rank 0", "interrupted", "", ExitCode::interrupted);
      if (exchange::left_s(wait) > 0) continue;  // a stranger
      throw Error(fmt::format("rank {}", fmt::join(missing, ", ")),
                  fmt::format("not connected to rank 0 within {:g} s: {}", kJoin_s, e.what()),
                  "ranks talk over TCP: is the network between the hosts open?");
    }
  }
}

void Team::admit(exchange::Listener& listener, const std::string& token, const exchange::Wait& wait) {
  auto control =
      std::make_unique<exchange::Exchange>(listener.accept(exchange::left_s(wait), kMessage_s, nullptr));
  const Json joined = control->receive("join");
  const u32 rank = exchange::small(joined, "rank", 0, launcher_.size - 1);
  Member& m = members_[rank];
  if (exchange::text(joined, "token", kMaxText) != token || m.control) return;
  const std::string own = exchange::text(joined, "own", kMaxText);
  if (rank != 0 || m.address.empty()) m.address = own;
  m.control = std::move(control);
  // Rank 0 has reached itself by loopback; what others call it is what others can use.
  Member& zero = members_.front();
  if (rank != 0 && (zero.address.empty() || zero.address == kLoopback))
    zero.address = exchange::text(joined, "zero", kMaxText);
}

void Team::serve() {
  work_for(*zero_, stop_);
}

std::vector<std::string> Team::hosts() const {
  std::vector<std::string> found;
  for (const Member& m : members_) found.push_back(m.host);
  return found;
}

void Team::choose_addresses(const std::string& network) {
  if (network.empty()) return;
  for (u32 r = 0; r < members_.size(); ++r) {
    Member& m = members_[r];
    const auto found =
        std::ranges::find_if(m.addresses, [&](const std::string& a) { return in_network(a, network); });
    if (found == m.addresses.end())
      throw Error(fmt::format("pairs.network {}", network),
                  fmt::format("rank {} ({}) has no address in it", r, m.host),
                  fmt::format("it has {}", fmt::join(m.addresses, ", ")));
    m.address = *found;
  }
}

}  // namespace doorbell::sweep
