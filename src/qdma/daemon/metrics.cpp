// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/daemon/metrics.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>

#include "export/metric_text.hpp"
#include "system/sysfs.hpp"

namespace doorbell::qdma::daemon {

namespace {

/// Each name is a time series of its own, so that there are as many as these.
constexpr int kNamed[] = {EACCES, EAGAIN, EBADF,      EBADMSG, EBUSY,  ECANCELED, EDQUOT,
                          EFAULT, EINVAL, EIO,        EMFILE,  ENODEV, ENOENT,    ENOMEM,
                          ENOTTY, ENXIO,  EOPNOTSUPP, EPERM,   ESTALE, ETIMEDOUT, E2BIG};

}  // namespace

std::string error_name(int error) {
  if (error == 0) return "ok";
  return std::ranges::find(kNamed, error) != std::end(kNamed) ? errno_name(error) : "other";
}

std::string prometheus_text(const Metrics& m, const Gauges& now) {
  exporting::MetricText t("doorbelld_");
  t.one("connections", "gauge", "Clients that are connected.", now.held.connections);
  t.one("users", "gauge", "Users that hold anything.", now.users);
  t.one("queue_pairs", "gauge", "Queue pairs on the card that clients hold or that are being deleted.",
        now.held.queue_pairs);
  t.one("queue_pair_ids", "gauge", "Ids of queue pairs that clients know.", now.queue_pairs);
  t.one("buffers", "gauge", "Buffers in card memory that clients hold.", now.held.buffers);
  t.one("card_memory_bytes", "gauge", "Card memory that is reserved for buffers.", now.card_memory_used);
  t.one("host_buffer_bytes", "gauge", "Bytes of host buffers that processes of users have.",
        now.held.host_bytes);
  t.one("host_buffers", "gauge", "The number of these.", now.held.host_buffers);
  t.one("sent_descriptors", "gauge", "Descriptors of buffers that are held for transfers.",
        now.held.sent_files);
  t.one("descriptors", "gauge", "Transfer descriptors in force.", now.descriptors);
  t.one("descriptors_revoked", "gauge", "Revoked transfer descriptors that are still open.",
        now.revoked_descriptors);
  t.one("calls_waiting", "gauge", "Calls of the card that wait for their turn.", now.waiting);
  t.one("calls_running", "gauge", "Calls of the card in progress.", now.running);
  t.one("files_closing", "gauge", "Files and sockets of clients that are not closed yet.", now.closing);
  t.one("card_gone", "gauge", "1 while the card has gone.", now.card_gone ? 1 : 0);

  t.one("connections_accepted_total", "counter", "Clients that have been accepted.", m.accepted);
  t.family("connections_refused_total", "counter", "Clients that have been refused, by reason.");
  for (const auto& [reason, count] : m.refused_connections) t.sample(count, {{"reason", reason}});
  t.family("requests_total", "counter", "Requests by opcode and return code.");
  for (const auto& [key, count] : m.requests) t.sample(count, {{"opcode", key.first}, {"code", key.second}});
  t.one("malformed_messages_total", "counter", "Messages that are no request.", m.malformed);
  t.one("log_entries_lost_total", "counter", "Entries of the log that were not written.", now.log_lost);
  t.family("transfers_total", "counter", "Transfers by outcome.");
  for (const auto& [outcome, count] : m.transfers) t.sample(count, {{"outcome", outcome}});
  t.family("host_buffers_total", "counter", "Host buffers asked for on transfer descriptors, by outcome.");
  for (const auto& [outcome, count] : m.host_buffers) t.sample(count, {{"outcome", outcome}});
  t.family("transfer_bytes_total", "counter", "Bytes moved by transfers, by direction.");
  t.sample(m.bytes_to_card, {{"direction", "host_to_card"}});
  t.sample(m.bytes_from_card, {{"direction", "card_to_host"}});
  t.one("queue_pairs_retired_total", "counter", "Queue pairs that have been stopped and deleted.", m.retired);
  t.one("retire_failures_total", "counter",
        "Queue pairs that the card did not delete; their card memory stays reserved.", m.retire_failures);
  return t.take();
}

}  // namespace doorbell::qdma::daemon
