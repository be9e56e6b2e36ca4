// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/dropin/devices.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <random>

#include "rdma/dropin/report.hpp"

namespace doorbell::dropin {

void complain(const std::string& sentence) {
  const std::string line = "doorbell verbs: " + sentence + "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

namespace {

/// Differs between processes and machines: peers tell devices apart by it.
__be64 random_guid() {
  std::random_device random;
  u8 bytes[8];
  for (u8& byte : bytes) byte = static_cast<u8>(random());
  bytes[0] = static_cast<u8>((bytes[0] & 0xFC) | 2);  // locally administered, no group
  __be64 guid = 0;
  std::memcpy(&guid, bytes, sizeof guid);
  return guid;
}

std::unique_ptr<Device> make_device(u32 index) {
  auto device = std::make_unique<Device>();
  device->index = index;
  device->guid = random_guid();
  ibv_device& base = device->base;
  base.node_type = IBV_NODE_CA;
  base.transport_type = IBV_TRANSPORT_IB;
  std::snprintf(base.name, sizeof base.name, "doorbell%u", index);
  std::snprintf(base.dev_name, sizeof base.dev_name, "uverbs_doorbell%u", index);
  std::snprintf(base.dev_path, sizeof base.dev_path, "/sys/class/infiniband_verbs/%s", base.dev_name);
  std::snprintf(base.ibdev_path, sizeof base.ibdev_path, "/sys/class/infiniband/%s", base.name);
  return device;
}

}  // namespace

namespace {
std::atomic<bool> devices_made{false};
}

Devices& Devices::get() {
  static Devices& devices = *new Devices;
  return devices;
}

bool Devices::made() {
  return devices_made.load();
}

Devices::Devices() {
  devices_made.store(true);
  std::string why;
  if (!read_settings(settings_, why)) {
    complain(why + "; there is no device");
    return;
  }
  for (u32 i = 0; i < settings_.devices; ++i) list_.push_back(make_device(i));
  adapters_.resize(settings_.devices);
  if (!settings_.report.empty()) report_at_exit(settings_.report);
  ::pthread_atfork([] { get().before_fork(); }, [] { get().after_fork_in_parent(); },
                   [] { get().after_fork_in_child(); });
}

ibv_context* Devices::open(Device& device) {
  const std::lock_guard lock(mutex_);
  return open_locked(device);
}

ibv_context* Devices::open_locked(Device& device) {
  std::shared_ptr<Adapter>& adapter = adapters_[device.index];
  if (!adapter) {
    std::string why;
    adapter = Adapter::make(settings_, device.index, listener(), why);
    if (!adapter) {
      complain(std::string(device.base.name) + ": " + why);
      return refused(ENODEV);
    }
  }
  auto context = std::make_unique<Context>();
  // A file of its own, by which ibv_import_device finds the context again.
  const int command = ::memfd_create(device.base.name, MFD_CLOEXEC);
  if (command < 0 || context->async.fd() < 0) {
    const int error = errno;
    if (command >= 0) ::close(command);
    return refused(error);
  }
  context->adapter = adapter;
  context->nic = &context->adapter->nic();
  context->device = &device;
  ibv_context& base = *context->base();
  base.device = &device.base;
  base.cmd_fd = command;
  base.async_fd = context->async.fd();
  base.num_comp_vectors = 1;
  ::pthread_mutex_init(&base.mutex, nullptr);
  base.abi_compat = __VERBS_ABI_IS_EXTENDED;
  context->verbs.sz = sizeof(verbs_context);
  set_query_operations(*context);
  set_memory_operations(*context);
  set_completion_operations(*context);
  set_queue_pair_operations(*context);
  set_receive_operations(*context);
  set_xrc_operations(*context);
  contexts_.insert(context.get());
  return context.release()->base();
}

ibv_context* Devices::import(int descriptor) {
  struct stat wanted {};
  if (::fstat(descriptor, &wanted) != 0) return nullptr;
  const std::lock_guard lock(mutex_);
  for (Context* context : contexts_) {
    struct stat have {};
    if (context->dead || ::fstat(context->base()->cmd_fd, &have) != 0) continue;
    if (have.st_dev == wanted.st_dev && have.st_ino == wanted.st_ino) return open_locked(*context->device);
  }
  // Another process's device is a NIC of its own: it cannot be shared.
  return refused(EOPNOTSUPP);
}

template <class Object>
Object* Devices::find(Context& context, std::unordered_set<Object*> Context::*objects, u32 handle) {
  const std::lock_guard lock(mutex_);
  for (Context* other : contexts_) {
    if (other->adapter != context.adapter) continue;
    const std::lock_guard inner(other->mutex);
    for (Object* object : other->*objects)
      if (object->base.handle == handle) return object;
  }
  return nullptr;
}

Mr* Devices::region(Context& context, u32 handle) {
  return find(context, &Context::regions, handle);
}
Pd* Devices::domain(Context& context, u32 handle) {
  return find(context, &Context::domains, handle);
}
Dm* Devices::memory(Context& context, u32 handle) {
  return find(context, &Context::memories, handle);
}

std::shared_ptr<XrcDomain> Devices::xrc_domain(Context& context, u64 device, u64 inode) {
  for (Context* other : contexts_) {
    if (other->adapter != context.adapter) continue;
    const std::lock_guard inner(other->mutex);
    for (const Xrcd* one : other->xrc_domains)
      if (one->domain->file >= 0 && one->domain->device == device && one->domain->inode == inode)
        return one->domain;
  }
  return nullptr;
}

void Devices::with_xrc_responder(Context& context, u32 number, const std::function<void(Qp&)>& work) {
  const std::lock_guard lock(mutex_);
  for (Context* other : contexts_) {
    if (other->adapter != context.adapter) continue;
    const std::lock_guard inner(other->mutex);
    for (Qp* one : other->queue_pairs)
      if (one->plain()->qp_num == number && one->plain()->qp_type == IBV_QPT_XRC_RECV) return work(*one);
  }
}

void Devices::close(Context& context) {
  {
    const std::lock_guard lock(mutex_);
    contexts_.erase(&context);
    if (!context.dead) {
      // The program may have left objects behind. Their memory is no longer the NIC's to touch; the
      // structures stay, because the program still holds them.
      const std::lock_guard inner(context.mutex);
      for (Qp* queue_pair : context.queue_pairs) leave(context, *queue_pair);
      for (Srq* receives : context.shared_receives) receives->queue.reset();
      for (Cq* completions : context.completion_queues) completions->queue.reset();
      for (ibv_mw* window : context.windows) (void)context.nic->free_window(window->rkey);
      for (Mr* region : context.regions)
        if (!region->imported) (void)context.nic->deregister_memory(region->base.lkey);
    }
  }
  ::close(context.base()->cmd_fd);
  ::pthread_mutex_destroy(&context.base()->mutex);
  delete &context;
}

void Devices::at_exit() {
  const std::lock_guard lock(mutex_);
  for (std::shared_ptr<Adapter>& adapter : adapters_) {
    if (!adapter) continue;
    (void)adapter->nic().progress_waiting();
    adapter->finish_trace();
    // With contexts that are still open the program's other threads may be in calls.
    if (contexts_.empty()) adapter.reset();
  }
}

void Devices::before_fork() {
  mutex_.lock();
}

void Devices::after_fork_in_parent() {
  mutex_.unlock();
}

void Devices::after_fork_in_child() {
  // The child has this memory and the descriptors, but neither the threads nor the locks that they held.
  // Nothing of it may run again; what it opened anew is its own.
  for (std::shared_ptr<Adapter>& adapter : adapters_) {
    if (!adapter) continue;
    adapter->leave_to_parent();
    new std::shared_ptr<Adapter>(std::move(adapter));  // never destroyed
  }
  for (Context* context : contexts_) {
    context->dead = true;
    set_dead_operations(*context);
    // Never destroyed.
    for (Qp* queue_pair : context->queue_pairs)
      (void)new std::shared_ptr<roce::QueuePair>(std::move(queue_pair->queue));
    for (Srq* receives : context->shared_receives) (void)receives->queue.release();
    for (Cq* completions : context->completion_queues) (void)completions->queue.release();
  }
  for (const std::unique_ptr<Device>& device : list_) device->guid = random_guid();
  forget_parent();
  mutex_.unlock();
}

}  // namespace doorbell::dropin

using doorbell::dropin::Device;
using doorbell::dropin::Devices;
using doorbell::dropin::of;
using doorbell::dropin::refused;

DOORBELL_VERBS ibv_device** ibv_get_device_list(int* count) {
  auto& devices = Devices::get().list();
  auto** list = static_cast<ibv_device**>(std::calloc(devices.size() + 1, sizeof(ibv_device*)));
  if (list == nullptr) return refused(ENOMEM);
  for (std::size_t i = 0; i < devices.size(); ++i) list[i] = &devices[i]->base;
  if (count != nullptr) *count = static_cast<int>(devices.size());
  return list;
}

DOORBELL_VERBS void ibv_free_device_list(ibv_device** list) {
  std::free(list);
}

DOORBELL_VERBS const char* ibv_get_device_name(ibv_device* device) {
  return device->name;
}

DOORBELL_VERBS int ibv_get_device_index(ibv_device* device) {
  return static_cast<int>(of<Device>(device).index);
}

DOORBELL_VERBS __be64 ibv_get_device_guid(ibv_device* device) {
  return of<Device>(device).guid;
}

DOORBELL_VERBS ibv_context* ibv_open_device(ibv_device* device) {
  return Devices::get().open(of<Device>(device));
}

DOORBELL_VERBS int ibv_close_device(ibv_context* context) {
  Devices::get().close(of(context));
  return 0;
}

DOORBELL_VERBS ibv_context* ibv_import_device(int descriptor) {
  return Devices::get().import(descriptor);
}

DOORBELL_VERBS int ibv_fork_init() {
  return 0;
}

DOORBELL_VERBS ibv_fork_status ibv_is_fork_initialized() {
  return IBV_FORK_UNNEEDED;
}
DOORBELL_VERBS int ibv_dontfork_range(void*, std::size_t) {
  return 0;
}
DOORBELL_VERBS int ibv_dofork_range(void*, std::size_t) {
  return 0;
}
