// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/dpdk/plugin/eal.hpp"

#include <dlfcn.h>
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_interrupts.h>
#include <rte_lcore.h>
#include <rte_log.h>
#include <sched.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <future>
#include <mutex>
#include <optional>
#include <thread>

#include "system/descriptor.hpp"
#include "system/thread.hpp"

namespace doorbell::net::dpdk {

namespace fs = std::filesystem;

namespace {

/// Holds the headers of packet buffers; the buffers themselves are the program's memory.
constexpr u32 kModelMemoryMib = 512;
/// Holds the buffers too, because hardware reaches only memory that DPDK has mapped for it.
constexpr u32 kPortMemoryMib = 2048;

/// DPDK's log, kept in memory: its messages belong into this program's errors, not between its lines.
FILE* log_file() {
  static FILE* const file = [] {
    FILE* const f = fdopen(memfd_create("dpdk-log", MFD_CLOEXEC), "a+");
    if (f != nullptr) setvbuf(f, nullptr, _IOLBF, 0);
    return f;
  }();
  return file;
}

/// The last line that says something.
std::string last_logged() {
  FILE* const f = log_file();
  struct stat st {};
  if (f == nullptr || fflush(f) != 0 || fstat(fileno(f), &st) != 0) return {};
  constexpr off_t kTail = 2000;
  std::string text(kTail, '\0');
  const ssize_t n = pread(fileno(f), text.data(), text.size(), std::max<off_t>(st.st_size - kTail, 0));
  text.resize(n > 0 ? static_cast<std::size_t>(n) : 0);
  while (!text.empty() && (text.back() == '\n' || text.back() == ' ')) text.pop_back();
  const std::size_t line = text.rfind('\n');
  return line == std::string::npos ? text : text.substr(line + 1);
}

bool has_free_huge_pages() {
  std::error_code ignored;
  for (const fs::directory_entry& size : fs::directory_iterator("/sys/kernel/mm/hugepages", ignored)) {
    u64 pages = 0;
    if (std::ifstream(size.path() / "free_hugepages") >> pages && pages > 0) return true;
  }
  return false;
}

/// The first processor that the calling thread may run on.
u32 first_processor() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 0;
  for (u32 cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) return cpu;
  return 0;
}

std::vector<std::string> arguments(const Eal& eal, const std::vector<std::string>& pci_addresses) {
  // One lcore, which is the thread that starts EAL and ends then: DPDK starts no workers. No files in /run
  // that another process with DPDK would find.
  std::vector<std::string> a = {"doorbell", fmt::format("--lcores=0@{}", first_processor()), "--no-telemetry",
                                "--log-level=*:warning", "--file-prefix=doorbell"};
  if (eal.huge_pages) {
    a.emplace_back("--in-memory");
  } else {
    a.insert(a.end(), {"--no-huge", "--no-shconf", fmt::format("-m{}", eal.memory_mib)});
  }
  if (!eal.ports) a.emplace_back("--no-pci");
  for (const std::string& address : pci_addresses) a.push_back("--allow=" + address);
  return a;
}

/// Libraries of drivers that print by themselves, to the terminal.
void silence_libraries() {
  constexpr const char* kPrinters[][2] = {{"libbpf.so.1", "libbpf_set_print"},
                                          {"libxdp.so.1", "libxdp_set_print"}};
  for (const auto& [library, function] : kPrinters) {
    void* const handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    using SetPrint = void*(void*);
    if (auto* const set = reinterpret_cast<SetPrint*>(dlsym(handle, function)); set != nullptr) set(nullptr);
    dlclose(handle);
  }
}

/// rte_eal_init() in a thread of its own: it pins the thread that calls it, and its own threads inherit which
/// signals are blocked, so that none of them takes one that is meant for the program.
void initialise(const Eal& eal, const std::vector<std::string>& pci_addresses) {
  std::vector<std::string> text = arguments(eal, pci_addresses);
  std::vector<char*> argv;
  for (std::string& t : text) argv.push_back(t.data());
  argv.push_back(nullptr);
  if (log_file() != nullptr) rte_openlog_stream(log_file());
  int result = 0, error = 0;
  std::thread starter = make_thread("DPDK", [&] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    result = rte_eal_init(static_cast<int>(text.size()), argv.data());
    error = rte_errno;
  });
  starter.join();
  if (result < 0) dpdk_failed("DPDK cannot be started", error);
  silence_libraries();
}

struct ThreadMark {
  bool known = false;
  bool registered = false;
  ThreadMark() = default;
  ThreadMark(const ThreadMark&) = delete;
  ThreadMark& operator=(const ThreadMark&) = delete;
  ~ThreadMark() {
    if (registered) rte_thread_unregister();
  }
};

}  // namespace

const Eal& start_eal(const std::vector<std::string>& pci_addresses) {
  static std::mutex mutex;
  static std::optional<Eal> started;
  static std::vector<std::string> allowed;
  const std::lock_guard lock(mutex);
  if (started) {
    for (const std::string& address : pci_addresses)
      if (std::ranges::find(allowed, address) == allowed.end())
        throw Error(fmt::format("port {}", address), "DPDK has been started in this process without it",
                    "use one set of ports a process");
    return *started;
  }
  Eal eal;
  eal.ports = !pci_addresses.empty();
  eal.huge_pages = eal.ports && has_free_huge_pages();
  if (!eal.huge_pages) eal.memory_mib = eal.ports ? kPortMemoryMib : kModelMemoryMib;
  initialise(eal, pci_addresses);
  started = eal;
  allowed = pci_addresses;
  return *started;
}

void dpdk_failed(const std::string& what, int error, const std::string& hint) {
  const std::string logged = last_logged();
  throw Error(
      what,
      fmt::format("{}{}{}", rte_strerror(std::abs(error)), logged.empty() ? "" : "; DPDK says: ", logged),
      hint);
}

void use_thread() {
  static thread_local ThreadMark mark;
  if (mark.known) return;
  // A thread that DPDK has no number for works without caches.
  mark.known = true;
  mark.registered = rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() == 0;
}

void nap(u64 limit_ns) {
  constexpr u64 kNapNs = 50'000;
  const u64 ns = std::min(limit_ns, kNapNs);
  const timespec time = {static_cast<time_t>(ns / 1'000'000'000), static_cast<long>(ns % 1'000'000'000)};
  clock_nanosleep(CLOCK_MONOTONIC, 0, &time, nullptr);
}

namespace {

/// One event of the interrupt thread, which looks at it in a round of its own: it asks for events again for
/// every new source.
class Visit {
 public:
  explicit Visit(const std::function<void()>& work)
      : work_(work),
        event_(eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)),
        source_(rte_intr_instance_alloc(RTE_INTR_INSTANCE_F_PRIVATE)) {
    if (source_ == nullptr || event_.get() < 0 || rte_intr_fd_set(source_, event_.get()) != 0 ||
        rte_intr_type_set(source_, RTE_INTR_HANDLE_EXT) != 0 ||
        rte_intr_callback_register(source_, run, this) != 0) {
      work_();
      return;
    }
    std::future<void> done = done_.get_future();
    constexpr std::chrono::seconds kLimit(10);
    static_cast<void>(done.wait_for(kLimit));
    // Waits for one that has begun, and leaves the core to it.
    while (rte_intr_callback_unregister(source_, run, this) == -EAGAIN)
      std::this_thread::sleep_for(std::chrono::microseconds(20));
    if (done.wait_for(std::chrono::seconds(0)) != std::future_status::ready) work_();
  }
  ~Visit() { rte_intr_instance_free(source_); }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  static void run(void* visit) {
    auto& v = *static_cast<Visit*>(visit);
    u64 count = 0;
    // Read, it is no event in any later round, in which the descriptor's number may be another's.
    if (read(v.event_.get(), &count, sizeof count) != sizeof count) return;
    v.work_();
    v.done_.set_value();
  }

  const std::function<void()>& work_;
  Descriptor event_;
  rte_intr_handle* source_;
  std::promise<void> done_;
};

}  // namespace

void in_interrupt_thread(const std::function<void()>& work) {
  const Visit first(work);
  // The thread may know of further events in the round that `work` was in, of descriptors that `work` has
  // closed: it finds their handlers by number, and a new socket of that number would be read before anything
  // has come, for ever. Such a round is over when it visits again.
  const Visit second([] {});
}

std::string unique_name(const std::string& stem) {
  static std::atomic<u32> next{0};
  return fmt::format("{}{}", stem, next.fetch_add(1));
}

}  // namespace doorbell::net::dpdk
