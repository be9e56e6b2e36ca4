// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/dpdk/socket_file.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "system/descriptor.hpp"
#include "system/sysfs.hpp"

namespace doorbell::net::dpdk {

void clear_socket(const std::string& path, const std::string& link) {
  struct stat st {};
  if (lstat(path.c_str(), &st) != 0) return;
  const std::string what = fmt::format("{} memif: socket {}", link, path);
  if (!S_ISSOCK(st.st_mode)) throw Error(what, "there is a file of another kind", "give socket=PATH");
  // A socket of another type finds whether somebody has this one and makes no connection: DPDK ends a process
  // whose peer comes and goes at the wrong moment.
  const Descriptor probe(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_un to{};
  to.sun_family = AF_UNIX;
  path.copy(to.sun_path, sizeof to.sun_path - 1);
  const int failed =
      ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to) == 0 ? 0 : errno;
  if (failed == ENOENT) return;
  if (failed == 0 || failed == EPROTOTYPE)
    throw Error(what, "another process uses it", "give another socket=PATH");
  if (failed != ECONNREFUSED)
    throw Error(what, fmt::format("whether it is in use cannot be seen: {}", reason(failed)),
                "give another socket=PATH");
  if (unlink(path.c_str()) != 0) throw Error(what, "it is left over and cannot be removed", "remove it");
}

}  // namespace doorbell::net::dpdk
