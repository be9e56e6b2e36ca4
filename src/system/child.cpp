// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "system/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "system/clock.hpp"

extern char** environ;

namespace doorbell {

namespace {
constexpr double kEndLimitS = 5;
}

Child::Child(const std::vector<std::string>& arguments, std::span<const int> give, const std::string& file)
    : output_(memfd_create("child-output", MFD_CLOEXEC)), errors_(memfd_create("child-errors", MFD_CLOEXEC)) {
  if (output_.get() < 0 || errors_.get() < 0) throw std::system_error(errno, std::generic_category());
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output_.get(), 1);
  posix_spawn_file_actions_adddup2(&actions, errors_.get(), 2);
  // Onto itself: that alone takes the close-on-exec mark off in the child.
  for (const int fd : give) posix_spawn_file_actions_adddup2(&actions, fd, fd);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  const char* started = file.empty() ? argv[0] : file.c_str();
  const int failed = posix_spawnp(&pid_, started, &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (failed != 0) throw std::system_error(failed, std::generic_category());
  // Without it (a kernel before 5.3) wait() naps.
  end_ = Descriptor(static_cast<int>(syscall(SYS_pidfd_open, pid_, 0)));
}

Child::~Child() {
  if (wait(kEndLimitS)) return;
  stop(SIGKILL);
  // One that sleeps in the kernel for ever is left to it.
  (void)wait(kEndLimitS);
}

bool Child::ended() {
  if (ended_) return true;
  int status = 0;
  const pid_t found = waitpid(pid_, &status, WNOHANG);
  // With SIGCHLD ignored the kernel keeps no status: a child that is no more is not there either.
  if (found == 0 || (found < 0 && errno != ECHILD)) return false;
  ended_ = true;
  if (found < 0) return true;
  exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return true;
}

bool Child::wait(double limit_s) {
  const u64 deadline = wall_ns() + static_cast<u64>(limit_s * 1e9);
  while (!ended()) {
    const u64 now = wall_ns();
    if (now > deadline) return false;
    nap(deadline - now);
  }
  return true;
}

void Child::nap(u64 limit_ns) const {
  if (end_.get() < 0) {
    usleep(500);
    return;
  }
  // Asleep until its end: what the child measures needs the processor.
  pollfd end = {.fd = end_.get(), .events = POLLIN, .revents = 0};
  constexpr u64 kLongestMs = 60'000;
  (void)poll(&end, 1, static_cast<int>(std::min(limit_ns / 1'000'000 + 1, kLongestMs)));
}

void Child::stop(int signal) const {
  if (!ended_) kill(-pid_, signal);
}

std::string Child::text_of(const Descriptor& file) {
  struct stat st {};
  if (fstat(file.get(), &st) != 0) return {};
  std::string text(static_cast<std::size_t>(st.st_size), '\0');
  const ssize_t n = pread(file.get(), text.data(), text.size(), 0);
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  return text;
}

}  // namespace doorbell
