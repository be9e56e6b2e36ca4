// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/model/spec.hpp"

#include <doorbell/error.hpp>
#include <doorbell/nvme/wire.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "nvme/backends.hpp"
#include "options/spec.hpp"

namespace doorbell::nvme {

options::OptionTable model_keys() {
  options::OptionTable t;
  t.add({.name = "media",
         .metavar = "null|ram|file:PATH",
         .default_text = "ram",
         .help =
             "what blocks are kept in: nothing (no data moves), memory, or a file that survives a restart (a "
             "comma in its name is written \\,)"});
  t.add(model::whole_key("lba", "512", 512, 4096, "bytes of a logical block: 512 or 4096",
                         &ModelConfig::lba_bytes));
  t.add(model::whole_key("formats", "1", 1, identify::lba_formats,
                         "LBA formats that the namespace reports, of which the last is in use",
                         &ModelConfig::formats));
  t.add(model::bytes_key("capacity", "1Gi", 1u << 20, u64{1} << 50,
                         "size of the namespace (not given: that of a media file which is there already)",
                         &ModelConfig::capacity_bytes));
  t.add(model::latency_key("time added to every command"));
  t.add(model::bandwidth_key("bytes a second that all queues share; 0: no limit"));
  t.add(model::threads_key("queue"));
  t.add(model::whole_key("queues", "64", 1, 64, "I/O queue pairs granted", &ModelConfig::max_queues));
  t.add(model::whole_key("entries", "4096", 2, 65536, "largest queue (CAP.MQES + 1)",
                         &ModelConfig::max_entries));
  t.add(model::whole_key("stride", "0", 0, 4, "CAP.DSTRD", &ModelConfig::stride));
  t.add(model::whole_key("mdts", "9", 0, 16, "largest transfer is 4 KiB times 2 to this power; 0: no limit",
                         &ModelConfig::mdts));
  t.add({.name = "shadow",
         .default_text = "on",
         .choices = {"on", "off"},
         .help = "offer shadow doorbells (Doorbell Buffer Config)",
         .into = {"on", &ModelConfig::shadow_doorbells}});
  t.add({.name = "format",
         .default_text = "off",
         .choices = {"on", "off"},
         .help = "carry out Format NVM and Sanitize, which make all blocks zeros; off: they are refused",
         .into = {"on", &ModelConfig::format}});
  t.add({.name = "serial",
         .metavar = "TEXT",
         .default_text = "DOORBELL-MODEL-1",
         .help = "serial number, 1 to 20 printable characters; names of the controller and its namespace "
                 "follow from it"});
  t.add(model::engine_key("I/O queues"));
  t.add(model::delay_key("a completion"));
  return t;
}

ModelConfig parse_model_spec(const std::string& spec, const std::string& controller) {
  const std::string title = controller + " model";
  const options::Options o = options::parse_spec(title, model_keys(), spec);
  ModelConfig c;
  o.read_into<model::Config>(c);
  o.read_into(c);
  const std::string& media = o.text("media");
  if (media == "null") {
    c.media = ModelConfig::Media::null;
  } else if (media == "ram") {
    c.media = ModelConfig::Media::ram;
  } else if (media.starts_with("file:") && media.size() > 5) {
    c.media = ModelConfig::Media::file;
    c.path = media.substr(5);
  } else {
    throw Error(title + ": media", fmt::format("'{}' is not one of null, ram, file:PATH", media));
  }
  if (c.lba_bytes != 512 && c.lba_bytes != 4096)
    throw Error(title + ": lba", fmt::format("{} is not one of 512, 4096", c.lba_bytes));
  c.capacity_given = o.given("capacity");
  c.serial = o.text("serial");
  if (c.serial.empty() || c.serial.size() > identify::serial_bytes ||
      !std::ranges::all_of(c.serial, [](char x) { return x > ' ' && x < 0x7f; }))
    throw Error(title + ": serial", fmt::format("'{}' is not 1 to {} printable characters without spaces",
                                                c.serial, identify::serial_bytes));
  using Engine = ModelConfig::Engine;
  if (c.engine != Engine::cpu && c.format)
    throw Error(title + ": format", fmt::format("engine={} cannot format; engine=cpu can", o.text("engine")));
  if (c.engine != Engine::cpu && c.media == ModelConfig::Media::file)
    throw Error(
        title + ": engine",
        fmt::format("{} keeps blocks in memory: media=file:... is served by engine=cpu", o.text("engine")));
  return c;
}

}  // namespace doorbell::nvme
