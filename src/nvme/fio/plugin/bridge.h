// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A job of fio as plain C: between engine.c, which sees fio's headers, which no C++ compiler takes, and the
// queues of doorbell. Functions that return int give 0 or an errno; doorbell_job_error() has the words then.
// One thread a job.
#ifndef DOORBELL_NVME_FIO_BRIDGE_H
#define DOORBELL_NVME_FIO_BRIDGE_H

#include <stddef.h>  // NOLINT(modernize-deprecated-headers): C reads it too
#include <stdint.h>  // NOLINT(modernize-deprecated-headers)

#ifdef __cplusplus
extern "C" {
#endif

struct doorbell_job;

struct doorbell_job_setup {
  const char* controller;  // as doorbell's option of that name
  const char* fault;       // "KIND=P,..."; null: none
  uint64_t fault_seed;
  uint64_t answer_us;  // how long an answer is waited for
  int allow_write;
  int place;       // 0 pageable, 1 huge pages of 2 MiB, 2 of 1 GiB
  unsigned depth;  // commands in flight
  int threads;     // jobs are threads of this process; else this one becomes a process of its own
  int writes;      // the job writes
  int verifies;    // the job looks at what it reads
  uint64_t least, most, step, at;  // bytes of an I/O; what sizes and offsets are multiples of
};

// A file of the job: a namespace.
struct doorbell_job_file {
  uint32_t nsid;
  uint64_t bytes;  // set by doorbell_job_add_file()
};

// Before the job's thread or process begins. Null with an error: doorbell_job_error(NULL).
struct doorbell_job* doorbell_job_new(const struct doorbell_job_setup* setup);
// A file, counted from 0.
int doorbell_job_add_file(struct doorbell_job* job, struct doorbell_job_file* file);
// All files are there. Where jobs are processes, the controller is let go until doorbell_job_open().
void doorbell_job_ready(struct doorbell_job* job);
// In the job's thread or process: makes its queue pair.
int doorbell_job_open(struct doorbell_job* job);
// The buffer of all I/Os; null with an error.
void* doorbell_job_buffer(struct doorbell_job* job, size_t bytes);
// Deletes the queue, and frees the buffer behind it.
void doorbell_job_end(struct doorbell_job* job);
// 0 if the outcomes of all I/Os can be relied on.
int doorbell_job_verdict(struct doorbell_job* job);
void doorbell_job_free(struct doorbell_job* job);

enum doorbell_op { DOORBELL_READ, DOORBELL_WRITE, DOORBELL_FLUSH };

// 0: on its way; EBUSY: take outcomes first; else it cannot be done.
int doorbell_job_queue(struct doorbell_job* job, enum doorbell_op op, unsigned file, uint64_t offset,
                       uint64_t bytes, void* data, void* tag);
void doorbell_job_commit(struct doorbell_job* job);
// Waits for `least` outcomes, of up to `most`, at most `limit_ns` (UINT64_MAX: as long as it takes). How
// many.
unsigned doorbell_job_reap(struct doorbell_job* job, unsigned least, unsigned most, uint64_t limit_ns);
// Of what the last doorbell_job_reap() found, outcome i: its tag, errno, and a word for
// doorbell_outcome_text().
void* doorbell_job_outcome(struct doorbell_job* job, unsigned i, int* error, uintptr_t* detail);

// The words for an outcome, by malloc(). Any thread.
char* doorbell_outcome_text(uintptr_t detail);
// The last error of the job, or, without one, of this thread.
const char* doorbell_job_error(const struct doorbell_job* job);

#ifdef __cplusplus
}
#endif

#endif
