// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The processes that a test has started and not got rid of.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace doorbell::test {

/// Fields of /proc/PID/stat: parent, process group, state; {0, 0, 0} once there is no such process.
struct ProcessState {
  pid_t parent = 0;
  pid_t group = 0;
  char state = 0;
};
inline ProcessState state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text{std::istreambuf_iterator<char>(file), {}};
  ProcessState s;
  if (const std::size_t name_end = text.rfind(')'); name_end != std::string::npos) {
    std::istringstream rest(text.substr(name_end + 1));
    rest >> s.state >> s.parent >> s.group;
  }
  return s;
}

/// Processes for which `match(ProcessState)` holds, zombies included.
template <class Match>
std::vector<pid_t> processes(Match match) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename().string();
    pid_t pid = 0;
    const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
    if (bad == std::errc{} && end == name.data() + name.size() && match(state_of(pid))) found.push_back(pid);
  }
  return found;
}

/// Children of this process, zombies included.
inline std::vector<pid_t> children() {
  return processes([](const ProcessState& s) { return s.parent == getpid(); });
}

/// How many descriptors this process has open.
inline std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

}  // namespace doorbell::test
