// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/model/spec.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "options/spec.hpp"

namespace doorbell::cxi {

namespace {

constexpr std::string_view kPrefix = "cxi-model";

/// Reads the number in "cxi-modelN"; false if there is none.
bool number_of(std::string_view name, u32& out) {
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  const bool digits =
      !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits && std::from_chars(name.data(), name.data() + name.size(), out).ec == std::errc();
}

}  // namespace

bool is_model(std::string_view spec) {
  const std::string_view name = spec.substr(0, spec.find(':'));
  u32 number = 0;
  return name == "model" || number_of(name, number);
}

options::OptionTable model_keys() {
  options::OptionTable t;
  t.add(model::copy_threads_key());
  t.add(model::engine_key("queues"));
  t.add(model::bandwidth_key("bytes a second on the link that all queues share; 0: no limit"));
  t.add(model::bytes_key("overhead", "0", 0, 4096,
                         "bytes that each packet of 2048 takes on the link beside its payload",
                         &ModelConfig::overhead));
  t.add(model::latency_key("time from a command to its acknowledgement"));
  t.add(model::time_key("jitter", "up to so much is added to the latency, at random",
                        {model::nanoseconds, &ModelConfig::jitter_ns}));
  t.add(model::time_key("doorbell", "time from a doorbell to the first command that it announces",
                        {model::nanoseconds, &ModelConfig::doorbell_ns}));
  t.add(model::whole_key("window", "0", 0, 1 << 20,
                         "operations that may wait for their acknowledgement at once; 0: no limit",
                         &ModelConfig::window));
  t.add(model::whole_key("pid-bits", "9", 6, 9, "width of a process's number in addresses",
                         &ModelConfig::pid_bits));
  options::Option list_entries = model::whole_key(
      "list-entries", "16384", 1, 65536, "buffers that can be appended, all portals entries together",
      &ModelConfig::max_list_entries);
  list_entries.aliases = {"entries"};  // other models use that name for a queue's length
  t.add(std::move(list_entries));
  t.add({.name = "write-back",
         .default_text = "each",
         .choices = {"each", "on-request"},
         .help = "when a counter's counts are written to memory: each count, or as by a card, when a command "
                 "asks for it or an operation has failed",
         .into = &ModelConfig::write_back});
  t.add({.name = "rendezvous-get",
         .default_text = "nic",
         .choices = {"nic", "program"},
         .help = "who gets the rest of a rendezvous put: the NIC, or the program when an event asks it to",
         .into = &ModelConfig::rendezvous_get});
  t.add(model::delay_key("an acknowledgement"));
  t.add(model::whole_key("nack", "2", 2, 63, "the return code of the fault error; 2: UNDELIVERABLE",
                         {[](u64 code) { return static_cast<ReturnCode>(code); }, &ModelConfig::nack}));
  t.add(model::whole_key("eq-full", "0", 0, {},
                         "each event queue has room for N events only and drops the rest; 0: never",
                         &ModelConfig::eq_full));
  t.add(
      model::whole_key("stuck-read", "0", 0, {},
                       "the read pointer of a transmit queue stays where it is after N operations; 0: never",
                       &ModelConfig::stuck_read));
  t.add(model::whole_key("pte-disable", "0", 0, {},
                         "the NIC disables a portals entry after N operations on it; 0: never",
                         &ModelConfig::pte_disable));
  return t;
}

ModelConfig parse_model_spec(const std::string& spec, const std::string& device) {
  const std::string name = spec.substr(0, spec.find(':'));
  const options::Options o = options::parse_spec(fmt::format("{} {}", device, name), model_keys(), spec);
  ModelConfig c;
  (void)number_of(name, c.number);
  o.read_into<model::Config>(c);
  o.read_into(c);
  return c;
}

}  // namespace doorbell::cxi
