// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

/* doorbell for C programs (C99), and for others that load a shared library: runs, NVMe blocks, and the calls
 * of a QDMA card (doorbell/qdma/slash_qdma.h). libdoorbell.so.1 exports these names alone, with versions:
 * they are only ever added. Link with -ldoorbell.
 *
 * Errors: a function returns a null pointer or -1, and doorbell_last_error() says why. Texts that a function
 * returns are UTF-8 and belong to the library. Threads: each object belongs to one thread at a time. */
#pragma once

#include <doorbell/qdma/slash_qdma.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** This library's version, "0.1.0". */
const char* doorbell_version(void);

/** This thread's last error: "WHAT: WHY"; "" before the first. Until its next call. */
const char* doorbell_last_error(void);
/** A hint how to mend it; often "". */
const char* doorbell_last_hint(void);
/** The exit code that the command would have: 1 usage or environment, 2 data, 77 absent hardware; 0 before
 * the first error. */
int doorbell_last_code(void);

/* --- a run: what `doorbell nvme`, `rdma`, ... do ------------------------------------------------- */

/** An option by its name on the command line, without dashes: {"in-flight", "32"}; a flag has "true". */
struct doorbell_option {
  const char* name;  /**< '_' counts as '-'; not null */
  const char* value; /**< as after the option; not null */
};

/** Called by the thread that called doorbell_run(), some ten times a second at most. `share`: 0 to 1 of the
 * work, or NaN. Returns 0, or anything else to end the run early. */
typedef int (*doorbell_progress)(void* user, double share, const char* phase, uint64_t operations);

/** The outcome of a run, doorbell_result_free() frees it. */
struct doorbell_result;

/** Runs `path` ("nvme", "rdma", "cxi", "net", "qdma", "qdma-validate", "qdma-tune") to its end. One run at a
 * time in a process. `options` may be null if `count` is 0, and `progress` too. A run whose data was wrong
 * has a result. */
struct doorbell_result* doorbell_run(const char* path, const struct doorbell_option* options, size_t count,
                                     doorbell_progress progress, void* user);
/** With all texts that came of it; null is allowed. */
void doorbell_result_free(struct doorbell_result* result);

/** The run's exit code: 0; 2 for lost, late or wrong data; 130 if it was ended early; ... */
int doorbell_result_exit_code(const struct doorbell_result* result);
/** The run's verdict in words: "OK", "FAILED: 3 corrupt", ... */
const char* doorbell_result_verdict(const struct doorbell_result* result);
/** The whole record as JSON (doorbell.results/1). */
const char* doorbell_result_json(const struct doorbell_result* result);
/** The number of warnings: what the machine or the options made of the figures. */
size_t doorbell_result_warnings(const struct doorbell_result* result);
/** A warning, from 0, a sentence; null for an index that is none. */
const char* doorbell_result_warning(const struct doorbell_result* result, size_t index);
/** The number of combinations of parameters that were measured. */
size_t doorbell_result_cells(const struct doorbell_result* result);

/** The figures of a cell, of its median repeat. A latency that was not measured is NaN. */
struct doorbell_figures {
  size_t size; /**< of this structure, set by the caller: members that it has not are not written */
  /** @name Operations completed, their payload, and what the rates are over
   * @{ */
  uint64_t operations, bytes;
  double elapsed_s, operations_per_s, bytes_per_s;
  /** @} */
  /** @name Latencies in ns
   * @{ */
  double min_ns, mean_ns, p50_ns, p90_ns, p99_ns, p99_9_ns, max_ns;
  /** @} */
  /** @name Operations whose data was compared, of these wrong, and of unknown origin
   * @{ */
  uint64_t checked, failed, unverifiable;
  /** @} */
};
/** The figures of cell `cell`, from 0. Returns 0; -1 for an index that is none, or a size that is 0. */
int doorbell_result_figures(const struct doorbell_result* result, size_t cell,
                            struct doorbell_figures* figures);
/** A parameter of a cell, by its key in JSON ("in_flight"); null if the cell has none of that name. */
const char* doorbell_result_parameter(const struct doorbell_result* result, size_t cell, const char* key);

/* --- NVMe blocks --------------------------------------------------------------------------------- */

/** An open namespace; doorbell_nvme_close() closes it. */
struct doorbell_nvme;

/** How a namespace is opened. */
struct doorbell_nvme_options {
  size_t size;        /**< of this structure, set by the caller; the others: 0 is the default */
  uint32_t nsid;      /**< the namespace: 1 */
  uint32_t in_flight; /**< commands at a time: 32 */
  uint64_t io_bytes;  /**< of the largest command: 128 KiB, or the controller's limit if that is less */
  double timeout_s;   /**< for the answer to a command: 10 */
  int allow_write;    /**< not 0: data that is not doorbell's own may be overwritten */
};

/** Opens a namespace by the controller's name on the command line: "model", "model:media=file:PATH", a PCI
 * address. `options` may be null. */
struct doorbell_nvme* doorbell_nvme_open(const char* controller, const struct doorbell_nvme_options* options);
/** Frees its memory too; null is allowed. */
void doorbell_nvme_close(struct doorbell_nvme* nvme);
/** The namespace's size, in blocks. */
uint64_t doorbell_nvme_blocks(const struct doorbell_nvme* nvme);
/** The size of a block, in bytes. */
uint32_t doorbell_nvme_block_bytes(const struct doorbell_nvme* nvme);
/** The controller's full name, for what the user wrote. */
const char* doorbell_nvme_name(const struct doorbell_nvme* nvme);

/** Zeroed memory that the controller reaches: reads and writes of it, or of parts of it, are not copied. */
void* doorbell_nvme_allocate(struct doorbell_nvme* nvme, uint64_t bytes);
/** Gives memory back. Memory that is not freed goes with its namespace. */
void doorbell_nvme_free(struct doorbell_nvme* nvme, void* memory);

/** Reads `count` blocks from `lba`, with many commands at a time. `data` may be any memory. 0, or -1. */
int doorbell_nvme_read(struct doorbell_nvme* nvme, uint64_t lba, uint64_t count, void* data);
/** Writes, likewise. Refuses to overwrite data that is not doorbell's own without allow_write. */
int doorbell_nvme_write(struct doorbell_nvme* nvme, uint64_t lba, uint64_t count, const void* data);
/** Returns when all that was written is on the medium: 0, or -1. */
int doorbell_nvme_flush(struct doorbell_nvme* nvme);

#ifdef __cplusplus
}
#endif
