// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The options and texts of the program `doorbelld`, which is a binary of its own (doorbelld/main.cpp).
#include "qdma/cli/doorbelld.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <charconv>

#include "model/config.hpp"
#include "qdma/daemon/process/process.hpp"

namespace doorbell::cli {

namespace {

namespace daemon = qdma::daemon;

unsigned mode_of(const std::string& text) {
  unsigned mode = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), mode, 8);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || mode > 0777)
    throw Error("--socket-mode", fmt::format("'{}' is no octal number in 0..0777", text));
  return mode;
}

}  // namespace

Command doorbelld_texts() {
  Command c;
  c.name = "doorbelld";
  c.summary = "share a QDMA card among clients";
  c.manual_section = 8;
  c.standalone = true;
  c.description = {
      "doorbelld owns one QDMA card and hands out card memory, queue pairs and transfer descriptors to its "
      "clients. Whatever a client holds is taken back when its connection ends. A transfer descriptor is a "
      "socket of the daemon: it reaches the card memory that it was handed out for and nothing else, and it can "
      "be revoked. The data of transfers does not pass through the daemon.",
      "Clients connect to a unix socket of sequential packets and speak the protocol of upstream's vrtd, as "
      "far as it concerns QDMA, with a hello that tells version, quotas and exact error numbers. The service "
      "manager may hand over the socket.",
      "The roles file has sections [role:NAME] with rights = ..., [user:NAME], [user:*] and [group:NAME] with "
      "roles = .... Rights are query-devices, qdma, buffer and raw-mem-access; bar-access, design-write, "
      "cfgmem-program, clock and pcie-hotplug are read and have no effect. Without a file, root and the daemon's "
      "own user have all rights, and others query-devices and buffer. SIGHUP reads the file again.",
      "SIGTERM and SIGINT end the daemon: clients are disconnected, queue pairs stopped and deleted.",
  };
  c.options.group("Serving")
      .add({.name = "card",
            .default_text = "kernel:/dev/slash_qdma_ctl0",
            .help = "the card: model[:KEY=VALUE,...], server:PATH or kernel:/dev/slash_qdma_ctlN"})
      .add({.name = "socket",
            .kind = Kind::path,
            .default_text = qdma::daemon::kDefaultSocket,
            .help = "where clients connect; not used if the service manager hands over a socket",
            .into = &daemon::DaemonOptions::socket})
      .add({.name = "socket-mode",
            .metavar = "OCTAL",
            .default_text = "0660",
            .help = "permissions of the socket, octal; 0666 lets every user of this machine connect",
            .into = {mode_of, &daemon::DaemonOptions::socket_mode}})
      .add({.name = "socket-group",
            .metavar = "NAME",
            .default_text = "doorbell",
            .help = "the group of the socket; without a group doorbell it stays the daemon's",
            .into = &daemon::DaemonOptions::socket_group})
      .add({.name = "roles",
            .kind = Kind::path,
            .help = "the file of roles, users and groups",
            .into = &daemon::DaemonOptions::roles_file})
      .add({.name = "ring-size-index",
            .default_text = "15",
            .min = 0,
            .max = qdma::kMaxRingIndex,
            .help = "ring size of the queue pairs of buffers",
            .into = &daemon::ServiceOptions::ring_index})
      .add({.name = "threads",
            .kind = Kind::integer,
            .default_text = "64",
            .min = 16,
            .max = 1024,
            .help = "calls of the card at a time; 8 of them are kept for what is no transfer"})
      .add({.name = "transfers-per-client",
            .default_text = "4",
            .min = 1,
            .max = 512,
            .help = "transfers of one client that the card has at a time; others wait for their turn",
            .into = &daemon::FairQueueLimits::transfers_per_client})
      .add({.name = "transfer-limit",
            .kind = Kind::seconds,
            .default_text = "10",
            .min = 0.001,
            .max = 3600,
            .help = "the longest deadline of a transfer",
            .into = {model::nanoseconds, &daemon::ServiceOptions::max_transfer_ns}})
      .add({.name = "first-request-limit",
            .kind = Kind::seconds,
            .default_text = "10",
            .min = 0.001,
            .max = 3600,
            .help = "how long a client may be connected before its first request; then it is disconnected",
            .into = {model::nanoseconds, &daemon::ServiceOptions::first_request_ns}})
      .add(
          {.name = "max-clients",
           .default_text = "256",
           .min = 1,
           .max = 4096,
           .help =
               "connections of all users; an eighth is kept for root and for users with more than everybody's "
               "rights",
           .into = &daemon::ServiceOptions::max_connections})
      .group("Limits of one user")
      .add(model::whole_key("max-connections", "64", 1, 4096, "connections", &daemon::Quotas::connections))
      .add(model::whole_key("max-queue-pairs", "64", 0, qdma::kMaxQueuePairs,
                            "queue pairs, those of buffers too", &daemon::Quotas::queue_pairs))
      .add(model::whole_key("max-buffers", "64", 0, 1024, "buffers in card memory", &daemon::Quotas::buffers))
      .add(model::whole_key("max-descriptors", "128", 0, 4096, "transfer descriptors, those of buffers too",
                            &daemon::Quotas::descriptors))
      .add(model::bytes_key("max-card-memory", "16Gi", 0, {}, "card memory of all buffers",
                            &daemon::Quotas::card_bytes))
      .add(model::bytes_key(
          "max-host-buffers", "64Gi", 0, {},
          "bytes of host buffers made through connections and descriptors that are still open",
          &daemon::Quotas::host_bytes))
      .add(model::whole_key("max-host-buffer-count", "1024", 0, u64{1} << 20,
                            "the number of these host buffers", &daemon::Quotas::host_buffers))
      .add(model::whole_key("max-sent-descriptors", "1024", 1, u64{1} << 20,
                            "descriptors of buffers that came with transfers which have not ended",
                            &daemon::Quotas::sent_files))
      .group("Output")
      .add(
          {.name = "metrics",
           .metavar = "PATH|127.0.0.1:PORT",
           .help =
               "where Prometheus reads: a unix socket's path, or a port of this machine; needs libmicrohttpd",
           .into = &daemon::DaemonOptions::metrics})
      .add({.name = "log",
            .default_text = "auto",
            .choices = {"auto", "journal", "stderr"},
            .help = "auto is the journal, if this machine has one and standard error is no terminal"})
      .add({.name = "log-level",
            .default_text = "info",
            .choices = {"error", "warning", "notice", "info", "debug"},
            .help = "the least important entries that are logged"});
  c.examples = {
      {.command = "doorbelld --card model --socket /tmp/card.sock --metrics 127.0.0.1:9470",
       .text = "Share the software card.",
       .needs = Needs::other_machine},
      {.command = "systemctl enable --now doorbelld.socket",
       .text = "Start it when the first client connects.",
       .needs = Needs::device},
  };
  return c;
}

Program doorbelld_program() {
  return {.texts = doorbelld_texts()};
}

}  // namespace doorbell::cli
