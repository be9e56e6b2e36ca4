// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/run_program.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "system/sysfs.hpp"

namespace doorbell::cli {

namespace {

/// The signals that another process sends to have the program do something, and that of its end.
sigset_t passed_on() {
  sigset_t set;
  sigemptyset(&set);
  for (const int s : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGCHLD}) sigaddset(&set, s);
  return set;
}

std::array<Descriptor, 2> make_pipe() {
  std::array<int, 2> ends{-1, -1};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) throw Error("pipe", reason(errno));
  return {Descriptor(ends[0]), Descriptor(ends[1])};
}

/// An Error on its way to another process: its code, and its texts, each with a zero behind it.
std::string packed(const Error& e) {
  const std::string_view why = std::string_view(e.what()).substr(e.subject().size() + 2);
  std::string out(1, static_cast<char>(e.code()));
  for (const std::string_view part : {std::string_view(e.subject()), why, std::string_view(e.hint())})
    out.append(part).push_back('\0');
  return out;
}

[[noreturn]] void throw_packed(std::string_view from) {
  const auto code = static_cast<ExitCode>(static_cast<unsigned char>(from.front()));
  from.remove_prefix(1);
  std::array<std::string, 3> parts;
  for (std::string& part : parts) {
    part = from.substr(0, from.find('\0'));
    from.remove_prefix(std::min(from.size(), part.size() + 1));
  }
  throw Error(parts[0], parts[1], parts[2], code);
}

std::string read_all(int fd) {
  std::string out;
  std::array<char, 4096> space{};
  for (;;) {
    const ssize_t n = read(fd, space.data(), space.size());
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return out;
    out.append(space.data(), static_cast<std::size_t>(n));
  }
}

}  // namespace

Command program_command(const std::string& name, const std::string& summary) {
  Command c;
  c.name = "run-" + name;
  c.summary = summary;
  c.usage = c.name + " [OPTION]... -- PROGRAM [ARGUMENT]...";
  c.takes_program = true;
  c.stoppable = false;
  c.group = "This machine";
  c.exits = {{0, "the program's, as all codes but these"},
             {1, "the program could not be started: a bad option, no such program, no permission"},
             {77, "what the program needs is not allowed on this machine"},
             {128, "and the number of a signal: it has ended the program"}};
  return c;
}

const std::vector<std::string>& program_words(const Context& context) {
  if (!context.rest)
    throw Error("PROGRAM", "it is missing", "its name and its arguments stand behind a '--'");
  return *context.rest;
}

std::string in_front_of(const char* variable, const std::string& text) {
  const char* const had = std::getenv(variable);
  return had != nullptr && *had != '\0' ? text + ":" + had : text;
}

void become_program(const std::vector<std::string>& words) {
  std::vector<char*> argv;
  for (const std::string& w : words) argv.push_back(const_cast<char*>(w.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  throw Error(words[0], reason(errno));
}

ProgramRun::ProgramRun(const std::vector<std::string>& words, const std::function<void()>& prepare)
    : parent_(getpid()) {
  auto [go, tells] = make_pipe();
  auto [hears, failure] = make_pipe();
  // Ignored, it would not be reported.
  (void)::signal(SIGCHLD, SIG_DFL);
  const sigset_t mine = passed_on();
  sigprocmask(SIG_BLOCK, &mine, &before_);
  pid_ = fork();
  if (pid_ == 0) {
    tells.reset();
    become(words, prepare, go.get(), failure.get());
  }
  if (pid_ < 0) {
    const int error = errno;
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    throw Error("a process for the program", reason(error));
  }
  go_ = std::move(tells);
  failed_ = std::move(hears);
}

void ProgramRun::become(const std::vector<std::string>& words, const std::function<void()>& prepare, int go,
                        int failure) const {
  const auto fail = [failure](const Error& e) {
    const std::string text = packed(e);
    (void)!write(failure, text.data(), text.size());
    _exit(static_cast<int>(ExitCode::usage));
  };
  char byte = 0;
  ssize_t n = 0;
  while ((n = read(go, &byte, 1)) < 0 && errno == EINTR) continue;
  if (n != 1) _exit(0);
  try {
    prepare();
    // Later, because new credentials undo it.
    (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent_) _exit(128 + SIGTERM);  // it ended before that call
    // This process ignores it; what is ignored stays so in the program.
    (void)::signal(SIGXFSZ, SIG_DFL);
    sigprocmask(SIG_SETMASK, &before_, nullptr);
    become_program(words);
  } catch (const Error& e) {
    fail(e);
  } catch (const std::exception& e) {
    fail(Error(words[0], e.what()));
  }
  _exit(static_cast<int>(ExitCode::usage));
}

ProgramRun::~ProgramRun() {
  go_.reset();
  if (code_ < 0) (void)wait();
  sigprocmask(SIG_SETMASK, &before_, nullptr);
}

void ProgramRun::begin() {
  (void)!write(go_.get(), "", 1);
  go_.reset();
  const std::string failure = read_all(failed_.get());
  if (failure.empty()) return;
  (void)wait();
  throw_packed(failure);
}

int ProgramRun::wait() {
  const sigset_t mine = passed_on();
  for (;;) {
    int status = 0;
    const pid_t ended = waitpid(pid_, &status, WNOHANG);
    if (ended == pid_) code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
    else if (ended < 0 && errno != EINTR) code_ = static_cast<int>(ExitCode::usage);
    if (code_ >= 0) return code_;
    siginfo_t info{};
    const int signal = sigwaitinfo(&mine, &info);
    // A terminal's has reached the program, too: it is in the same process group.
    if (signal > 0 && signal != SIGCHLD && info.si_code != SI_KERNEL) kill(pid_, signal);
  }
}

}  // namespace doorbell::cli
