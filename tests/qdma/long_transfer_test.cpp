// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Transfers of more bytes than 32 bits count, which the software card carries out byte by byte. A host buffer
// of so many bytes is a short one that is mapped again and again, and the card's queues have an aperture, so
// that the bytes are moved and memory for a few MiB is taken.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "eventually.hpp"
#include "qdma/card_state.hpp"
#include "qdma/flow/transfers.hpp"
#include "qdma/model/model_card.hpp"
#include "sanitized.hpp"

namespace doorbell::qdma {

namespace {

constexpr u64 kShort = 16 << 20;

/// Address space of `bytes`, all of which is the same kShort bytes of memory.
class RepeatedMemory {
 public:
  explicit RepeatedMemory(u64 bytes)
      : file_(memfd_create("repeated", MFD_CLOEXEC)), bytes_((bytes + kShort - 1) / kShort * kShort) {
    EXPECT_EQ(ftruncate(file_.get(), static_cast<off_t>(kShort)), 0);
    void* p = mmap(nullptr, bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    EXPECT_NE(p, MAP_FAILED);
    data_ = static_cast<u8*>(p);
    for (u64 at = 0; at < bytes_; at += kShort)
      EXPECT_NE(mmap(data_ + at, kShort, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file_.get(), 0),
                MAP_FAILED);
  }
  ~RepeatedMemory() { munmap(data_, bytes_); }
  RepeatedMemory(const RepeatedMemory&) = delete;
  RepeatedMemory& operator=(const RepeatedMemory&) = delete;
  [[nodiscard]] u8* data() const { return data_; }

 private:
  Descriptor file_;
  u64 bytes_;
  u8* data_ = nullptr;
};

/// The software card's engine behind TRANSFER, with one host buffer, which may be of any length.
class CardOfOneBuffer : public Driver {
 public:
  explicit CardOfOneBuffer(u8* buffer) : buffer_(buffer), card_(make_model_card("model:clock=counted")) {
    for (u32 i = 0; i < 2; ++i) {
      queues_[i] = std::make_shared<CardQueue>(
          CardQueueShape{.index = i, .channel = i, .aperture = static_cast<u32>(kShort)});
      card_->start(*queues_[i]);
    }
  }
  [[nodiscard]] std::string kind() const override { return "model"; }
  [[nodiscard]] std::string name() const override { return "one buffer"; }
  [[nodiscard]] bool descriptors_are_sockets() const override { return false; }
  [[nodiscard]] CallResult call(int, u32 number, std::span<u8> structure, const CallOptions& o) override {
    if (number != kCallTransfer) return {-ENOTTY, 0};
    Transfer t;
    std::memcpy(&t, structure.data(), sizeof t);
    struct Part : CardRequest {
      std::atomic<bool> over{false};
    };
    std::array<Part, kMaxSubTransfers> parts;
    std::array<CardRequest*, kMaxSubTransfers> requests{};
    for (u32 i = 0; i < t.count; ++i) {
      const SubXfer& x = t.xfers[i];
      Part& p = parts[i];
      p.queue = queues_.at(x.qpair_index);
      p.direction = static_cast<Direction>(x.direction);
      p.host = buffer_ + x.buf_offset;
      p.address = x.dev_addr;
      p.bytes = x.length;
      p.ended = [](CardRequest& r) { static_cast<Part&>(r).over.store(true); };
      requests[i] = &p;
    }
    card_->submit(std::span(requests).first(t.count));
    u64 total = 0;
    for (u32 i = 0; i < t.count; ++i) {
      EXPECT_TRUE(doorbell::test::eventually([&] { return parts[i].over.load(); }));
      EXPECT_EQ(parts[i].error, 0);
      if (i < o.parts.size()) o.parts[i] = {parts[i].error, parts[i].moved, parts[i].ns, true};
      total += parts[i].moved;
    }
    ++calls;
    // As the kernel's: an int.
    EXPECT_LE(total, kMaxCallBytes);
    return {static_cast<int>(total), t.count};
  }
  /// As the card has counted them: by channel.
  [[nodiscard]] std::array<u64, 2> moved(Direction d) const {
    const auto channels = card_->counters()["channels"];
    const char* const key = d == Direction::host_to_card ? "host_to_card_bytes" : "card_to_host_bytes";
    return {channels[0][key].get<u64>(), channels[1][key].get<u64>()};
  }
  u32 calls = 0;

 private:
  u8* buffer_;
  std::shared_ptr<ModelCard> card_;
  std::array<std::shared_ptr<CardQueue>, 2> queues_;
};

TEST(LongTransfers, FourGibibytesInOneRequestAreAllMovedAndCountRight) {
  if (doorbell::test::kSanitized) GTEST_SKIP() << "a sanitizer keeps several bytes for each of 4 GiB";
  const u64 bytes = (u64{4} << 30) + 1;
  const RepeatedMemory memory(bytes);
  auto driver = std::make_shared<CardOfOneBuffer>(memory.data());
  auto card = std::make_shared<CardState>();
  card->driver = driver;
  card->name = "one buffer";
  Transfers both(card, 5, {0, 1}, false);
  const auto fill = [&](u64 seed) {
    for (u64 i = 0; i < kShort / sizeof i; ++i) {
      const u64 word = (i + seed) * 0x9e3779b97f4a7c15;
      std::memcpy(memory.data() + i * sizeof i, &word, sizeof word);
    }
  };
  fill(1);
  const std::vector<u8> sent(memory.data(), memory.data() + kShort);
  u32 calls = 0;
  for (const Direction d : {Direction::host_to_card, Direction::card_to_host}) {
    const TransferResult r = both.transfer({d, 6, bytes, 0, kDdrBase, bytes}, 0);
    EXPECT_EQ(r.error, 0);
    EXPECT_EQ(r.bytes, bytes);
    u64 parts = 0;
    for (const SubResult& p : r.parts) parts += p.bytes;
    EXPECT_EQ(parts, bytes);
    const auto moved = driver->moved(d);
    EXPECT_EQ(moved[0] + moved[1], bytes);
    EXPECT_GE(std::min(moved[0], moved[1]), bytes / 2 - kGranule);
    EXPECT_GE(driver->calls - calls, 3u);
    calls = driver->calls;
    // The data that comes back is what has been sent, and nothing that was here meanwhile.
    if (d == Direction::host_to_card) fill(2);
  }
  EXPECT_EQ(std::memcmp(memory.data(), sent.data(), kShort), 0);
}

}  // namespace

}  // namespace doorbell::qdma
