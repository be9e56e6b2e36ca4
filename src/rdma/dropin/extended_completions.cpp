// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Completion queues whose completions are read field by field (ibv_create_cq_ex).
#include <ctime>

#include "rdma/dropin/objects.hpp"

namespace doorbell::dropin {

namespace {

Cq& of_queue(ibv_cq_ex* base) {
  return of<Cq>(base);
}

bool take_one(Cq& cq) {
  if (cq.queue->poll({&cq.current, 1}) == 0) return false;
  cq.base.wr_id = cq.current.id;
  cq.base.status = static_cast<ibv_wc_status>(cq.current.status);
  return true;
}

/// The lock stays until end_poll, unless there is nothing: then verbs call no end_poll.
int start_poll(ibv_cq_ex* base, ibv_poll_cq_attr* attributes) {
  Cq& cq = of_queue(base);
  if (attributes->comp_mask != 0) return EINVAL;
  if (!cq.alone) cq.polling.lock();
  if (take_one(cq)) return 0;
  (void)cq.attendant->on_empty_poll();
  if (take_one(cq)) return 0;
  if (!cq.alone) cq.polling.unlock();
  return ENOENT;
}

int next_poll(ibv_cq_ex* base) {
  return take_one(of_queue(base)) ? 0 : ENOENT;
}

void end_poll(ibv_cq_ex* base) {
  Cq& cq = of_queue(base);
  if (!cq.alone) cq.polling.unlock();
}

u64 read_wallclock(ibv_cq_ex* base) {
  timespec real{}, steady{};
  ::clock_gettime(CLOCK_REALTIME, &real);
  ::clock_gettime(CLOCK_MONOTONIC, &steady);
  const auto ns = [](const timespec& t) {
    return static_cast<u64>(t.tv_sec) * 1'000'000'000 + static_cast<u64>(t.tv_nsec);
  };
  return of_queue(base).current.time_ns + (ns(real) - ns(steady));
}

}  // namespace

void set_extended_polling(Cq& cq, u64 wc_flags) {
  ibv_cq_ex& base = cq.base;
  base.start_poll = start_poll;
  base.next_poll = next_poll;
  base.end_poll = end_poll;
  base.read_opcode = [](ibv_cq_ex* one) { return static_cast<ibv_wc_opcode>(of_queue(one).current.opcode); };
  base.read_vendor_err = [](ibv_cq_ex* one) { return of_queue(one).current.vendor_error; };
  base.read_wc_flags = [](ibv_cq_ex* one) { return static_cast<unsigned>(of_queue(one).current.flags); };
  base.read_byte_len = [](ibv_cq_ex* one) { return of_queue(one).current.bytes; };
  base.read_imm_data = [](ibv_cq_ex* one) -> __be32 { return of_queue(one).current.immediate_or_key; };
  base.read_qp_num = [](ibv_cq_ex* one) { return of_queue(one).current.queue_pair; };
  base.read_src_qp = [](ibv_cq_ex* one) { return of_queue(one).current.source_queue_pair; };
  // Ethernet has no LIDs.
  base.read_slid = [](ibv_cq_ex*) { return u32{0}; };
  base.read_sl = [](ibv_cq_ex* one) { return service_level_of(of_queue(one).current); };
  base.read_dlid_path_bits = [](ibv_cq_ex*) { return u8{0}; };
  if ((wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP) != 0)
    base.read_completion_ts = [](ibv_cq_ex* one) -> uint64_t { return of_queue(one).current.time_ns; };
  if ((wc_flags & IBV_WC_EX_WITH_COMPLETION_TIMESTAMP_WALLCLOCK) != 0)
    base.read_completion_wallclock_ns = [](ibv_cq_ex* one) -> uint64_t { return read_wallclock(one); };
}

}  // namespace doorbell::dropin
