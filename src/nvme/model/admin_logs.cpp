// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Get Log Page.

#include <algorithm>

#include "nvme/model/admin.hpp"
#include "system/clock.hpp"

namespace doorbell::nvme {

namespace {

constexpr u8 kPages[] = {
    log::supported, log::errors,          log::smart,      log::firmware, log::changed_namespaces,
    log::effects,   log::feature_effects, log::mi_effects, log::sanitize};
constexpr u16 kKelvin = 300;
constexpr u64 kUnit = 1000 * 512;  // a data unit of SMART
constexpr u32 kSmallPage = 512, kLargePage = 4096, kListPage = 1024;
/// The most that one command may ask for where MDTS names no limit.
constexpr u64 kMostWithoutLimit = u64{1} << 20;

}  // namespace

AdminProcessor::Answer AdminProcessor::get_log(const Sqe& e) {
  constexpr u32 kRetain = 1u << 15;
  const auto id = static_cast<u8>(e.cdw10);
  AdminPage page;
  const u32 bytes = fill_log(id, page);
  if (bytes == 0) return {status::invalid_log_page};
  if (e.nsid != kAllNamespaces && e.nsid != 0 && e.nsid != 1) return {status::invalid_namespace};
  const u64 wanted = ((u64{e.cdw11 & 0xffff} << 16 | e.cdw10 >> 16) + 1) * 4;
  const u64 offset = u64{e.cdw13} << 32 | e.cdw12;
  const u32 mdts = shared_.config.mdts;
  if (wanted > (mdts != 0 ? u64{identify::bytes} << mdts : kMostWithoutLimit)) return {status::invalid_field};
  if (offset % 4 != 0 || offset > bytes) return {status::invalid_field};
  // The page's rest moves to the front; behind it are zeros.
  AdminPage part;
  std::copy(page.bytes() + offset, page.bytes() + identify::bytes, part.at(0));
  const u16 st = deliver(e, part.bytes(), wanted);
  if (st == status::success && (e.cdw10 & kRetain) == 0) events_.page_was_read(id);
  return {st};
}

u32 AdminProcessor::fill_log(u8 id, AdminPage& page) {
  switch (id) {
    case log::supported:
      for (const u8 p : kPages)
        if (p != log::sanitize || shared_.config.format) page.put<u32>(4u * p, 1);
      return kListPage;
    case log::errors:
      shared_.errors.write_to(page.at(0));
      return ErrorLog::kEntries * ErrorLog::kEntryBytes;
    case log::smart:
      fill_smart(page);
      return kSmallPage;
    case log::firmware:
      page.put<u8>(0, 1);  // the first slot is active
      page.text(8, identify::firmware_bytes, "1");
      return kSmallPage;
    case log::changed_namespaces:  // the namespace stays as it is
      return kLargePage;
    case log::effects:
      fill_effects(page);
      return kLargePage;
    case log::feature_effects:
      for (u32 f = 0; f < 256; ++f) page.put<u32>(4 * f, features_.effects(static_cast<u8>(f)));
      return kListPage;
    case log::mi_effects:  // none: there is no management interface. LPA bit 5 stands for this page too
      return kLargePage;
    case log::sanitize:
      if (!shared_.config.format) return 0;
      page.put<u16>(0, 0xffff);  // none is in progress
      page.put<u16>(2, sanitized_.status);
      page.put<u32>(4, sanitized_.cdw10);
      for (u32 at = 8; at < 32; at += 4) page.put<u32>(at, ~0u);  // no estimates
      return kSmallPage;
    default:
      return 0;
  }
}

u8 AdminProcessor::warnings() const {
  const bool hot = kKelvin >= features_.over_temperature() || kKelvin <= features_.under_temperature();
  return static_cast<u8>((hot ? smart::kTemperatureWarning : 0) |
                         (shared_.media.lost() ? smart::kReliabilityWarning : 0));
}

void AdminProcessor::fill_smart(AdminPage& page) {
  constexpr u64 kHour = 3600ull * 1'000'000'000;
  const IoTotals totals = io_.totals();
  page.put<u8>(smart::warning, warnings());
  page.put<u16>(smart::temperature, kKelvin);
  page.put<u8>(smart::spare, 100);
  page.put<u8>(smart::spare_threshold, 10);
  page.put<u64>(smart::units_read, (totals.read_bytes + kUnit - 1) / kUnit);
  page.put<u64>(smart::units_written, (totals.written_bytes + kUnit - 1) / kUnit);
  page.put<u64>(smart::reads, totals.reads);
  page.put<u64>(smart::writes, totals.writes);
  page.put<u64>(smart::power_cycles, 1);
  page.put<u64>(smart::hours, (wall_ns() - started_ns_) / kHour);
  page.put<u64>(smart::media_errors, shared_.errors.media());
  // A kernel counts its errors, and has no entries for them.
  page.put<u64>(smart::error_entries, shared_.errors.count() + (has_more() ? 0 : totals.errors));
}

void AdminProcessor::fill_effects(AdminPage& page) const {
  constexpr u32 kSupported = 1, kContent = 1u << 1, kCapabilities = 1u << 2, kAlone = 2u << 16;
  // Everything that a command can have an effect on.
  constexpr u32 kNamespace = 1u << 20, kController = 1u << 21, kSubsystem = 1u << 25;
  constexpr u32 kIo = 1024;  // offset of the I/O commands
  using enum AdminOpcode;
  const auto admin = [&](AdminOpcode op, u32 more) {
    page.put<u32>(4u * static_cast<u8>(op), kSupported | more);
  };
  for (const AdminOpcode op :
       {delete_sq, create_sq, get_log_page, delete_cq, create_cq, AdminOpcode::identify, AdminOpcode::abort,
        AdminOpcode::set_features, AdminOpcode::get_features, async_event})
    admin(op, kController);
  if (shared_.config.shadow_doorbells) admin(doorbell_buffer_config, kController);
  if (shared_.config.format) {
    admin(format_nvm, kNamespace | kContent | kCapabilities | kAlone);
    admin(AdminOpcode::sanitize, kSubsystem | kContent | kAlone);
  }
  const auto io = [&](IoOpcode op, u32 more) {
    page.put<u32>(kIo + 4u * static_cast<u8>(op), kSupported | kNamespace | more);
  };
  for (const IoOpcode op : {IoOpcode::flush, IoOpcode::read, IoOpcode::compare}) io(op, 0);
  for (const IoOpcode op : {IoOpcode::write, IoOpcode::write_zeroes}) io(op, kContent);
  if (!has_more()) return;
  io(IoOpcode::dataset_management, kContent);
  io(IoOpcode::verify, 0);
}

}  // namespace doorbell::nvme
