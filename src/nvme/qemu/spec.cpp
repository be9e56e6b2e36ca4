// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "nvme/qemu/config.hpp"
#include "options/spec.hpp"

namespace doorbell::nvme {

using options::Kind;

options::OptionTable qemu_keys() {
  options::OptionTable t;
  t.add({.name = "media",
         .default_text = "ram",
         .choices = {"ram", "null"},
         .help = "what blocks are kept in: memory, or nothing (no data moves)"});
  t.add({.name = "drive",
         .metavar = "PATH",
         .help = "a raw image or block device that is the namespace, instead of media",
         .into = &QemuConfig::drive});
  t.add({.name = "lba",
         .default_text = "512",
         .min = 512,
         .max = 4096,
         .help = "bytes of a logical block: 512 or 4096",
         .into = &QemuConfig::lba_bytes});
  t.add({.name = "capacity",
         .kind = Kind::size,
         .default_text = "1Gi",
         .min = 1u << 20,
         .max = u64{1} << 46,
         .help = "size of the namespace, without a drive",
         .into = &QemuConfig::capacity_bytes});
  t.add({.name = "queues",
         .default_text = "64",
         .min = 1,
         .max = 64,
         .help = "I/O queue pairs granted",
         .into = &QemuConfig::queues});
  t.add({.name = "mdts",
         .default_text = "7",
         .min = 1,
         .max = 10,  // QEMU fails what has more than 1024 pages
         .help = "largest transfer is 4 KiB times 2 to this power",
         .into = &QemuConfig::mdts});
  t.add({.name = "iops",
         .default_text = "0",
         .max = u64{1} << 40,
         .help = "commands a second at most; 0: no limit",
         .into = &QemuConfig::iops});
  t.add({.name = "bad-sector",
         .metavar = "N",
         .max = u64{1} << 54,
         .help = "a 512-byte sector whose reading is a media error",
         .into = &QemuConfig::bad_sector});
  t.add({.name = "binary",
         .metavar = "PATH",
         .help = "the QEMU to start (not given: $DOORBELL_QEMU, or qemu-system-x86_64)",
         .into = &QemuConfig::binary});
  return t;
}

QemuConfig parse_qemu_spec(const std::string& spec, const std::string& controller) {
  QemuConfig c;
  c.title = controller + " qemu";
  const options::Options o = options::parse_spec(c.title, qemu_keys(), spec);
  o.read_into(c);
  if (o.has("drive")) {
    if (o.given("media") || o.given("capacity"))
      throw Error(c.title + ": drive", "it contradicts media and capacity", "give one of them");
    c.media = QemuConfig::Media::drive;
    // QEMU's own options are separated by commas too.
    if (c.drive.empty() || c.drive.find(',') != std::string::npos)
      throw Error(c.title + ": drive", fmt::format("'{}' is no usable path", c.drive));
  } else if (o.text("media") == "null") {
    c.media = QemuConfig::Media::null;
  }
  if (c.lba_bytes != 512 && c.lba_bytes != 4096)
    throw Error(c.title + ": lba", fmt::format("{} is not one of 512, 4096", c.lba_bytes));
  if (c.capacity_bytes % c.lba_bytes != 0)
    throw Error(c.title + ": capacity",
                fmt::format("{} is not a multiple of the logical block, {}", c.capacity_bytes, c.lba_bytes));
  c.has_bad_sector = o.has("bad-sector");
  if (const u64 sectors = c.capacity_bytes / 512;
      c.has_bad_sector && c.media != QemuConfig::Media::drive && c.bad_sector >= sectors)
    throw Error(c.title + ": bad-sector",
                fmt::format("{} is not in 0..{}, the sectors of its capacity", c.bad_sector, sectors - 1));
  return c;
}

}  // namespace doorbell::nvme
