// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace doorbell::cxi {

namespace {

template <class E>
using Named = std::pair<E, std::string_view>;

constexpr auto kReturnCodes = std::to_array<Named<ReturnCode>>({
    {ReturnCode::none, "NO_EVENT"},
    {ReturnCode::ok, "OK"},
    {ReturnCode::undeliverable, "UNDELIVERABLE"},
    {ReturnCode::pt_disabled, "PT_DISABLED"},
    {ReturnCode::dropped, "DROPPED"},
    {ReturnCode::perm_violation, "PERM_VIOLATION"},
    {ReturnCode::op_violation, "OP_VIOLATION"},
    {ReturnCode::no_space, "NO_SPACE"},
    {ReturnCode::entry_not_found, "ENTRY_NOT_FOUND"},
    {ReturnCode::invalid_dfa_format, "INVALID_DFA_FORMAT"},
    {ReturnCode::vni_not_found, "VNI_NOT_FOUND"},
    {ReturnCode::ptlte_not_found, "PTLTE_NOT_FOUND"},
    {ReturnCode::invalid_ac, "INVALID_AC"},
    {ReturnCode::page_perm_error, "PAGE_PERM_ERROR"},
    {ReturnCode::no_translation, "NO_TRANSLATION"},
    {ReturnCode::illegal_op, "ILLEGAL_OP"},
    {ReturnCode::invalid_endpoint, "INVALID_ENDPOINT"},
    {ReturnCode::cmd_align_error, "CMD_ALIGN_ERROR"},
    {ReturnCode::cmd_invalid_arg, "CMD_INVALID_ARG"},
    {ReturnCode::addr_out_of_range, "ADDR_OUT_OF_RANGE"},
    {ReturnCode::canceled, "CANCELED"},
    {ReturnCode::resource_busy, "RESOURCE_BUSY"},
});

constexpr auto kEventTypes = std::to_array<Named<EventType>>({
    {EventType::put, "PUT"},
    {EventType::get, "GET"},
    {EventType::atomic, "ATOMIC"},
    {EventType::fetch_atomic, "FETCH_ATOMIC"},
    {EventType::put_overflow, "PUT_OVERFLOW"},
    {EventType::get_overflow, "GET_OVERFLOW"},
    {EventType::atomic_overflow, "ATOMIC_OVERFLOW"},
    {EventType::fetch_atomic_overflow, "FETCH_ATOMIC_OVERFLOW"},
    {EventType::send, "SEND"},
    {EventType::ack, "ACK"},
    {EventType::reply, "REPLY"},
    {EventType::link, "LINK"},
    {EventType::search, "SEARCH"},
    {EventType::state_change, "STATE_CHANGE"},
    {EventType::unlink, "UNLINK"},
    {EventType::rendezvous, "RENDEZVOUS"},
    {EventType::ethernet, "ETHERNET"},
    {EventType::command_failure, "COMMAND_FAILURE"},
    {EventType::triggered_op, "TRIGGERED_OP"},
    {EventType::fgfc, "FGFC"},
    {EventType::pct, "PCT"},
    {EventType::match, "MATCH"},
    {EventType::error, "ERROR"},
    {EventType::timestamp, "TIMESTAMP"},
    {EventType::eq_switch, "EQ_SWITCH"},
    {EventType::null_event, "NULL_EVENT"},
});

constexpr auto kStates = std::to_array<Named<PtlteState>>({
    {PtlteState::reset, "RESET"},
    {PtlteState::disabled, "DISABLED"},
    {PtlteState::enabled, "ENABLED"},
    {PtlteState::software_managed, "SOFTWARE_MANAGED"},
    {PtlteState::ethernet, "ETHERNET"},
});

template <class Table, class E>
std::string look_up(const Table& table, E value, std::string_view kind) {
  const auto found = std::ranges::find(table, value, [](const auto& entry) { return entry.first; });
  if (found != table.end()) return std::string(found->second);
  return fmt::format("{} {}", kind, static_cast<u32>(value));
}

}  // namespace

std::string name(ReturnCode code) {
  return look_up(kReturnCodes, code, "code");
}

std::string name(EventType type) {
  return look_up(kEventTypes, type, "type");
}

std::string name(PtlteState state) {
  return look_up(kStates, state, "state");
}

}  // namespace doorbell::cxi
