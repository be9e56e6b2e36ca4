// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include "errors.hpp"
#include "qdma/daemon/roles.hpp"

namespace doorbell::qdma::daemon {
namespace {

const NameService kNames{.user = [](const std::string& name) -> std::optional<uid_t> {
                           return name == "alice" ? std::optional<uid_t>(1000) : std::nullopt;
                         },
                         .group = [](const std::string& name) -> std::optional<gid_t> {
                           return name == "fpga" ? std::optional<gid_t>(50) : std::nullopt;
                         }};

Roles parsed_roles(std::string_view text) {
  return Roles::parse("roles.conf", text, kNames);
}

TEST(DaemonRoles, AddsUpTheRightsOfUserGroupsAndEverybody) {
  const Roles roles = parsed_roles(R"(# comment
[role:look]
rights = query-devices
[user:*]
roles = look
[user:alice]
roles = work, look
[group:fpga]
roles = raw
[group:77]
roles = work
[role:work]
rights = qdma buffer
[role:raw]
; another comment
rights = raw-mem-access
rights = clock
)");
  EXPECT_EQ(roles.rights({.pid = 1, .uid = 5, .groups = {5}}), u32{kQueryDevices});
  EXPECT_EQ(roles.rights({.pid = 1, .uid = 1000, .groups = {5}}), kQueryDevices | kQdma | kBuffer);
  EXPECT_EQ(roles.rights({.pid = 1, .uid = 5, .groups = {5, 50}}), kQueryDevices | kRawMemAccess | kClock);
  EXPECT_EQ(roles.rights({.pid = 1, .uid = 5, .groups = {77, 50}}),
            kQueryDevices | kRawMemAccess | kClock | kQdma | kBuffer);
  // For a uid that no database lists, only [user:*] fits; it is no error.
  EXPECT_EQ(roles.rights({.pid = 1, .uid = 4294901760u, .groups = {4294901760u}}), u32{kQueryDevices});
  EXPECT_TRUE(roles.warnings().empty());
}

TEST(DaemonRoles, AnUnknownUserIsAWarning) {
  const Roles roles =
      parsed_roles("[role:a]\nrights=qdma\n[user:nobody-here]\nroles=a\n[group:none]\nroles=a\n");
  ASSERT_EQ(roles.warnings().size(), 3u);  // and that nobody has a right
  test::expect_says(roles.warnings()[0], "roles.conf:3: this system knows no user 'nobody-here'");
  test::expect_says(roles.warnings()[1], "roles.conf:5: this system knows no group 'none'");
  EXPECT_EQ(roles.rights({.pid = 1, .uid = 3, .groups = {}}), 0u);
}

TEST(DaemonRoles, AFileThatGivesNobodyARightIsAWarning) {
  for (const char* const text : {"", "[role:a]\nrights=qdma\n", "[role:a]\n[user:0]\nroles=a\n"}) {
    const Roles roles = parsed_roles(text);
    ASSERT_EQ(roles.warnings().size(), 1u) << text;
    test::expect_says(roles.warnings()[0], "gives nobody a right");
  }
}

TEST(DaemonRoles, ErrorsNameFileAndLine) {
  const struct {
    const char* text;
    const char* said;
  } cases[] = {
      {"rights = qdma\n", "roles.conf:1: a key before the first [SECTION]"},
      {"[role:a]\nrights = qdam\n", "roles.conf:2: unknown right 'qdam'"},
      {"[role:a]\nroles = b\n", "roles.conf:2: unknown key 'roles' in [role:a]"},
      {"[user:3]\nrights = qdma\n", "roles.conf:2: unknown key 'rights' in [user:3]"},
      {"[user:3]\n\nroles = admin\n", "roles.conf:3: no section [role:admin]"},
      {"[host:3]\n", "roles.conf:1: unknown section 'host'"},
      {"[role]\n", "roles.conf:1: '[role]' is no section"},
      {"[role:]\n", "roles.conf:1: '[role:]' has no name"},
      {"[role:a\n", "roles.conf:1: '[role:a' is no section"},
      {"[role:a]\n[role:a]\n", "roles.conf:2: [role:a] stands in line 1 already"},
      {"[role:a]\nhello\n", "roles.conf:2: 'hello' is neither"},
  };
  for (const auto& c : cases)
    test::expect_says(test::error_of([&] { static_cast<void>(parsed_roles(c.text)); }), c.said);
}

TEST(DaemonRoles, WithoutAFileOthersMayOpenBuffersOnly) {
  const Roles roles = Roles::defaults(500);
  EXPECT_EQ(roles.rights({.pid = 1, .uid = 0, .groups = {}}), u32{kAllRights});
  EXPECT_EQ(roles.rights({.pid = 1, .uid = 500, .groups = {}}), u32{kAllRights});
  EXPECT_EQ(roles.rights({.pid = 1, .uid = 501, .groups = {}}), kQueryDevices | kBuffer);
}

}  // namespace
}  // namespace doorbell::qdma::daemon
