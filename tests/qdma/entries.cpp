// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "entries.hpp"

#include <doorbell/qdma/slash_qdma.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <map>

#include "qdma/card_state.hpp"
#include "qdma/flow/transfers.hpp"

namespace doorbell::qdma::test {

namespace {

class LibraryEntry : public Entry {
 public:
  explicit LibraryEntry(std::shared_ptr<Driver> driver) : card_(std::make_shared<CardState>()) {
    card_->name = driver->name();
    card_->driver = std::move(driver);
  }
  i64 info(Info& out) override { return issue(-1, kCallInfo, out); }
  i64 add(QpairAdd& add) override { return issue(-1, kCallQpairAdd, add); }
  i64 operate(u32 qid, QueueOp op) override {
    QpairOp q{.qid = qid, .op = static_cast<u32>(op)};
    return issue(-1, kCallQpairOp, q);
  }
  i64 get_fd(std::span<const u32> ids, u32 flags) override {
    QpairGetFd g{.flags = flags, .qpair_count = static_cast<u32>(ids.size())};
    std::copy_n(ids.begin(), std::min(ids.size(), g.qpair_ids.size()), g.qpair_ids.begin());
    const i64 fd = issue(-1, kCallQpairGetFd, g);
    if (fd >= 0) {
      std::vector<u32> channels;
      for (u32 i = 0; i < ids.size(); ++i) channels.push_back(i);
      transfers_.emplace(static_cast<int>(fd),
                         std::make_unique<Transfers>(card_, static_cast<int>(fd), channels));
    }
    return fd;
  }
  i64 create_buffer(u64 bytes, std::unique_ptr<EntryBuffer>& out) override {
    BufCreate b{.flags = kFlagCloseOnExec, .length = bytes};
    const i64 fd = issue(-1, kCallBufCreate, b);
    if (fd < 0) return fd;
    EXPECT_EQ(b.granule, kGranule);
    out = std::make_unique<EntryBuffer>(static_cast<int>(fd), bytes);
    return 0;
  }
  i64 batch(int fd, std::span<const SubXfer> parts, double deadline_s,
            std::vector<SubResult>& results) override {
    return give(transfers_.at(fd)->batch(parts, deadline_s), &results);
  }
  i64 transfer(int fd, Direction direction, const EntryBuffer& b, u64 offset, u64 address,
               u64 bytes) override {
    return give(transfers_.at(fd)->transfer({direction, b.fd, b.bytes, offset, address, bytes}, 0), nullptr);
  }
  void close(int fd) override { transfers_.erase(fd); }
  Driver* driver() override { return card_->driver.get(); }

 private:
  template <class T>
  i64 issue(int fd, u32 number, T& structure) {
    return card_->driver->call(fd, number, std::span(reinterpret_cast<u8*>(&structure), sizeof structure))
        .result;
  }
  static i64 give(const TransferResult& r, std::vector<SubResult>* parts) {
    if (parts != nullptr) *parts = r.parts;
    return r.error != 0 ? -i64{r.error} : static_cast<i64>(r.bytes);
  }
  std::shared_ptr<CardState> card_;
  std::map<int, std::unique_ptr<Transfers>> transfers_;
};

class CEntry : public Entry {
 public:
  explicit CEntry(const std::string& name) : card_(slash_qdma_open(name.c_str())) {
    EXPECT_NE(card_, nullptr) << doorbell_qdma_last_error();
  }
  ~CEntry() override { EXPECT_EQ(slash_qdma_close(card_), 0); }
  i64 info(Info& out) override {
    struct slash_qdma_info i;
    const i64 r = told(slash_qdma_info_read(card_, &i));
    if (r == 0) std::memcpy(static_cast<void*>(&out), &i, sizeof i);
    return r;
  }
  i64 add(QpairAdd& add) override {
    struct slash_qdma_qpair_add a;
    std::memcpy(&a, &add, sizeof a);
    const i64 r = told(slash_qdma_qpair_add(card_, &a));
    if (r == 0) std::memcpy(static_cast<void*>(&add), &a, sizeof a);
    return r;
  }
  i64 operate(u32 qid, QueueOp op) override {
    switch (op) {
      case QueueOp::start:
        return told(slash_qdma_qpair_start(card_, qid));
      case QueueOp::stop:
        return told(slash_qdma_qpair_stop(card_, qid));
      case QueueOp::del:
        return told(slash_qdma_qpair_del(card_, qid));
    }
    return -EINVAL;
  }
  i64 get_fd(std::span<const u32> ids, u32 flags) override {
    return told(slash_qdma_qpair_get_fd_multi(card_, ids.data(), static_cast<u32>(ids.size()), flags));
  }
  i64 create_buffer(u64 bytes, std::unique_ptr<EntryBuffer>& out) override {
    slash_qdma_buffer b;
    const i64 r = told(slash_qdma_buffer_create(card_, bytes, &b));
    if (r < 0) return r;
    EXPECT_EQ(b.granule, kGranule);
    out = std::make_unique<EntryBuffer>(dup(b.fd), bytes);
    EXPECT_EQ(slash_qdma_buffer_destroy(&b), 0);
    return 0;
  }
  i64 batch(int fd, std::span<const SubXfer> parts, double deadline_s,
            std::vector<SubResult>& results) override {
    std::vector<slash_qdma_subxfer> x(parts.size());
    if (!x.empty()) std::memcpy(x.data(), parts.data(), parts.size_bytes());
    std::vector<doorbell_qdma_result> r(parts.size());
    const i64 n = told(doorbell_qdma_transfer_batch(fd, x.data(), static_cast<u32>(x.size()),
                                                    static_cast<u64>(deadline_s * 1e9), r.data()));
    results.clear();
    for (const auto& p : r) results.push_back({p.error, p.bytes, p.ns, p.known != 0});
    return n;
  }
  i64 transfer(int fd, Direction direction, const EntryBuffer& b, u64 offset, u64 address,
               u64 bytes) override {
    const slash_qdma_buffer c = {b.fd, b.data, b.bytes, kGranule, 2};
    return told(doorbell_qdma_transfer(fd, &c, offset, address, bytes, static_cast<u32>(direction), 0,
                                       nullptr, 0, nullptr));
  }
  void close(int fd) override { EXPECT_EQ(doorbell_qdma_qpair_close(fd), 0); }

 private:
  static i64 told(i64 result) { return result < 0 ? -i64{errno} : result; }
  slash_qdma* card_;
};

}  // namespace

std::unique_ptr<Entry> library_entry(std::shared_ptr<Driver> driver) {
  return std::make_unique<LibraryEntry>(std::move(driver));
}

std::unique_ptr<Entry> c_entry(const std::string& name) {
  return std::make_unique<CEntry>(name);
}

}  // namespace doorbell::qdma::test
