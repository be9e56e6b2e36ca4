// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Files that clients send: closing them delays nobody but their owner.
#include "service/closers.hpp"

#include <poll.h>
#include <unistd.h>

#include "errors.hpp"
#include "eventually.hpp"
#include "service/lingering_file.hpp"

namespace doorbell::service {
namespace {

/// The other end of a pipe has been closed.
bool ends(int fd) {
  pollfd p{fd, 0, 0};
  return poll(&p, 1, static_cast<int>(test::kWaitLimitS * 1000)) == 1 && (p.revents & POLLHUP) != 0;
}

TEST(Closers, OneThatWaitsHoldsUpItsOwnersFilesOnly) {
  Closers closers;
  LingeringFile slow;
  int own[2], others[2];
  ASSERT_EQ(pipe2(own, O_CLOEXEC), 0);
  ASSERT_EQ(pipe2(others, O_CLOEXEC), 0);
  const Descriptor own_end(own[0]), others_end(others[0]);
  closers.close(1, slow.take());
  closers.close(1, Descriptor(own[1]));
  closers.close(2, Descriptor(others[1]));
  EXPECT_TRUE(ends(others_end.get()));
  EXPECT_TRUE(test::eventually([&] { return closers.waiting(2) == 0; }));
  EXPECT_EQ(closers.waiting(1), 2u);
  slow.let_go();
  EXPECT_TRUE(ends(own_end.get()));
  EXPECT_TRUE(test::eventually([&] { return closers.waiting(1) == 0; }));
}

TEST(Closers, TheirEndWaitsForNoFile) {
  LingeringFile slow;
  int pipe_ends[2];
  ASSERT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
  const Descriptor end(pipe_ends[0]);
  {
    Closers closers;
    closers.close(1, slow.take());
    closers.close(1, Descriptor(pipe_ends[1]));
  }
  slow.let_go();
  EXPECT_TRUE(ends(end.get()));
}

TEST(Closers, AForeignFileIsClosedByThem) {
  const auto closers = std::make_shared<Closers>();
  int pipe_ends[2];
  ASSERT_EQ(pipe2(pipe_ends, O_CLOEXEC), 0);
  const Descriptor end(pipe_ends[0]);
  {
    ForeignFile file(Descriptor(pipe_ends[1]), closers, 7);
    ForeignFile moved(std::move(file));
    file = ForeignFile();
    EXPECT_EQ(moved.get(), pipe_ends[1]);
  }
  EXPECT_TRUE(ends(end.get()));
}

}  // namespace
}  // namespace doorbell::service
