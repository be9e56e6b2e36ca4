// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The card memory of a run: given by the daemon, or by address after the daemon was asked.
#include "qdma/bench/run_memory.hpp"

#include <doorbell/error.hpp>

#include <set>

#include "qdma/daemon/card_memory.hpp"
#include "qdma/daemon_process.hpp"
#include "qdma/settings.hpp"

namespace doorbell::qdma::daemon {
namespace {

constexpr u64 kMi = 1 << 20;

class RunMemoryTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(daemon.ready()) << daemon.child().errors(); }
  [[nodiscard]] std::string spec() const { return "daemon:" + daemon.path(); }
  [[nodiscard]] RunMemory memory(const MemoryAccess& access = {}) const {
    return RunMemory(spec(), open_driver({.spec = spec()}), access);
  }
  [[nodiscard]] static u64 place(RunMemory& of, u64 bytes, std::string_view name = "ddr", u64 offset = 0) {
    return of.place(card_memory(name), offset, bytes, setting::buffer_bytes);
  }
  /// The text of the Error with which a place is refused; "" if it is not.
  [[nodiscard]] static std::string refusal(RunMemory& of, u64 bytes, u64 offset = 0) {
    try {
      static_cast<void>(place(of, bytes, "ddr", offset));
      return {};
    } catch (const Error& e) {
      return std::string(e.what()) + " / " + e.hint();
    }
  }
  DaemonProcess daemon;
};

TEST_F(RunMemoryTest, RunsAreGivenMemoryThatNobodyElseHas) {
  RunMemory one = memory(), two = memory();
  EXPECT_TRUE(one.given());
  std::set<u64> all;
  for (u32 i = 0; i < 20; ++i)
    for (RunMemory* const m : {&one, &two}) {
      const u64 at = place(*m, 16 * kMi);
      EXPECT_EQ(at % kGranule, 0u);
      EXPECT_GE(at, kDdrBase);
      // Places are of one size, so two that overlap are one.
      EXPECT_EQ(at % (16 * kMi), 0u);
      EXPECT_TRUE(all.insert(at).second) << at;
    }
  // Twenty places of 16 MiB lie in few buffers, because each buffer takes a queue pair.
  EXPECT_LE(daemon.metric("buffers"), 6);
}

TEST_F(RunMemoryTest, TheUpperHalfOfHbmIsGivenFromThere) {
  RunMemory m = memory();
  EXPECT_GE(place(m, kMi, "hbm-high"), kHbmBoundary);
  const u64 low = place(m, kMi, "hbm");
  EXPECT_GE(low, kHbmBase);
  EXPECT_LT(low, kHbmBase + kHbmBytes);
}

TEST_F(RunMemoryTest, MemoryIsGivenAgainToTheSameRun) {
  RunMemory m = memory();
  const u64 first = place(m, kMi);
  EXPECT_EQ(place(m, kMi), first + kMi);
  m.reuse();
  EXPECT_EQ(place(m, 2 * kMi), first);
}

TEST_F(RunMemoryTest, MoreThanABufferIsRefusedWithTheWayOut) {
  RunMemory m = memory();
  const std::string said = refusal(m, kRegionBytes + kGranule);
  EXPECT_NE(said.find("536870912 at most"), std::string::npos) << said;
  EXPECT_NE(said.find("raw access"), std::string::npos) << said;
  EXPECT_EQ(refusal(m, kRegionBytes), "");
}

TEST_F(RunMemoryTest, RawAccessIsRefusedWhereOthersHoldBuffers) {
  DaemonClient owner(daemon.path());
  const u32 connection = owner.hello().connection;
  const CardBuffer held = open_buffer(owner, {.size = kMi});
  ASSERT_EQ(held.address, kDdrBase);
  RunMemory raw = memory({.raw = true});
  EXPECT_FALSE(raw.given());
  const std::string said = refusal(raw, kMi);
  for (const std::string& word :
       {"user " + std::to_string(getuid()), "connection " + std::to_string(connection),
        std::string("67108864 bytes from 0x"), std::string("permission to overwrite")})
    EXPECT_NE(said.find(word), std::string::npos) << word << " in " << said;
  EXPECT_EQ(refusal(raw, kMi, held.bytes), "");  // nobody's
  RunMemory forced = memory({.raw = true, .allow_write = true});
  EXPECT_EQ(place(forced, kMi), kDdrBase);
}

TEST_F(RunMemoryTest, OnlyADaemonsCardHasAWayByAddressOfItsOwn) {
  EXPECT_THROW(check_access("model", {.raw = true}), Error);
  EXPECT_NO_THROW(check_access("model", {}));
  EXPECT_NO_THROW(check_access("daemon:/x", {.raw = true}));
  EXPECT_THROW(check_access("daemon", {}, setting::starting_offset), Error);
  EXPECT_NO_THROW(check_access("daemon", {.raw = true}, setting::starting_offset));
  EXPECT_NO_THROW(check_access("server:/x", {}, setting::starting_offset));
}

}  // namespace
}  // namespace doorbell::qdma::daemon
