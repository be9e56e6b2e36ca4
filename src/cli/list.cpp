// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/gpu.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.hpp"
#include "cli/path.hpp"
#include "report/layout.hpp"

namespace doorbell::cli {
namespace {

using Json = nlohmann::ordered_json;

std::vector<FoundDevice> gpus() {
  std::vector<FoundDevice> found;
  for (const gpu::Info& info : gpu::enumerate()) {
    found.push_back({std::to_string(info.index),
                     {{"model", info.name},
                      {"runtime", gpu::name(info.runtime)},
                      {"arch", info.arch},
                      {"memory_bytes", info.memory_bytes},
                      {"multiprocessors", info.multiprocessors},
                      {"warp_lanes", info.warp_size},
                      {"pci_address", info.pci_address},
                      {"driver", info.driver}}});
  }
  return found;
}

std::vector<FoundDevice> models() {
  std::vector<FoundDevice> found;
  for (const PathDescription& path : paths())
    for (const PathModel& model : path.models)
      found.push_back({model.name, {{"path", path.name()}, {"summary", model.summary}}});
  return found;
}

/// A quantity in a unit that keeps it short; the factors are the usual ones for each quantity.
std::string human(const std::string& key, const Json& value) {
  if (key.ends_with("_bits_per_s")) return fmt::format("{} Gb/s", value.get<double>() / 1e9);
  if (key.ends_with("mtu_bytes")) return fmt::format("mtu {}", value.get<u64>());
  if (key == "memory_bytes") return fmt::format("{:.0f} GiB", value.get<double>() / (1u << 30));
  if (key.ends_with("_bytes")) return fmt::format("{:.1f} GB", value.get<double>() / 1e9);
  if (value.is_string()) return value.get<std::string>();
  return value.dump();
}

std::string facts_line(const Json& facts) {
  // Values that the reader understands without their key.
  constexpr std::string_view kPlain[] = {"model",     "summary",     "arch",       "runtime",
                                         "state",     "pci_address", "name",       "rate",
                                         "transport", "path",        "link_layer", "node_type"};
  std::vector<std::string> parts;
  for (const auto& [key, value] : facts.items()) {
    if (value.is_null() || value.empty()) continue;
    if (value.is_array()) {
      for (const Json& item : value) parts.push_back("[" + facts_line(item) + "]");
      continue;
    }
    bool plain = key.ends_with("_bytes") || key.ends_with("_per_s");
    for (const std::string_view name : kPlain) plain = plain || name == key;
    std::string label = key;
    for (char& c : label) c = c == '_' ? ' ' : c;
    parts.push_back(plain ? human(key, value) : label + " " + human(key, value));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

struct Section {
  std::string key, title;
  std::vector<FoundDevice> devices;
};

/// All kinds of devices, or only the one called `what`: asking for another's may take its libraries.
std::vector<Section> sections(const std::string& what) {
  std::vector<Section> found;
  const auto add = [&](const std::string& key, const std::string& title, const auto& devices) {
    if (what.empty() || what == key) found.push_back({key, title, devices()});
  };
  add("gpus", "GPUs (the number is what --gpu takes)", gpus);
  for (const PathDescription& path : paths())
    add(path.name(), path.devices_title, [&] { return path.devices("/"); });
  add("models", "Models (software devices, on every machine)", models);
  return found;
}

/// The sentence of the description that lists the names of each path's devices.
std::string what_is_listed() {
  std::string titles;
  for (const PathDescription& path : paths()) titles += path.devices_title + ", ";
  titles.resize(titles.size() - 2);
  return fmt::format(
      "GPUs as their run-time libraries show them, and {} as the kernel shows them. Nothing is "
      "opened and no driver is touched.",
      titles);
}

int run_list(const Options& options, Context&) {
  const std::vector<Section> all_sections = sections(options.text("what"));
  if (options.flag("json")) {
    Json all;
    for (const Section& section : all_sections) {
      Json& list = all[section.key] = Json::array();
      for (const FoundDevice& device : section.devices) {
        Json entry = {{section.key == "gpus" ? "index" : "name",
                       section.key == "gpus" ? Json(std::stoi(device.name)) : Json(device.name)}};
        entry.update(device.facts);
        list.push_back(std::move(entry));
      }
    }
    fmt::print("{}\n", all.dump(2, ' ', false, Json::error_handler_t::replace));
    return 0;
  }
  bool first = true;
  for (const Section& section : all_sections) {
    fmt::print("{}{}\n", first ? "" : "\n", section.title);
    first = false;
    if (section.devices.empty()) fmt::print("  none\n");
    for (const FoundDevice& device : section.devices)
      fmt::print("  {:<14}{}\n", report::printable(device.name), report::printable(facts_line(device.facts)));
  }
  return 0;
}

}  // namespace

Command list_command() {
  Command command;
  command.name = "list";
  command.means = {"devices"};
  command.summary = "the devices of this machine, and the models";
  command.description = {what_is_listed()};
  std::vector<std::string> keys = {"gpus"};
  for (const PathDescription& path : paths()) keys.push_back(path.name());
  keys.emplace_back("models");
  command.options.add(
      {.name = "what", .metavar = "WHAT", .choices = std::move(keys), .help = "these only", .operand = true});
  command.options.group("Output").add({.name = "json", .kind = Kind::flag, .help = "print JSON"});
  command.examples = {{"doorbell list", "See which --gpu numbers there are."},
                      {"doorbell list nvme", "The NVMe controllers of this machine."},
                      {"doorbell list --json", "The same for a script, with units in the key names."}};
  command.run = run_list;
  command.group = "This machine";
  command.stoppable = false;
  return command;
}

}  // namespace doorbell::cli
