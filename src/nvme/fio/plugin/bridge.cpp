// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/fio/plugin/bridge.h"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <optional>
#include <vector>

#include "nvme/jobs/job_queue.hpp"

using namespace doorbell;
using namespace doorbell::nvme;

struct doorbell_job {
  doorbell_job_setup setup;
  SharedOptions options;
  std::shared_ptr<void> claim;  // of a job that becomes a process
  std::shared_ptr<SharedController> controller;
  std::vector<NamespaceInfo> files;
  std::optional<JobQueue> queue;
  std::vector<IoOutcome> outcomes;
  std::string error;
};

namespace {

thread_local std::string thread_error;

std::string text(const std::exception& e) {
  const auto* const ours = dynamic_cast<const Error*>(&e);
  return ours == nullptr || ours->hint().empty() ? e.what() : fmt::format("{} ({})", e.what(), ours->hint());
}

/// Runs `work`; an exception's words go into `error`.
template <class Work>
int guarded(std::string& error, int number, Work work) {
  try {
    work();
    return 0;
  } catch (const std::exception& e) {
    error = text(e);
  }
  return number;
}

const char* const kThreads = "add thread=1, so that they are threads of one process";

}  // namespace

doorbell_job* doorbell_job_new(const doorbell_job_setup* setup) {
  doorbell_job* job = nullptr;
  const int failed = guarded(thread_error, EINVAL, [&] {
    auto made = std::make_unique<doorbell_job>();
    made->setup = *setup;
    made->setup.controller = made->setup.fault = nullptr;  // fio's, which it may free
    made->options = {.controller = setup->controller,
                     .faults = parse_faults(setup->fault != nullptr ? setup->fault : ""),
                     .seed = setup->fault_seed,
                     .timeout_s = static_cast<double>(setup->answer_us) * 1e-6};
    if (setup->threads != 0) {
      made->controller = share_controller(made->options, kThreads);
    } else {
      made->claim = claim_controller(setup->controller, kThreads);
      made->controller = std::make_shared<SharedController>(made->options);
    }
    made->controller->check_depth(setup->depth);
    if (setup->writes != 0 && setup->allow_write == 0)
      made->controller->require_scratch("add allow_write=1 if that may be lost");
    if (setup->verifies != 0 && !made->controller->moves_data())
      throw Error(made->controller->name(), "it stores nothing, so nothing can be verified",
                  "leave verify= out");
    job = made.release();
  });
  return failed == 0 ? job : nullptr;
}

int doorbell_job_add_file(doorbell_job* job, doorbell_job_file* file) {
  return guarded(job->error, EINVAL, [&] {
    const NamespaceInfo ns = job->controller->name_space(file->nsid);
    const doorbell_job_setup& s = job->setup;
    check_sizes(job->controller->info(), ns, s.least, s.most, s.step, s.at);
    file->bytes = ns.blocks * ns.lba_bytes;
    job->files.push_back(ns);
  });
}

void doorbell_job_ready(doorbell_job* job) {
  if (job->setup.threads == 0) job->controller.reset();
}

int doorbell_job_open(doorbell_job* job) {
  return guarded(job->error, ENODEV, [&] {
    if (job->controller == nullptr) job->controller = std::make_shared<SharedController>(job->options);
    job->queue.emplace(job->controller, job->setup.depth, job->setup.most);
    job->outcomes.resize(job->setup.depth);
  });
}

void* doorbell_job_buffer(doorbell_job* job, size_t bytes) {
  constexpr Place kPlaces[] = {Place::pageable, Place::huge_2m, Place::huge_1g};
  void* buffer = nullptr;
  (void)guarded(job->error, ENOMEM,
                [&] { buffer = job->queue.value().make_buffer(kPlaces[job->setup.place], bytes); });
  return buffer;
}

void doorbell_job_end(doorbell_job* job) {
  if (job->queue) job->queue->end();
}

int doorbell_job_verdict(doorbell_job* job) {
  if (!job->queue || job->queue->fault().empty()) return 0;
  job->error = job->queue->fault();
  return EPROTO;
}

void doorbell_job_free(doorbell_job* job) {
  delete job;
}

int doorbell_job_queue(doorbell_job* job, doorbell_op op, unsigned file, uint64_t offset, uint64_t bytes,
                       void* data, void* tag) {
  constexpr IoOpcode kOpcodes[] = {IoOpcode::read, IoOpcode::write, IoOpcode::flush};
  JobQueue& queue = *job->queue;
  switch (queue.queue(job->files[file], {kOpcodes[op], offset, bytes, data, tag, job->setup.verifies != 0})) {
    case JobQueue::Queued::yes:
      return 0;
    case JobQueue::Queued::full:
      return EBUSY;
    case JobQueue::Queued::no:
      break;
  }
  job->error = queue.refusal();
  return queue.refusal_errno();
}

void doorbell_job_commit(doorbell_job* job) {
  job->queue->commit();
}

unsigned doorbell_job_reap(doorbell_job* job, unsigned least, unsigned most, uint64_t limit_ns) {
  const std::span<IoOutcome> all = job->outcomes;
  return job->queue->reap(all.first(std::min<std::size_t>(most, all.size())), least, limit_ns);
}

void* doorbell_job_outcome(doorbell_job* job, unsigned i, int* error, uintptr_t* detail) {
  const IoOutcome& o = job->outcomes[i];
  *error = errno_of(o.end, o.status);
  *detail = uintptr_t{o.status} << 8 | static_cast<uintptr_t>(o.end);
  return o.tag;
}

char* doorbell_outcome_text(uintptr_t detail) {
  return strdup(
      ("doorbell: " + text_of(static_cast<IoEnd>(detail & 0xff), static_cast<u16>(detail >> 8))).c_str());
}

const char* doorbell_job_error(const doorbell_job* job) {
  return job != nullptr ? job->error.c_str() : thread_error.c_str();
}
