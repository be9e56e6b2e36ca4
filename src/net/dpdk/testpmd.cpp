// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/dpdk/testpmd.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <linux/capability.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <system_error>

#include "net/dpdk/loader.hpp"
#include "net/dpdk/plan.hpp"
#include "net/dpdk/socket_file.hpp"
#include "net/settings.hpp"
#include "system/child.hpp"
#include "system/clock.hpp"

namespace doorbell::net::dpdk {

namespace {

constexpr const char* kProgram = "dpdk-testpmd";
constexpr const char* kInstall = "install it (Debian: dpdk-dev)";
constexpr u32 kBuffers = 16384;
constexpr u32 kMemoryMib = 1024;
/// To start, and for displays that come late on a busy machine.
constexpr double kGraceS = 20;

/// "0-3": where this thread may run.
std::string processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  std::vector<u32> all;
  if (sched_getaffinity(0, sizeof set, &set) == 0)
    for (u32 cpu = 0; cpu < CPU_SETSIZE; ++cpu)
      if (CPU_ISSET(cpu, &set)) all.push_back(cpu);
  return all.empty() ? "0" : fmt::format("{}", fmt::join(all, ","));
}

/// Lets programs that this thread starts keep what DPDK needs of an ordinary user's rights in a user
/// namespace; execve() takes them away otherwise. Root's programs have them anyway.
class KeptCapabilities {
 public:
  KeptCapabilities() {
    if (syscall(SYS_capget, &header_, before_) != 0) return;
    __user_cap_data_struct more[2] = {before_[0], before_[1]};
    for (const u32 c : kKept) more[0].inheritable |= before_[0].permitted & 1u << c;
    changed_ = syscall(SYS_capset, &header_, more) == 0;
    for (const u32 c : kKept) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, c, 0, 0);
  }
  ~KeptCapabilities() {
    if (!changed_) return;
    // A capability that is not inheritable is not ambient either.
    syscall(SYS_capset, &header_, before_);
  }
  KeptCapabilities(const KeptCapabilities&) = delete;
  KeptCapabilities& operator=(const KeptCapabilities&) = delete;

 private:
  static constexpr u32 kKept[] = {CAP_NET_ADMIN, CAP_NET_RAW};
  __user_cap_header_struct header_ = {.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  __user_cap_data_struct before_[2] = {};
  bool changed_ = false;
};

class Testpmd {
 public:
  /// `network_namespace`: of the device, as Child takes it.
  Testpmd(const Plan& plan, const DeviceSpec& device, const std::string& mode, std::optional<u32> core,
          u32 burst, const std::string& title, int network_namespace) {
    const std::string where = core ? fmt::format("{}", *core) : processors();
    // The first lcore only waits and prints.
    arguments_ = {kProgram, fmt::format("--lcores=0@({}),1@({})", processors(), where), "--no-telemetry",
                  "--file-prefix=doorbell"};
    if (device.bus == "pci") {
      arguments_.insert(arguments_.end(), {"--in-memory", "--allow=" + device.name});
    } else {
      arguments_.insert(arguments_.end(),
                        {"--no-huge", "--no-shconf", "--no-pci", fmt::format("-m{}", kMemoryMib),
                         fmt::format("--vdev={}0{}{}", device.name, device.arguments.empty() ? "" : ",",
                                     device.arguments)});
    }
    arguments_.insert(arguments_.end(), {"--", "--no-mlockall", "--forward-mode=" + mode, "--stats-period=1",
                                         fmt::format("--burst={}", std::min(burst, kTestpmdBurst)),
                                         fmt::format("--total-num-mbufs={}", kBuffers),
                                         fmt::format("--mbuf-size={}", plan.buffer_bytes + 128)});
    if (mode == "txonly") arguments_.push_back(fmt::format("--txpkts={}", plan.frame_bytes));
    if (mode == "io") arguments_.emplace_back("--tx-first");
    try {
      const KeptCapabilities kept;
      child_ = std::make_unique<Child>(arguments_, std::span<const int>(), "", network_namespace);
    } catch (const std::system_error& e) {
      throw Error(title, fmt::format("{} cannot be started: {}", kProgram, e.code().message()), kInstall,
                  ExitCode::absent);
    }
  }
  ~Testpmd() { child_->stop(SIGKILL); }
  Testpmd(const Testpmd&) = delete;
  Testpmd& operator=(const Testpmd&) = delete;

  [[nodiscard]] std::vector<TestpmdDisplay> displays() {
    std::vector<TestpmdDisplay> all = testpmd_displays(child_->output());
    if (child_->ended()) fail("it ended by itself");
    if (child_->errors().find("No probed ethernet devices") != std::string::npos)
      throw Error(kProgram, "it cannot open its device", "it was started as: " + command(), ExitCode::data);
    return all;
  }
  /// Ends it.
  TestpmdTotals totals() {
    child_->stop(SIGINT);
    if (!child_->wait(kGraceS)) fail("it does not end");
    // DPDK 22.11 ends itself with the signal that it was sent.
    if (child_->exit_code() > 128 && child_->exit_code() != 128 + SIGINT)
      fail(fmt::format("signal {} has ended it before its totals", child_->exit_code() - 128));
    return testpmd_totals(child_->output());
  }
  [[nodiscard]] std::string command() const { return fmt::format("{}", fmt::join(arguments_, " ")); }

  [[noreturn]] void fail(const std::string& why) {
    std::string said = child_->errors();
    if (const std::string out = child_->output(); said.empty()) said = out;
    while (!said.empty() && said.back() == '\n') said.pop_back();
    throw Error(kProgram, fmt::format("{}: {}", why, said.substr(said.rfind('\n') + 1)),
                "it was started as: " + command(), ExitCode::data);
  }

 private:
  std::vector<std::string> arguments_;
  std::unique_ptr<Child> child_;
};

class Run {
 public:
  Run(const StreamRequest& request, Link& link, const TestpmdOptions& options)
      : link_(link), options_(options) {
    if (options.seconds < 1)
      throw Error(options.title, "it shows its rate once a second", "give it 1 s or more");
    StreamRequest r = request;
    r.flows = r.rx_queues = 1;
    // Our own ends may keep the link's socket open.
    plan_ = make_plan(r, link, ".testpmd");
    burst_ = request.burst;
    link_name_ = setting::link;
    if (plan_.driver == Driver::tap)
      throw Error(options.title, "a tap exists as long as the process that makes it",
                  fmt::format("use {} veth", setting::link));
  }

  ~Run() {
    if (!rx_ || plan_.socket.empty()) return;
    tx_.reset(), rx_.reset();
    // A testpmd that has been killed leaves its socket behind; another's is not touched.
    try {
      clear_socket(plan_.socket, link_name_);
    } catch (const Error&) {
    }
  }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  TestpmdRun run() {
    result_.version = load_plugin().dpdk_version;
    const bool one = plan_.driver == Driver::ring || plan_.driver == Driver::null;
    result_.mode = plan_.driver == Driver::ring ? "io" : one ? "txonly" : "txonly to rxonly";
    // The receiving end first: memif's listens. A display shows that it works.
    if (!one) {
      if (!plan_.socket.empty()) clear_socket(plan_.socket, link_name_);
      rx_ = start(plan_.rx, "rxonly", End::rx);
      if (!wait_for(*rx_, 1)) return result_;
    }
    tx_ = start(plan_.tx, one ? result_.mode : "txonly", End::tx);
    if (!wait_for(*tx_, 1)) return result_;
    const std::size_t tx_begin = tx_->displays().size(), rx_begin = rx_ ? rx_->displays().size() : 0;
    // The first display from here on may reach back to before the other process worked.
    if (!wait_for(*tx_, tx_begin + 1 + options_.seconds)) return result_;
    if (rx_ && !wait_for(*rx_, rx_begin + 1 + options_.seconds)) return result_;
    read(tx_begin + 1, rx_begin + 1);
    return result_;
  }

 private:
  std::unique_ptr<Testpmd> start(const DeviceSpec& device, const std::string& mode, End end) {
    const std::size_t number = end == End::tx ? 0 : 1;
    std::optional<u32> core;
    if (number < options_.cores.size()) core = options_.cores[number];
    auto t = std::make_unique<Testpmd>(plan_, device, mode, core, burst_, options_.title,
                                       link_.network_namespace(end));
    result_.commands.push_back(t->command());
    return t;
  }

  /// False when the run has been interrupted.
  bool wait_for(Testpmd& t, std::size_t displays) {
    const u64 end = wall_ns() + static_cast<u64>((kGraceS + static_cast<double>(displays)) * 1e9);
    while (t.displays().size() < displays) {
      if (options_.interrupted && options_.interrupted()) return false;
      if (wall_ns() > end) t.fail("it shows no statistics");
      usleep(50'000);
    }
    return true;
  }

  void read(std::size_t tx_first, std::size_t rx_first) {
    const auto mean = [&](const std::vector<TestpmdDisplay>& all, std::size_t first,
                          u64 TestpmdDisplay::*rate) {
      double sum = 0;
      for (std::size_t i = first; i < first + options_.seconds; ++i) sum += static_cast<double>(all[i].*rate);
      return sum / options_.seconds;
    };
    const std::vector<TestpmdDisplay> tx = tx_->displays();
    const std::vector<TestpmdDisplay> rx = rx_ ? rx_->displays() : tx;
    result_.sent_per_s = mean(tx, tx_first, &TestpmdDisplay::tx_per_s);
    if (rx_ || result_.mode == "io")
      result_.received_per_s = mean(rx, rx_ ? rx_first : tx_first, &TestpmdDisplay::rx_per_s);
    result_.missed = rx.back().rx_missed;
    result_.no_buffer = rx.back().rx_no_buffer;
    result_.seconds = options_.seconds;
    const TestpmdTotals sent = tx_->totals();
    result_.sent = sent.tx_packets;
    result_.refused = sent.tx_refused;
    if (result_.mode == "io") result_.received = sent.rx_packets;
    if (result_.sent == 0 || result_.sent_per_s == 0) tx_->fail("it has sent nothing");
    // memif's counters are gone with the connection, and a receiver whose peer has just gone may end in the
    // middle of its last text.
    if (rx_ && plan_.driver != Driver::memif) result_.received = rx_->totals().rx_packets;
  }

  Link& link_;
  const TestpmdOptions& options_;
  Plan plan_;
  u32 burst_ = 64;
  std::string link_name_;  // in messages
  std::unique_ptr<Testpmd> tx_, rx_;
  TestpmdRun result_;
};

}  // namespace

BackendStatus testpmd_status() {
  try {
    Child child({kProgram, "--help"});
    static_cast<void>(child.wait(kGraceS));
    return {true, kProgram};
  } catch (const std::system_error& e) {
    return {false, fmt::format("{} cannot be started: {}; {}", kProgram, e.code().message(), kInstall)};
  }
}

void check_testpmd(const StreamRequest& request, Link& link, const TestpmdOptions& options) {
  static_cast<void>(Run(request, link, options));
}

TestpmdRun run_testpmd(const StreamRequest& request, Link& link, const TestpmdOptions& options) {
  return Run(request, link, options).run();
}

}  // namespace doorbell::net::dpdk
