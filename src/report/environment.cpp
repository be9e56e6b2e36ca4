// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "report/environment.hpp"

#include <doorbell/config.hpp>
#include <doorbell/gpu.hpp>
#include <fmt/format.h>
#include <sched.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <ctime>
#include <fstream>
#include <limits>
#include <locale>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string_view>

#include "report/tool.hpp"
#include "system/clock.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace doorbell::report {

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::optional<std::string> read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return std::nullopt;
  std::ostringstream text;
  text << file.rdbuf();
  if (file.bad()) return std::nullopt;
  std::string out = std::move(text).str();
  while (!out.empty() && (out.back() == '\n' || out.back() == ' ' || out.back() == '\0')) out.pop_back();
  return out;
}

std::optional<u64> parse(std::string_view text) {
  u64 value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end == text.data()) return std::nullopt;
  return value;
}

std::optional<u64> read_number(const fs::path& path) {
  const auto text = read(path);
  return text ? parse(*text) : std::nullopt;
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

// An empty file (no isolated CPUs) says something; it is not unknown.
Json text_or_null(const fs::path& path) {
  return or_null(read(path));
}

// The directories below `parent` whose name is `prefix` and a number, by number.
std::map<u64, fs::path> numbered(const fs::path& parent, std::string_view prefix) {
  std::map<u64, fs::path> found;
  std::error_code error;
  for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const std::string_view rest = std::string_view(name).substr(prefix.size());
    if (rest.empty() || !std::ranges::all_of(rest, [](char c) { return c >= '0' && c <= '9'; })) continue;
    if (const auto number = parse(rest)) found.emplace(*number, it->path());
  }
  return found;
}

// "key<spaces>: value" of /proc/cpuinfo and /proc/meminfo; the first match.
std::optional<std::string> value_of(const std::string& text, std::string_view key) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    const auto colon = line.find(':');
    if (colon == std::string::npos || line.find_first_not_of(" \t", key.size()) != colon) continue;
    const auto start = line.find_first_not_of(" \t", colon + 1);
    return start == std::string::npos ? std::string() : line.substr(start);
  }
  return std::nullopt;
}

// "[madvise]" of "always [madvise] never".
Json selected(const fs::path& path) {
  const auto text = read(path);
  if (!text) return nullptr;
  const auto open = text->find('[');
  const auto close = text->find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) return nullptr;
  return text->substr(open + 1, close - open - 1);
}

Json distribution(const fs::path& root) {
  for (const char* path : {"etc/os-release", "usr/lib/os-release"}) {
    const auto text = read(root / path);
    if (!text) continue;
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("PRETTY_NAME=")) continue;
      std::string name = line.substr(12);
      std::erase_if(name, [](char c) { return c == '"' || c == '\''; });
      return name;
    }
  }
  return nullptr;
}

Json container(const fs::path& root) {
  if (const auto named = read(root / "run/systemd/container"); named && !named->empty()) return *named;
  std::error_code error;
  if (fs::exists(root / ".dockerenv", error)) return "docker";
  if (fs::exists(root / "run/.containerenv", error)) return "podman";
  return nullptr;
}

struct Topology {
  std::set<std::string> packages;
  std::set<std::string> cores;
  bool complete = true;
};

Topology topology(const std::map<u64, fs::path>& cpus) {
  Topology out;
  for (const auto& [number, path] : cpus) {
    const auto online = read_number(path / "online");  // absent for a CPU that cannot go offline
    if (online && *online == 0) continue;
    const auto package = read(path / "topology/physical_package_id");
    const auto core = read(path / "topology/core_id");
    const auto siblings = read(path / "topology/thread_siblings_list");
    if (!package || !core) {
      out.complete = false;
      continue;
    }
    out.packages.insert(*package);
    // Core numbers repeat across dies; the list of siblings does not.
    out.cores.insert(siblings ? *siblings : *package + ":" + *core);
  }
  if (out.packages.empty()) out.complete = false;
  return out;
}

// The governor that all CPUs share, "mixed", or null.
Json governor(const std::map<u64, fs::path>& cpus) {
  std::set<std::string> seen;
  for (const auto& [number, path] : cpus) {
    if (const auto text = read(path / "cpufreq/scaling_governor")) seen.insert(*text);
  }
  if (seen.empty()) return nullptr;
  return seen.size() == 1 ? Json(*seen.begin()) : Json("mixed");
}

Json frequency(const fs::path& path) {
  const auto khz = read_number(path);
  return khz ? Json(*khz * 1000) : Json(nullptr);
}

Json turbo(const fs::path& root) {
  const fs::path cpu = root / "sys/devices/system/cpu";
  if (const auto off = read_number(cpu / "intel_pstate/no_turbo")) return *off == 0;
  if (const auto on = read_number(cpu / "cpufreq/boost")) return *on != 0;
  return nullptr;
}

Json numa(const fs::path& root) {
  const auto nodes = numbered(root / "sys/devices/system/node", "node");
  if (nodes.empty()) return nullptr;
  Json out = Json::array();
  for (const auto& [number, path] : nodes) {
    Json node{{"node", number},
              {"cpus", text_or_null(path / "cpulist")},
              {"memory_bytes", nullptr},
              {"distances", nullptr}};
    if (const auto meminfo = read(path / "meminfo")) {
      const auto kib = value_of(*meminfo, fmt::format("Node {} MemTotal", number));
      const auto value = kib ? parse(*kib) : std::nullopt;
      if (value) node["memory_bytes"] = *value * 1024;
    }
    if (const auto text = read(path / "distance")) {
      std::istringstream words(*text);
      Json distances = Json::array();
      for (u64 d = 0; words >> d;) distances.push_back(d);
      node["distances"] = distances;
    }
    out.push_back(node);
  }
  return out;
}

Json hugepages(const fs::path& root) {
  const fs::path parent = root / "sys/kernel/mm/hugepages";
  std::error_code error;
  std::map<u64, fs::path> sizes;
  for (fs::directory_iterator it(parent, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    constexpr std::string_view prefix = "hugepages-";
    if (!name.starts_with(prefix)) continue;
    if (const auto kib = parse(std::string_view(name).substr(prefix.size()))) sizes[*kib] = it->path();
  }
  if (sizes.empty()) return nullptr;
  Json out = Json::array();
  for (const auto& [kib, path] : sizes) {
    out.push_back({{"size_bytes", kib * 1024},
                   {"total_count", or_null(read_number(path / "nr_hugepages"))},
                   {"free_count", or_null(read_number(path / "free_hugepages"))}});
  }
  return out;
}

// The smaller of two limits of which either may be absent.
template <typename T>
void lower(std::optional<T>& limit, T value) {
  limit = limit ? std::min(*limit, value) : value;
}

// Every ancestor's limit holds too, so the smallest on the way up counts.
template <typename Visit>
void each_ancestor(const fs::path& top, std::string_view group, Visit visit) {
  fs::path path = top / fs::path(group).relative_path();
  while (true) {
    visit(path);
    if (path == top || !path.has_relative_path() || path.string().size() <= top.string().size()) break;
    path = path.parent_path();
  }
}

// A known version with a null limit means that no limit is set.
Json cgroup(const fs::path& root) {
  Json out{{"version", nullptr}, {"cpu_limit_cpus", nullptr}, {"memory_limit_bytes", nullptr}};
  const auto membership = read(root / "proc/self/cgroup");
  if (!membership) return out;
  std::optional<double> cpus;
  std::optional<u64> memory;
  const fs::path mount = root / "sys/fs/cgroup";
  std::error_code error;
  const bool unified = fs::exists(mount / "cgroup.controllers", error);
  std::istringstream lines(*membership);
  for (std::string line; std::getline(lines, line);) {
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const std::string group = line.substr(second + 1);
    if (unified && controllers == ",,") {
      out["version"] = 2;
      each_ancestor(mount, group, [&](const fs::path& path) {
        if (const auto text = read(path / "cpu.max")) {
          const auto space = text->find(' ');
          const auto quota = parse(*text);
          const auto period = space == std::string::npos ? std::nullopt : parse(text->substr(space + 1));
          if (quota && period && *period > 0) {
            lower(cpus, static_cast<double>(*quota) / static_cast<double>(*period));
          }
        }
        if (const auto bytes = read_number(path / "memory.max")) lower(memory, *bytes);
      });
    } else if (!unified && controllers.find(",cpu,") != std::string::npos) {
      out["version"] = 1;
      each_ancestor(mount / "cpu", group, [&](const fs::path& path) {
        const auto quota = read_number(path / "cpu.cfs_quota_us");  // -1, which does not parse: no limit
        const auto period = read_number(path / "cpu.cfs_period_us");
        if (quota && period && *period > 0) {
          lower(cpus, static_cast<double>(*quota) / static_cast<double>(*period));
        }
      });
    } else if (!unified && controllers.find(",memory,") != std::string::npos) {
      out["version"] = 1;
      each_ancestor(mount / "memory", group, [&](const fs::path& path) {
        constexpr u64 kUnlimited = u64{1} << 62;  // the kernel writes a huge number for "no limit"
        const auto bytes = read_number(path / "memory.limit_in_bytes");
        if (bytes && *bytes < kUnlimited) lower(memory, *bytes);
      });
    }
  }
  out["cpu_limit_cpus"] = or_null(cpus);
  out["memory_limit_bytes"] = or_null(memory);
  return out;
}

Json iommu(const fs::path& root) {
  const auto entries = [&](const char* path) -> Json {
    std::error_code error;
    u64 count = 0;
    for (fs::directory_iterator it(root / path, error), end; !error && it != end; it.increment(error))
      ++count;
    return error ? Json(nullptr) : Json(count);
  };
  return {{"units_count", entries("sys/class/iommu")}, {"groups_count", entries("sys/kernel/iommu_groups")}};
}

Json load(const fs::path& root) {
  Json out{{"load_average", nullptr}, {"runnable_threads", nullptr}};
  const auto text = read(root / "proc/loadavg");
  if (!text) return out;
  std::istringstream words(*text);
  words.imbue(std::locale::classic());
  double one = 0, five = 0, fifteen = 0;
  u64 runnable = 0;
  if (words >> one >> five >> fifteen) out["load_average"] = Json::array({one, five, fifteen});
  if (words >> runnable) out["runnable_threads"] = runnable;
  return out;
}

// "none" on bare metal; null where the CPU cannot be asked.
Json hypervisor() {
#if defined(__x86_64__)
  unsigned a = 0, b = 0, c = 0, d = 0;
  if (__get_cpuid(1, &a, &b, &c, &d) == 0) return nullptr;
  if ((c >> 31 & 1u) == 0) return "none";
  __cpuid(0x40000000, a, b, c, d);
  std::string name;
  for (const unsigned word : {b, c, d}) {
    for (unsigned shift = 0; shift < 32; shift += 8) {
      const auto letter = static_cast<char>(word >> shift & 0xff);
      if (letter > ' ' && letter < 0x7f) name += letter;
    }
  }
  return name.empty() ? Json("unnamed") : Json(name);
#else
  return nullptr;
#endif
}

Json date_utc() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  if (gmtime_r(&now, &utc) == nullptr) return nullptr;
  std::array<char, 32> text{};
  const std::size_t n = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%SZ", &utc);
  return std::string(text.data(), n);
}

// "0-3,8" of the mask that the calling thread may run on.
Json affinity() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return nullptr;
  std::string out;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &set)) continue;
    unsigned last = cpu;
    while (last + 1 < CPU_SETSIZE && CPU_ISSET(last + 1, &set)) ++last;
    out += fmt::format("{}{}{}", out.empty() ? "" : ",", cpu, last > cpu ? fmt::format("-{}", last) : "");
    cpu = last;
  }
  return out;
}

// The cheapest of a few batches, because a batch that was preempted measures something else.
double clock_read_ns() {
  constexpr int kReads = 512;
  double best = std::numeric_limits<double>::infinity();
  for (int batch = 0; batch < 8; ++batch) {
    const auto start = std::chrono::steady_clock::now();
    auto last = start;
    for (int i = 0; i < kReads; ++i) last = std::chrono::steady_clock::now();
    best = std::min(best, std::chrono::duration<double, std::nano>(last - start).count() / kReads);
  }
  return best;
}

Json clock_resolution_ns() {
  timespec resolution{};
  if (clock_getres(CLOCK_MONOTONIC, &resolution) != 0) return nullptr;
  return ns_of(resolution);
}

Json gpus() {
  Json out = Json::array();
  for (const gpu::Info& g : gpu::enumerate()) {
    out.push_back({{"index", g.index},
                   {"runtime", gpu::name(g.runtime)},
                   {"name", g.name},
                   {"arch", g.arch},
                   {"pci_address", g.pci_address},
                   {"driver", g.driver},
                   {"memory_bytes", g.memory_bytes},
                   {"multiprocessors", g.multiprocessors},
                   {"link", read_pci_link("/", g.pci_address)}});
  }
  return out;
}

// The number in front of "32.0 GT/s PCIe".
Json transfers_per_s(const fs::path& path) {
  const auto text = read(path);
  if (!text) return nullptr;
  std::istringstream words(*text);
  words.imbue(std::locale::classic());
  double gigatransfers = 0;
  std::string unit;
  if (!(words >> gigatransfers >> unit) || unit != "GT/s") return nullptr;
  return gigatransfers * 1e9;
}

}  // namespace

Json read_pci_link(const fs::path& root, const std::string& pci_address) {
  std::string name = pci_address;
  std::ranges::transform(name, name.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; });
  // CUDA writes the domain with eight digits, sysfs with four.
  if (name.size() == 16 && name.starts_with("0000")) name.erase(0, 4);
  const fs::path device = root / "sys/bus/pci/devices" / name;
  std::error_code error;
  if (name.empty() || name.find('/') != std::string::npos || !fs::exists(device, error)) return nullptr;
  return {{"current_transfers_per_s", transfers_per_s(device / "current_link_speed")},
          {"max_transfers_per_s", transfers_per_s(device / "max_link_speed")},
          {"current_lanes", or_null(read_number(device / "current_link_width"))},
          {"max_lanes", or_null(read_number(device / "max_link_width"))},
          {"numa_node", or_null(read_number(device / "numa_node"))}};  // -1, which does not parse: unknown
}

Json read_machine(const fs::path& root) {
  const fs::path cpu = root / "sys/devices/system/cpu";
  const std::string cpuinfo = read(root / "proc/cpuinfo").value_or("");
  const std::string meminfo = read(root / "proc/meminfo").value_or("");
  const auto memory = [&](const char* key) -> Json {
    const auto text = value_of(meminfo, key);
    const auto kib = text ? parse(*text) : std::nullopt;
    return kib ? Json(*kib * 1024) : Json(nullptr);
  };
  const auto cpus = numbered(cpu, "cpu");
  const Topology top = topology(cpus);
  const auto smt = read_number(cpu / "smt/active");

  Json out;
  out["kernel_cmdline"] = text_or_null(root / "proc/cmdline");
  out["distribution"] = distribution(root);
  out["container"] = container(root);
  out["cpu"] = or_null(value_of(cpuinfo, "model name"));
  out["sockets"] = top.complete ? Json(top.packages.size()) : Json(nullptr);
  out["cores"] = top.complete ? Json(top.cores.size()) : Json(nullptr);
  out["cpus_online"] = text_or_null(cpu / "online");
  out["cpus_isolated"] = text_or_null(cpu / "isolated");
  out["smt"] = smt ? Json(*smt != 0) : Json(nullptr);
  out["numa"] = numa(root);
  out["governor"] = governor(cpus);
  const fs::path first = cpus.empty() ? fs::path() : cpus.begin()->second / "cpufreq";
  out["cpu_current_hz"] = frequency(first / "scaling_cur_freq");
  out["cpu_max_hz"] = frequency(first / "cpuinfo_max_freq");
  out["turbo"] = turbo(root);
  out["clocksource"] = text_or_null(root / "sys/devices/system/clocksource/clocksource0/current_clocksource");
  out["memory_bytes"] = memory("MemTotal");
  out["memory_available_bytes"] = memory("MemAvailable");
  out["hugepages"] = hugepages(root);
  out["transparent_hugepages"] = selected(root / "sys/kernel/mm/transparent_hugepage/enabled");
  out.update(load(root));
  out["cgroup"] = cgroup(root);
  out["iommu"] = iommu(root);
  return out;
}

Json collect_environment() {
  Json out;
  out["date_utc"] = date_utc();
  utsname system{};
  const bool named = uname(&system) == 0;
  out["host"] = named ? Json(system.nodename) : Json(nullptr);
  out["kernel"] = named ? Json(std::string(system.sysname) + " " + system.release) : Json(nullptr);
  out["architecture"] = named ? Json(system.machine) : Json(nullptr);
  out.update(read_machine("/"));
  out["hypervisor"] = hypervisor();
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  out["cpus_count"] = online > 0 ? Json(online) : Json(nullptr);
  out["cpus_allowed"] = affinity();
  out["clock_read_ns"] = clock_read_ns();
  out["clock_resolution_ns"] = clock_resolution_ns();
  out["gpu"] = gpus();
  return out;
}

std::vector<std::string> environment_warnings(const Json& environment) {
  std::vector<std::string> out;
  const auto at = [&](const char* key) -> Json {
    return environment.is_object() && environment.contains(key) ? environment[key] : Json(nullptr);
  };
  if (tool().build != "Release") {
    out.push_back(
        fmt::format("this is a {} build: build with CMAKE_BUILD_TYPE=Release before comparing figures",
                    tool().build.empty() ? "unoptimised" : tool().build));
  }
  if (!tool().sanitizer.empty()) {
    out.push_back(
        fmt::format("built with the {} sanitizer: figures are several times too low", tool().sanitizer));
  }
  const Json average = at("load_average");
  const Json cpus = at("cpus_count");
  if (average.is_array() && !average.empty() && average[0].is_number() && cpus.is_number() &&
      cpus.get<double>() > 0) {
    const double per_cpu = average[0].get<double>() / cpus.get<double>();
    if (per_cpu > 0.5) {
      out.push_back(
          fmt::format("the machine is busy: load average {:.2f} on {} CPUs ({:.2f} per CPU, above 0.5)",
                      average[0].get<double>(), cpus.get<long>(), per_cpu));
    }
  }
  const Json group = at("cgroup");
  const Json quota = group.is_object() ? group.value("cpu_limit_cpus", Json(nullptr)) : Json(nullptr);
  if (quota.is_number() && cpus.is_number() && quota < cpus) {
    out.push_back(fmt::format(
        "a CPU quota (cgroup) gives this process the time of {:.3g} of its {} CPUs: it stands still in between",
        quota.get<double>(), cpus.get<long>()));
  }
  const Json governor_name = at("governor");
  if (governor_name.is_string() && governor_name != "performance") {
    out.push_back(fmt::format("the CPU frequency governor is '{}', not 'performance'",
                              governor_name.get<std::string>()));
  }
  for (const Json& g : at("gpu")) {
    if (!g.is_object() || !g.contains("link") || !g["link"].is_object()) continue;
    const Json& link = g["link"];
    const auto current = link.value("current_lanes", Json(nullptr));
    const auto max = link.value("max_lanes", Json(nullptr));
    // The speed is not compared: an idle GPU lowers it and raises it under load.
    if (current.is_number() && max.is_number() && current < max) {
      out.push_back(fmt::format("GPU {} uses {} of its {} PCIe lanes", g.value("index", 0), current.dump(),
                                max.dump()));
    }
  }
  return out;
}

}  // namespace doorbell::report
