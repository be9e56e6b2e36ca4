// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/nvme/wire.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace doorbell::nvme {

namespace {

struct Name {
  u16 type_and_code;
  const char* text;
};

// Sorted by code. NVM Express Base specification, status codes; NVM Command Set specification.
constexpr auto kNames = std::to_array<Name>({
    {0x000, "Successful Completion"},
    {0x001, "Invalid Command Opcode"},
    {0x002, "Invalid Field in Command"},
    {0x003, "Command ID Conflict"},
    {0x004, "Data Transfer Error"},
    {0x005, "Commands Aborted due to Power Loss Notification"},
    {0x006, "Internal Error"},
    {0x007, "Command Abort Requested"},
    {0x008, "Command Aborted due to SQ Deletion"},
    {0x009, "Command Aborted due to Failed Fused Command"},
    {0x00a, "Command Aborted due to Missing Fused Command"},
    {0x00b, "Invalid Namespace or Format"},
    {0x00c, "Command Sequence Error"},
    {0x00d, "Invalid SGL Segment Descriptor"},
    {0x00e, "Invalid Number of SGL Descriptors"},
    {0x00f, "Data SGL Length Invalid"},
    {0x010, "Metadata SGL Length Invalid"},
    {0x011, "SGL Descriptor Type Invalid"},
    {0x012, "Invalid Use of Controller Memory Buffer"},
    {0x013, "PRP Offset Invalid"},
    {0x014, "Atomic Write Unit Exceeded"},
    {0x015, "Operation Denied"},
    {0x016, "SGL Offset Invalid"},
    {0x01c, "Sanitize Failed"},
    {0x01d, "Sanitize In Progress"},
    {0x020, "Namespace is Write Protected"},
    {0x021, "Command Interrupted"},
    {0x022, "Transient Transport Error"},
    {0x080, "LBA Out of Range"},
    {0x081, "Capacity Exceeded"},
    {0x082, "Namespace Not Ready"},
    {0x083, "Reservation Conflict"},
    {0x084, "Format In Progress"},
    {0x100, "Completion Queue Invalid"},
    {0x101, "Invalid Queue Identifier"},
    {0x102, "Invalid Queue Size"},
    {0x103, "Abort Command Limit Exceeded"},
    {0x105, "Asynchronous Event Request Limit Exceeded"},
    {0x108, "Invalid Interrupt Vector"},
    {0x109, "Invalid Log Page"},
    {0x10a, "Invalid Format"},
    {0x10c, "Invalid Queue Deletion"},
    {0x10d, "Feature Identifier Not Saveable"},
    {0x10e, "Feature Not Changeable"},
    {0x10f, "Feature Not Namespace Specific"},
    {0x180, "Conflicting Attributes"},
    {0x181, "Invalid Protection Information"},
    {0x182, "Attempted Write to Read Only Range"},
    {0x183, "Command Size Limit Exceeded"},
    // Zoned Namespace Command Set specification
    {0x1b8, "Zone Boundary Error"},
    {0x1b9, "Zone Is Full"},
    {0x1ba, "Zone Is Read Only"},
    {0x1bb, "Zone Is Offline"},
    {0x1bc, "Zone Invalid Write"},
    {0x1bd, "Too Many Active Zones"},
    {0x1be, "Too Many Open Zones"},
    {0x1bf, "Invalid Zone State Transition"},
    {0x280, "Write Fault"},
    {0x281, "Unrecovered Read Error"},
    {0x282, "End-to-end Guard Check Error"},
    {0x283, "End-to-end Application Tag Check Error"},
    {0x284, "End-to-end Reference Tag Check Error"},
    {0x285, "Compare Failure"},
    {0x286, "Access Denied"},
    {0x287, "Deallocated or Unwritten Logical Block"},
    {0x300, "Internal Path Error"},
    {0x301, "Asymmetric Access Persistent Loss"},
    {0x302, "Asymmetric Access Inaccessible"},
    {0x303, "Asymmetric Access Transition"},
    {0x360, "Controller Pathing Error"},
    {0x370, "Host Pathing Error"},
    {0x371, "Command Aborted By Host"},
});
static_assert(std::ranges::is_sorted(kNames, {}, &Name::type_and_code));

}  // namespace

std::string status_name(u16 type_and_code) {
  const auto it = std::ranges::lower_bound(kNames, type_and_code, {}, &Name::type_and_code);
  if (it != kNames.end() && it->type_and_code == type_and_code) return it->text;
  return fmt::format("Status type {} code {:#04x}", type_and_code >> 8, type_and_code & 0xff);
}

}  // namespace doorbell::nvme
