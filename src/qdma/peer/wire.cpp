// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/peer/wire.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <cerrno>

namespace doorbell::qdma::wire {

int name_of(int fd, HostBufferName& out) {
  struct statx s {};
  if (::statx(fd, "", AT_EMPTY_PATH | AT_STATX_DONT_SYNC, STATX_INO, &s) != 0) return errno;
  out = {u64{s.stx_dev_major} << 32 | s.stx_dev_minor, s.stx_ino};
  return 0;
}

}  // namespace doorbell::qdma::wire
