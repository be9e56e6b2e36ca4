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
    {ReturnCode::no_match, "NO_MATCH"},
    {ReturnCode::uncor, "UNCOR"},
    {ReturnCode::uncor_trnsnt, "UNCOR_TRNSNT"},
    {ReturnCode::no_space, "NO_SPACE"},
    {ReturnCode::entry_not_found, "ENTRY_NOT_FOUND"},
    {ReturnCode::no_target_conn, "NO_TARGET_CONN"},
    {ReturnCode::no_target_mst, "NO_TARGET_MST"},
    {ReturnCode::no_target_trs, "NO_TARGET_TRS"},
    {ReturnCode::sequence_error, "SEQUENCE_ERROR"},
    {ReturnCode::no_matching_conn, "NO_MATCHING_CONN"},
    {ReturnCode::invalid_dfa_format, "INVALID_DFA_FORMAT"},
    {ReturnCode::vni_not_found, "VNI_NOT_FOUND"},
    {ReturnCode::ptlte_not_found, "PTLTE_NOT_FOUND"},
    {ReturnCode::ptlte_sw_managed, "PTLTE_SW_MANAGED"},
    {ReturnCode::src_error, "SRC_ERROR"},
    {ReturnCode::mst_cancelled, "MST_CANCELLED"},
    {ReturnCode::hrp_config_error, "HRP_CONFIG_ERROR"},
    {ReturnCode::hrp_rsp_error, "HRP_RSP_ERROR"},
    {ReturnCode::hrp_rsp_discard, "HRP_RSP_DISCARD"},
    {ReturnCode::invalid_ac, "INVALID_AC"},
    {ReturnCode::page_perm_error, "PAGE_PERM_ERROR"},
    {ReturnCode::ats_error, "ATS_ERROR"},
    {ReturnCode::no_translation, "NO_TRANSLATION"},
    {ReturnCode::page_req_error, "PAGE_REQ_ERROR"},
    {ReturnCode::pcie_error_poisoned, "PCIE_ERROR_POISONED"},
    {ReturnCode::pcie_unsuccess_cmpl, "PCIE_UNSUCCESS_CMPL"},
    {ReturnCode::amo_inval_op_error, "AMO_INVAL_OP_ERROR"},
    {ReturnCode::amo_align_error, "AMO_ALIGN_ERROR"},
    {ReturnCode::amo_fp_invalid, "AMO_FP_INVALID"},
    {ReturnCode::amo_fp_underflow, "AMO_FP_UNDERFLOW"},
    {ReturnCode::amo_fp_overflow, "AMO_FP_OVERFLOW"},
    {ReturnCode::amo_fp_inexact, "AMO_FP_INEXACT"},
    {ReturnCode::illegal_op, "ILLEGAL_OP"},
    {ReturnCode::invalid_endpoint, "INVALID_ENDPOINT"},
    {ReturnCode::restricted_unicast, "RESTRICTED_UNICAST"},
    {ReturnCode::cmd_align_error, "CMD_ALIGN_ERROR"},
    {ReturnCode::cmd_invalid_arg, "CMD_INVALID_ARG"},
    {ReturnCode::invalid_event, "INVALID_EVENT"},
    {ReturnCode::addr_out_of_range, "ADDR_OUT_OF_RANGE"},
    {ReturnCode::conn_closed, "CONN_CLOSED"},
    {ReturnCode::canceled, "CANCELED"},
    {ReturnCode::no_matching_trs, "NO_MATCHING_TRS"},
    {ReturnCode::no_matching_mst, "NO_MATCHING_MST"},
    {ReturnCode::delayed, "DELAYED"},
    {ReturnCode::amo_length_error, "AMO_LENGTH_ERROR"},
    {ReturnCode::pktbuf_error, "PKTBUF_ERROR"},
    {ReturnCode::resource_busy, "RESOURCE_BUSY"},
    {ReturnCode::flush_translation, "FLUSH_TRANSLATION"},
    {ReturnCode::trs_pend_rsp, "TRS_PEND_RSP"},
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
