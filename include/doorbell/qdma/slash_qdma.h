// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

/* A QDMA card for C programs (C99). The names with slash_qdma_ are those that programs over AMD's SLASH
 * driver know; those with doorbell_qdma_ are doorbell's own. Structures are those of the driver's calls.
 *
 * Errors: functions return -1, or a null pointer, and set errno as docs/qdma.md lists. Threads: any number of
 * threads may use one card and one descriptor at the same time; none uses what another one closes. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SLASH_QDMA_H2C 1u /**< host to card */
#define SLASH_QDMA_C2H 2u /**< card to host */
#define SLASH_QDMA_MAX_SUBXFERS 2u /**< sub-transfers of one call, and queue pairs of one descriptor */

/** An open card; slash_qdma_close() closes it. */
struct slash_qdma;

/** A card as its driver describes it; a real one's fills in `bdf` alone, "DDDD:BB:DD.1".
 * Source: slash_interface.h of Xilinx/SLASH 6a4cc11e. */
struct slash_qdma_info {
  uint32_t size;
  uint32_t qsets_max, msix_qvecs, vf_max, caps;
  char bdf[32];
};

/** A queue pair that is to be created. Source: slash_interface.h of Xilinx/SLASH 6a4cc11e. */
struct slash_qdma_qpair_add {
  uint32_t size;       /**< of this structure; 0 means all of it */
  uint32_t mode;       /**< 0: memory mapped */
  uint32_t dir_mask;   /**< SLASH_QDMA_H2C | SLASH_QDMA_C2H */
  uint32_t mm_channel; /**< 0: by the queue pair's number, 1: channel 0, 2: channel 1 */
  uint32_t h2c_ring_sz, c2h_ring_sz, cmpt_ring_sz; /**< indices, 0 to 15 */
  uint32_t qid;                                    /**< out */
  uint32_t aperture_size;                          /**< 0, or a power of two in which device addresses wrap */
};

/** One sub-transfer of `length` bytes, as the driver takes it.
 * Source: slash_interface.h of Xilinx/SLASH 6a4cc11e. */
struct slash_qdma_subxfer {
  uint32_t qpair_index;
  uint32_t direction;
  int32_t buf_fd;
  uint32_t pad;
  uint64_t buf_offset; /**< a multiple of the buffer's granule */
  uint64_t dev_addr;
  uint64_t length;
};

/** Host memory of the driver, mapped. SLASH_QDMA_BUFFER_NONE is no buffer. */
struct slash_qdma_buffer {
  int fd;                 /**< its descriptor, as slash_qdma_subxfer::buf_fd takes it */
  void* addr;             /**< of the mapping, page aligned */
  uint64_t length;        /**< bytes, whole granules */
  uint32_t granule;       /**< offsets of transfers are multiples of it: 4096 */
  uint32_t transfer_hint; /**< 1: one queue pair is enough, 2: split as for a V80 */
};
/** The value of a slash_qdma_buffer that holds nothing. */
#define SLASH_QDMA_BUFFER_NONE \
  { -1, NULL, 0, 0, 0 }

/** Opens a card: a device's path ("/dev/slash_qdma_ctl0") or any name that doorbell's --card takes ("model",
 * "server:PATH", "kernel:PATH"). Nothing is ever opened in place of what was asked for. */
struct slash_qdma* slash_qdma_open(const char* path);
/** Closes a card. Its descriptors and buffers stay usable until they are closed. */
int slash_qdma_close(struct slash_qdma* dev);
/** Asks the driver. All of `*info` is written. */
int slash_qdma_info_read(struct slash_qdma* dev, struct slash_qdma_info* info);

/* The call has its structure's name, as in C programs it may. */
#if defined(__GNUC__) && defined(__cplusplus)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif
/** Creates a queue pair, stopped, and puts its number to `add->qid`. */
int slash_qdma_qpair_add(struct slash_qdma* dev, struct slash_qdma_qpair_add* add);
#if defined(__GNUC__) && defined(__cplusplus)
#pragma GCC diagnostic pop
#endif
/** Lets a queue pair carry transfers. */
int slash_qdma_qpair_start(struct slash_qdma* dev, uint32_t qid);
/** Stops a queue pair: transfers that are queued end with ENXIO. */
int slash_qdma_qpair_stop(struct slash_qdma* dev, uint32_t qid);
/** Deletes a queue pair, stopping it first. */
int slash_qdma_qpair_del(struct slash_qdma* dev, uint32_t qid);
/** Returns a transfer descriptor for one queue pair. `flags`: 0 or O_CLOEXEC. Close it with close(),
 * or with doorbell_qdma_qpair_close() if transfers were submitted on it. */
int slash_qdma_qpair_get_fd(struct slash_qdma* dev, uint32_t qid, uint32_t flags);
/** The same for `count` queue pairs, 1 or 2. */
int slash_qdma_qpair_get_fd_multi(struct slash_qdma* dev, const uint32_t* qids, uint32_t count,
                                  uint32_t flags);

/** Creates and maps a buffer of `length` bytes, a multiple of 4096. */
int slash_qdma_buffer_create(struct slash_qdma* dev, uint64_t length, struct slash_qdma_buffer* buffer);
/** The same for the card of a transfer descriptor. */
int slash_qdma_qpair_buffer_create(int qpair_fd, uint64_t length, struct slash_qdma_buffer* buffer);
/** Unmaps and closes, and makes it no buffer. One that is no buffer, or all zeros, is left alone. */
int slash_qdma_buffer_destroy(struct slash_qdma_buffer* buffer);

/** Moves 1 to 2147479552 bytes through the first queue pair of a descriptor; blocks. Returns the bytes
 * moved. */
int64_t slash_qdma_qpair_transfer(int qpair_fd, int buf_fd, uint64_t buf_offset, uint64_t dev_addr,
                                  uint64_t length, uint32_t direction);
/** `count` sub-transfers at the same time, 1 or 2; blocks. Returns the bytes moved, all together. */
int64_t slash_qdma_qpair_transfer_batch(int qpair_fd, const struct slash_qdma_subxfer* xfers, uint32_t count);

/* --- doorbell's own ------------------------------------------------------------------------------ */

#define DOORBELL_QDMA_HBM 0x4000000000ull  /**< where a V80's HBM begins in the card's addresses: 32 GiB */
#define DOORBELL_QDMA_DDR 0x60000000000ull /**< where its DDR begins: 32 GiB */

#define DOORBELL_QDMA_VERSION 1u /**< of the functions in this header */
/** The version of this interface that the library has: functions are only ever added. */
uint32_t doorbell_qdma_version(void);
/** The message of this thread's last error, with more than errno says; empty before the first. */
const char* doorbell_qdma_last_error(void);

/** Which queue pair of a descriptor carries which part of a transfer. */
enum doorbell_qdma_policy {
  DOORBELL_QDMA_BALANCED = 0,   /**< both, so that they end at the same time */
  DOORBELL_QDMA_V80_COMPAT = 1, /**< as upstream's client */
  DOORBELL_QDMA_CHANNEL0 = 2,   /**< channel 0 alone */
  DOORBELL_QDMA_CHANNEL1 = 3    /**< channel 1 alone */
};
/** How the doorbell_ calls divide transfers between a descriptor's queue pairs. Not during a transfer. */
int doorbell_qdma_set_policy(int qpair_fd, enum doorbell_qdma_policy policy);

/** How one sub-transfer ended. */
struct doorbell_qdma_result {
  int error;      /**< 0 or an errno */
  int known;      /**< 0: the driver gives one result for the whole call */
  uint64_t bytes; /**< moved */
  uint64_t ns;    /**< 0: not reported */
};

/** Moves bytes of any length, through both channels where that pays. `deadline_ns` 0: the driver's own limit.
 * Up to `capacity` results of sub-transfers go to `results` (may be null) and their number to `count` (may
 * be null), also if it fails. Returns the bytes moved. */
int64_t doorbell_qdma_transfer(int qpair_fd, const struct slash_qdma_buffer* buffer, uint64_t buf_offset,
                               uint64_t dev_addr, uint64_t length, uint32_t direction, uint64_t deadline_ns,
                               struct doorbell_qdma_result* results, size_t capacity, size_t* count);
/** slash_qdma_qpair_transfer_batch() with a deadline and `count` results (may be null). */
int64_t doorbell_qdma_transfer_batch(int qpair_fd, const struct slash_qdma_subxfer* xfers, uint32_t count,
                                     uint64_t deadline_ns, struct doorbell_qdma_result* results);

/** The end of a submitted transfer. */
struct doorbell_qdma_completion {
  uint64_t id;    /**< as doorbell_qdma_submit() gave it */
  uint64_t user;  /**< as doorbell_qdma_submit() got it */
  int error;      /**< 0 or an errno */
  int pad;        /**< 0 */
  uint64_t bytes; /**< moved */
};
/** Begins a transfer and puts its id to `id`. EAGAIN: too many are in flight. */
int doorbell_qdma_submit(int qpair_fd, const struct slash_qdma_buffer* buffer, uint64_t buf_offset,
                         uint64_t dev_addr, uint64_t length, uint32_t direction, uint64_t deadline_ns,
                         uint64_t user, uint64_t* id);
/** Takes up to `capacity` completions, waiting up to `wait_ns` for the first. Returns how many. */
int doorbell_qdma_complete(int qpair_fd, struct doorbell_qdma_completion* out, uint32_t capacity,
                           uint64_t wait_ns);
/** Asks the card to give up a submitted transfer, which still has its completion: ECANCELED, or how it
 * ended. */
int doorbell_qdma_cancel(int qpair_fd, uint64_t id);
/** Cancels what is in flight, waits until the card has ended it, and closes. */
int doorbell_qdma_qpair_close(int qpair_fd);

#ifdef __cplusplus
}
#endif
