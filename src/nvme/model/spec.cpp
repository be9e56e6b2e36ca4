// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/model/spec.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "nvme/backends.hpp"
#include "options/spec.hpp"

namespace doorbell::nvme {

using options::Kind;

options::OptionTable model_keys() {
  options::OptionTable t;
  t.add({.name = "media",
         .kind = Kind::text,
         .metavar = "null|ram|file:PATH",
         .default_text = "ram",
         .help =
             "what blocks are kept in: nothing (no data moves), memory, or a file that survives a restart"});
  t.add({.name = "lba",
         .kind = Kind::integer,
         .default_text = "512",
         .min = 512,
         .max = 4096,
         .help = "bytes of a logical block: 512 or 4096"});
  t.add({.name = "capacity",
         .kind = Kind::size,
         .default_text = "1Gi",
         .min = 1u << 20,
         .max = u64{1} << 50,
         .help = "size of the namespace (not given: that of a media file which is there already)"});
  t.add({.name = "latency",
         .kind = Kind::seconds,
         .default_text = "0",
         .min = 0,
         .max = 60,
         .help = "time added to every command"});
  t.add({.name = "bandwidth",
         .kind = Kind::size,
         .default_text = "0",
         .min = 0,
         .max = u64{1} << 50,
         .help = "bytes a second that all queues share; 0: no limit"});
  t.add({.name = "threads",
         .kind = Kind::integer,
         .default_text = "0",
         .min = 0,
         .max = 64,
         .help = "device threads; 0: one a queue, as far as the cores go"});
  t.add({.name = "queues",
         .kind = Kind::integer,
         .default_text = "64",
         .min = 1,
         .max = 64,
         .help = "I/O queue pairs granted"});
  t.add({.name = "entries",
         .kind = Kind::integer,
         .default_text = "4096",
         .min = 2,
         .max = 65536,
         .help = "largest queue (CAP.MQES + 1)"});
  t.add({.name = "stride",
         .kind = Kind::integer,
         .default_text = "0",
         .min = 0,
         .max = 4,
         .help = "CAP.DSTRD"});
  t.add({.name = "mdts",
         .kind = Kind::integer,
         .default_text = "9",
         .min = 0,
         .max = 16,
         .help = "largest transfer is 4 KiB times 2 to this power; 0: no limit"});
  t.add({.name = "shadow",
         .kind = Kind::choice,
         .default_text = "on",
         .choices = {"on", "off"},
         .help = "offer shadow doorbells (Doorbell Buffer Config)"});
  t.add({.name = "delay",
         .kind = Kind::seconds,
         .default_text = "0",
         .min = 0,
         .max = 3600,
         .help = "how long --fault delay holds a completion back; 0: one and a half times --late-after"});
  return t;
}

ModelConfig parse_model_spec(const std::string& spec) {
  const options::Options o = options::parse_spec("--controller model", model_keys(), spec);
  ModelConfig c;
  const std::string& media = o.text("media");
  if (media == "null") {
    c.media = ModelConfig::Media::null;
  } else if (media == "ram") {
    c.media = ModelConfig::Media::ram;
  } else if (media.starts_with("file:") && media.size() > 5) {
    c.media = ModelConfig::Media::file;
    c.path = media.substr(5);
  } else {
    throw Error("--controller model: media", fmt::format("'{}' is not one of null, ram, file:PATH", media));
  }
  if (const u64 lba = o.integer("lba"); lba != 512 && lba != 4096)
    throw Error("--controller model: lba", fmt::format("{} is not one of 512, 4096", lba));
  c.lba_bytes = static_cast<u32>(o.integer("lba"));
  c.capacity_bytes = o.bytes("capacity");
  c.capacity_given = o.given("capacity");
  c.latency_ns = static_cast<u64>(o.seconds("latency") * 1e9);
  c.bytes_per_s = static_cast<double>(o.bytes("bandwidth"));
  c.threads = static_cast<u32>(o.integer("threads"));
  c.max_queues = static_cast<u32>(o.integer("queues"));
  c.max_entries = static_cast<u32>(o.integer("entries"));
  c.stride = static_cast<u32>(o.integer("stride"));
  c.mdts = static_cast<u32>(o.integer("mdts"));
  c.shadow_doorbells = o.text("shadow") == "on";
  c.delay_ns = static_cast<u64>(o.seconds("delay") * 1e9);
  return c;
}

}  // namespace doorbell::nvme
