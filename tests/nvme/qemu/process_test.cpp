// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Programs that are not QEMU, and what is left of them: nothing. And the keys of "qemu:...".

#include "nvme/qemu/process.hpp"

#include <doorbell/error.hpp>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "children.hpp"
#include "nvme/qemu/controller.hpp"
#include "system/clock.hpp"

namespace doorbell::nvme {
namespace {

using test::children;
using test::open_descriptors;

/// Shell: $fd is the monitor's descriptor.
const std::string kMonitor =
    "for a in \"$@\"; do case \"$a\" in socket,id=m,fd=*) fd=${a##*=};; esac; done\n";
/// Shell: the first command is answered. Only after it has come: an answer before it belongs to nothing, and
/// is passed over.
const std::string kAnswers = kMonitor + R"(eval "read -r command <&$fd; echo '{\"return\": {}}' >&$fd"
)";

class Impostor : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "doorbell-qemu-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    ASSERT_TRUE(children().empty());
    descriptors_ = open_descriptors();
  }
  void TearDown() override {
    EXPECT_TRUE(children().empty()) << "a process is left";
    EXPECT_EQ(open_descriptors(), descriptors_) << "descriptors are left";
    std::filesystem::remove_all(folder_);
  }
  /// An executable script.
  [[nodiscard]] std::string script(const std::string& text) const {
    const std::string path = folder_ + "/qemu";
    std::ofstream(path) << "#!/bin/sh\n" << text << '\n';
    chmod(path.c_str(), 0755);
    return path;
  }
  /// The error that starting `binary` ends with.
  static Error refusal(const std::string& binary, double limit_s = 30) {
    QemuConfig c;
    c.binary = binary;
    try {
      const QemuProcess process(c, limit_s);
    } catch (const Error& e) {
      return e;
    }
    ADD_FAILURE() << binary << " was taken for QEMU";
    return {"", ""};
  }
  static bool says(const Error& e, const std::string& words) {
    return std::string(e.what()).find(words) != std::string::npos;
  }

  std::string folder_;
  std::size_t descriptors_ = 0;
};

TEST_F(Impostor, NoSuchProgram) {
  for (const std::string& path :
       {std::string("/nonexistent"), folder_, std::string("no-such-qemu-anywhere")}) {
    const Error e = refusal(path);
    EXPECT_EQ(e.code(), ExitCode::absent) << path;
    EXPECT_TRUE(says(e, path)) << e.what();
    EXPECT_FALSE(e.hint().empty());
  }
}

TEST_F(Impostor, ThatEndsAtOnce) {
  EXPECT_TRUE(says(refusal("/bin/false"), "without a word"));
  EXPECT_TRUE(says(refusal("/bin/true"), "without a word"));
}

TEST_F(Impostor, ItsLastWordsAreReported) {
  const Error e = refusal(script("echo first; echo 'no such machine: x-remote' >&2; exit 1"));
  EXPECT_TRUE(says(e, "no such machine: x-remote")) << e.what();
  EXPECT_FALSE(says(e, "first")) << e.what();
}

TEST_F(Impostor, ItsLastWordsDoNotReachTheTerminalAsCommands) {
  const Error e = refusal(script("printf 'red \\033[31m, \\302\\233 and \\377\\n' >&2; exit 1"));
  EXPECT_TRUE(says(e, "red ?[31m, ?? and ?")) << e.what();
}

TEST_F(Impostor, ThatHangsIsGivenUpAndKilled) {
  // With a child of its own, which has to go as well.
  const std::string path = script("sleep 600 & echo $! >" + folder_ + "/child; wait");
  const u64 begin = wall_ns();
  const Error e = refusal(path, 1.5);
  const double took_s = static_cast<double>(wall_ns() - begin) * 1e-9;
  EXPECT_TRUE(says(e, "did not start in 1.5 s")) << e.what();
  EXPECT_GE(took_s, 1.5);
  EXPECT_LT(took_s, 30);
  pid_t child = 0;
  std::ifstream(folder_ + "/child") >> child;
  ASSERT_GT(child, 0) << "the script did not come that far: this tests nothing";
  // Whoever adopts it reaps it in its own time.
  for (int i = 0; i < 1000 && test::state_of(child).state != 0 && test::state_of(child).state != 'Z'; ++i)
    usleep(10'000);
  const char state = test::state_of(child).state;
  EXPECT_TRUE(state == 0 || state == 'Z') << "the script's child lives on";
  if (state != 0 && state != 'Z') kill(child, SIGKILL);
}

TEST_F(Impostor, ThatIsSlowToEndIsKilled) {
  // It answers like QEMU, and then ignores that its sockets are closed.
  const std::string path = script(kAnswers + "exec sleep 600");
  QemuConfig c;
  c.binary = path;
  const u64 begin = wall_ns();
  {
    const QemuProcess process(c);
    EXPECT_EQ(children(), std::vector<pid_t>{process.pid()});
  }
  EXPECT_LT(static_cast<double>(wall_ns() - begin) * 1e-9, 60);
}

TEST_F(Impostor, ThatTalksWithoutEnd) {
  const std::string path = script(kMonitor + R"(eval "exec >&$fd"
while sleep 0.05; do echo '{"event": 1}'; done)");
  const u64 begin = wall_ns();
  EXPECT_TRUE(says(refusal(path, 1), "did not start"));
  EXPECT_LT(static_cast<double>(wall_ns() - begin) * 1e-9, 30);
}

/// It starts like QEMU, but has no device: the device's constructor throws after the process's is done.
TEST_F(Impostor, ThatHasNoDevice) {
  QemuConfig c;
  c.binary = script(kAnswers + "echo 'no device' >&2");
  try {
    const QemuController device(c, "qemu", nullptr);
    FAIL();
  } catch (const Error& e) {
    EXPECT_TRUE(says(e, "no device")) << e.what();
  }
}

TEST_F(Impostor, QemuStatusIsBounded) {
  const char* named = std::getenv("DOORBELL_QEMU");
  const std::string before = named != nullptr ? named : "";
  const auto status_with = [&](const std::string& binary) {
    setenv("DOORBELL_QEMU", binary.c_str(), 1);
    return qemu_status();
  };
  EXPECT_FALSE(status_with("/nonexistent").usable);
  EXPECT_NE(status_with("/nonexistent").detail.find("/nonexistent"), std::string::npos);
  EXPECT_FALSE(status_with("/bin/true").usable);
  EXPECT_NE(status_with("/bin/true").detail.find("x-remote"), std::string::npos);
  // A QEMU without the device.
  EXPECT_NE(status_with(script("echo x-remote x-remote-object")).detail.find("nvme"), std::string::npos);
  const u64 begin = wall_ns();
  EXPECT_FALSE(status_with(script("exec sleep 600")).usable);
  EXPECT_LT(static_cast<double>(wall_ns() - begin) * 1e-9, 60);
  if (named != nullptr) setenv("DOORBELL_QEMU", before.c_str(), 1);
  else unsetenv("DOORBELL_QEMU");
}

TEST_F(Impostor, ADriveThatCannotBe) {
  const auto refused = [&](const std::string& path) {
    QemuConfig c;
    c.media = QemuConfig::Media::drive;
    c.drive = path;
    c.binary = "/bin/true";
    try {
      const QemuProcess process(c);
    } catch (const Error& e) {
      EXPECT_TRUE(says(e, "drive=" + path)) << e.what();
      return;
    }
    ADD_FAILURE() << path;
  };
  refused("/nonexistent/image");
  refused("/dev/null");
  refused(folder_);
  const std::string pipe = folder_ + "/pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  refused(pipe);
}

// --- keys -------------------------------------------------------------------------------------------

void expect_bad(const std::string& spec, const std::string& word) {
  try {
    (void)parse_qemu_spec(spec);
    ADD_FAILURE() << spec << " was taken";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find(word), std::string::npos) << spec << ": " << e.what();
    EXPECT_EQ(e.code(), ExitCode::usage) << spec;
  }
}

TEST(QemuSpec, Defaults) {
  const QemuConfig c = parse_qemu_spec("qemu");
  EXPECT_EQ(c.media, QemuConfig::Media::ram);
  EXPECT_EQ(c.lba_bytes, 512u);
  EXPECT_EQ(c.capacity_bytes, u64{1} << 30);
  EXPECT_EQ(c.queues, 64u);
  EXPECT_EQ(c.mdts, 7u);
  EXPECT_EQ(c.iops, 0u);
  EXPECT_FALSE(c.has_bad_sector);
  EXPECT_TRUE(c.binary.empty());
}

TEST(QemuSpec, EveryKey) {
  const QemuConfig c = parse_qemu_spec(
      "qemu:media=null,lba=4096,capacity=8Mi,queues=3,mdts=5,iops=70,bad-sector=9,binary=/opt/a=b/qemu");
  EXPECT_EQ(c.media, QemuConfig::Media::null);
  EXPECT_EQ(c.lba_bytes, 4096u);
  EXPECT_EQ(c.capacity_bytes, 8u << 20);
  EXPECT_EQ(c.queues, 3u);
  EXPECT_EQ(c.mdts, 5u);
  EXPECT_EQ(c.iops, 70u);
  EXPECT_TRUE(c.has_bad_sector);
  EXPECT_EQ(c.bad_sector, 9u);
  EXPECT_EQ(c.binary, "/opt/a=b/qemu");
  const QemuConfig drive = parse_qemu_spec("qemu:drive=/tmp/a=b:c.img");
  EXPECT_EQ(drive.media, QemuConfig::Media::drive);
  EXPECT_EQ(drive.drive, "/tmp/a=b:c.img");
}

TEST(QemuSpec, Refusals) {
  expect_bad("qemu:", "key");
  expect_bad("qemu:medai=ram", "medai");
  expect_bad("qemu:media=tape", "media");
  expect_bad("qemu:lba=1024", "lba");
  expect_bad("qemu:lba=511", "lba");
  expect_bad("qemu:lba=8192", "lba");
  expect_bad("qemu:capacity=0", "capacity");
  expect_bad("qemu:capacity=1048577", "capacity");
  expect_bad("qemu:capacity=1049088,lba=4096", "capacity");
  expect_bad("qemu:queues=0", "queues");
  expect_bad("qemu:queues=65", "queues");
  expect_bad("qemu:mdts=0", "mdts");
  expect_bad("qemu:mdts=11", "mdts");
  expect_bad("qemu:iops=-1", "iops");
  expect_bad("qemu:bad-sector=-1", "bad-sector");
  expect_bad("qemu:capacity=1Mi,bad-sector=2048", "bad-sector");
  expect_bad("qemu:drive=", "drive");
  expect_bad("qemu:drive=/tmp/x,media=ram", "drive");
  expect_bad("qemu:drive=/tmp/x,capacity=1Mi", "drive");
  expect_bad("qemu:binary=", "binary");
  expect_bad("qemu:lba=512,lba=512", "lba");
  expect_bad("qemu:lba", "lba");
  expect_bad("qemu:,", "");
  EXPECT_EQ(parse_qemu_spec("qemu:capacity=1Mi,bad-sector=2047").bad_sector, 2047u);
}

}  // namespace
}  // namespace doorbell::nvme
