// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// How the program finds its DPDK plugin and which it refuses, and what --engine and --link mean to DPDK.
// Needs no DPDK.

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include "errors.hpp"
#include "net/dpdk/engine.hpp"
#include "net/dpdk/loader.hpp"
#include "net/dpdk/socket_file.hpp"
#include "system/descriptor.hpp"

namespace doorbell::net::dpdk {
namespace {

using test::error_of;
using test::expect_says;

/// Sets an environment variable while it lives.
class Environment {
 public:
  Environment(const char* name, const std::string& value) : name_(name) {
    if (const char* const old = std::getenv(name)) old_ = old;
    setenv(name, value.c_str(), 1);
  }
  ~Environment() {
    if (old_) {
      setenv(name_, old_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST(DpdkPlugin, AMissingOneSaysWhereItWasLookedForAndWhatToInstall) {
  const std::string said = error_of([] { (void)load_plugin({"/no/such", "/nor/this"}); }, ExitCode::absent);
  expect_says(said, "doorbell_dpdk.so is not here");
  expect_says(said, "/no/such, /nor/this");
  expect_says(said, "libdpdk-dev");
}

TEST(DpdkPlugin, OneWithAnotherInterfaceIsRefused) {
  const std::string said = error_of([] { (void)load_plugin({OTHER_PLUGINS "abi"}); }, ExitCode::absent);
  expect_says(said, "its interface has version 99, the program's has 2");
  expect_says(said, "together with the program");
}

TEST(DpdkPlugin, OneOfAnotherBuildIsRefused) {
  const std::string said = error_of([] { (void)load_plugin({OTHER_PLUGINS "build"}); }, ExitCode::absent);
  expect_says(said, "its build id is another build");
}

TEST(DpdkPlugin, AFileThatIsNoLibraryIsRefused) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("doorbell-no-plugin-" + std::to_string(getpid()));
  std::filesystem::create_directory(folder);
  std::ofstream(folder / kPluginFile) << "no library";
  const std::string said = error_of([&] { (void)load_plugin({folder}); }, ExitCode::absent);
  std::filesystem::remove_all(folder);
  expect_says(said, "cannot be loaded");
  expect_says(said, "librte-meta-all");
}

TEST(DpdkPlugin, TheVariableNamesTheOnlyFolders) {
  {
    const Environment set("DOORBELL_PLUGINS", "/a::/b");
    EXPECT_EQ(plugin_folders(), (std::vector<std::filesystem::path>{"/a", "/b"}));
    const BackendStatus status = dpdk_engine().status();
    EXPECT_FALSE(status.usable);
    expect_says(status.detail, "looked in /a, /b");
  }
  const Environment none("DOORBELL_PLUGINS", "");
  const std::vector<std::filesystem::path> usual = plugin_folders();
  EXPECT_EQ(usual.at(0), std::filesystem::read_symlink("/proc/self/exe").parent_path());
  EXPECT_EQ(usual.at(1), usual.at(0) / "../lib/doorbell");
}

Plan plan_of(const std::string& link, const StreamRequest& request = {}) {
  return make_plan(request, *open_link({.spec = link}));
}

TEST(DpdkPlan, TheLinkDecides) {
  const Plan ring = plan_of("ring");
  EXPECT_EQ(ring.driver, Driver::ring);
  EXPECT_TRUE(ring.loop);
  EXPECT_EQ(ring.frame_bytes, 8042u);
  EXPECT_EQ(ring.buffer_bytes, 8064u);
  const Plan pci = plan_of("0000:01:00.0,02:00.1");
  EXPECT_EQ(pci.driver, Driver::pci);
  EXPECT_EQ(pci.tx.bus, "pci");
  EXPECT_EQ(pci.tx.name, "0000:01:00.0");
  EXPECT_EQ(pci.rx.name, "0000:02:00.1");
  EXPECT_EQ(pci.buffer_bytes, 8192u);
}

TEST(DpdkPlan, MemifHasTwoEnds) {
  const Plan p = plan_of("memif:socket=/run/a.sock,id=3", {.payload_bytes = 1000, .has_tx = false});
  EXPECT_EQ(p.driver, Driver::memif);
  EXPECT_EQ(p.rx.arguments, "role=server,id=3,socket=/run/a.sock,socket-abstract=no,bsize=1088,rsize=10");
  expect_says(p.tx.arguments, "role=client,id=3");
  EXPECT_EQ(p.socket, "/run/a.sock");
  // Of one process, or of two.
  const Plan both = plan_of("memif:socket=/run/a.sock,id=3", {.payload_bytes = 1000});
  EXPECT_EQ(both.rx.arguments, p.rx.arguments);
  EXPECT_EQ(both.tx.arguments, p.tx.arguments);
  // The kernel takes 107 bytes.
  expect_says(error_of([] { (void)plan_of("memif:socket=/" + std::string(107, 'a')); }), "too long");
  EXPECT_FALSE(both.loop);
  expect_says(error_of([] { (void)plan_of("memif:sockets=/run/a.sock", {.has_tx = false}); }), "socket");
}

TEST(DpdkPlan, RefusesWhatADriverHasNot) {
  expect_says(error_of([] { (void)plan_of("ring", {.flows = 17}); }), "1..16 flows");
  expect_says(error_of([] { (void)plan_of("ring", {.flows = 1, .rx_queues = 2}); }),
              "some would receive nothing");
  expect_says(error_of([] { (void)plan_of("ring", {.has_rx = false}); }),
              "both of its ends lie in one process");
  expect_says(error_of([] { (void)plan_of("ring:slots=8"); }), "takes no keys");
  expect_says(error_of([] { (void)plan_of("lo"); }), "shows each frame twice");
  expect_says(error_of([] { (void)plan_of("tap", {.payload_bytes = 1473}); }), "up to 1500 bytes");
  expect_says(error_of([] { (void)plan_of("ring", {.engine = "dpdk:vhost"}); }),
              "'vhost' is no driver of dpdk");
  expect_says(error_of([] { (void)plan_of("ring", {.engine = "dpdk:af_xdp"}); }),
              "ring is a device of its own");
  expect_says(error_of([] { (void)plan_of("ring", {.engine = "dpdk:bufer=1"}); }), "buffer");
  expect_says(error_of([] { (void)plan_of("ring", {.engine = "dpdk:buffer=64"}); }),
              "64 is not in 128..65344");
}

TEST(DpdkSocketFile, OneThatIsLeftOverIsRemovedAndNoOther) {
  const std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("doorbell-socket-" + std::to_string(getpid()));
  clear_socket(path, "link");  // there is none
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.string().copy(address.sun_path, sizeof address.sun_path - 1);
  {
    const Descriptor listener(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    ASSERT_EQ(bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    ASSERT_EQ(listen(listener.get(), 1), 0);
    expect_says(error_of([&] { clear_socket(path, "link"); }), "another process uses it");
    EXPECT_TRUE(std::filesystem::exists(path));
    // And does not notice it.
    EXPECT_EQ(accept(listener.get(), nullptr, nullptr), -1);
    EXPECT_EQ(errno, EAGAIN);
  }
  clear_socket(path, "link");
  EXPECT_FALSE(std::filesystem::exists(path));
  std::ofstream(path) << "mine";
  expect_says(error_of([&] { clear_socket(path, "link"); }), "a file of another kind");
  EXPECT_TRUE(std::filesystem::remove(path));
}

}  // namespace
}  // namespace doorbell::net::dpdk
