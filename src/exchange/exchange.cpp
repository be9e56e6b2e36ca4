// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "exchange/exchange.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>

#include "exchange/fields.hpp"
#include "report/layout.hpp"
#include "system/clock.hpp"
#include "system/sysfs.hpp"

namespace doorbell::exchange {

using Json = nlohmann::ordered_json;

namespace {

// Before each message come four letters and the number of bytes that follow, the highest byte first.
constexpr std::string_view kMagic = "dbrx";
constexpr std::size_t kHeaderBytes = 8;

std::string header_of(std::size_t bytes) {
  std::string text(kMagic);
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(bytes >> shift & 0xff);
  return text;
}

// A message that is nested more deeply is none of doorbell's; to print one takes a call a level.
constexpr u32 kDeepest = 64;

bool nests_deeply(std::string_view text) {
  u32 depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted && c == '\\') ++i;
    else if (c == '"') quoted = !quoted;
    else if (!quoted && (c == '[' || c == '{')) {
      if (++depth > kDeepest) return true;
    } else if (!quoted && (c == ']' || c == '}') && depth > 0) --depth;
  }
  return false;
}

u32 length_in(const std::string& header) {
  u32 n = 0;
  for (std::size_t i = kMagic.size(); i < kHeaderBytes; ++i) n = n << 8 | static_cast<u8>(header[i]);
  return n;
}

}  // namespace

u64 new_nonce() {
  std::random_device random;
  return static_cast<u64>(random()) << 32 | random();
}

Exchange::Exchange(Descriptor socket, std::string peer, bool server, double limit_s,
                   const measure::StopFlag* stop, const RunKind& kind)
    : socket_(std::move(socket)), peer_(std::move(peer)), server_(server), limit_s_(limit_s), stop_(stop) {
  hello(kind);
}

Exchange Exchange::connect(const RunKind& kind, const SocketName& to, double limit_s,
                           const measure::StopFlag* stop, const std::string& setting) {
  Connected c = connect_tcp(to, Wait::lasting(limit_s, stop), kind.path, setting);
  return {std::move(c.socket), std::move(c.peer), false, limit_s, stop, kind};
}

void Exchange::reject(const std::string& why, const std::string& hint) const {
  throw Error(fmt::format("{} {}", kOtherEnd, peer_), why, hint);
}

void Exchange::reject(Waited waited, const std::string& late) const {
  if (waited != Waited::stopped) reject(late);
  throw Error(fmt::format("{} {}", kOtherEnd, peer_), "interrupted", "", ExitCode::interrupted);
}

void Exchange::hello(const RunKind& kind) {
  const u64 nonce = new_nonce();
  const Json mine = {{"version", kVersion}, {"path", kind.path}, {"nonce", nonce}, {"server", server_}};
  // Both ends send first. Two clients, or a client that has reached itself, thus get an answer instead of
  // silence.
  send("hello", mine);
  check_hello(receive("hello"), kind, nonce);
}

void Exchange::check_hello(const Json& theirs, const RunKind& kind, u64 nonce) const {
  const u64 version = number(theirs, "version", 0, ~u64{0});
  if (version != kVersion)
    reject(fmt::format("it speaks version {} of doorbell's protocol, this end version {}", version, kVersion),
           "use the same release on both ends");
  const auto path = theirs.find("path");
  if (path == theirs.end() || !path->is_string()) reject("its hello does not say of which path its run is");
  if (const std::string other = report::printable(path->get<std::string>()); other != kind.path)
    reject(fmt::format("it runs `doorbell {}`, this end `doorbell {}`", other, kind.path),
           "give both ends the same command, and each server a port of its own");
  const auto role = theirs.find("server");
  if (role == theirs.end() || !role->is_boolean()) reject("its hello does not say whether it is the server");
  // A TCP client whose own port is the port to which it connects reaches itself.
  if (number(theirs, "nonce", 0, ~u64{0}) == nonce) reject("it is this process itself", "use another port");
  if (role->get<bool>() == server_) reject("it is not the other role", "one end listens, the other connects");
}

Waited Exchange::wait(short events, u64 until_ns) const {
  const Waited w = wait_for(socket_.get(), events, {until_ns, stop_});
  if (w != Waited::stopped || grace_s_ <= 0) return w;
  const u64 grace_until_ns = Wait::lasting(grace_s_, nullptr).until_ns;
  const Waited later = wait_for(socket_.get(), events, {std::min(until_ns, grace_until_ns), nullptr});
  return later == Waited::expired ? Waited::stopped : later;
}

void Exchange::send(std::string_view type, const Json& body) {
  const std::string text =
      Json{{"type", type}, {"body", body}}.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kMaxMessageBytes)
    throw Error(fmt::format("message '{}'", type),
                fmt::format("{} bytes are more than {}", text.size(), kMaxMessageBytes));
  const std::string all = header_of(text.size()) + text;
  const u64 until_ns = Wait::lasting(limit_s_, stop_).until_ns;
  for (std::size_t done = 0; done < all.size();) {
    const ssize_t n = ::send(socket_.get(), all.data() + done, all.size() - done, MSG_NOSIGNAL);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (errno != EAGAIN && errno != EINTR) {
      reject(fmt::format("it does not take '{}': {}", type, reason(errno)));
    } else if (const Waited w = wait(POLLOUT, until_ns); w != Waited::ready) {
      reject(w, fmt::format("it does not take '{}' in time", type));
    }
  }
}

std::string Exchange::read_exactly(std::string_view type, std::size_t bytes, u64 until) {
  std::string text(bytes, '\0');
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n = ::recv(socket_.get(), text.data() + done, bytes - done, 0);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (n == 0) {
      reject(fmt::format("it has closed the connection, '{}' was expected", type),
             "its own messages tell why");
    } else if (errno != EAGAIN && errno != EINTR) {
      reject(fmt::format("'{}' was expected: {}", type, reason(errno)));
    } else if (const Waited w = wait(POLLIN, until); w != Waited::ready) {
      reject(w, fmt::format("it does not send '{}' in time", type));
    }
  }
  return text;
}

Json Exchange::read_message(std::string_view type, u64 until) {
  const std::string header = read_exactly(type, kHeaderBytes, until);
  if (!header.starts_with(kMagic)) reject("it does not speak doorbell's protocol", "is this the right port?");
  const u32 bytes = length_in(header);
  if (bytes > kMaxMessageBytes)
    reject(fmt::format("its message has {} bytes, at most {} are allowed", bytes, kMaxMessageBytes));
  const std::string text = read_exactly(type, bytes, until);
  Json message = nests_deeply(text) ? Json() : Json::parse(text, nullptr, false);
  const bool good = message.is_object() && message.contains("type") && message["type"].is_string() &&
                    message.contains("body");
  if (!good) reject("its message is none of doorbell's");
  return message;
}

Exchange::Message Exchange::receive_any(const std::vector<std::string>& types, double limit_s) {
  const std::string expected = fmt::format("{}", fmt::join(types, "' or '"));
  Json message = read_message(expected, Wait::lasting(limit_s > 0 ? limit_s : limit_s_, stop_).until_ns);
  // Text from another process is shown to the user of this one.
  const std::string got = report::printable(message["type"].get<std::string>());
  if (got == "failure" && message["body"].is_string())
    reject(fmt::format("it has failed: {}", report::printable(message["body"].get<std::string>())));
  if (std::ranges::find(types, got) == types.end())
    reject(fmt::format("it sent '{}' where '{}' was expected", got, expected));
  return {got, std::move(message["body"])};
}

Json Exchange::receive(std::string_view type, double limit_s) {
  return receive_any({std::string(type)}, limit_s).body;
}

bool Exchange::pending(double limit_s) const {
  return wait_for(socket_.get(), POLLIN, Wait::lasting(limit_s, nullptr)) == Waited::ready;
}

void Exchange::barrier(const std::string& name, double limit_s) {
  send("barrier", name);
  const Json theirs = receive("barrier", limit_s);
  if (theirs != name)
    reject(fmt::format("it is at barrier {}, this end at \"{}\"",
                       theirs.dump(-1, ' ', true, Json::error_handler_t::replace), name));
}

void Exchange::fail(const std::string& why) noexcept {
  try {
    send("failure", why);
    // To close a socket with unread data would reset the connection, and the message might be lost.
    ::shutdown(socket_.get(), SHUT_WR);
    const Wait wait = Wait::lasting(std::min(limit_s_, 1.0), nullptr);
    char dropped[4096];
    while (left_s(wait) > 0 && wait_for(socket_.get(), POLLIN, wait) == Waited::ready) {
      const ssize_t n = ::recv(socket_.get(), dropped, sizeof dropped, 0);
      if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) return;
    }
  } catch (...) {
    // The other end has gone and cannot receive the message.
  }
}

Listener::Listener(const RunKind& kind, const SocketName& at, std::string setting)
    : kind_(kind), setting_(std::move(setting)), socket_(listen_tcp(at, setting_)), at_(at) {
  at_.port = bound_port(socket_.get());
}

Exchange Listener::accept(double limit_s, double message_limit_s, const measure::StopFlag* stop,
                          const TurnedAway& turned_away) {
  const Wait wait = Wait::lasting(limit_s, stop);
  for (;;) {
    Connected c = turned_away ? first_that_speaks(wait, turned_away)
                              : accept_tcp(socket_.get(), at_, wait, kind_.path, setting_);
    try {
      return {std::move(c.socket), std::move(c.peer), true, message_limit_s, stop, kind_};
    } catch (const Error& e) {
      if (!turned_away || (stop != nullptr && stop->requested())) throw;
      turned_away(e);
    }
  }
}

namespace {

/// Makes poll(2) report the socket once so many bytes wait there, or its end.
void wake_at(int fd, std::size_t bytes) {
  const int least = static_cast<int>(bytes);
  ::setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least);
}

/// Whether a whole message waits, or something that is none of doorbell's, or the connection's end. Else
/// poll(2) reports the socket when the rest has come.
bool has_spoken(int fd) {
  std::string header(kHeaderBytes, '\0');
  const ssize_t n = ::recv(fd, header.data(), kHeaderBytes, MSG_PEEK);
  if (n < static_cast<ssize_t>(kHeaderBytes) || !header.starts_with(kMagic)) return true;
  // A hello is short.
  constexpr u32 kLongestHello = 4096;
  const u32 bytes = length_in(header);
  int waiting = 0;
  if (bytes > kLongestHello || ::ioctl(fd, FIONREAD, &waiting) != 0 ||
      static_cast<std::size_t>(waiting) >= kHeaderBytes + bytes)
    return true;
  wake_at(fd, kHeaderBytes + bytes);
  return false;
}

}  // namespace

Connected Listener::first_that_speaks(const Wait& wait, const TurnedAway& turned_away) {
  constexpr std::size_t kMostSilent = 64;
  for (;;) {
    std::vector<pollfd> polls{{socket_.get(), POLLIN, 0}};
    for (const Connected& c : silent_) polls.push_back({c.socket.get(), POLLIN, 0});
    const Waited waited = wait_for(polls, wait);
    // accept_tcp() has the words for a wait that has ended.
    if (waited != Waited::ready || polls[0].revents != 0) {
      silent_.push_back(accept_tcp(socket_.get(), at_, wait, kind_.path, setting_));
      wake_at(silent_.back().socket.get(), kHeaderBytes);
      if (silent_.size() <= kMostSilent) continue;
      turned_away(Error(fmt::format("{} {}", kOtherEnd, silent_.front().peer), "it says nothing"));
      silent_.erase(silent_.begin());
      continue;
    }
    const auto speaks = std::find_if(polls.begin() + 1, polls.end(),
                                     [](const pollfd& p) { return p.revents != 0 && has_spoken(p.fd); });
    if (speaks == polls.end()) continue;
    const auto at = silent_.begin() + (speaks - polls.begin() - 1);
    Connected c = std::move(*at);
    silent_.erase(at);
    wake_at(c.socket.get(), 1);
    return c;
  }
}

Client wait_for_client(const RunKind& kind, const SocketName& at, const std::string& setting,
                       const std::vector<std::string>& types, double limit_s, double message_limit_s,
                       const measure::RunWatch& watch) {
  // A client begins as soon as it is connected.
  constexpr double kFirstS = 30;
  Listener listener(kind, at, setting);
  const auto say = [&](const std::string& what) {
    if (watch.progress) watch.progress(0, what);
  };
  const auto turned_away = [&](const Error& e) { say(fmt::format("turned away: {}", e.what())); };
  say(fmt::format("listening at {}", listener.at().text()));
  const Wait wait = Wait::lasting(limit_s, watch.stop);
  for (;;) {
    Exchange x = listener.accept(left_s(wait), message_limit_s, watch.stop, turned_away);
    try {
      Exchange::Message first = x.receive_any(types, std::max(message_limit_s, kFirstS));
      return {std::move(x), std::move(first)};
    } catch (const Error& e) {
      x.fail(e.what());
      if (watch.stop != nullptr && watch.stop->requested()) throw;
      turned_away(e);
    }
  }
}

}  // namespace doorbell::exchange
