// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// slash_qdma.h over the library. C programs hold descriptors; here is which card each belongs to.
#include <doorbell/qdma/slash_qdma.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <sstream>
#include <string>

#include "qdma/card_state.hpp"
#include "qdma/flow/transfers.hpp"
#include "system/sysfs.hpp"

struct slash_qdma {
  explicit slash_qdma(std::shared_ptr<doorbell::qdma::CardState> c) : card(std::move(c)) {}
  std::shared_ptr<doorbell::qdma::CardState> card;
  std::mutex mutex;
  std::map<uint32_t, uint32_t> channels;  // of its queue pairs
};

namespace doorbell::qdma {

static_assert(DOORBELL_QDMA_HBM == kHbmBase && DOORBELL_QDMA_DDR == kDdrBase);
static_assert(sizeof(slash_qdma_info) == sizeof(Info) &&
              sizeof(struct slash_qdma_qpair_add) == sizeof(QpairAdd) &&
              sizeof(slash_qdma_subxfer) == sizeof(SubXfer));
static_assert(offsetof(slash_qdma_subxfer, dev_addr) == offsetof(SubXfer, dev_addr) &&
              offsetof(struct slash_qdma_qpair_add, qid) == offsetof(QpairAdd, qid) &&
              offsetof(slash_qdma_info, bdf) == offsetof(Info, bdf));

namespace {

std::string& last_error() {
  thread_local std::string text;
  return text;
}

int set_error(int number, const std::string& text) {
  last_error() = text;
  errno = number;
  return -1;
}

int set_error(int number) {
  return set_error(number, reason(number));
}

/// The errno by which a C program sees an error, also one that has no number of its own.
int number_of(const Error& e) {
  if (const auto* c = dynamic_cast<const CardError*>(&e)) return c->number();
  return e.code() == ExitCode::absent ? ENOENT : EINVAL;
}

/// Calls `body`; an exception becomes -1 and errno.
template <class Fn>
auto guarded(Fn body) noexcept -> decltype(body()) {
  try {
    return body();
  } catch (const Error& e) {
    return set_error(number_of(e), e.what());
  } catch (const std::bad_alloc&) {
    return set_error(ENOMEM);
  } catch (const std::exception& e) {
    return set_error(EIO, e.what());
  }
}

/// A transfer descriptor that a C program has.
struct OpenDescriptor {
  OpenDescriptor(std::shared_ptr<CardState> card, int fd, std::vector<u32> channels)
      : transfers(std::move(card), fd, std::move(channels), false) {}
  Transfers transfers;
  u64 device = 0, inode = 0;
};

class Descriptors {
 public:
  static Descriptors& all() {
    static auto* const one = new Descriptors;  // descriptors may be closed after main()
    return *one;
  }
  void add(std::shared_ptr<CardState> card, int fd, std::vector<u32> channels) {
    auto d = std::make_shared<OpenDescriptor>(std::move(card), fd, std::move(channels));
    struct stat s {};
    if (fstat(fd, &s) == 0) {
      d->device = s.st_dev;
      d->inode = s.st_ino;
    }
    const std::lock_guard lock(mutex_);
    std::swap(open_[fd], d);
  }
  /// Throws CardError EBADF for what is none.
  std::shared_ptr<OpenDescriptor> find(int fd) {
    const std::lock_guard lock(mutex_);
    const auto it = open_.find(fd);
    struct stat s {};
    // The program may have closed it, and opened another file of that number.
    if (it != open_.end() && fstat(fd, &s) == 0 && s.st_dev == it->second->device &&
        s.st_ino == it->second->inode)
      return it->second;
    throw CardError("transfer descriptor " + std::to_string(fd), EBADF, reason(EBADF));
  }
  void remove(int fd) {
    const std::lock_guard lock(mutex_);
    open_.erase(fd);
  }
  /// Forgets those that are closed.
  void sweep() {
    std::vector<std::shared_ptr<OpenDescriptor>> closed;  // whose end may take time, without the lock
    const std::lock_guard lock(mutex_);
    for (auto it = open_.begin(); it != open_.end();) {
      struct stat s {};
      const OpenDescriptor& d = *it->second;
      if (fstat(it->first, &s) == 0 && s.st_dev == d.device && s.st_ino == d.inode) {
        ++it;
        continue;
      }
      closed.push_back(std::move(it->second));
      it = open_.erase(it);
    }
  }

 private:
  std::mutex mutex_;
  std::map<int, std::shared_ptr<OpenDescriptor>> open_;
};

double seconds(u64 ns) {
  return static_cast<double>(ns) * 1e-9;
}

int create_buffer(CardState& card, int fd, uint64_t length, slash_qdma_buffer* out) {
  if (out == nullptr) return set_error(EFAULT);
  *out = SLASH_QDMA_BUFFER_NONE;
  BufCreate b{.flags = kFlagCloseOnExec, .length = length};
  const int made = static_cast<int>(card.call(fd, kCallBufCreate, b, "create a buffer"));
  void* const at = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_SHARED, made, 0);
  if (at == MAP_FAILED) {
    const int error = errno;
    ::close(made);
    return set_error(error);
  }
  *out = {made, at, length, b.granule, b.transfer_hint};
  return 0;
}

int operate(slash_qdma* dev, uint32_t qid, QueueOp op, const char* what) {
  if (dev == nullptr) return set_error(EFAULT);
  QpairOp q{.qid = qid, .op = static_cast<u32>(op)};
  dev->card->call(-1, kCallQpairOp, q, what);
  return 0;
}

std::vector<SubXfer> subxfers(const slash_qdma_subxfer* xfers, uint32_t count) {
  if (count > kMaxSubTransfers) throw CardError("transfer", EINVAL, "more than two sub-transfers");
  if (xfers == nullptr && count > 0) throw CardError("transfer", EFAULT, reason(EFAULT));
  std::vector<SubXfer> out(count);
  if (count > 0) std::memcpy(static_cast<void*>(out.data()), xfers, count * sizeof *xfers);
  return out;
}

WholeTransfer whole(const slash_qdma_buffer* buffer, uint64_t offset, uint64_t address, uint64_t length,
                    uint32_t direction) {
  if (buffer == nullptr) throw CardError("transfer", EFAULT, reason(EFAULT));
  if (direction != SLASH_QDMA_H2C && direction != SLASH_QDMA_C2H)
    throw CardError("transfer", EINVAL, "a direction is SLASH_QDMA_H2C or SLASH_QDMA_C2H");
  return {static_cast<Direction>(direction), buffer->fd, buffer->length, offset, address, length};
}

/// Of card addresses that lie in neither memory: which they are. "" for all others.
std::string outside(uint64_t address, uint64_t length) {
  const auto inside = [&](u64 base, u64 bytes) {
    return address >= base && address - base < bytes && length <= bytes - (address - base);
  };
  if (inside(kHbmBase, kHbmBytes) || inside(kDdrBase, kDdrBytes)) return {};
  std::ostringstream text;
  text << std::hex << ": 0x" << address << std::dec << ", " << length << " bytes, is not in DDR or HBM";
  return text.str();
}

/// `note`: what else is to be said if the card refused an address.
int64_t give(const TransferResult& r, doorbell_qdma_result* results, size_t capacity, size_t* count,
             const std::string& note) {
  if (results == nullptr) capacity = 0;
  for (size_t i = 0; i < std::min(capacity, r.parts.size()); ++i)
    results[i] = {r.parts[i].error, r.parts[i].known ? 1 : 0, r.parts[i].bytes, r.parts[i].ns};
  if (count != nullptr) *count = r.parts.size();
  if (r.error != 0) return set_error(r.error, reason(r.error) + note);
  return static_cast<int64_t>(r.bytes);
}

}  // namespace

}  // namespace doorbell::qdma

using namespace doorbell;
using namespace doorbell::qdma;

#define DOORBELL_C_API __attribute__((visibility("default")))

extern "C" {

DOORBELL_C_API struct slash_qdma* slash_qdma_open(const char* path) {
  slash_qdma* opened = nullptr;
  guarded([&]() -> int {
    if (path == nullptr) return set_error(EFAULT);
    const std::string name = path[0] == '/' ? std::string("kernel:") + path : path;
    opened = new slash_qdma(state_of(Card::open(name)));
    return 0;
  });
  return opened;
}

DOORBELL_C_API int slash_qdma_close(struct slash_qdma* dev) {
  if (dev == nullptr) return set_error(EFAULT);
  return guarded([&] {
    Descriptors::all().sweep();
    delete dev;
    return 0;
  });
}

DOORBELL_C_API int slash_qdma_info_read(struct slash_qdma* dev, struct slash_qdma_info* info) {
  if (dev == nullptr || info == nullptr) return set_error(EFAULT);
  return guarded([&] {
    Info i;
    dev->card->call(-1, kCallInfo, i, "read the card's information");
    std::memcpy(info, &i, sizeof i);
    return 0;
  });
}

DOORBELL_C_API int slash_qdma_qpair_add(struct slash_qdma* dev, struct slash_qdma_qpair_add* add) {
  if (dev == nullptr || add == nullptr) return set_error(EFAULT);
  return guarded([&]() -> int {
    QpairAdd a;
    // A program that was compiled for a shorter structure says so.
    const u32 size = add->size == 0 ? u32{sizeof a} : add->size;
    if (size < smallest_size(kCallQpairAdd)) return set_error(EINVAL);
    if (size > sizeof a) return set_error(E2BIG);
    a.aperture_size = 0;
    std::memcpy(static_cast<void*>(&a), add, size);
    a.size = sizeof a;
    dev->card->call(-1, kCallQpairAdd, a, "add a queue pair");
    std::memcpy(add, &a, size);
    if (size < offsetof(QpairAdd, qid) + sizeof a.qid) {
      // Its id cannot be returned.
      QpairOp q{.qid = a.qid, .op = static_cast<u32>(QueueOp::del)};
      dev->card->call(-1, kCallQpairOp, q, "delete a queue pair");
      return set_error(EINVAL);
    }
    const std::lock_guard lock(dev->mutex);
    // As Card::add_queue_pair() has it.
    dev->channels[a.qid] = a.mm_channel == kChannelAuto ? a.qid & 1 : a.mm_channel - kChannel0;
    return 0;
  });
}

DOORBELL_C_API int slash_qdma_qpair_start(struct slash_qdma* dev, uint32_t qid) {
  return guarded([&] { return operate(dev, qid, QueueOp::start, "start a queue pair"); });
}

DOORBELL_C_API int slash_qdma_qpair_stop(struct slash_qdma* dev, uint32_t qid) {
  return guarded([&] { return operate(dev, qid, QueueOp::stop, "stop a queue pair"); });
}

DOORBELL_C_API int slash_qdma_qpair_del(struct slash_qdma* dev, uint32_t qid) {
  return guarded([&] {
    const int r = operate(dev, qid, QueueOp::del, "delete a queue pair");
    const std::lock_guard lock(dev->mutex);
    dev->channels.erase(qid);
    return r;
  });
}

DOORBELL_C_API int slash_qdma_qpair_get_fd_multi(struct slash_qdma* dev, const uint32_t* qids, uint32_t count,
                                                 uint32_t flags) {
  if (dev == nullptr || (qids == nullptr && count > 0)) return set_error(EFAULT);
  return guarded([&]() -> int {
    QpairGetFd g{.flags = flags, .qpair_count = count};
    if (count == 0 || count > g.qpair_ids.size()) return set_error(EINVAL);
    std::vector<u32> channels;
    {
      const std::lock_guard lock(dev->mutex);
      for (u32 i = 0; i < count; ++i) {
        g.qpair_ids[i] = qids[i];
        const auto it = dev->channels.find(qids[i]);
        channels.push_back(it == dev->channels.end() ? i : it->second);
      }
    }
    const i64 fd = dev->card->call(-1, kCallQpairGetFd, g, "make a transfer descriptor");
    Descriptors::all().add(dev->card, static_cast<int>(fd), channels);
    return static_cast<int>(fd);
  });
}

DOORBELL_C_API int slash_qdma_qpair_get_fd(struct slash_qdma* dev, uint32_t qid, uint32_t flags) {
  return slash_qdma_qpair_get_fd_multi(dev, &qid, 1, flags);
}

DOORBELL_C_API int slash_qdma_buffer_create(struct slash_qdma* dev, uint64_t length,
                                            struct slash_qdma_buffer* buffer) {
  if (dev == nullptr) return set_error(EFAULT);
  return guarded([&] { return create_buffer(*dev->card, -1, length, buffer); });
}

DOORBELL_C_API int slash_qdma_qpair_buffer_create(int qpair_fd, uint64_t length,
                                                  struct slash_qdma_buffer* buffer) {
  return guarded([&] {
    const auto d = Descriptors::all().find(qpair_fd);
    return create_buffer(d->transfers.card(), qpair_fd, length, buffer);
  });
}

DOORBELL_C_API int slash_qdma_buffer_destroy(struct slash_qdma_buffer* buffer) {
  if (buffer == nullptr) return set_error(EFAULT);
  if (buffer->addr == nullptr) return 0;
  int error = munmap(buffer->addr, buffer->length) == 0 ? 0 : errno;
  if (error == 0 && close(buffer->fd) != 0) error = errno;
  *buffer = SLASH_QDMA_BUFFER_NONE;
  return error == 0 ? 0 : set_error(error);
}

DOORBELL_C_API int64_t doorbell_qdma_transfer_batch(int qpair_fd, const struct slash_qdma_subxfer* xfers,
                                                    uint32_t count, uint64_t deadline_ns,
                                                    struct doorbell_qdma_result* results) {
  size_t given = 0;
  const int64_t moved = guarded([&]() -> int64_t {
    const auto d = Descriptors::all().find(qpair_fd);
    const std::vector<SubXfer> all = subxfers(xfers, count);
    std::string note;
    for (const SubXfer& x : all)
      if (note.empty()) note = outside(x.dev_addr, x.length);
    return give(d->transfers.batch(all, seconds(deadline_ns)), results, count, &given, note);
  });
  // A batch that is refused as a whole has its errno in each result.
  if (results != nullptr && moved < 0)
    for (size_t i = given; i < count; ++i) results[i] = {errno, 0, 0, 0};
  return moved;
}

DOORBELL_C_API int64_t slash_qdma_qpair_transfer_batch(int qpair_fd, const struct slash_qdma_subxfer* xfers,
                                                       uint32_t count) {
  return doorbell_qdma_transfer_batch(qpair_fd, xfers, count, 0, nullptr);
}

DOORBELL_C_API int64_t slash_qdma_qpair_transfer(int qpair_fd, int buf_fd, uint64_t buf_offset,
                                                 uint64_t dev_addr, uint64_t length, uint32_t direction) {
  const slash_qdma_subxfer x = {0, direction, buf_fd, 0, buf_offset, dev_addr, length};
  return slash_qdma_qpair_transfer_batch(qpair_fd, &x, 1);
}

DOORBELL_C_API uint32_t doorbell_qdma_version(void) {
  return DOORBELL_QDMA_VERSION;
}

DOORBELL_C_API const char* doorbell_qdma_last_error(void) {
  return last_error().c_str();
}

DOORBELL_C_API int doorbell_qdma_set_policy(int qpair_fd, enum doorbell_qdma_policy policy) {
  return guarded([&]() -> int {
    const auto d = Descriptors::all().find(qpair_fd);
    if (policy < DOORBELL_QDMA_BALANCED || policy > DOORBELL_QDMA_CHANNEL1) return set_error(EINVAL);
    d->transfers.set_policy(static_cast<PolicyKind>(policy), {});
    return 0;
  });
}

DOORBELL_C_API int64_t doorbell_qdma_transfer(int qpair_fd, const struct slash_qdma_buffer* buffer,
                                              uint64_t buf_offset, uint64_t dev_addr, uint64_t length,
                                              uint32_t direction, uint64_t deadline_ns,
                                              struct doorbell_qdma_result* results, size_t capacity,
                                              size_t* count) {
  if (count != nullptr) *count = 0;
  return guarded([&]() -> int64_t {
    const auto d = Descriptors::all().find(qpair_fd);
    const WholeTransfer t = whole(buffer, buf_offset, dev_addr, length, direction);
    return give(d->transfers.transfer(t, seconds(deadline_ns)), results, capacity, count,
                outside(dev_addr, length));
  });
}

DOORBELL_C_API int doorbell_qdma_submit(int qpair_fd, const struct slash_qdma_buffer* buffer,
                                        uint64_t buf_offset, uint64_t dev_addr, uint64_t length,
                                        uint32_t direction, uint64_t deadline_ns, uint64_t user,
                                        uint64_t* id) {
  return guarded([&]() -> int {
    const auto d = Descriptors::all().find(qpair_fd);
    const WholeTransfer t = whole(buffer, buf_offset, dev_addr, length, direction);
    const TransferId begun = d->transfers.submit(t, seconds(deadline_ns), user);
    if (id != nullptr) *id = begun;
    return 0;
  });
}

DOORBELL_C_API int doorbell_qdma_complete(int qpair_fd, struct doorbell_qdma_completion* out,
                                          uint32_t capacity, uint64_t wait_ns) {
  return guarded([&]() -> int {
    if (out == nullptr && capacity > 0) return set_error(EFAULT);
    const auto d = Descriptors::all().find(qpair_fd);
    std::vector<TransferCompletion> taken(std::min(capacity, TransferDescriptor::kMaxSubmitted));
    const u32 n = d->transfers.complete(taken, seconds(wait_ns));
    for (u32 i = 0; i < n; ++i)
      out[i] = {taken[i].id, taken[i].user, taken[i].result.error, 0, taken[i].result.bytes};
    return static_cast<int>(n);
  });
}

DOORBELL_C_API int doorbell_qdma_cancel(int qpair_fd, uint64_t id) {
  return guarded([&] {
    Descriptors::all().find(qpair_fd)->transfers.cancel(id);
    return 0;
  });
}

DOORBELL_C_API int doorbell_qdma_qpair_close(int qpair_fd) {
  return guarded([&] {
    auto d = Descriptors::all().find(qpair_fd);
    Descriptors::all().remove(qpair_fd);
    const std::shared_ptr<Driver> driver = d->transfers.card().driver;
    d.reset();  // the last one who uses it waits until the card is quiet
    driver->close(qpair_fd);
    return 0;
  });
}

}  // extern "C"
