// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// fio's view of doorbell's NVMe path: an external ioengine. Only this file sees fio's headers, of exactly the
// version whose fio loads it. All work is the bridge's; see docs/fio.md.
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fio.h"
#include "nvme/fio/plugin/bridge.h"
#include "optgroup.h"
#include "verify.h"

struct engine_options {
  struct thread_data* td;  // fio's own; an option at offset 0 counts as none
  char* controller;
  char* fault;
  unsigned long long fault_seed;
  unsigned long long answer_us;
  unsigned int nsid;
  unsigned int queue_depth;
  unsigned int allow_write;
  unsigned int place;
};

#define OPTION_OF(member) .off1 = offsetof(struct engine_options, member)
#define IN_OUR_GROUP .category = FIO_OPT_C_ENGINE, .group = FIO_OPT_G_INVALID

static struct fio_option option_table[] = {
    {.name = "controller",
     .lname = "doorbell controller",
     .type = FIO_OPT_STR_STORE,
     OPTION_OF(controller),
     .help = "NVMe controller, as doorbell names it: model[:KEY=VALUE,...], qemu[:...], a PCI address",
     .def = "model",
     IN_OUR_GROUP},
    {.name = "namespace",
     .lname = "NVMe namespace",
     .type = FIO_OPT_INT,
     OPTION_OF(nsid),
     .help = "Namespace of a job without filename=; filename=ns2:ns3 names them, too",
     .def = "1",
     .minval = 1,
     IN_OUR_GROUP},
    {.name = "queue_depth",
     .lname = "Commands in the queue",
     .type = FIO_OPT_INT,
     OPTION_OF(queue_depth),
     .help = "Commands that the job's queue pair holds; 0: as many as iodepth",
     .def = "0",
     IN_OUR_GROUP},
    {.name = "answer_timeout",
     .lname = "Time for an answer",
     .type = FIO_OPT_STR_VAL_TIME,
     OPTION_OF(answer_us),
     .help = "How long the controller has for the answer to a command (a number alone: microseconds)",
     .def = "10s",
     .minval = 1,
     IN_OUR_GROUP},
    {.name = "allow_write",
     .lname = "Allow writing",
     .type = FIO_OPT_BOOL,
     OPTION_OF(allow_write),
     .help = "Let writes destroy data that doorbell did not write",
     .def = "0",
     IN_OUR_GROUP},
    {.name = "buffer_memory",
     .lname = "Memory of the buffers",
     .type = FIO_OPT_STR,
     OPTION_OF(place),
     .help = "Memory that I/O buffers lie in",
     .def = "pageable",
     .posval = {{.ival = "pageable", .oval = 0, .help = "ordinary pages"},
                {.ival = "huge-2m", .oval = 1, .help = "2 MiB pages from the kernel's pool"},
                {.ival = "huge-1g", .oval = 2, .help = "1 GiB pages from the kernel's pool"}},
     IN_OUR_GROUP},
    {.name = "fault",
     .lname = "Injected faults",
     .type = FIO_OPT_STR_STORE,
     OPTION_OF(fault),
     .help = "Faults that a model injects, with their probabilities: corrupt=0.001,error=0.01",
     IN_OUR_GROUP},
    {.name = "fault_seed",
     .lname = "Seed of the faults",
     .type = FIO_OPT_ULL,
     OPTION_OF(fault_seed),
     .help = "Chooses the commands that get a fault",
     .def = "1",
     IN_OUR_GROUP},
    {.name = NULL},
};

// A job, between setup and cleanup.
struct engine_job {
  struct doorbell_job* core;
  unsigned int posted;  // since the last commit
  bool said;            // that an I/O cannot be done
};

extern struct ioengine_ops ioengine;

static int refuse(struct thread_data* td, int error, const char* why) {
  log_err("fio: %s: doorbell: %s\n", td->o.name != NULL ? td->o.name : "job", why);
  td_verror(td, error, "doorbell");
  return 1;
}

// A fio of another version, or whose headers were configured in another way, has its members elsewhere.
static const char* other_fio(struct thread_data* td) {
  static char text[256];
  if (strcmp(fio_version_string, DOORBELL_FIO_VERSION) == 0)
    return td->io_ops == &ioengine ? NULL
                                   : "its headers do not fit this fio: build it with that fio's source";
  snprintf(text, sizeof text, "this is %s, and the engine is built for " DOORBELL_FIO_VERSION,
           fio_version_string);
  return text;
}

// The namespace that a file is: by its name "nsN", or, where the job names no files, by the option.
static bool file_nsid(struct thread_data* td, const char* name, uint32_t* nsid) {
  const struct engine_options* o = td->eo;
  unsigned long n;
  char* end;
  if (td->o.filename == NULL) {
    *nsid = o->nsid;
    return true;
  }
  if (strncmp(name, "ns", 2) != 0 || name[2] < '1' || name[2] > '9') return false;
  n = strtoul(name + 2, &end, 10);
  if (*end != '\0' || n >= 0xffffffffUL) return false;
  *nsid = (uint32_t)n;
  return true;
}

static void set_sizes(struct thread_data* td, struct doorbell_job_setup* s) {
  enum fio_ddir d;
  s->least = UINT64_MAX;
  for (d = DDIR_READ; d <= DDIR_WRITE; d++) {
    if (d == DDIR_READ ? !td_read(td) : !td_write(td)) continue;
    if (td->o.min_bs[d] < s->least) s->least = td->o.min_bs[d];
    if (td->o.max_bs[d] > s->most) s->most = td->o.max_bs[d];
    // Logical blocks are powers of two: a bit below them in any number is one in their union.
    s->step |= td->o.min_bs[d];
    s->at |= td->o.ba[d];
  }
  s->at |= td->o.start_offset | td->o.offset_increment;
}

static int add_files(struct thread_data* td, struct doorbell_job* core) {
  struct fio_file* f;
  unsigned int i;
  for_each_file(td, f, i) {
    struct doorbell_job_file file = {0};
    if (!file_nsid(td, f->file_name, &file.nsid))
      return refuse(td, EINVAL,
                    "a file of this engine is a namespace: filename=ns1 (the controller is controller=...)");
    if (doorbell_job_add_file(core, &file) != 0) return refuse(td, EINVAL, doorbell_job_error(core));
    f->real_file_size = file.bytes;
    f->filetype = FIO_TYPE_BLOCK;
    fio_file_set_size_known(f);
  }
  return 0;
}

// Called for every job before the first begins.
static int engine_setup(struct thread_data* td) {
  const char* const other = other_fio(td);
  const struct engine_options* o;
  struct doorbell_job_setup s = {0};
  struct engine_job* job;
  if (other != NULL) {
    log_err("fio: doorbell: %s\n", other);
    return 1;
  }
  if (!td->o.use_thread && td->o.numjobs > 1)
    return refuse(td, EINVAL, "numjobs=: jobs that are processes cannot share a controller: add thread=1");
  if (td_trim(td))
    return refuse(td, EOPNOTSUPP, "trims are not possible: the NVMe path has no Dataset Management");
  o = td->eo;
  s.controller = o->controller;
  s.fault = o->fault;
  s.fault_seed = o->fault_seed;
  s.answer_us = o->answer_us;
  s.allow_write = o->allow_write != 0;
  s.place = (int)o->place;
  s.depth = o->queue_depth != 0 ? o->queue_depth : td->o.iodepth;
  s.threads = td->o.use_thread != 0;
  s.writes = td_write(td) != 0;
  s.verifies = td->o.verify != VERIFY_NONE;
  set_sizes(td, &s);
  job = calloc(1, sizeof *job);
  if (job == NULL) return refuse(td, ENOMEM, "no memory");
  job->core = doorbell_job_new(&s);
  if (job->core == NULL) {
    free(job);
    return refuse(td, EINVAL, doorbell_job_error(NULL));
  }
  if (add_files(td, job->core) != 0) {
    doorbell_job_free(job->core);
    free(job);
    return 1;
  }
  doorbell_job_ready(job->core);
  td->io_ops_data = job;
  return 0;
}

// In the job's own thread or process.
static int engine_init(struct thread_data* td) {
  struct engine_job* const job = td->io_ops_data;
  int error;
  // Without create_serialize, fio sets a job up when it runs already.
  if (job == NULL) return refuse(td, EINVAL, "create_serialize=0 is not possible: jobs share controllers");
  error = doorbell_job_open(job->core);
  if (error != 0) (void)refuse(td, error, doorbell_job_error(job->core));
  return error;
}

static int engine_iomem_alloc(struct thread_data* td, size_t bytes) {
  struct engine_job* const job = td->io_ops_data;
  td->orig_buffer = doorbell_job_buffer(job->core, bytes);
  return td->orig_buffer != NULL ? 0 : refuse(td, ENOMEM, doorbell_job_error(job->core));
}

static void engine_iomem_free(struct thread_data* td) {
  struct engine_job* const job = td->io_ops_data;
  if (job != NULL) doorbell_job_end(job->core);
}

static void engine_cleanup(struct thread_data* td) {
  struct engine_job* const job = td->io_ops_data;
  int error;
  if (job == NULL) return;
  doorbell_job_end(job->core);
  error = doorbell_job_verdict(job->core);
  if (error != 0) (void)refuse(td, error, doorbell_job_error(job->core));
  doorbell_job_free(job->core);
  free(job);
  td->io_ops_data = NULL;
}

static enum fio_q_status engine_queue(struct thread_data* td, struct io_u* io_u) {
  struct engine_job* const job = td->io_ops_data;
  enum doorbell_op op = DOORBELL_FLUSH;
  int error = 0;
  fio_ro_check(td, io_u);
  if (io_u->ddir == DDIR_READ) op = DOORBELL_READ;
  else if (io_u->ddir == DDIR_WRITE) op = DOORBELL_WRITE;
  else if (io_u->ddir != DDIR_SYNC && io_u->ddir != DDIR_DATASYNC) error = EOPNOTSUPP;
  // The latency begins before the doorbell rings.
  if (fio_fill_issue_time(td)) {
    fio_gettime(&io_u->issue_time, NULL);
    if (td->o.read_iolog_file != NULL) td->last_issue = io_u->issue_time;
  }
  if (error == 0)
    error = doorbell_job_queue(job->core, op, io_u->file->fileno, io_u->offset, io_u->xfer_buflen,
                               io_u->xfer_buf, io_u);
  if (error == 0) {
    job->posted++;
    return FIO_Q_QUEUED;
  }
  if (error == EBUSY) return FIO_Q_BUSY;
  if (!job->said)
    log_err("fio: %s: doorbell: %s\n", td->o.name,
            error == EOPNOTSUPP && op == DOORBELL_FLUSH
                ? "only reads, writes and syncs of whole files are possible"
                : doorbell_job_error(job->core));
  job->said = true;
  io_u->error = (unsigned int)error;
  return FIO_Q_COMPLETED;
}

static int engine_commit(struct thread_data* td) {
  struct engine_job* const job = td->io_ops_data;
  if (job->posted == 0) return 0;
  doorbell_job_commit(job->core);
  io_u_mark_submit(td, job->posted);
  job->posted = 0;
  return 0;
}

static int engine_getevents(struct thread_data* td, unsigned int min, unsigned int max,
                            const struct timespec* t) {
  struct engine_job* const job = td->io_ops_data;
  const uint64_t limit = t != NULL ? (uint64_t)t->tv_sec * 1000000000u + (uint64_t)t->tv_nsec : UINT64_MAX;
  return (int)doorbell_job_reap(job->core, min, max, limit);
}

static struct io_u* engine_event(struct thread_data* td, int i) {
  struct engine_job* const job = td->io_ops_data;
  uintptr_t detail;
  int error;
  struct io_u* const io_u = doorbell_job_outcome(job->core, (unsigned int)i, &error, &detail);
  io_u->error = (unsigned int)error;
  io_u->resid = error != 0 ? io_u->xfer_buflen : 0;
  io_u->engine_data = (void*)detail;
  return io_u;
}

static char* engine_errdetails(struct io_u* io_u) {
  return doorbell_outcome_text((uintptr_t)io_u->engine_data);
}

static int engine_nothing(struct thread_data* td, struct fio_file* f) {
  (void)td;
  (void)f;
  return 0;
}

struct ioengine_ops ioengine __attribute__((visibility("default"))) = {
    .name = "doorbell",
    .version = FIO_IOOPS_VERSION,
    .flags = FIO_RAWIO | FIO_MEMALIGN | FIO_DISKLESSIO | FIO_NODISKUTIL | FIO_NOEXTEND | FIO_NO_OFFLOAD |
             FIO_ASYNCIO_SETS_ISSUE_TIME,
    .setup = engine_setup,
    .init = engine_init,
    .iomem_alloc = engine_iomem_alloc,
    .iomem_free = engine_iomem_free,
    .queue = engine_queue,
    .commit = engine_commit,
    .getevents = engine_getevents,
    .event = engine_event,
    .errdetails = engine_errdetails,
    .cleanup = engine_cleanup,
    .open_file = engine_nothing,
    .close_file = engine_nothing,
    .invalidate = engine_nothing,
    .get_file_size = engine_nothing,
    .options = option_table,
    .option_struct_size = sizeof(struct engine_options),
};
