// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Admin commands as other drivers send them, and the data that comes back.
#pragma once

#include "rig.hpp"

namespace doorbell::nvme::conformance {

inline Sqe identify(u32 cns, u32 nsid, u64 to, u32 controller = 0, u32 command_set = 0) {
  Sqe e = identify_command(0, static_cast<Cns>(cns), nsid, to);
  e.cdw10 |= controller << 16;
  e.cdw11 = command_set << 24;
  return e;
}

inline Sqe get_feature(u32 id, u32 nsid = 0, u32 select = 0, u32 cdw11 = 0, u64 to = 0) {
  Sqe e = admin_command(AdminOpcode::get_features, 0);
  e.nsid = nsid;
  e.cdw10 = select << 8 | id;
  e.cdw11 = cdw11;
  e.prp1 = to;
  return e;
}

inline Sqe set_feature(u32 id, u32 cdw11, u32 nsid = 0, u64 from = 0) {
  Sqe e = admin_command(AdminOpcode::set_features, 0);
  e.nsid = nsid;
  e.cdw10 = id;
  e.cdw11 = cdw11;
  e.prp1 = from;
  return e;
}

inline Sqe log_page(u8 log, u32 bytes, u64 offset, u64 to) {
  Sqe e = get_log_command(0, log, kAllNamespaces, bytes, to);
  e.cdw12 = static_cast<u32>(offset);
  e.cdw13 = static_cast<u32>(offset >> 32);
  return e;
}

template <class T>
T at(const Mapped& m, u64 offset) {
  T v;
  std::memcpy(&v, m.region().host() + offset, sizeof v);
  return v;
}

}  // namespace doorbell::nvme::conformance
