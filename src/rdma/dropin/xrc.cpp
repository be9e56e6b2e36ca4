// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// XRC: its domains, and queue pairs that have several handles. All of it is within this process, whose NIC is
// its own: another process that opens the same file gets a domain of its own.
#include <fcntl.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include "rdma/dropin/devices.hpp"
#include "rdma/dropin/report.hpp"

namespace doorbell::dropin {

XrcDomain::~XrcDomain() {
  if (file >= 0) ::close(file);
}

void join(Context& context, Qp& qp, Qp* other) {
  ::pthread_mutex_init(&qp.plain()->mutex, nullptr);
  ::pthread_cond_init(&qp.plain()->cond, nullptr);
  count_users(qp, 1);
  watch(qp, context);
  // Events of the NIC go through the handles, with the engine.
  context.nic->between_rounds([&] {
    if (other == nullptr) {
      qp.queue->owner = &qp;
      return;
    }
    qp.next = other->next;
    other->next = &qp;
  });
}

void share_attributes(Context& context, const Qp& qp) {
  context.nic->between_rounds([&] {
    for (Qp* one = static_cast<Qp*>(qp.queue->owner); one != nullptr; one = one->next)
      if (one != &qp) one->attributes = qp.attributes;
  });
}

void leave(Context& context, Qp& qp) {
  bool last = false;
  context.nic->between_rounds([&] {
    auto* first = static_cast<Qp*>(qp.queue->owner);
    last = first == &qp && qp.next == nullptr;
    // The last one stays the owner until the queue pair ends: it may still tell something.
    if (last) return;
    if (first == &qp) {
      qp.queue->owner = qp.next;
    } else {
      Qp* before = first;
      while (before->next != &qp) before = before->next;
      before->next = qp.next;
    }
    qp.next = nullptr;
  });
  if (last) remember(qp, *context.adapter);
  else unwatch(qp);
  qp.queue.reset();
}

namespace {

ibv_xrcd* open_domain(ibv_context* base, ibv_xrcd_init_attr* attributes) {
  Context& context = of(base);
  if (context.dead) return refused(EIO);
  constexpr u32 kNeeded = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
  if ((attributes->comp_mask & ~kNeeded) != 0) return refused(EOPNOTSUPP);
  if (attributes->comp_mask != kNeeded) return refused(EINVAL);
  auto xrcd = std::make_unique<Xrcd>();
  xrcd->base.context = base;
  struct stat file {};
  const bool alone = attributes->fd == -1;
  if (!alone && ::fstat(attributes->fd, &file) != 0) return refused(EBADF);
  const auto lock = Devices::get().locked();
  if (!alone) {
    xrcd->domain = Devices::get().xrc_domain(context, file.st_dev, file.st_ino);
    if (xrcd->domain != nullptr && (attributes->oflags & O_EXCL) != 0) return refused(EINVAL);
    if (xrcd->domain == nullptr && (attributes->oflags & O_CREAT) == 0) {
      complain(
          "no XRC domain has been made by this file in this process; those of other processes are not "
          "shared");
      return refused(EAGAIN);
    }
  }
  if (xrcd->domain == nullptr) {
    xrcd->domain = std::make_shared<XrcDomain>();
    xrcd->domain->number = context.adapter->next_handle();
    if (!alone) {
      xrcd->domain->file = ::fcntl(attributes->fd, F_DUPFD_CLOEXEC, 0);
      if (xrcd->domain->file < 0) return refused(errno);
      xrcd->domain->device = file.st_dev;
      xrcd->domain->inode = file.st_ino;
    }
  }
  const std::lock_guard inner(context.mutex);
  context.xrc_domains.insert(xrcd.get());
  return &xrcd.release()->base;
}

int close_domain(ibv_xrcd* base) {
  Xrcd& xrcd = of<Xrcd>(base);
  if (const int error = busy(xrcd.users)) return error;
  Context& context = of(base->context);
  {
    const std::lock_guard lock(context.mutex);
    context.xrc_domains.erase(&xrcd);
  }
  delete &xrcd;
  return 0;
}

ibv_qp* open_queue_pair(ibv_context* base, ibv_qp_open_attr* attributes) {
  Context& context = of(base);
  if (context.dead) return refused(EIO);
  constexpr u32 kNeeded = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
  const u32 mask = attributes->comp_mask;
  if ((mask & ~u32{kNeeded | IBV_QP_OPEN_ATTR_CONTEXT}) != 0) return refused(EOPNOTSUPP);
  if ((mask & kNeeded) != kNeeded || attributes->xrcd == nullptr || attributes->qp_type != IBV_QPT_XRC_RECV)
    return refused(EINVAL);
  auto qp = std::make_unique<Qp>();
  qp->attendant = &context.adapter->attendant();
  qp->service = roce::Service::xrc;
  qp->xrc_domain = &of<Xrcd>(attributes->xrcd);
  ibv_qp& plain = *qp->plain();
  plain.context = base;
  plain.qp_context = (mask & IBV_QP_OPEN_ATTR_CONTEXT) != 0 ? attributes->qp_context : nullptr;
  plain.handle = context.adapter->next_handle();
  plain.qp_num = attributes->qp_num;
  plain.qp_type = attributes->qp_type;
  Devices::get().with_xrc_responder(context, attributes->qp_num, [&](Qp& other) {
    if (other.queue == nullptr || other.xrc_domain->domain != qp->xrc_domain->domain) return;
    qp->queue = other.queue;
    qp->made = other.made;
    qp->made.qp_context = plain.qp_context;
    qp->attributes = other.attributes;
    plain.state = static_cast<ibv_qp_state>(qp->queue->state());
    join(context, *qp, &other);
  });
  if (qp->queue == nullptr) return refused(EINVAL);
  const std::lock_guard lock(context.mutex);
  context.queue_pairs.insert(qp.get());
  return qp.release()->plain();
}

}  // namespace

void set_xrc_operations(Context& context) {
  context.verbs.open_xrcd = open_domain;
  context.verbs.close_xrcd = close_domain;
  context.verbs.open_qp = open_queue_pair;
}

}  // namespace doorbell::dropin
