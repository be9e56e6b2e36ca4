// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A program that is not root: links inside a user namespace of its own, and what it is told where that is
// refused. Each case is a child process, which stays what it has become.

#include <fcntl.h>
#include <grp.h>
#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/syscall.h>

#include "errors.hpp"
#include "net/scratch.hpp"
#include "system/sysfs.hpp"

namespace doorbell::net {
namespace {

using doorbell::test::error_of;
using doorbell::test::expect_says;
using test::Forked;

constexpr u32 kNobody = 65534;

void drop_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3] = {};
  if (syscall(SYS_capset, &header, none) != 0)
    throw std::system_error(errno, std::generic_category(), "capset");
}

void become_nobody() {
  if (geteuid() == 0 && (setgroups(0, nullptr) != 0 || setgid(kNobody) != 0 || setuid(kNobody) != 0))
    throw std::system_error(errno, std::generic_category(), "becoming another user");
  // Those that this process got in a user namespace, where it is not root.
  drop_capabilities();
  // As a program that was started by this user.
  prctl(PR_SET_DUMPABLE, 1);
}

/// In a child as an ordinary user. "" from `f` is what is expected, anything else is told.
std::string as_nobody(const std::function<std::string()>& f) {
  Forked child([&](int pipe) {
    become_nobody();
    const std::string said = f();
    Forked::say(pipe, said);
    return 0;
  });
  return child.line();
}

TEST(Unprivileged, OpensAVethLink) {
  const std::string status = as_nobody([] {
    const BackendStatus s = namespaces_status();
    return s.usable ? "usable: " + s.detail : s.detail;
  });
  if (!status.starts_with("usable")) GTEST_SKIP() << "no user namespaces: " << status;
  expect_says(status, "inside a user namespace");
  const std::string said = as_nobody([]() -> std::string {
    const auto uid = geteuid();
    enter_user_namespace_if_needed();
    enter_user_namespace_if_needed();
    if (geteuid() != uid) return "another user";
    const auto link = open_link({.spec = "veth", .queues = 2});
    const Descriptor tx = test::socket_at(*link, End::tx, 18600), rx = test::socket_at(*link, End::rx, 18600);
    if (!test::send_to(tx, "192.0.2.2", 18600, "there")) return "not sent";
    if (test::receive_from(rx) != "there") return "not received";
    // A packet socket, which raw streams need.
    std::string raw = "crossed";
    link->in(End::rx, [&] {
      const Descriptor packets(socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
      if (packets.get() < 0) raw = "no packet socket: " + reason(errno);
    });
    return raw;
  });
  EXPECT_EQ(said, "crossed");
}

TEST(Unprivileged, IsToldWhatItLacks) {
  const std::string said = as_nobody([] { return error_of([] { (void)open_link({.spec = "veth"}); }); });
  expect_says(said, "the kernel makes none: Operation not permitted");
  expect_says(said, "root");
}

TEST(Unprivileged, ThreadsMustComeLater) {
  const std::string said = as_nobody([] {
    std::string refused;
    std::thread([&] { refused = error_of([] { enter_user_namespace_if_needed(); }); }).join();
    return refused;
  });
  expect_says(said, "user namespace: this process has several threads already");
}

TEST(Unprivileged, NamesTheSettingThatRefuses) {
  if (!namespaces_status().usable) GTEST_SKIP() << "no user namespaces";
  // Inside a user namespace whose own limit is nought.
  const std::string said = as_nobody([]() -> std::string {
    enter_user_namespace_if_needed();
    const Descriptor limit(open("/proc/sys/user/max_user_namespaces", O_WRONLY | O_CLOEXEC));
    if (limit.get() < 0 || write(limit.get(), "0", 1) != 1) return "skip: " + reason(errno);
    drop_capabilities();
    prctl(PR_SET_DUMPABLE, 1);
    const BackendStatus status = namespaces_status();
    if (status.usable) return "usable after all";
    return error_of([] { enter_user_namespace_if_needed(); }) + status.detail;
  });
  if (said.starts_with("skip")) GTEST_SKIP() << said;
  expect_says(said, "user namespace: the kernel refuses a user namespace: No space left on device");
  expect_says(said, "user.max_user_namespaces is 0");
}

}  // namespace
}  // namespace doorbell::net
