// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Physical Region Pages: how a command says where its data lies. Encoding for buffers that are
// contiguous in IOVA, and the walk a controller makes. Source: NVM Express Base specification, PRP
// entries and lists.
#pragma once

#include <doorbell/config.hpp>
#include <doorbell/nvme/wire.hpp>

namespace doorbell::nvme {

/// PRP1, PRP2 and the qwords that the list needs (0 when PRP2 points at data or is unused).
struct PrpPair {
  u64 prp1 = 0;
  u64 prp2 = 0;
  u64 list_qwords = 0;
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

}  // namespace doorbell::nvme
