// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Identify: the pages that drivers ask for, those of NVMe 2.0 too.

#include <bit>
#include <cstring>

#include "nvme/identity.hpp"
#include "nvme/model/admin.hpp"

namespace doorbell::nvme {

namespace {

constexpr u16 kControllerId = 1;
constexpr u32 kVersion = 0x00010400;
constexpr u8 kOui[] = {0x00, 0xdb, 0x02};  // stored from its last byte on; locally administered

/// FNV-1a: names that two controllers have only if they have the same serial number.
u64 hash(std::string_view text, u64 seed) {
  u64 h = 0xcbf29ce484222325 ^ seed;
  for (const char c : text) h = (h ^ static_cast<u8>(c)) * 0x100000001b3;
  return h;
}

/// EUI-64 and NGUID, in the order of their bytes. Bit 1 of the first byte says that no authority gave them.
void put_names(std::string_view serial, u8* eui64, u8* nguid) {
  const u64 words[3] = {hash(serial, 1), hash(serial, 2), hash(serial, 3)};
  std::memcpy(eui64, &words[0], identify::eui64_bytes);
  std::memcpy(nguid, &words[1], identify::nguid_bytes);
  eui64[0] = static_cast<u8>((eui64[0] & 0xfc) | 2);
  nguid[8] = static_cast<u8>((nguid[8] & 0xfc) | 2);
}

}  // namespace

std::string AdminProcessor::serial() const {
  return shared_.config.serial;
}

AdminProcessor::Answer AdminProcessor::identify(const Sqe& e) {
  AdminPage page;
  if (const u16 st = fill_identify(e, page); st != status::success) return {st};
  return {deliver(e, page.bytes(), identify::bytes)};
}

u16 AdminProcessor::fill_identify(const Sqe& e, AdminPage& page) const {
  const u32 controller = e.cdw10 >> 16;
  const u32 command_set = e.cdw11 >> 24;
  const auto which = static_cast<u8>(e.cdw10);
  const bool of_a_set =
      which == cns::set_name_space || which == cns::set_controller || which == cns::set_active_list;
  if (of_a_set && command_set != 0) return status::invalid_field;  // there is the NVM command set alone
  switch (which) {
    case cns::controller:
      fill_controller(page);
      return status::success;
    case cns::name_space:
    case cns::allocated_name_space:
      if (e.nsid != 1) return status::invalid_namespace;
      fill_name_space(page);
      return status::success;
    case cns::active_list:
    case cns::set_active_list:
    case cns::allocated_list:
      if (e.nsid >= 0xfffffffe) return status::invalid_namespace;
      if (e.nsid < 1) page.put<u32>(0, 1);
      return status::success;
    case cns::descriptors:
      if (e.nsid != 1) return status::invalid_namespace;
      fill_descriptors(page);
      return status::success;
    case cns::set_name_space:  // no format of its has anything beside its size: zeros
      return e.nsid == 1 ? status::success : status::invalid_namespace;
    case cns::set_controller:  // no limit of Verify, Write Zeroes, Write Uncorrectable, Dataset Management
      return status::success;
    case cns::independent_name_space: {
      constexpr u32 kStatus = 14;
      if (e.nsid != 1) return status::invalid_namespace;
      page.put<u8>(kStatus, 1);  // it is ready
      return status::success;
    }
    case cns::attached_controllers:
      if (e.nsid != 1) return status::invalid_namespace;
      [[fallthrough]];
    case cns::controllers:
      if (controller <= kControllerId) {
        page.put<u16>(0, 1);
        page.put<u16>(2, kControllerId);
      }
      return status::success;
    case cns::command_sets:
      if (controller != kControllerId && controller != 0xffff) return status::invalid_field;
      page.put<u64>(0, 1);  // one combination: the NVM command set
      return status::success;
    default:
      return status::invalid_field;
  }
}

void AdminProcessor::fill_controller(AdminPage& page) const {
  const ModelConfig& c = shared_.config;
  page.put<u16>(identify::vid, kModelVendor);
  page.put<u16>(identify::ssvid, kModelVendor);
  page.text(identify::serial, identify::serial_bytes, serial());
  page.text(identify::model, identify::model_bytes,
            c.engine == ModelConfig::Engine::cpu   ? "doorbell model controller"
            : c.engine == ModelConfig::Engine::gpu ? "doorbell model controller, GPU kernel"
                                                   : "doorbell model controller, kernel code");
  page.text(identify::firmware, identify::firmware_bytes, "1");
  for (u32 i = 0; i < sizeof kOui; ++i) page.put<u8>(identify::oui + i, kOui[i]);
  page.put<u8>(identify::mdts, static_cast<u8>(c.mdts));
  page.put<u16>(identify::cntlid, kControllerId);
  page.put<u32>(identify::version, kVersion);
  page.put<u32>(identify::rtd3e, 1'000'000);
  page.put<u32>(identify::ctratt, identify::ctratt_host_id_128);
  page.put<u8>(identify::controller_type, 1);
  page.put<u16>(identify::oacs, static_cast<u16>((c.shadow_doorbells ? identify::oacs_doorbell_buffer : 0) |
                                                 (c.format ? identify::oacs_format : 0)));
  page.put<u8>(identify::acl, 3);
  page.put<u8>(identify::aerl, AsyncEvents::kRequests - 1);
  page.put<u8>(identify::frmw, 1u << 1 | 1u);  // one slot, which is read only
  page.put<u8>(identify::lpa, identify::lpa_smart_per_namespace | identify::lpa_effects |
                                  identify::lpa_offset | identify::lpa_supported_pages);
  page.put<u8>(identify::elpe, ErrorLog::kEntries - 1);
  page.put<u16>(identify::warning_temperature, Features::kWarningTemperature);
  page.put<u16>(identify::critical_temperature, Features::kCriticalTemperature);
  page.put<u32>(identify::sanicap, c.format ? identify::sanicap_block_erase : 0);
  page.put<u8>(identify::sqes, 0x66);
  page.put<u8>(identify::cqes, 0x44);
  page.put<u16>(identify::maxcmd, static_cast<u16>(std::min(c.max_entries, 65535u)));
  page.put<u32>(identify::nn, 1);
  page.put<u16>(identify::oncs,
                static_cast<u16>(identify::oncs_compare | identify::oncs_write_zeroes |
                                 identify::oncs_save_and_select | identify::oncs_timestamp |
                                 (has_more() ? identify::oncs_dataset | identify::oncs_verify : 0)));
  constexpr u8 kPresent = 1, kFlushTakesAll = 3u << 1;
  page.put<u8>(identify::vwc,
               static_cast<u8>(kFlushTakesAll | (c.media == ModelConfig::Media::file ? kPresent : 0)));
  const std::string name = "nqn.2026-11.dev.doorbell:" + serial();
  std::memcpy(page.at(identify::subnqn), name.data(), name.size());
  page.put<u16>(identify::power_states, 100);  // one state, of 1 W
}

void AdminProcessor::fill_name_space(AdminPage& page) const {
  const ModelConfig& c = shared_.config;
  for (const u32 at : {identify::nsze, identify::ncap, identify::nuse})
    page.put<u64>(at, shared_.shape.blocks);
  page.put<u8>(identify::nlbaf, static_cast<u8>(c.formats - 1));
  page.put<u8>(identify::flbas, identify::flbas_of(format_));
  page.put<u8>(identify::dlfeat, has_more() ? 1 : 0);  // blocks that were given up read as zeros
  put_names(serial(), page.at(identify::eui64), page.at(identify::nguid));
  for (u32 f = 0; f < c.formats; ++f)
    page.put<u8>(identify::lbaf + 4 * f + 2, static_cast<u8>(std::countr_zero(block_bytes(f))));
}

/// Each: type, length, two reserved bytes, the identifier.
void AdminProcessor::fill_descriptors(AdminPage& page) const {
  constexpr u8 kEui64 = 1, kNguid = 2, kCommandSet = 4;
  u8 eui64[identify::eui64_bytes], nguid[identify::nguid_bytes];
  put_names(serial(), eui64, nguid);
  u32 at = 0;
  const auto put = [&](u8 type, const u8* id, u8 bytes) {
    page.put<u8>(at, type);
    page.put<u8>(at + 1, bytes);
    std::memcpy(page.at(at + 4), id, bytes);
    at += 4u + bytes;
  };
  const u8 nvm = 0;
  put(kEui64, eui64, sizeof eui64);
  put(kNguid, nguid, sizeof nguid);
  put(kCommandSet, &nvm, 1);
}

}  // namespace doorbell::nvme
