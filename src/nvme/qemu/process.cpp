// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/qemu/process.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>
#include <vector>

#include "report/layout.hpp"
#include "system/clock.hpp"
#include "system/sysfs.hpp"

namespace doorbell::nvme {

namespace {

constexpr double kHelpLimitS = 5;
constexpr double kEndingS = 0.2;

std::string binary_of(const QemuConfig& c) {
  if (!c.binary.empty()) return c.binary;
  const char* named = std::getenv("DOORBELL_QEMU");
  return named != nullptr && *named != '\0' ? named : "qemu-system-x86_64";
}

bool is_block_device(const std::string& path) {
  struct stat st {};
  return stat(path.c_str(), &st) == 0 && S_ISBLK(st.st_mode);
}

/// Throws for what is no drive, before QEMU finds its own words for it. A block device is claimed.
Descriptor check_drive(const QemuConfig& c) {
  const std::string& path = c.drive;
  const std::string subject = fmt::format("{}: drive={}", c.title, path);
  const std::string hint = "give a raw image or a block device that may be read and written";
  struct stat st {};
  if (stat(path.c_str(), &st) != 0 || access(path.c_str(), R_OK | W_OK) != 0)
    throw Error(subject, reason(errno), hint);
  if (!S_ISREG(st.st_mode) && !S_ISBLK(st.st_mode))
    throw Error(subject, "it is neither a file nor a block device", hint);
  // QEMU opens it for writing. The kernel grants a device only while nothing is mounted on it or built upon
  // it.
  Descriptor claim(open(path.c_str(), O_RDWR | O_CLOEXEC | (S_ISBLK(st.st_mode) ? O_EXCL : 0)));
  if (claim.get() < 0) throw Error(subject, errno == EBUSY ? "it is mounted or in use" : reason(errno), hint);
  return claim;
}

std::string device_options(const QemuConfig& c) {
  return fmt::format(
      "nvme,id=nvme0,serial=doorbell,drive=d0,max_ioqpairs={},mdts={},logical_block_size={},physical_block_size={}",
      c.queues, c.mdts, c.lba_bytes, c.lba_bytes);
}

/// The block nodes below the device; the uppermost is called d0.
std::vector<std::string> drive_options(const QemuConfig& c, int image) {
  const std::string top = c.iops > 0 || c.has_bad_sector ? "base" : "d0";
  std::vector<std::string> a;
  switch (c.media) {
    case QemuConfig::Media::null:
      a = {"-blockdev",
           fmt::format("driver=null-co,node-name={},size={},read-zeroes=off", top, c.capacity_bytes)};
      break;
    case QemuConfig::Media::ram:
      // One worker thread: for memory it is faster than the usual pool, whose threads wake each other.
      a = {"-object",
           "main-loop,id=ml,thread-pool-min=1,thread-pool-max=1",
           "-add-fd",
           fmt::format("fd={},set=1", image),
           "-blockdev",
           fmt::format("driver=file,node-name={},filename=/dev/fdset/1,cache.no-flush=on,locking=off", top)};
      break;
    case QemuConfig::Media::drive:
      a = {"-blockdev", fmt::format("driver={},node-name={},filename={}",
                                    is_block_device(c.drive) ? "host_device" : "file", top, c.drive)};
      break;
  }
  if (c.has_bad_sector) {
    const std::string name = c.iops > 0 ? "bad" : "d0";
    a.insert(a.end(),
             {"-blockdev", fmt::format("driver=blkdebug,node-name={},image={},inject-error.0.event=none,"
                                       "inject-error.0.iotype=read,inject-error.0.errno=5,"
                                       "inject-error.0.sector={},inject-error.0.once=off",
                                       name, top, c.bad_sector)});
  }
  if (c.iops > 0)
    a.insert(a.end(), {"-object", fmt::format("throttle-group,id=limit,x-iops-total={}", c.iops), "-blockdev",
                       fmt::format("driver=throttle,node-name=d0,throttle-group=limit,file={}",
                                   c.has_bad_sector ? "bad" : top)});
  return a;
}

[[noreturn]] void absent(const std::string& title, const std::string& why) {
  throw Error(title, why, "install QEMU (Debian: qemu-system-x86), or name one in DOORBELL_QEMU",
              ExitCode::absent);
}

}  // namespace

BackendStatus qemu_status() {
  const std::string binary = binary_of({});
  struct Question {
    const char *option, *about, *wanted;
  };
  // The device too: a QEMU may have the machine and be built without NVMe.
  for (const auto& [option, about, wanted] :
       {Question{"-machine", "help", "x-remote"}, Question{"-object", "help", "x-remote-object"},
        Question{"-device", "nvme,help", "max_ioqpairs"}}) {
    try {
      Child qemu({binary, option, about});
      if (!qemu.wait(kHelpLimitS)) qemu.stop(SIGKILL);
      if (qemu.output().find(wanted) == std::string::npos)
        return {false, fmt::format("{} {} {} does not list {}", binary, option, about, wanted)};
    } catch (const std::system_error&) {
      return {false, fmt::format("{} is not installed", binary)};
    }
  }
  return {true, fmt::format("an NVMe controller hosted by a process of {}", binary)};
}

namespace {

enum class Answer { came, ended, late };

/// Sends a command on the monitor and waits for its answer. Events and late answers are
/// passed over.
Answer ask(int monitor, const std::string& command, double limit_s) {
  const u64 deadline = wall_ns() + static_cast<u64>(limit_s * 1e9);
  std::array<char, 512> part{};
  while (wall_ns() < deadline && recv(monitor, part.data(), part.size(), MSG_DONTWAIT) > 0) continue;
  const std::string line = fmt::format("{{\"execute\":\"{}\"}}\n", command);
  if (send(monitor, line.data(), line.size(), MSG_NOSIGNAL) < 0) return Answer::ended;
  std::string said;
  while (said.find("\"return\"") == std::string::npos) {
    const u64 now = wall_ns();
    if (now >= deadline) return Answer::late;
    pollfd p = {monitor, POLLIN, 0};
    if (poll(&p, 1, static_cast<int>((deadline - now) / 1'000'000) + 1) <= 0) continue;
    const ssize_t n = recv(monitor, part.data(), part.size(), 0);
    if (n <= 0) return Answer::ended;
    said.append(part.data(), static_cast<std::size_t>(n));
  }
  return Answer::came;
}

std::pair<Descriptor, Descriptor> socket_pair(const std::string& title) {
  std::array<int, 2> s{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, s.data()) != 0)
    throw Error(title + ": a socket", reason(errno));
  return {Descriptor(s[0]), Descriptor(s[1])};
}

}  // namespace

QemuProcess::QemuProcess(const QemuConfig& c, double start_limit_s) {
  if (c.media == QemuConfig::Media::drive) {
    claim_ = check_drive(c);
    if (!is_block_device(c.drive))
      lock_ = FileLock(claim_.get(), true, fmt::format("{}: drive={}", c.title, c.drive));
  }
  auto [ours, its] = socket_pair(c.title);
  auto [monitor, its_monitor] = socket_pair(c.title);
  const Descriptor image(c.media == QemuConfig::Media::ram ? memfd_create("doorbell-media", MFD_CLOEXEC)
                                                           : -1);
  if (c.media == QemuConfig::Media::ram && ftruncate(image.get(), static_cast<off_t>(c.capacity_bytes)) != 0)
    throw Error(c.title + ": memory", reason(errno));

  std::vector<std::string> a = {binary_of(c), "-nodefaults", "-no-user-config"};
  a.insert(a.end(), {"-display", "none", "-serial", "none", "-machine", "x-remote"});
  a.insert(a.end(), {"-chardev", fmt::format("socket,id=m,fd={}", its_monitor.get())});
  a.insert(a.end(), {"-mon", "chardev=m,mode=control"});
  for (std::string& s : drive_options(c, image.get())) a.push_back(std::move(s));
  a.insert(a.end(), {"-device", device_options(c), "-object",
                     fmt::format("x-remote-object,id=r0,devid=nvme0,fd={}", its.get())});
  std::vector<int> give = {its.get(), its_monitor.get()};
  if (image.get() >= 0) give.push_back(image.get());
  try {
    child_.emplace(a, give);
  } catch (const std::system_error& e) {
    absent(c.title, fmt::format("{} cannot be started: {}", a[0], e.code().message()));
  }
  socket_ = std::move(ours);
  // Only QEMU holds its ends from here on, so that its end is seen.
  its.reset();
  its_monitor.reset();
  monitor_ = std::move(monitor);
  // QEMU takes messages to the device before its main loop runs, between two steps of its start, and resets
  // the device after them: what they set would be lost. Only the main loop answers on the monitor.
  switch (ask(monitor_.get(), "qmp_capabilities", start_limit_s)) {
    case Answer::came:
      return;
    case Answer::late:
      child_->stop(SIGKILL);
      throw Error(c.title, fmt::format("QEMU did not start in {} s", start_limit_s));
    case Answer::ended:
      break;
  }
  (void)child_->wait(kHelpLimitS);
  refuse_ended(c.title);
}

void QemuProcess::refuse_ended(const std::string& subject) {
  const std::string said = last_words();
  throw Error(subject, said.empty() ? "QEMU ended without a word" : "QEMU: " + said,
              "doorbell backends shows whether this QEMU can do it");
}

void QemuProcess::await_round(double limit_s) const {
  (void)ask(monitor_.get(), "query-status", limit_s);
}

int QemuProcess::take_socket() {
  return socket_.release();
}

std::string QemuProcess::last_words() {
  const std::string text = child_->errors();
  std::string last;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    // The remote machine has no MSI-X: QEMU says so at every start, and it is no error.
    if (!line.empty() && line.find("MSI-X is not supported") == std::string::npos)
      last = report::printable(line);
    at = end + 1;
  }
  // The socket closes a little before the process is gone.
  if (last.empty() && child_->wait(kEndingS) && child_->exit_code() > 128)
    return fmt::format("ended by signal {} ({})", child_->exit_code() - 128,
                       strsignal(child_->exit_code() - 128));
  return last;
}

}  // namespace doorbell::nvme
