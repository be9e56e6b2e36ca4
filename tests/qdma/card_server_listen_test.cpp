// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Where a card server listens: whose place it takes, and what it leaves.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <optional>
#include <thread>

#include "errors.hpp"
#include "qdma/bound_socket.hpp"
#include "qdma/server_rig.hpp"

namespace doorbell::qdma {
namespace {

using namespace service;

using test::eventually;

TEST(CardServerListen, ThePathIsTheUsersAndGoesWithTheServer) {
  const std::string path = "/tmp/doorbell-card-" + std::to_string(getpid());
  {
    ServerRig rig;
    rig.server.listen(path);
    struct stat s {};
    ASSERT_EQ(lstat(path.c_str(), &s), 0);
    EXPECT_TRUE(S_ISSOCK(s.st_mode));
    EXPECT_EQ(s.st_mode & 0777, 0600u);
    ServerRig second;
    EXPECT_NE(test::error_of([&] { second.server.listen(path); }).find("listens there already"),
              std::string::npos);
  }
  EXPECT_FALSE(std::filesystem::exists(path));
  // A file that a killed server left is replaced; anything else is not touched.
  static_cast<void>(bound_at(path));
  ServerRig rig;
  rig.server.listen(path);
  EXPECT_NE(test::error_of([&] { rig.server.listen("/dev/null"); }).find("no socket"), std::string::npos);
  EXPECT_NE(
      test::error_of([&] { rig.server.listen("/tmp/" + std::string(200, 'x')); }).find("1 to 107 characters"),
      std::string::npos);
  EXPECT_NE(test::error_of([&] { rig.server.listen("/nowhere/card"); }).find("No such file"),
            std::string::npos);
}

/// A folder of its own.
struct Folder {
  Folder() {
    char name[] = "/tmp/doorbell-listen-XXXXXX";
    path = mkdtemp(name);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path, ignored);
  }
  std::string path;
};

TEST(CardServerListen, ASocketWhoseProcessIsAboutToListenIsNotTakenOver) {
  const Folder folder;
  const std::string path = folder.path + "/card";
  // Another process has bound its socket and does not listen yet.
  Descriptor lock = lock_folder_of(path);
  const Descriptor other = bound_at(path);
  const auto open_folders = [&] {
    std::size_t n = 0;
    std::error_code gone;
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd"))
      n += std::filesystem::read_symlink(entry, gone) == folder.path;
    return n;
  };
  ServerRig rig;
  std::string said;
  std::atomic<bool> ended{false};
  std::thread second([&] {
    said = test::error_of([&] { rig.server.listen(path); });
    ended = true;
  });
  EXPECT_TRUE(eventually([&] { return ended || open_folders() == 2; }));
  EXPECT_FALSE(ended);
  EXPECT_EQ(listen(other.get(), 8), 0);
  lock.reset();
  second.join();
  test::expect_says(said, "listens there already");
}

TEST(CardServerListen, ALockThatAStrangerKeepsIsNotWaitedForLong) {
  const Folder folder;
  const Descriptor lock = lock_folder_of(folder.path + "/card");
  EXPECT_GE(lock_folder_of(folder.path + "/card", 0.02).get(), 0);
}

TEST(CardServerListen, TheEndLeavesTheSocketOfWhoHasTakenThePlace) {
  const Folder folder;
  const std::string path = folder.path + "/card";
  std::optional<Descriptor> other;
  {
    ServerRig rig;
    rig.server.listen(path);
    ASSERT_EQ(unlink(path.c_str()), 0);
    // Not the same file, whose number would be free again.
    const Descriptor between(open((folder.path + "/x").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600));
    other = bound_at(path);
  }
  EXPECT_TRUE(std::filesystem::exists(path));
}

}  // namespace
}  // namespace doorbell::qdma
