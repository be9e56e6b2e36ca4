// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/model/spec.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "options/spec.hpp"

namespace doorbell::rdma {

using options::Kind;

options::OptionTable model_keys() {
  options::OptionTable t;
  t.add({.name = "threads",
         .kind = Kind::integer,
         .default_text = "0",
         .min = 0,
         .max = 64,
         .help = "device threads; 0: one a queue pair, as far as the cores go"});
  t.add({.name = "mtu",
         .kind = Kind::integer,
         .default_text = "4096",
         .min = 256,
         .max = 4096,
         .help = "payload bytes of a packet: 256, 512, 1024, 2048 or 4096"});
  t.add({.name = "rate",
         .kind = Kind::size,
         .default_text = "0",
         .min = 0,
         .max = u64{1} << 50,
         .help =
             "bytes a second on the wire, RoCEv2 headers included, that all queue pairs share; 0: no limit"});
  t.add({.name = "latency",
         .kind = Kind::seconds,
         .default_text = "0",
         .min = 0,
         .max = 60,
         .help = "time added to every message"});
  t.add({.name = "loss",
         .kind = Kind::real,
         .default_text = "0",
         .min = 0,
         .max = 1,
         .help = "probability that a packet is lost"});
  t.add({.name = "rnr",
         .kind = Kind::integer,
         .default_text = "0",
         .min = 0,
         .max = 1000,
         .help = "answer 'receiver not ready' to the first N tries of each message that takes a receive"});
  t.add({.name = "max-inline",
         .kind = Kind::size,
         .default_text = "0",
         .min = 0,
         .max = 1024,
         .help = "largest inlined payload granted; 0: what the queue format can carry"});
  t.add({.name = "sq",
         .kind = Kind::integer,
         .default_text = "32768",
         .min = 1,
         .max = 32768,
         .help = "largest send queue, in requests"});
  t.add({.name = "rq",
         .kind = Kind::integer,
         .default_text = "32768",
         .min = 1,
         .max = 32768,
         .help = "largest receive queue, in entries"});
  t.add({.name = "delay",
         .kind = Kind::seconds,
         .default_text = "0",
         .min = 0,
         .max = 3600,
         .help = "how long --fault delay holds a completion back; 0: one and a half times --late-after"});
  return t;
}

ModelConfig parse_model_spec(const std::string& spec) {
  const options::Options o = options::parse_spec("--device model", model_keys(), spec);
  ModelConfig c;
  c.threads = static_cast<u32>(o.integer("threads"));
  const u64 mtu = o.integer("mtu");
  if ((mtu & (mtu - 1)) != 0)
    throw Error("--device model: mtu", fmt::format("{} is not one of 256, 512, 1024, 2048, 4096", mtu));
  c.mtu = static_cast<u32>(mtu);
  c.bytes_per_s = static_cast<double>(o.bytes("rate"));
  c.latency_ns = static_cast<u64>(o.seconds("latency") * 1e9);
  c.loss = o.real("loss");
  c.rnr_tries = static_cast<u32>(o.integer("rnr"));
  c.max_inline = static_cast<u32>(o.bytes("max-inline"));
  c.max_sends = static_cast<u32>(o.integer("sq"));
  c.max_receives = static_cast<u32>(o.integer("rq"));
  c.delay_ns = static_cast<u64>(o.seconds("delay") * 1e9);
  return c;
}

}  // namespace doorbell::rdma
