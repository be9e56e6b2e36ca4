// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/exchange.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <random>

#include "rdma/socket.hpp"
#include "report/layout.hpp"
#include "system/clock.hpp"
#include "system/sysfs.hpp"

namespace doorbell::rdma {

using Json = nlohmann::ordered_json;

namespace {

// Before each message come four letters and the number of bytes that follow, the highest byte first.
constexpr std::string_view kMagic = "dbrx";
constexpr std::size_t kHeaderBytes = 8;

constexpr const char* kTitle = "the other end";

std::string header_of(std::size_t bytes) {
  std::string text(kMagic);
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(bytes >> shift & 0xff);
  return text;
}

u32 length_in(const std::string& header) {
  u32 n = 0;
  for (std::size_t i = kMagic.size(); i < kHeaderBytes; ++i) n = n << 8 | static_cast<u8>(header[i]);
  return n;
}

u16 parse_port(const char* option, std::string_view text, u16 min) {
  u32 port = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), port);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || port > 0xffff || port < min)
    throw Error(option, fmt::format("'{}' is no port in {}..65535", text, min));
  return static_cast<u16>(port);
}

/// Splits "HOST", "HOST:PORT" or "[ADDRESS]:PORT" into its parts; the second part is empty without a ':'.
std::pair<std::string, std::string> split(const char* option, const std::string& text) {
  if (text.starts_with('[')) {
    const auto end = text.find(']');
    if (end == std::string::npos || (end + 1 < text.size() && text[end + 1] != ':') || end + 2 == text.size())
      throw Error(option, fmt::format("'{}' is not [ADDRESS]:PORT", text));
    return {text.substr(1, end - 1), end + 1 < text.size() ? text.substr(end + 2) : ""};
  }
  const auto colon = text.find(':');
  if (colon == std::string::npos) return {text, ""};
  if (text.find(':', colon + 1) != std::string::npos)
    throw Error(option, fmt::format("'{}' has several colons", text),
                "write an IPv6 address as [ADDRESS]:PORT");
  if (colon + 1 == text.size()) throw Error(option, fmt::format("'{}' has no port behind the colon", text));
  return {text.substr(0, colon), text.substr(colon + 1)};
}

/// Reads a whole number of at most `max` from a message.
u64 number(const Json& from, const char* key, u64 max) {
  const auto it = from.is_object() ? from.find(key) : from.end();
  if (!from.is_object() || it == from.end() || !it->is_number_unsigned() || it->get<u64>() > max)
    throw Error(kTitle, fmt::format("its message has no valid '{}'", key));
  return it->get<u64>();
}

Json to_json(const QueuePairAddress& e) {
  std::string gid;
  for (const u8 b : e.gid) gid += fmt::format("{:02x}", b);
  return {{"qpn", e.qpn}, {"psn", e.psn}, {"lid", e.lid}, {"mtu", e.mtu}, {"gid", gid}};
}

void from_json(const Json& from, QueuePairAddress& e) {
  e.qpn = static_cast<u32>(number(from, "qpn", 0xffffff));
  e.psn = static_cast<u32>(number(from, "psn", 0xffffff));
  e.lid = static_cast<u32>(number(from, "lid", 0xffff));
  e.mtu = static_cast<u32>(number(from, "mtu", 4096));
  if (e.mtu < 256 || !std::has_single_bit(e.mtu)) throw Error(kTitle, "its message has no valid 'mtu'");
  const auto it = from.find("gid");
  const std::string gid = it != from.end() && it->is_string() ? it->get<std::string>() : "";
  const bool hex = gid.find_first_not_of("0123456789abcdef") == std::string::npos;
  if (gid.size() != 2 * e.gid.size() || !hex) throw Error(kTitle, "its message has no valid 'gid'");
  for (std::size_t i = 0; i < e.gid.size(); ++i)
    std::from_chars(gid.data() + 2 * i, gid.data() + 2 * i + 2, e.gid[i], 16);
}

Json to_json(const MemoryKey& m) {
  return {{"address", m.address}, {"rkey", m.rkey}, {"bytes", m.bytes}};
}

void from_json(const Json& from, MemoryKey& m) {
  m.address = number(from, "address", ~u64{0});
  m.rkey = static_cast<u32>(number(from, "rkey", ~u32{0}));
  m.bytes = number(from, "bytes", ~u64{0} - m.address);
}

template <class T>
std::vector<T> swap_all(Exchange& x, const char* type, const std::vector<T>& mine) {
  auto list = Json::array();
  for (const T& item : mine) list.push_back(to_json(item));
  x.send(type, list);
  const Json theirs = x.receive(type);
  if (!theirs.is_array() || theirs.size() != mine.size())
    throw Error(kTitle, fmt::format("it sent {} {}, this end has {}", theirs.is_array() ? theirs.size() : 0,
                                    type, mine.size()));
  std::vector<T> all(theirs.size());
  for (std::size_t i = 0; i < all.size(); ++i) from_json(theirs[i], all[i]);
  return all;
}

}  // namespace

std::string SocketName::text() const {
  if (host.find(':') != std::string::npos) return fmt::format("[{}]:{}", host, port);
  return host.empty() ? std::to_string(port) : fmt::format("{}:{}", host, port);
}

SocketName parse_connect(const std::string& text) {
  const auto [host, port] = split("--connect", text);
  if (host.empty())
    throw Error("--connect", fmt::format("'{}' names no host", text), "write HOST or HOST:PORT");
  return {host, port.empty() ? Exchange::kDefaultPort : parse_port("--connect", port, 1)};
}

SocketName parse_listen(const std::string& text) {
  const auto [first, second] = split("--listen", text);
  if (text.starts_with('[') && second.empty())
    throw Error("--listen", fmt::format("'{}' has no port", text), "write [ADDRESS]:PORT");
  if (second.empty()) return {"", parse_port("--listen", first, 0)};
  return {first, parse_port("--listen", second, 0)};
}

Exchange::Exchange(Descriptor socket, std::string peer, bool server, double limit_s,
                   const measure::StopFlag* stop)
    : socket_(std::move(socket)), peer_(std::move(peer)), server_(server), limit_s_(limit_s), stop_(stop) {
  hello();
}

Exchange Exchange::connect(const SocketName& to, double limit_s, const measure::StopFlag* stop) {
  Connected c = connect_tcp(to, Wait::lasting(limit_s, stop));
  return {std::move(c.socket), std::move(c.peer), false, limit_s, stop};
}

void Exchange::reject(const std::string& why, const std::string& hint) const {
  throw Error(fmt::format("{} {}", kTitle, peer_), why, hint);
}

void Exchange::hello() {
  std::random_device random;
  const u64 nonce = static_cast<u64>(random()) << 32 | random();
  const Json mine = {{"version", kVersion}, {"nonce", nonce}, {"server", server_}};
  // Both ends send first. Two clients, or a client that has reached itself, thus get an answer instead of
  // silence.
  send("hello", mine);
  check_hello(receive("hello"), nonce);
}

void Exchange::check_hello(const Json& theirs, u64 nonce) const {
  const u64 version = number(theirs, "version", ~u64{0});
  if (version != kVersion)
    reject(fmt::format("it speaks version {} of doorbell's protocol, this end version {}", version, kVersion),
           "use the same release on both ends");
  const auto role = theirs.find("server");
  if (role == theirs.end() || !role->is_boolean()) reject("its hello does not say whether it is the server");
  // A TCP client whose own port is the port to which it connects reaches itself.
  if (number(theirs, "nonce", ~u64{0}) == nonce) reject("it is this process itself", "use another port");
  if (role->get<bool>() == server_) reject("it is not the other role", "one end listens, the other connects");
}

void Exchange::send(std::string_view type, const Json& body) {
  const std::string text =
      Json{{"type", type}, {"body", body}}.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > kMaxMessageBytes)
    throw Error(fmt::format("message '{}'", type),
                fmt::format("{} bytes are more than {}", text.size(), kMaxMessageBytes));
  const std::string all = header_of(text.size()) + text;
  const Wait wait = Wait::lasting(limit_s_, stop_);
  for (std::size_t done = 0; done < all.size();) {
    const ssize_t n = ::send(socket_.get(), all.data() + done, all.size() - done, MSG_NOSIGNAL);
    if (n > 0) {
      done += static_cast<std::size_t>(n);
    } else if (errno != EAGAIN && errno != EINTR) {
      reject(fmt::format("it does not take '{}': {}", type, reason(errno)));
    } else if (const Waited w = wait_for(socket_.get(), POLLOUT, wait); w != Waited::ready) {
      reject(w == Waited::stopped ? "interrupted" : fmt::format("it does not take '{}' in time", type));
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
    } else if (const Waited w = wait_for(socket_.get(), POLLIN, {until, stop_}); w != Waited::ready) {
      reject(w == Waited::stopped ? "interrupted" : fmt::format("it does not send '{}' in time", type));
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
  Json message = Json::parse(read_exactly(type, bytes, until), nullptr, false);
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
    while (wait_for(socket_.get(), POLLIN, wait) == Waited::ready)
      if (::recv(socket_.get(), dropped, sizeof dropped, 0) <= 0 && errno != EINTR) return;
  } catch (...) {
    // The other end has gone and cannot receive the message.
  }
}

std::vector<QueuePairAddress> Exchange::swap(const std::vector<QueuePairAddress>& mine) {
  return swap_all(*this, "endpoints", mine);
}

std::vector<MemoryKey> Exchange::swap(const std::vector<MemoryKey>& mine) {
  return swap_all(*this, "memory", mine);
}

Listener::Listener(const SocketName& at) : socket_(listen_tcp(at)), at_(at) {
  at_.port = bound_port(socket_.get());
}

Exchange Listener::accept(double limit_s, double message_limit_s, const measure::StopFlag* stop) {
  Connected c = accept_tcp(socket_.get(), at_, Wait::lasting(limit_s, stop));
  return {std::move(c.socket), std::move(c.peer), true, message_limit_s, stop};
}

}  // namespace doorbell::rdma
