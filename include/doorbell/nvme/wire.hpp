// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// NVMe wire formats: submission and completion entries, registers and identify offsets. Pure
// encoding, no state. Sources: NVM Express Base and NVM Command Set specifications; offsets as in
// linux/nvme.h and libnvme's nvme/types.h.
#pragma once

#include <doorbell/config.hpp>
#include <doorbell/memory_order.hpp>

#include <string>

namespace doorbell::nvme {

/// I/O commands that doorbell makes or serves. Source: NVM Command Set Specification, I/O commands.
enum class IoOpcode : u8 {
  flush = 0x00,
  write = 0x01,
  read = 0x02,
  compare = 0x05,
  write_zeroes = 0x08,
  dataset_management = 0x09,
  verify = 0x0c,
};

/// Source: NVM Express Base Specification, admin command set.
enum class AdminOpcode : u8 {
  delete_sq = 0x00,
  create_sq = 0x01,
  get_log_page = 0x02,
  delete_cq = 0x04,
  create_cq = 0x05,
  identify = 0x06,
  abort = 0x08,
  set_features = 0x09,
  get_features = 0x0a,
  async_event = 0x0c,
  doorbell_buffer_config = 0x7c,
  format_nvm = 0x80,
  sanitize = 0x84,
};

/// Submission queue entry, 64 bytes, as it lies in memory; prp1, prp2 and mptr are IOVAs.
/// Source: NVM Express Base Specification, submission queue entry (linux/nvme.h, struct nvme_command).
struct alignas(64) Sqe {
  u8 opcode = 0;
  u8 flags = 0;  ///< FUSE 1:0, PSDT 7:6
  u16 cid = 0;
  u32 nsid = 0;
  u32 cdw2 = 0;
  u32 cdw3 = 0;
  u64 mptr = 0;
  u64 prp1 = 0;
  u64 prp2 = 0;
  u32 cdw10 = 0;
  u32 cdw11 = 0;
  u32 cdw12 = 0;
  u32 cdw13 = 0;
  u32 cdw14 = 0;
  u32 cdw15 = 0;
};
static_assert(sizeof(Sqe) == 64);

/// Completion queue entry, 16 bytes, as it lies in memory.
/// Source: NVM Express Base Specification, completion queue entry (linux/nvme.h, struct nvme_completion).
struct alignas(16) Cqe {
  u32 dw0 = 0;
  u32 dw1 = 0;
  u16 sq_head = 0;
  u16 sq_id = 0;
  u16 cid = 0;
  u16 status = 0;  ///< phase tag in bit 0, status field above it
};
static_assert(sizeof(Cqe) == 16);

/// @name Sizes of entries: bytes, and what sqe_part() counts
/// @{
inline constexpr u32 kSqeBytes = 64;
inline constexpr u32 kCqeBytes = 16;
inline constexpr u32 kSqeParts = kSqeBytes / sizeof(Word16);
/// @}

/// A 15-bit status field (a completion's status without the phase tag).
struct Status {
  u16 field = 0;  ///< as it lies above the phase tag
  /// @name Its parts
  /// @{
  [[nodiscard]] DOORBELL_INLINE u8 code() const { return static_cast<u8>(field & 0xff); }
  [[nodiscard]] DOORBELL_INLINE u8 type() const { return static_cast<u8>((field >> 8) & 7); }
  [[nodiscard]] DOORBELL_INLINE u8 retry_delay() const { return static_cast<u8>((field >> 11) & 3); }
  [[nodiscard]] DOORBELL_INLINE bool more() const { return ((field >> 13) & 1) != 0; }
  [[nodiscard]] DOORBELL_INLINE bool do_not_retry() const { return ((field >> 14) & 1) != 0; }
  /// @}
  /// Successful completion.
  [[nodiscard]] DOORBELL_INLINE bool ok() const { return (field & 0x7ff) == 0; }
  /// Status type and code alone, for counting: type in bits 10:8, code in 7:0.
  [[nodiscard]] DOORBELL_INLINE u16 type_and_code() const { return static_cast<u16>(field & 0x7ff); }
};

/// Of Status::field: the same command would fail again.
inline constexpr u16 kDoNotRetry = 1u << 14;

/// Status type and code of what a controller answers (type in bits 10:8). status_name() says them in words.
/// Source: NVM Express Base and NVM Command Set Specifications, status codes.
namespace status {
inline constexpr u16 success = 0x000, invalid_opcode = 0x001, invalid_field = 0x002, cid_conflict = 0x003,
                     data_transfer_error = 0x004, internal_error = 0x006, abort_requested = 0x007,
                     sq_deleted = 0x008, invalid_namespace = 0x00b, command_sequence = 0x00c,
                     prp_offset_invalid = 0x013, lba_out_of_range = 0x080, capacity_exceeded = 0x081;
inline constexpr u16 cq_invalid = 0x100, invalid_queue_id = 0x101, invalid_queue_size = 0x102,
                     async_event_limit = 0x105, invalid_vector = 0x108, invalid_log_page = 0x109,
                     invalid_format = 0x10a, invalid_queue_deletion = 0x10c, feature_not_saveable = 0x10d,
                     feature_not_changeable = 0x10e, feature_not_per_namespace = 0x10f;
inline constexpr u16 write_fault = 0x280, unrecovered_read = 0x281, compare_failure = 0x285;
}  // namespace status

/// A completion's status without the phase tag.
DOORBELL_INLINE Status status_of(const Cqe& e) {
  return {static_cast<u16>(e.status >> 1)};
}
/// The phase tag: which pass of the ring wrote the entry.
DOORBELL_INLINE bool phase_of(const Cqe& e) {
  return (e.status & 1) != 0;
}

/// A completion from its 16 bytes.
DOORBELL_INLINE Cqe decode_cqe(const Word16& w) {
  return {w.w[0],
          w.w[1],
          static_cast<u16>(w.w[2]),
          static_cast<u16>(w.w[2] >> 16),
          static_cast<u16>(w.w[3]),
          static_cast<u16>(w.w[3] >> 16)};
}

/// A completion's 16 bytes, as a controller writes them.
DOORBELL_INLINE Word16 encode_cqe(const Cqe& e) {
  return {{e.dw0, e.dw1, u32{e.sq_id} << 16 | e.sq_head, u32{e.status} << 16 | e.cid}};
}

/// 16 bytes of an entry, part 0..3. Written as selections so that a GPU keeps the entry in registers.
DOORBELL_INLINE Word16 sqe_part(const Sqe& e, u32 part) {
  const u64 lo = part == 0   ? (u64{e.nsid} << 32) | (u32{e.cid} << 16) | (u32{e.flags} << 8) | e.opcode
                 : part == 1 ? e.mptr
                 : part == 2 ? e.prp2
                             : (u64{e.cdw13} << 32) | e.cdw12;
  const u64 hi = part == 0   ? (u64{e.cdw3} << 32) | e.cdw2
                 : part == 1 ? e.prp1
                 : part == 2 ? (u64{e.cdw11} << 32) | e.cdw10
                             : (u64{e.cdw15} << 32) | e.cdw14;
  return {
      {static_cast<u32>(lo), static_cast<u32>(lo >> 32), static_cast<u32>(hi), static_cast<u32>(hi >> 32)}};
}

// --- I/O commands -------------------------------------------------------------------------------

/// Read, Write, Compare or Write Zeroes of `blocks` (1..65536) logical blocks from `lba`; prp_pair() has
/// `prp1` and `prp2`.
DOORBELL_INLINE Sqe io_command(IoOpcode op, u16 cid, u32 nsid, u64 lba, u32 blocks, u64 prp1, u64 prp2) {
  Sqe e;
  e.opcode = static_cast<u8>(op);
  e.cid = cid;
  e.nsid = nsid;
  e.prp1 = prp1;
  e.prp2 = prp2;
  e.cdw10 = static_cast<u32>(lba);
  e.cdw11 = static_cast<u32>(lba >> 32);
  e.cdw12 = blocks - 1;
  return e;
}

/// The first block of an I/O command.
DOORBELL_INLINE u64 lba_of(const Sqe& e) {
  return (u64{e.cdw11} << 32) | e.cdw10;
}
/// The blocks of an I/O command, 1..65536.
DOORBELL_INLINE u32 blocks_of(const Sqe& e) {
  return (e.cdw12 & 0xffff) + 1;
}

inline constexpr u32 kForceUnitAccess = 1u << 30;  ///< in cdw12

/// Completes when all data and metadata of the namespace's completed writes are on the medium.
DOORBELL_INLINE Sqe flush_command(u16 cid, u32 nsid) {
  Sqe e;
  e.opcode = static_cast<u8>(IoOpcode::flush);
  e.cid = cid;
  e.nsid = nsid;
  return e;
}

// --- admin commands -----------------------------------------------------------------------------

/// The broadcast value of a namespace's number.
inline constexpr u32 kAllNamespaces = 0xffffffff;

/// A command with nothing but its opcode.
DOORBELL_INLINE Sqe admin_command(AdminOpcode op, u16 cid) {
  Sqe e;
  e.opcode = static_cast<u8>(op);
  e.cid = cid;
  return e;
}

/// The data structure that Identify returns. Source: NVM Express Base Specification, Identify command, CNS.
enum class Cns : u8 { name_space = 0, controller = 1, active_namespaces = 2 };

/// Writes 4096 bytes to `prp1`, page aligned; namespace identify has their places.
DOORBELL_INLINE Sqe identify_command(u16 cid, Cns cns, u32 nsid, u64 prp1) {
  Sqe e = admin_command(AdminOpcode::identify, cid);
  e.nsid = nsid;
  e.prp1 = prp1;
  e.cdw10 = static_cast<u32>(cns);
  return e;
}

/// A completion queue of `entries` (2..65536), contiguous at `prp1`. Without interrupts its reader polls.
DOORBELL_INLINE Sqe create_cq_command(u16 cid, u16 qid, u32 entries, u64 prp1, bool interrupts = false,
                                      u16 vector = 0) {
  Sqe e = admin_command(AdminOpcode::create_cq, cid);
  e.prp1 = prp1;
  e.cdw10 = (entries - 1) << 16 | qid;
  e.cdw11 = u32{vector} << 16 | (interrupts ? 2u : 0u) | 1u;
  return e;
}

/// A submission queue likewise, whose completions go to the queue `cqid`, which must be there.
DOORBELL_INLINE Sqe create_sq_command(u16 cid, u16 qid, u16 cqid, u32 entries, u64 prp1) {
  Sqe e = admin_command(AdminOpcode::create_sq, cid);
  e.prp1 = prp1;
  e.cdw10 = (entries - 1) << 16 | qid;
  e.cdw11 = u32{cqid} << 16 | 1u;
  return e;
}

/// `which`: delete_sq or delete_cq; the submission queue first.
DOORBELL_INLINE Sqe delete_queue_command(AdminOpcode which, u16 cid, u16 qid) {
  Sqe e = admin_command(which, cid);
  e.cdw10 = qid;
  return e;
}

/// The feature Number of Queues.
inline constexpr u8 kFeatureQueues = 0x07;

/// Asks for `sqs` submission and `cqs` completion queues (1..65535 each); dw0 of the completion says how many
/// were granted, each less one.
DOORBELL_INLINE Sqe set_queues_command(u16 cid, u32 sqs, u32 cqs) {
  Sqe e = admin_command(AdminOpcode::set_features, cid);
  e.cdw10 = kFeatureQueues;
  e.cdw11 = (cqs - 1) << 16 | (sqs - 1);
  return e;
}

/// The log page SMART / Health Information.
inline constexpr u8 kLogSmart = 0x02;

/// The first `bytes` of a log page, a multiple of 4, to `prp1`.
DOORBELL_INLINE Sqe get_log_command(u16 cid, u8 log, u32 nsid, u32 bytes, u64 prp1) {
  Sqe e = admin_command(AdminOpcode::get_log_page, cid);
  const u32 dwords = bytes / 4 - 1;
  e.nsid = nsid;
  e.prp1 = prp1;
  e.cdw10 = (dwords & 0xffff) << 16 | log;
  e.cdw11 = dwords >> 16;
  return e;
}

/// Doorbell Buffer Config: a page of shadow doorbells and one of event indices, laid out as the registers
/// are.
DOORBELL_INLINE Sqe doorbell_buffer_command(u16 cid, u64 shadow, u64 eventidx) {
  Sqe e = admin_command(AdminOpcode::doorbell_buffer_config, cid);
  e.prp1 = shadow;
  e.prp2 = eventidx;
  return e;
}

/// Asks for an end of the command `victim` (its cid) of queue `sqid`; bit 0 of dw0 says that it was not
/// aborted.
DOORBELL_INLINE Sqe abort_command(u16 cid, u16 sqid, u16 victim) {
  Sqe e = admin_command(AdminOpcode::abort, cid);
  e.cdw10 = u32{victim} << 16 | sqid;
  return e;
}

// --- registers ----------------------------------------------------------------------------------

/// Offsets of registers in BAR0, in bytes.
/// Source: NVM Express over PCIe Transport and Base Specifications, controller properties.
namespace reg {
inline constexpr u32 cap = 0x00, vs = 0x08, intms = 0x0c, intmc = 0x10, cc = 0x14, csts = 0x1c, nssr = 0x20,
                     aqa = 0x24, asq = 0x28, acq = 0x30, doorbells = 0x1000;
}

/// Controller capabilities. Source: NVM Express Base Specification, property CAP.
struct Capabilities {
  u64 raw = 0;  ///< the register
  /// @name Its fields: entries of a queue, units of 500 ms, 2 ^ (2 + stride) bytes a doorbell, bits of a page
  /// @{
  [[nodiscard]] DOORBELL_INLINE u32 max_queue_entries() const { return static_cast<u32>(raw & 0xffff) + 1; }
  [[nodiscard]] DOORBELL_INLINE bool contiguous_required() const { return ((raw >> 16) & 1) != 0; }
  [[nodiscard]] DOORBELL_INLINE u32 timeout_units() const { return static_cast<u32>(raw >> 24) & 0xff; }
  [[nodiscard]] DOORBELL_INLINE u32 stride() const { return static_cast<u32>(raw >> 32) & 0xf; }
  [[nodiscard]] DOORBELL_INLINE u32 command_sets() const { return static_cast<u32>(raw >> 37) & 0xff; }
  [[nodiscard]] DOORBELL_INLINE u32 min_page_shift() const {
    return 12 + (static_cast<u32>(raw >> 48) & 0xf);
  }
  [[nodiscard]] DOORBELL_INLINE u32 max_page_shift() const {
    return 12 + (static_cast<u32>(raw >> 52) & 0xf);
  }
  /// @}
};

/// Bits of the controller configuration. Source: NVM Express Base Specification, property CC.
namespace cc {
inline constexpr u32 enable = 1, css_shift = 4, mps_shift = 7, shutdown_mask = 3u << 14,
                     shutdown_normal = 1u << 14, iosqes_shift = 16, iocqes_shift = 20;
}
/// Bits of the controller status. Source: NVM Express Base Specification, property CSTS.
namespace csts {
inline constexpr u32 ready = 1, fatal = 2, shutdown_mask = 3u << 2, shutdown_complete = 2u << 2;
}

/// Byte offset in BAR0 of a submission queue's tail doorbell; `stride` is CAP.DSTRD.
DOORBELL_INLINE u64 sq_doorbell_offset(u32 qid, u32 stride) {
  return reg::doorbells + 2ull * qid * (4u << stride);
}
/// Byte offset in BAR0 of a completion queue's head doorbell, likewise.
DOORBELL_INLINE u64 cq_doorbell_offset(u32 qid, u32 stride) {
  return reg::doorbells + (2ull * qid + 1) * (4u << stride);
}

/// With shadow doorbells: must the register be written too when the value moves from old to now?
DOORBELL_INLINE bool register_write_needed(u16 eventidx, u16 now, u16 old) {
  return static_cast<u16>(now - eventidx - 1) < static_cast<u16>(now - old);
}

// --- identify data ------------------------------------------------------------------------------

/// Offsets in the data of Identify Controller and Identify Namespace, in bytes, and what lies there.
/// Source: NVM Express Base and NVM Command Set Specifications, Identify; libnvme's nvme/types.h.
namespace identify {
inline constexpr u32 bytes = 4096;
// controller
inline constexpr u32 vid = 0, ssvid = 2, serial = 4, model = 24, firmware = 64, mdts = 77, cntlid = 78,
                     version = 80, rtd3e = 88, controller_type = 111, oacs = 256, acl = 258, aerl = 259,
                     lpa = 261, sqes = 512, cqes = 513, maxcmd = 514, nn = 516, oncs = 520, vwc = 525,
                     sgls = 536, subnqn = 768;
inline constexpr u32 serial_bytes = 20, model_bytes = 40, firmware_bytes = 8;
inline constexpr u16 oacs_doorbell_buffer = 1u << 8, oncs_compare = 1u << 0, oncs_write_zeroes = 1u << 3;
// namespace; NULBAF and FLBAS's bits as in libnvme 1.3 (struct nvme_id_ns, enum nvme_id_ns_flbas)
inline constexpr u32 nsze = 0, ncap = 8, nuse = 16, nlbaf = 25, flbas = 26, dps = 29, nulbaf = 82, lbaf = 128;
inline constexpr u32 lba_formats = 64;

/// FLBAS of a namespace that has LBA format `index`: bits 3:0, and 6:5 for what is above them.
[[nodiscard]] constexpr u8 flbas_of(u32 index) {
  return static_cast<u8>((index & 0xf) | (index >> 4 & 3) << 5);
}
/// The index of the LBA format that a namespace has, from its Identify data. Bits 6:5 of FLBAS are to be
/// ignored where there are no more than 16 formats. NLBAF counts from 0; NULBAF are those with attributes of
/// their own.
[[nodiscard]] constexpr u32 format_in_use(const u8* page) {
  const u32 low = page[flbas] & 0xfu;
  return page[nlbaf] + 1u + page[nulbaf] > 16 ? low | (page[flbas] >> 5 & 3u) << 4 : low;
}
}  // namespace identify

// Physical Region Pages: how a command says where its data lies. Encoding for buffers that are
// contiguous in IOVA, and the walk a controller makes.

/// PRP1, PRP2 and the qwords that the list needs (0 when PRP2 points at data or is unused).
/// Source: NVM Express Base Specification, PRP entries and lists.
struct PrpPair {
  u64 prp1 = 0;         ///< IOVA of byte 0
  u64 prp2 = 0;         ///< IOVA of the second page, or of the list
  u64 list_qwords = 0;  ///< for write_prp_list()
};

/// Qwords of list memory, chain pointers included, for `bytes` at page offset `offset`.
DOORBELL_INLINE u64 prp_list_qwords(u64 offset, u64 bytes, u64 page) {
  const u64 pages = (offset + bytes + page - 1) / page;
  if (pages <= 2) return 0;
  u64 entries = pages - 1;
  const u64 per_page = page / 8;
  u64 qwords = 0;
  // A page holds all that is left if it fits; otherwise its last qword is the pointer to the next.
  while (entries > per_page) {
    entries -= per_page - 1;
    qwords += per_page;
  }
  return qwords + entries;
}

/// PRP1 and PRP2 for a buffer contiguous in IOVA whose list, if it needs one, starts at `list_iova`
/// (page aligned, list pages contiguous).
DOORBELL_INLINE PrpPair prp_pair(u64 iova, u64 bytes, u64 page, u64 list_iova) {
  const u64 first = page - (iova & (page - 1));
  if (bytes <= first) return {iova, 0, 0};
  if (bytes <= first + page) return {iova, iova + first, 0};
  return {iova, list_iova, prp_list_qwords(iova & (page - 1), bytes, page)};
}

/// Writes the list that prp_pair announced; `list` has room for its list_qwords.
DOORBELL_INLINE void write_prp_list(u64* list, u64 iova, u64 bytes, u64 page, u64 list_iova) {
  const u64 per_page = page / 8;
  u64 next = (iova & ~(page - 1)) + page;
  u64 entries = ((iova & (page - 1)) + bytes + page - 1) / page - 1;
  for (u64 at = 0; entries > 0; ++at) {
    if (at % per_page == per_page - 1 && entries > 1) {
      list[at] = list_iova + (at + 1) * 8;
      continue;
    }
    list[at] = next;
    next += page;
    --entries;
  }
}

/// Walks a command's PRPs as a controller does. `read_list(iova, qwords, out)` fetches list entries
/// and returns false when they cannot be reached; `chunk(iova, bytes)` receives each data range in
/// order and returns false on a failed access. Returns a status type and code.
///
/// `Batch` list entries are fetched at a time, never past the end of their page.
template <u32 Batch = 64, class ReadList, class Chunk>
DOORBELL_INLINE u16 walk_prps(u64 prp1, u64 prp2, u64 bytes, u64 page, ReadList read_list, Chunk chunk) {
  if ((prp1 & 3) != 0) return status::prp_offset_invalid;
  const u64 offset = prp1 & (page - 1);
  const u64 first = page - offset < bytes ? page - offset : bytes;
  if (!chunk(prp1, first)) return status::data_transfer_error;
  u64 left = bytes - first;
  if (left == 0) return status::success;
  // A host that has given too little memory leaves 0 here, which is not the page at address 0.
  if (prp2 == 0) return status::invalid_field;
  if (left <= page) {
    if ((prp2 & (page - 1)) != 0) return status::prp_offset_invalid;
    return chunk(prp2, left) ? status::success : status::data_transfer_error;
  }
  if ((prp2 & 7) != 0) return status::prp_offset_invalid;
  u64 list = prp2;
  u64 entries[Batch];
  while (left > 0) {
    const u64 here = (page - (list & (page - 1))) / 8;  // qwords to the end of this list page
    const u64 needed = (left + page - 1) / page;
    const bool chained = needed > here;
    u64 data_here = chained ? here - 1 : needed;
    while (data_here > 0) {
      const u32 n = data_here < Batch ? static_cast<u32>(data_here) : Batch;
      if (!read_list(list, n, entries)) return status::data_transfer_error;
      for (u32 i = 0; i < n; ++i) {
        if ((entries[i] & (page - 1)) != 0) return status::prp_offset_invalid;
        const u64 len = left < page ? left : page;
        if (!chunk(entries[i], len)) return status::data_transfer_error;
        left -= len;
      }
      list += 8ull * n;
      data_here -= n;
    }
    if (left == 0) break;
    if (!read_list(list, 1, entries)) return status::data_transfer_error;
    if ((entries[0] & (page - 1)) != 0) return status::prp_offset_invalid;
    list = entries[0];
  }
  return status::success;
}

/// "LBA Out of Range"; "Status type 2 code 0x99" for one without a name here. Takes the status type
/// and code as Status::type_and_code() gives them.
[[nodiscard]] std::string status_name(u16 type_and_code);

}  // namespace doorbell::nvme
