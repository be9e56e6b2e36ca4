// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A stream: the queues of one run over a link, of one kind (TCP, UDP, raw frames by some engine, RoCE
// messages).
#pragma once

#include <doorbell/net/stream_request.hpp>

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "net/link.hpp"
#include "system/backend.hpp"

namespace doorbell::net {

/// A packet as it is on the wire.
struct Framing {
  double frames_per_packet = 1;
  u32 header_bytes = 0;    ///< in front of a frame's part of the payload; 0: StreamKind::overhead_bytes
  bool estimated = false;  ///< nobody has counted the frames
};

/// Both ends' queues, or those of one end. Owns them, and must be destroyed after the threads that use them.
class Stream {
 public:
  virtual ~Stream() = default;
  /// One a flow; empty in a process that only receives.
  std::vector<std::unique_ptr<TxQueue>> tx;
  std::vector<std::unique_ptr<RxQueue>> rx;
  /// The receive queue of each flow; empty: flow f arrives at queue f mod rx_queues.
  std::vector<u16> queue_of_flow;
  /// Values really set up, for the Result: sizes of socket buffers, segments a send, offloads, ring sizes.
  [[nodiscard]] virtual nlohmann::ordered_json facts() { return nlohmann::ordered_json::object(); }
  /// After `packets` have been sent.
  [[nodiscard]] virtual Framing framing(u64 packets) const {
    static_cast<void>(packets);
    return {};
  }
  /// True when what Drops::ring counts is part of the receiving interface's own count.
  [[nodiscard]] virtual bool interface_counts_ring_drops() const { return false; }
};

/// Enters `n` packets that interfaces have counted, each drop in one layer only.
inline void add_interface_drops(const Stream& stream, u64 n, Drops* drops) {
  drops->interface += n - (stream.interface_counts_ring_drops() ? std::min(n, drops->ring) : 0);
}

/// The stream of raw frames, for which one of several engines is the kind.
inline constexpr char kRawFrames[] = "raw";

/// The cell of a kind that is published.
struct UsualCell {
  u64 payload = 8000;
  u32 batch = 0;  ///< 0: that of the options
  u32 pairs = 0;  ///< 0: the queues of the options
};

/// The grid that is published: each payload with each batch (0: that of the options), by each number of
/// pairs.
struct UsualGrid {
  std::vector<u64> payloads = {};
  std::vector<u32> batches = {0};
  std::vector<u32> pairs = {1};
};

struct StreamKind {
  std::string name;            ///< of the stream, or of the engine for raw frames
  bool reliable = true;        ///< every packet accepted arrives, or the connection breaks
  bool ordered = true;         ///< packets of a flow arrive in their order
  bool frames = false;         ///< raw Ethernet frames: any flows over the queues of either side
  bool sockets = false;        ///< of the kernel: receive() is a system call where nothing has arrived
  bool tunes_buffers = false;  ///< a socket's buffer is left to the kernel where no size is given
  bool segments = false;       ///< can hand many packets over as one
  bool blocks = false;         ///< hands over blocks of packets, which are full or whose time is over
  bool rdma = false;           ///< goes through a device with one of its providers
  bool splits = false;         ///< can put header and data in two places
  bool rss = false;            ///< can choose queues by a hash
  /// A batch whose size nobody has given holds no more bytes, but one packet (0: any). Large packets then
  /// stay in the caches on their way.
  u64 batch_bytes = 0;
  std::string unit = "packet";  ///< what one payload travels in: "datagram", "frame", "message", "record"
  /// Bytes in front of the payload on the wire, Ethernet's header included.
  u32 overhead_bytes = 0;
  std::string usual_link = "lo";  ///< where none is given
  UsualCell usual_cell = {};
  UsualGrid usual_grid = {};
  std::function<BackendStatus()> status;  ///< never throws
  /// The largest payload that `link` carries in one packet.
  std::function<u64(const Link& link)> max_payload = {};
  /// Throws Error: no permission, not supported by the link, out of range. The link outlives the stream.
  std::function<std::unique_ptr<Stream>(const StreamRequest& request, Link& link)> open;
};

/// All streams, then the engines of raw frames.
[[nodiscard]] const std::vector<const StreamKind*>& stream_kinds();
using WhichKinds = std::function<bool(const StreamKind&)>;  ///< a member of StreamKind is one
/// The names of such streams; engines are "raw".
[[nodiscard]] std::vector<std::string> stream_names(const WhichKinds& which);
[[nodiscard]] std::vector<std::string> engine_names();
/// Such streams and engines, each with its setting.
[[nodiscard]] std::string kinds_that(const WhichKinds& can);
/// The stream of this name, or for "raw" the engine (empty: what the link does best). Throws Error.
[[nodiscard]] const StreamKind& find_kind(const std::string& stream, const std::string& engine,
                                          const std::string& link);
/// Throws Error, which names those that can, when the kind does not split or has no RSS.
void check_abilities(const StreamKind& kind, bool split, Steering steering);

}  // namespace doorbell::net
