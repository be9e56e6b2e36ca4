// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The requests of the drop-in libcxi.so.1 to the software Cassini, which lies in the program's own process or
// in a server's. One request, one reply, both of fixed size: in a process a call, else a message of a
// SOCK_SEQPACKET socket, with the files that it names.
#pragma once

#include <doorbell/config.hpp>

#include <type_traits>

namespace doorbell::cxi::dropin {

/// The environment of a program that `doorbell run cxi` starts: the server's socket. Absent: the Cassini is
/// in the program's own process.
inline constexpr const char* kServerVariable = "DOORBELL_CXI_SERVER";
/// The model that is in the program's own process, as `doorbell cxi --device` takes it.
inline constexpr const char* kModelVariable = "DOORBELL_CXI_MODEL";

inline constexpr u32 kProtocol = 1;  ///< of both ends of a socket

enum class Call : u32 {
  hello,               // protocol -> nid, pid bits
  get_service,         // id; or position, 1 -> how many, id, traffic classes, VNIs, these in data
  alloc_lni,           // service
  alloc_profile,       // lni, vni, traffic class, its type, lcid type -> lcid
  change_profile,      // lni, handle, vni
  reserve_pids,        // lni, vni, pid, count -> pid
  alloc_domain,        // lni, vni, pid -> pid
  map,                 // lni, address, bytes, flags; memory 0 -> iova, first address, bytes, lac
  alloc_wait_object,   // lni; a file
  alloc_event_queue,   // lni, mapping, address, bytes, flags, wait objects; memory 1: register page -> number
  resize_event_queue,  // handle, mapping, address, bytes
  finish_resize,       // handle
  reserve_events,      // handle, by how many more or less -> count
  alloc_command_queue,  // lni, event queue, slots, policy, flags, lcid; memory 0: ring, 1: launch page
                        //   -> number, slots
  alloc_counter,        // lni, address of the write-back; memory 0: its page, 1: doorbell page -> number
  move_writeback,       // handle, address; memory 0: its page
  alloc_portals_entry,  // lni, event queue, options -> number
  map_portals_entry,    // handle, domain, index, multicast
  entry_status,         // handle, first, most -> state, buffers, unexpected messages; their offsets
  destroy,              // handle, kind
  counters,             // -> data: JSON text, as far as it fits
};

/// The kinds of objects; a handle is of one of them.
enum class Kind : u32 {
  lni,
  profile,
  domain,
  mapping,
  wait_object,
  event_queue,
  command_queue,
  counter,
  portals_entry,
  entry_name,
};

inline constexpr u64 kPage = 4096;

/// Memory of the program in whole pages, by its address in one process, or as pieces of files.
struct SharedMemory {
  u64 address = 0;
  u64 bytes = 0;
  u32 first = 0;  ///< piece
  u32 pieces = 0;
};
/// A part of a file that comes with the message at the same position.
struct Piece {
  u64 offset = 0;
  u64 bytes = 0;
};
inline constexpr u32 kMaxPieces = 64;

struct Request {
  Call call = Call::hello;
  u32 unused = 0;
  u64 argument[8] = {};
  SharedMemory memory[2];
  Piece piece[kMaxPieces];
};

struct Reply {
  int result = 0;  ///< 0 or a negative errno
  u32 handle = 0;
  u64 value[4] = {};
  u8 data[256] = {};
};

static_assert(std::is_trivially_copyable_v<Request> && std::is_trivially_copyable_v<Reply>);

}  // namespace doorbell::cxi::dropin
