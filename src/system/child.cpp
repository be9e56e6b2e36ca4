// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "system/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "system/clock.hpp"

namespace doorbell {

namespace {

constexpr double kEndLimitS = 5;

/// The child's work before it is the other program: no memory is allocated, because another thread of the
/// parent may have held the allocator. Returns the error of what failed.
int become(const char* file, char* const argv[], int output, int errors, std::span<const int> give,
           pid_t parent, int network_namespace) {
  (void)setpgid(0, 0);
  (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() != parent) _exit(128 + SIGTERM);  // it ended before that call
  if (network_namespace >= 0 && setns(network_namespace, CLONE_NEWNET) != 0) return errno;
  const int none = open("/dev/null", O_RDONLY);
  if (none < 0 || dup2(none, 0) < 0 || dup2(output, 1) < 0 || dup2(errors, 2) < 0) return errno;
  if (none != 0) close(none);
  for (const int fd : give)
    if (fcntl(fd, F_SETFD, 0) < 0) return errno;
  execvp(file, argv);
  return errno;
}

}  // namespace

Child::Child(const std::vector<std::string>& arguments, std::span<const int> give, const std::string& file,
             int network_namespace)
    : output_(memfd_create("child-output", MFD_CLOEXEC)), errors_(memfd_create("child-errors", MFD_CLOEXEC)) {
  // Its writing end closes when the other program begins.
  std::array<int, 2> failure{-1, -1};
  if (output_.get() < 0 || errors_.get() < 0 || pipe2(failure.data(), O_CLOEXEC) != 0)
    throw std::system_error(errno, std::generic_category());
  const Descriptor told(failure[0]);
  Descriptor tells(failure[1]);
  std::vector<char*> argv;
  for (const std::string& a : arguments) argv.push_back(const_cast<char*>(a.c_str()));
  argv.push_back(nullptr);
  const char* const started = file.empty() ? argv[0] : file.c_str();
  const pid_t parent = getpid();
  pid_ = fork();
  if (pid_ == 0) {
    const int error =
        become(started, argv.data(), output_.get(), errors_.get(), give, parent, network_namespace);
    (void)!write(tells.get(), &error, sizeof error);
    _exit(127);
  }
  if (pid_ < 0) throw std::system_error(errno, std::generic_category());
  (void)setpgid(pid_, pid_);  // whichever of the two comes first
  tells.reset();
  int failed = 0;
  ssize_t n = 0;
  while ((n = read(told.get(), &failed, sizeof failed)) < 0 && errno == EINTR) continue;
  if (n == sizeof failed) {
    while (waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) continue;
    throw std::system_error(failed, std::generic_category());
  }
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
