// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/daemon/accounts.hpp"

#include <fmt/format.h>

namespace doorbell::qdma::daemon {

Holdings& Holdings::operator+=(const Holdings& more) {
  connections += more.connections;
  queue_pairs += more.queue_pairs;
  buffers += more.buffers;
  descriptors += more.descriptors;
  card_bytes += more.card_bytes;
  host_buffers += more.host_buffers;
  host_bytes += more.host_bytes;
  sent_files += more.sent_files;
  return *this;
}

Holdings& Holdings::operator-=(const Holdings& less) {
  connections -= less.connections;
  queue_pairs -= less.queue_pairs;
  buffers -= less.buffers;
  descriptors -= less.descriptors;
  card_bytes -= less.card_bytes;
  host_buffers -= less.host_buffers;
  host_bytes -= less.host_bytes;
  sent_files -= less.sent_files;
  return *this;
}

Accounts::Charge Accounts::charge(uid_t user, const Holdings& more, std::string& over) {
  const auto known = users_.find(user);
  const Holdings held = known == users_.end() ? Holdings{} : known->second.held;
  const struct {
    const char* what;
    u64 held, more, limit;
  } checks[] = {{"connections", held.connections, more.connections, quotas_.connections},
                {"queue pairs", held.queue_pairs, more.queue_pairs, quotas_.queue_pairs},
                {"buffers", held.buffers, more.buffers, quotas_.buffers},
                {"transfer descriptors", held.descriptors, more.descriptors, quotas_.descriptors},
                {"bytes of card memory", held.card_bytes, more.card_bytes, quotas_.card_bytes},
                {"host buffers", held.host_buffers, more.host_buffers, quotas_.host_buffers},
                {"bytes of host buffers", held.host_bytes, more.host_bytes, quotas_.host_bytes},
                {"descriptors sent for transfers", held.sent_files, more.sent_files, quotas_.sent_files}};
  for (const auto& c : checks) {
    if (c.more == 0 || (c.held <= c.limit && c.more <= c.limit - c.held)) continue;
    over =
        fmt::format("user {} holds {} {} of {}, and asks for {} more", user, c.held, c.what, c.limit, c.more);
    return nullptr;
  }
  Account& account = users_[user];
  account.held += more;
  ++account.charges;
  total_ += more;
  return {new Holdings(more), [this, user](const Holdings* less) {
            give_back(user, *less);
            delete less;
          }};
}

void Accounts::give_back(uid_t user, const Holdings& less) {
  total_ -= less;
  const auto known = users_.find(user);
  known->second.held -= less;
  if (--known->second.charges == 0) users_.erase(known);
}

}  // namespace doorbell::qdma::daemon
