// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A doorbelld process over the software card, and what it reports of itself.
#pragma once

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "eventually.hpp"
#include "qdma/daemon/client.hpp"
#include "system/child.hpp"
#include "system/sysfs.hpp"

namespace doorbell::qdma::daemon {

class DaemonProcess {
 public:
  explicit DaemonProcess(std::vector<std::string> more = {}, const std::string& card = "model") {
    char folder[] = "/tmp/doorbelld-test-XXXXXX";
    folder_ = mkdtemp(folder);
    std::filesystem::permissions(folder_, std::filesystem::perms(0755));  // other users are clients too
    const std::string notify = folder_ + "/notify";
    notify_ = Descriptor(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    notify.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::bind(notify_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    setenv("NOTIFY_SOCKET", notify.c_str(), 1);
    std::vector<std::string> words = {DOORBELLD,   "--card",       card,    "--socket", path(),
                                      "--metrics", metrics_path(), "--log", "stderr"};
    if (std::ranges::find(more, "--socket-mode") == more.end())
      words.insert(words.end(), {"--socket-mode", "0666"});  // other users are clients too
    words.insert(words.end(), more.begin(), more.end());
    child_ = std::make_unique<Child>(words);
    unsetenv("NOTIFY_SOCKET");
    ready_ = wait_for("READY=1");
  }
  ~DaemonProcess() {
    if (!child_->ended()) child_->stop(SIGTERM);
    child_.reset();
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  [[nodiscard]] std::string path() const { return folder_ + "/card.sock"; }
  [[nodiscard]] std::string metrics_path() const { return folder_ + "/metrics.sock"; }
  [[nodiscard]] bool ready() const { return ready_; }
  [[nodiscard]] Child& child() { return *child_; }

  /// Waits until the daemon has told the service manager this.
  bool wait_for(const std::string& word) {
    return doorbell::test::eventually([&] {
             char text[512];
             const ssize_t n = ::recv(notify_.get(), text, sizeof text, MSG_DONTWAIT);
             if (n > 0) told_.append(text, static_cast<std::size_t>(n)) += '\n';
             const auto at = told_.find(word);
             if (at != std::string::npos) told_.erase(0, at + word.size());
             return at != std::string::npos || child_->ended();
           }) &&
           !child_->ended();
  }

  /// The answer that an HTTP client gets to a request line.
  [[nodiscard]] std::string http(const std::string& line = "GET /metrics HTTP/1.0") const {
    const Descriptor fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    metrics_path().copy(address.sun_path, sizeof address.sun_path - 1);
    if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) return {};
    const std::string request = line + "\r\n\r\n";
    if (::send(fd.get(), request.data(), request.size(), MSG_NOSIGNAL) < 0) return {};
    std::string text;
    char piece[4096];
    for (ssize_t n = 0; (n = ::read(fd.get(), piece, sizeof piece)) > 0;)
      text.append(piece, static_cast<std::size_t>(n));
    return text;
  }
  /// The value of a metric; its labels are part of the name. -1: not there.
  [[nodiscard]] double metric(const std::string& name) const {
    const std::string text = http(), key = "\ndoorbelld_" + name + " ";
    const auto at = text.find(key);
    return at == std::string::npos ? -1 : std::strtod(text.c_str() + at + key.size(), nullptr);
  }
  /// Files that the process has open.
  [[nodiscard]] std::size_t open_files() const {
    return names_in("/proc/" + std::to_string(child_->pid()) + "/fd").size();
  }
  /// Bytes of anonymous memory: what it has allocated, and the software card's memory that was written.
  [[nodiscard]] u64 memory_bytes() const {
    std::ifstream status("/proc/" + std::to_string(child_->pid()) + "/status");
    for (std::string line; std::getline(status, line);)
      if (line.starts_with("RssAnon:")) return std::strtoull(line.c_str() + 8, nullptr, 10) * 1024;
    return 0;
  }
  /// Nobody holds anything any more.
  [[nodiscard]] bool holds_nothing() const {
    for (const char* name :
         {"connections", "queue_pairs", "queue_pair_ids", "buffers", "card_memory_bytes", "host_buffer_bytes",
          "descriptors", "descriptors_revoked", "calls_waiting", "calls_running"})
      if (metric(name) != 0) return false;
    return true;
  }
  /// Ends it by SIGTERM. Returns its exit code.
  int end() {
    child_->stop(SIGTERM);
    EXPECT_TRUE(child_->wait(doorbell::test::kWaitLimitS)) << child_->errors();
    return child_->exit_code();
  }

 private:
  std::string folder_, told_;
  Descriptor notify_;
  std::unique_ptr<Child> child_;
  bool ready_ = false;
};

}  // namespace doorbell::qdma::daemon
