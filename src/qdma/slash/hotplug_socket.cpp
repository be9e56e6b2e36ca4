// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/slash/hotplug_socket.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cerrno>

namespace doorbell::qdma::slash {

namespace {

/// "DDDD:BB:DD".
bool is_card(std::string_view s) {
  constexpr std::string_view kForm = "dddd:dd:dd";
  return std::ranges::equal(s, kForm, [](char c, char form) {
    return form == ':' ? c == ':' : std::isxdigit(static_cast<unsigned char>(c)) != 0;
  });
}

constexpr u32 kAll[] = {2, 1, 0};

}  // namespace

Functions functions_at(const Place& place) {
  const auto end = std::ranges::find(place, '\0');
  if (end == place.end()) return {.error = EINVAL};
  std::string_view s(place.begin(), end);
  Functions out = {.numbers = {std::begin(kAll), std::end(kAll)}};
  if (s.empty()) return out;
  if (s.size() > 2 && s[s.size() - 2] == '.') {
    const char f = s.back();
    if (f < '0' || f >= static_cast<char>('0' + HotplugSocket::kFunctions)) return {.error = EINVAL};
    out.numbers = {static_cast<u32>(f - '0')};
    s.remove_suffix(2);
  }
  if (!is_card(s)) return {.error = EINVAL};
  return s == kCardPlace ? out : Functions{.error = ENODEV};
}

void HotplugSocket::call(service::SocketId id, const Header& header, service::Message& message) {
  HotplugTarget target;
  Call c{.id = id, .header = header, .functions = {}};
  switch (header.number) {
    case kCallRescan:
      break;
    case kCallRemove:
    case kCallToggleReset:
    case kCallHotplug:
      c.functions.error = read_whole(payload(message), target);
      if (c.functions.error == 0) c.functions = functions_at(target.place);
      break;
    default:
      c.functions.error = EINVAL;
  }
  if (c.functions.error != 0) return reply(id, header, c.functions.error);
  // A reset reaches everything on the bus.
  if (header.number == kCallToggleReset) c.functions.numbers = {std::begin(kAll), std::end(kAll)};
  around_.loop.pause(id);
  waiting_.push_back(std::move(c));
  go_on();
}

void HotplugSocket::go_on() {
  while (!busy_ && !waiting_.empty()) {
    const Call c = std::move(waiting_.front());
    waiting_.pop_front();
    for (const u32 f : c.functions.numbers)
      if (functions_[f] != nullptr) functions_[f]->remove();
    const auto answer = [this, id = c.id, header = c.header](int error) {
      reply(id, header, error);
      around_.loop.resume(id);
    };
    if (c.header.number == kCallRemove) {
      answer(0);
      continue;
    }
    busy_ = true;
    rescan([this, answer](int error) {
      busy_ = false;
      answer(error);
      go_on();
    });
  }
}

void HotplugSocket::rescan(std::function<void(int)> done) {
  struct Missing {
    u32 function = 0;
    std::string path;
    BoundFile bound = {};
    std::string error = "there is no memory";
  };
  auto missing = std::make_shared<std::vector<Missing>>();
  for (u32 f = 0; f < kFunctions; ++f)
    if (functions_[f] != nullptr && !functions_[f]->is_there())
      missing->push_back({f, functions_[f]->path()});
  // Whoever has locked the folder is waited for.
  around_.loop.run(
      [missing] {
        for (Missing& m : *missing) try {
            m.bound = bind_at(m.path);
            m.error.clear();
          } catch (const Error& e) {
            m.error = e.what();
          }
      },
      [this, missing, done = std::move(done)] {
        int error = 0;
        for (Missing& m : *missing) {
          if (m.error.empty()) {
            functions_[m.function]->open(std::move(m.bound));
            continue;
          }
          error = EIO;
          if (around_.notice) around_.notice(fmt::format("rescan: {}", m.error));
        }
        done(error);
      });
}

}  // namespace doorbell::qdma::slash
