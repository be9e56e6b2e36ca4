// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/model/spec.hpp"

#include <doorbell/error.hpp>

#include <algorithm>
#include <charconv>

#include "options/spec.hpp"

namespace doorbell::cxi {

using options::Kind;

namespace {

constexpr std::string_view kPrefix = "cxi-model";

/// The number in "cxi-modelN", as far as it is one.
bool number_of(std::string_view name, u32& out) {
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  const bool digits =
      !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return c >= '0' && c <= '9'; });
  return digits && std::from_chars(name.data(), name.data() + name.size(), out).ec == std::errc();
}

void add_timing(options::OptionTable& t) {
  t.add({.name = "rate",
         .kind = Kind::size,
         .default_text = "0",
         .min = 0,
         .max = u64{1} << 50,
         .help = "bytes a second on the link that all queues share; 0: no limit"});
  t.add({.name = "overhead",
         .kind = Kind::size,
         .default_text = "0",
         .min = 0,
         .max = 4096,
         .help = "bytes that each packet of 2048 takes on the link beside its payload"});
  t.add({.name = "latency",
         .kind = Kind::seconds,
         .default_text = "0",
         .min = 0,
         .max = 60,
         .help = "time from a command to its acknowledgement"});
  t.add({.name = "jitter",
         .kind = Kind::seconds,
         .default_text = "0",
         .min = 0,
         .max = 60,
         .help = "up to so much is added to the latency, at random"});
  t.add({.name = "doorbell",
         .kind = Kind::seconds,
         .default_text = "0",
         .min = 0,
         .max = 60,
         .help = "time from a doorbell to the first command that it announces"});
  t.add({.name = "window",
         .kind = Kind::integer,
         .default_text = "0",
         .min = 0,
         .max = 1 << 20,
         .help = "operations that may wait for their acknowledgement at once; 0: no limit"});
}

void add_faults(options::OptionTable& t) {
  t.add(
      {.name = "delay",
       .kind = Kind::seconds,
       .default_text = "0",
       .min = 0,
       .max = 3600,
       .help = "how long --fault delay holds an acknowledgement back; 0: one and a half times --late-after"});
  t.add({.name = "nack",
         .kind = Kind::integer,
         .default_text = "2",
         .min = 2,
         .max = 63,
         .help = "the return code of --fault error; 2: UNDELIVERABLE"});
  t.add({.name = "eq-full",
         .kind = Kind::integer,
         .default_text = "0",
         .min = 0,
         .help = "each event queue has room for N events only and drops the rest; 0: never"});
  t.add({.name = "stuck-read",
         .kind = Kind::integer,
         .default_text = "0",
         .min = 0,
         .help = "the read pointer of a transmit queue stays where it is after N operations; 0: never"});
  t.add({.name = "pte-disable",
         .kind = Kind::integer,
         .default_text = "0",
         .min = 0,
         .help = "the NIC disables a portals entry after N operations on it; 0: never"});
}

}  // namespace

bool is_model(std::string_view spec) {
  const std::string_view name = spec.substr(0, spec.find(':'));
  u32 number = 0;
  return name == "model" || number_of(name, number);
}

options::OptionTable model_keys() {
  options::OptionTable t;
  add_timing(t);
  t.add({.name = "pid-bits",
         .kind = Kind::integer,
         .default_text = "9",
         .min = 6,
         .max = 9,
         .help = "width of a process's number in addresses"});
  t.add({.name = "entries",
         .kind = Kind::integer,
         .default_text = "16384",
         .min = 1,
         .max = 65536,
         .help = "buffers that can be appended, all portals entries together"});
  add_faults(t);
  return t;
}

ModelConfig parse_model_spec(const std::string& spec) {
  const std::string name = spec.substr(0, spec.find(':'));
  const options::Options o = options::parse_spec("--device " + name, model_keys(), spec);
  ModelConfig c;
  (void)number_of(name, c.number);
  c.bytes_per_s = static_cast<double>(o.bytes("rate"));
  c.overhead = o.bytes("overhead");
  c.latency_ns = static_cast<u64>(o.seconds("latency") * 1e9);
  c.jitter_ns = static_cast<u64>(o.seconds("jitter") * 1e9);
  c.doorbell_ns = static_cast<u64>(o.seconds("doorbell") * 1e9);
  c.window = static_cast<u32>(o.integer("window"));
  c.pid_bits = static_cast<u32>(o.integer("pid-bits"));
  c.max_entries = static_cast<u32>(o.integer("entries"));
  c.delay_ns = static_cast<u64>(o.seconds("delay") * 1e9);
  c.nack = static_cast<ReturnCode>(o.integer("nack"));
  c.eq_full = o.integer("eq-full");
  c.stuck_read = o.integer("stuck-read");
  c.pte_disable = o.integer("pte-disable");
  return c;
}

}  // namespace doorbell::cxi
