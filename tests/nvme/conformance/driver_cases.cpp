// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Conformance of what the drivers of others ask for while they set a controller up: Linux's, and SPDK's with
// its compliance suite.
#include "admin_commands.hpp"

namespace doorbell::nvme::conformance {
namespace {

// --- Identify -------------------------------------------------------------------------------------

/// Linux and SPDK ask for them of every controller since 1.3: type, length, two reserved bytes, identifier.
void namespace_descriptors(const Target& t) {
  Rig r(t);
  ASSERT_EQ(r.c.status(identify(0, 1, r.page.iova())), status::success);
  const std::vector<u8> ns(r.page.region().host(), r.page.region().host() + kPage);
  ASSERT_EQ(r.c.status(identify(3, 1, r.page.iova())), status::success);
  const u8* const p = r.page.region().host();
  const std::map<u8, u8> lengths = {{1, 8}, {2, 16}, {3, 16}, {4, 1}};
  std::set<u8> seen;
  for (u32 pos = 0; pos < kPage - 4 && p[pos] != 0; pos += 4u + p[pos + 1]) {
    ASSERT_TRUE(lengths.contains(p[pos])) << "type " << int{p[pos]};
    EXPECT_EQ(p[pos + 1], lengths.at(p[pos]));
    EXPECT_TRUE(seen.insert(p[pos]).second) << "twice";
    // The same names as Identify Namespace has, where that has any.
    const u32 other = p[pos] == 1 ? 120 : p[pos] == 2 ? 104 : 0;
    if (other != 0) {
      EXPECT_EQ(std::memcmp(p + pos + 4, ns.data() + other, p[pos + 1]), 0);
    }
  }
  EXPECT_FALSE(seen.empty()) << "a namespace has one name at least";
  EXPECT_EQ(r.c.status(identify(3, 0, r.page.iova())), status::invalid_namespace);
}

void namespaces_that_are_none(const Target& t) {
  Rig r(t);
  EXPECT_EQ(r.c.status(identify(0, 0, r.page.iova())), status::invalid_namespace);
  const u16 all = r.c.status(identify(0, kAllNamespaces, r.page.iova()));
  // A controller with namespace management answers what all namespaces have in common.
  EXPECT_TRUE(all == status::invalid_namespace || ((t.has & one_namespace) == 0 && all == status::success));
}

void controller_lists(const Target& t) {
  Rig r(t);
  ASSERT_EQ(r.c.status(identify(1, 0, r.page.iova())), status::success);
  const u16 mine = at<u16>(r.page, identify::cntlid);
  for (const u32 cns : {0x12u, 0x13u}) {
    SCOPED_TRACE(cns);
    ASSERT_EQ(r.c.status(identify(cns, 1, r.page.iova())), status::success);
    ASSERT_EQ(at<u16>(r.page, 0), 1);
    EXPECT_EQ(at<u16>(r.page, 2), mine);
    ASSERT_EQ(r.c.status(identify(cns, 1, r.page.iova(), mine + 1u)), status::success);
    EXPECT_EQ(at<u16>(r.page, 0), 0) << "those that come after it";
  }
}

/// Linux asks for the second of them; a command set that is not there is a bad field.
void command_set_pages(const Target& t) {
  Rig r(t);
  for (const u32 cns : {5u, 6u, 7u}) {
    SCOPED_TRACE(cns);
    EXPECT_EQ(r.c.status(identify(cns, cns == 7 ? 0 : 1, r.page.iova())), status::success);
    EXPECT_EQ(r.c.status(identify(cns, 1, r.page.iova(), 0, 0x2f)), status::invalid_field);
  }
  EXPECT_EQ(at<u32>(r.page, 0), 1u) << "the list of namespaces";
}

void pages_of_later_versions(const Target& t) {
  Rig r(t);
  ASSERT_EQ(r.c.status(identify(0x08, 1, r.page.iova())), status::success);
  EXPECT_EQ(at<u8>(r.page, 14) & 1, 1) << "the namespace is ready";
  EXPECT_EQ(r.c.status(identify(0x08, 2, r.page.iova())), status::invalid_namespace);
  ASSERT_EQ(r.c.status(identify(0x1c, 0, r.page.iova(), 0xffff)), status::success);
  EXPECT_EQ(at<u64>(r.page, 0), 1u) << "the NVM command set";
  EXPECT_EQ(at<u64>(r.page, 8), 0u);
  for (const u32 cns : {0x04u, 0x09u, 0x14u, 0x15u, 0x16u, 0x17u, 0x18u, 0x20u, 0xffu})
    EXPECT_EQ(r.c.status(identify(cns, 1, r.page.iova())), status::invalid_field) << cns;
}

/// PRP1 has 1 KiB left in its page, and nobody said where the rest goes. Page 0 may well be memory.
void too_little_memory_for_a_page(const Target& t) {
  Rig r(t);
  r.page.region().host()[0] = 0x77;
  EXPECT_NE(r.c.status(identify(1, 0, r.page.iova() + 3072)), status::success);
  EXPECT_EQ(r.page.region().host()[0], 0x77);
  EXPECT_EQ(r.c.status(identify(1, 0, r.page.iova())), status::success);
}

/// Fused commands are not offered: both halves fail.
void fused_admin_commands_fail(const Target& t) {
  Rig r(t);
  for (const u8 half : {u8{1}, u8{2}}) {
    Sqe e = identify(1, 0, r.page.iova());
    e.flags = half;
    EXPECT_NE(r.c.status(e), status::success) << int{half};
  }
  EXPECT_EQ(r.c.status(identify(1, 0, r.page.iova())), status::success);
}

// --- features -------------------------------------------------------------------------------------

constexpr u32 kMandatory[] = {1, 2, 4, 5, 7, 8, 9, 0xa, 0xb};

void mandatory_features(const Target& t) {
  Rig r(t);
  for (const u32 id : kMandatory)
    EXPECT_EQ(r.c.status(get_feature(id, id == 5 ? 1 : 0)), status::success) << id;
}

/// Of each: the current value, the default, and what can be done with it.
void feature_selections(const Target& t) {
  Rig r(t);
  for (const u32 id : kMandatory) {
    SCOPED_TRACE(id);
    const u32 nsid = id == 5 ? 1 : 0;
    const Cqe now = r.c.run(get_feature(id, nsid)), standard = r.c.run(get_feature(id, nsid, 1));
    EXPECT_EQ(code(standard), status::success);
    // QEMU keeps over a reset the values that Linux set before.
    if (id != 7 && (t.has & admin_extras) != 0) {
      EXPECT_EQ(now.dw0, standard.dw0) << "nobody has set it";
    }
    EXPECT_EQ(code(r.c.run(get_feature(id, nsid, 3))), status::success);
  }
  EXPECT_EQ(r.c.run(get_feature(4, 0, 3)).dw0 & 4, 4u) << "a threshold can be changed";
}

/// Values stay until the controller is reset.
void feature_values(const Target& t) {
  Rig r(t);
  const auto current = [&](u32 id, u32 cdw11 = 0) { return r.c.run(get_feature(id, 0, 0, cdw11)).dw0; };
  const u32 before = current(4);
  EXPECT_EQ(r.c.status(set_feature(4, 350)), status::success);
  EXPECT_EQ(r.c.status(set_feature(4, 1u << 20 | 280)), status::success);
  EXPECT_EQ(current(4), 350u) << "the threshold above";
  EXPECT_EQ(current(4, 1u << 20), 280u) << "the one below";
  EXPECT_EQ(r.c.status(set_feature(0xb, 0x1f)), status::success);
  EXPECT_EQ(current(0xb) & 0x1f, 0x1fu);
  EXPECT_EQ(r.c.run(get_feature(4, 0, 1)).dw0, before) << "the default stays";
  if ((t.has & admin_extras) == 0) return;  // QEMU keeps them over a reset
  r.c.disable();
  r.c.enable();
  EXPECT_EQ(current(4), before);
}

void optional_features(const Target& t) {
  Rig r(t);
  const auto current = [&](u32 id, u32 cdw11 = 0) { return r.c.run(get_feature(id, 0, 0, cdw11)).dw0; };
  EXPECT_EQ(r.c.status(get_feature(5)), status::success) << "without a namespace";
  EXPECT_EQ(r.c.status(get_feature(5, 2)), status::invalid_namespace);
  EXPECT_EQ(r.c.status(set_feature(1, 0x01020304)), status::success);
  EXPECT_EQ(current(1), 0x01020304u & 0xffffff07u);
  EXPECT_EQ(r.c.status(set_feature(8, 0x0304)), status::success);
  EXPECT_EQ(current(8), 0x0304u);
  EXPECT_EQ(r.c.status(set_feature(0xa, 1)), status::success);
  EXPECT_EQ(current(0xa), 1u);
  EXPECT_EQ(r.c.status(set_feature(9, 1u << 16)), status::success);
  EXPECT_EQ(current(9), 1u << 16) << "no coalescing for vector 0";
  EXPECT_EQ(r.c.status(get_feature(9, 0, 0, 4000)), status::invalid_field) << "there is no such vector";
  // Data of the timestamp: milliseconds, and that a host has set them.
  auto* const p = r.page.region().host();
  const u64 set = 0x0000'0192'0000'0000;
  std::memcpy(p, &set, 8);
  EXPECT_EQ(r.c.status(set_feature(0xe, 0, 0, r.page.iova())), status::success);
  std::memset(p, 0xff, 16);
  EXPECT_EQ(r.c.status(get_feature(0xe, 0, 0, 0, r.page.iova())), status::success);
  EXPECT_LT((at<u64>(r.page, 0) & 0xffff'ffff'ffff) - set, 60'000u);
  EXPECT_EQ(p[6] >> 1 & 7, 1) << "the host has set it";
  EXPECT_EQ(p[8], 0xff) << "8 bytes";
  EXPECT_EQ(r.c.status(get_feature(0xe, 0, 1, 0, r.page.iova())), status::success);
  EXPECT_EQ(p[6] >> 1 & 7, 0);
  // Host behavior and the host's identifier.
  for (u32 i = 0; i < 512; ++i) p[i] = static_cast<u8>(i + 1);
  EXPECT_EQ(r.c.status(set_feature(0x16, 0, 0, r.page.iova())), status::success);
  EXPECT_EQ(r.c.status(set_feature(0x81, 1, 0, r.page.iova())), status::success);
  std::memset(p, 0xee, 2 * kPage);
  EXPECT_EQ(r.c.status(get_feature(0x16, 0, 0, 0, r.page.iova())), status::success);
  for (u32 i = 0; i < 512; ++i) ASSERT_EQ(p[i], static_cast<u8>(i + 1)) << i;
  EXPECT_EQ(p[512], 0xee);
  std::memset(p, 0xee, 512);
  EXPECT_EQ(r.c.status(get_feature(0x81, 0, 0, 1, r.page.iova())), status::success);
  for (u32 i = 0; i < 16; ++i) ASSERT_EQ(p[i], static_cast<u8>(i + 1)) << i;
  EXPECT_EQ(p[16], 0xee);
  EXPECT_EQ(r.c.status(set_feature(0x81, 1, 0, u64{1} << 60)), status::data_transfer_error);
}

void features_that_are_refused(const Target& t) {
  Rig r(t);
  EXPECT_EQ(r.c.status(set_feature(2, 1)), status::invalid_field) << "there is one power state";
  EXPECT_EQ(r.c.status(set_feature(5, 1u << 16)), status::invalid_field) << "no deallocated-block errors";
  EXPECT_EQ(r.c.status(set_feature(4, 3u << 16 | 300)), status::invalid_field) << "there is no third sensor";
  EXPECT_EQ(r.c.status(get_feature(4, 0, 0, 3u << 16)), status::invalid_field);
  EXPECT_EQ(r.c.status(set_feature(1, 0, 1)), status::feature_not_per_namespace);
  Sqe save = set_feature(4, 350);
  save.cdw10 |= 1u << 31;
  EXPECT_EQ(r.c.status(save), status::feature_not_saveable);
  EXPECT_EQ(r.c.status(get_feature(0xf)), status::success) << "SPDK asks for keep alive";
  EXPECT_EQ(r.c.status(set_feature(0xf, 5000)), status::feature_not_changeable);
  EXPECT_EQ(r.c.status(get_feature(1, 0, 5)), status::invalid_field) << "no such selection";
  for (const u32 id :
       {0x00u, 0x03u, 0x0cu, 0x0du, 0x10u, 0x11u, 0x12u, 0x17u, 0x78u, 0x80u, 0x82u, 0x84u, 0xc0u}) {
    EXPECT_EQ(r.c.status(get_feature(id)), status::invalid_field) << id;
    EXPECT_EQ(r.c.status(set_feature(id, 0)), status::invalid_field) << id;
  }
  Sqe keep_alive;
  keep_alive.opcode = 0x18;
  EXPECT_EQ(r.c.status(keep_alive), status::invalid_opcode);
}

// --- logs -----------------------------------------------------------------------------------------

void mandatory_logs(const Target& t) {
  Rig r(t);
  for (const u8 log : {u8{1}, u8{2}, u8{3}})
    EXPECT_EQ(r.c.status(log_page(log, 512, 0, r.page.iova())), status::success) << int{log};
  EXPECT_EQ(r.c.status(log_page(3, 512, 0, r.page.iova())), status::success);
  EXPECT_GE(at<u8>(r.page, 0) & 7, 1) << "a slot is active";
}

/// LPA bit 2: a page may be read in pieces.
void logs_in_pieces(const Target& t) {
  Rig r(t);
  ASSERT_EQ(r.c.status(identify(1, 0, r.page.iova())), status::success);
  if ((at<u8>(r.page, identify::lpa) & 4) == 0) GTEST_SKIP() << "it has no offsets";
  ASSERT_EQ(r.c.status(log_page(3, 512, 0, r.page.iova())), status::success);
  const std::vector<u8> whole(r.page.region().host(), r.page.region().host() + 512);
  ASSERT_EQ(r.c.status(log_page(3, 64, 8, r.page.iova())), status::success);
  EXPECT_EQ(std::memcmp(r.page.region().host(), whole.data() + 8, 64), 0);
  EXPECT_EQ(r.c.status(log_page(3, 4, 516, r.page.iova())), status::invalid_field) << "behind its end";
  EXPECT_EQ(r.c.status(log_page(3, 4, u64{1} << 40, r.page.iova())), status::invalid_field);
}

void error_entries(const Target& t) {
  Rig r(t);
  const auto newest = [&] {
    EXPECT_EQ(r.c.status(log_page(1, 128, 0, r.page.iova())), status::success);
    return at<u64>(r.page, 0);
  };
  const u64 before = newest();
  Sqe bad;
  bad.opcode = 0x7f;
  const Cqe refused = r.c.run(bad);
  Sqe read = r.command(IoOpcode::read, r.blocks, 1, r.data.iova());
  const Cqe failed = r.run(read);
  ASSERT_EQ(newest(), before + 2);
  EXPECT_EQ(at<u16>(r.page, 8), 1) << "the submission queue";
  EXPECT_EQ(at<u16>(r.page, 10), failed.cid);
  EXPECT_EQ(at<u16>(r.page, 12) >> 1 & 0x7ff, status::lba_out_of_range);
  EXPECT_EQ(at<u64>(r.page, 16), r.blocks);
  EXPECT_EQ(at<u32>(r.page, 24), 1u);
  EXPECT_EQ(at<u64>(r.page, 64), before + 1);
  EXPECT_EQ(at<u16>(r.page, 72), 0);
  EXPECT_EQ(at<u16>(r.page, 74), refused.cid);
  EXPECT_EQ(at<u16>(r.page, 76) >> 1 & 0x7ff, status::invalid_opcode);
  ASSERT_EQ(r.c.status(log_page(2, 512, 0, r.page.iova())), status::success);
  EXPECT_EQ(at<u64>(r.page, 176), before + 2);
  // No more than ELPE + 1, the newest of them.
  for (int i = 0; i < 100; ++i) (void)r.c.run(bad);
  ASSERT_EQ(r.c.status(log_page(1, kPage, 0, r.page.iova())), status::success);
  for (u64 i = 0; i < kPage / 64; ++i) ASSERT_EQ(at<u64>(r.page, i * 64), before + 102 - i);
}

void smart_units(const Target& t) {
  Rig r(t);
  const auto units = [&](u32 offset) {
    EXPECT_EQ(r.c.status(log_page(2, 512, 0, r.page.iova())), status::success);
    return at<u64>(r.page, offset);
  };
  const u32 n = 4 * kPage / r.lba_bytes;
  const Mapped& lists = r.c.memory(kPage);
  write_prp_list(reinterpret_cast<u64*>(lists.region().host()), r.data.iova(), 4 * kPage, kPage,
                 lists.iova());
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(r.status(r.command(IoOpcode::write, 0, n, r.data.iova(), lists.iova())), status::success);
    if (i % 2 == 0) {
      ASSERT_EQ(r.status(r.command(IoOpcode::read, 0, n, r.data.iova(), lists.iova())), status::success);
    }
  }
  const u64 written = 100ull * 4 * kPage;
  EXPECT_EQ(units(48), (written + 511'999) / 512'000);
  EXPECT_EQ(units(32), (written / 2 + 511'999) / 512'000);
}

void lists_of_what_is_supported(const Target& t) {
  Rig r(t);
  ASSERT_EQ(r.c.status(log_page(0, 1024, 0, r.page.iova())), status::success);
  std::vector<u32> pages(256);
  std::memcpy(pages.data(), r.page.region().host(), 1024);
  for (u32 id = 0; id < 256; ++id) {
    const u16 st = r.c.status(log_page(static_cast<u8>(id), 4, 0, r.page.iova()));
    EXPECT_EQ(st, (pages[id] & 1) != 0 ? status::success : status::invalid_log_page) << id;
  }
  ASSERT_EQ(r.c.status(identify(1, 0, r.page.iova())), status::success);
  if ((at<u8>(r.page, identify::lpa) >> 5 & 1) != 0) {
    for (const u32 id : {0x00u, 0x05u, 0x12u, 0x13u}) EXPECT_EQ(pages[id] & 1, 1u) << "LPA bit 5: " << id;
  }
  ASSERT_EQ(r.c.status(log_page(0x12, 1024, 0, r.page.iova())), status::success);
  std::vector<u32> features(256);
  std::memcpy(features.data(), r.page.region().host(), 1024);
  for (u32 id = 0; id < 256; ++id)
    EXPECT_EQ(r.c.status(get_feature(id, 0, 3)),
              (features[id] & 1) != 0 ? status::success : status::invalid_field)
        << id;
}

/// Linux reads what a command does from this page. What it does not list is an invalid opcode.
void command_effects(const Target& t) {
  Rig r(t);
  ASSERT_EQ(r.c.status(identify(1, 0, r.page.iova())), status::success);
  if ((at<u8>(r.page, identify::lpa) & 2) == 0) GTEST_SKIP() << "it has no such page";
  const bool scopes = (at<u8>(r.page, identify::lpa) >> 5 & 1) != 0;
  ASSERT_EQ(r.c.status(log_page(5, kPage, 0, r.page.iova())), status::success);
  std::vector<u32> effects(512);
  std::memcpy(effects.data(), r.page.region().host(), 2048);
  for (const u32 op : {0x00u, 0x01u, 0x02u, 0x04u, 0x05u, 0x06u, 0x08u, 0x09u, 0x0au, 0x0cu})
    EXPECT_EQ(effects[op] & 1, 1u) << op;
  EXPECT_EQ(effects[256 + 1] & 3, 3u) << "a write changes blocks";
  EXPECT_EQ(effects[256 + 2] & 3, 1u) << "a read does not";
  for (const u32 e : effects) EXPECT_EQ(scopes && (e & 1) != 0, e >> 20 != 0) << "its scope";
  for (u32 op = 0; op < 256; ++op) {
    // Not: queues, requests for events, and what destroys data.
    if ((effects[256 + op] & 1) == 0) {
      Sqe e;
      e.opcode = static_cast<u8>(op);
      e.nsid = 1;
      EXPECT_EQ(r.status(e), status::invalid_opcode) << "I/O command " << op;
    }
    if ((effects[op] & 1) == 0) {
      Sqe e;
      e.opcode = static_cast<u8>(op);
      EXPECT_EQ(r.c.status(e), status::invalid_opcode) << "admin command " << op;
    }
  }
}

void format_is_refused(const Target& t) {
  Rig r(t);
  fill(r.bytes(), kPage, 5);
  const u32 n = kPage / r.lba_bytes;
  ASSERT_EQ(r.status(r.command(IoOpcode::write, 0, n, r.data.iova())), status::success);
  for (const AdminOpcode op : {AdminOpcode::format_nvm, AdminOpcode::sanitize}) {
    Sqe e = admin_command(op, 0);
    e.nsid = 1;
    e.cdw10 = op == AdminOpcode::sanitize ? 2 : 0;
    EXPECT_EQ(r.c.status(e), status::invalid_opcode);
  }
  ASSERT_EQ(r.status(r.command(IoOpcode::compare, 0, n, r.data.iova())), status::success);
}

}  // namespace

std::vector<Case> driver_cases() {
  return {
      {"NamespaceDescriptors", nothing, namespace_descriptors},
      {"NamespacesThatAreNone", nothing, namespaces_that_are_none},
      {"ControllerLists", admin_extras, controller_lists},
      {"CommandSetPages", identify_lists, command_set_pages},
      {"PagesOfLaterVersions", admin_extras, pages_of_later_versions},
      {"TooLittleMemoryForAPage", admin_extras, too_little_memory_for_a_page},
      {"FusedAdminCommandsFail", nothing, fused_admin_commands_fail},
      {"MandatoryFeatures", nothing, mandatory_features},
      {"FeatureSelections", nothing, feature_selections},
      {"FeatureValues", nothing, feature_values},
      {"OptionalFeatures", admin_extras, optional_features},
      {"FeaturesThatAreRefused", admin_extras, features_that_are_refused},
      {"MandatoryLogs", nothing, mandatory_logs},
      {"LogsInPieces", nothing, logs_in_pieces},
      {"ErrorEntries", admin_extras | io_errors, error_entries},
      {"SmartUnits", admin_extras, smart_units},
      {"ListsOfWhatIsSupported", admin_extras, lists_of_what_is_supported},
      {"CommandEffects", nothing, command_effects},
      {"FormatIsRefused", admin_extras, format_is_refused},
  };
}

}  // namespace doorbell::nvme::conformance
