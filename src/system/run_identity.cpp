// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "system/run_identity.hpp"

#include <doorbell/error.hpp>
#include <sys/random.h>

#include <cerrno>

#include "system/sysfs.hpp"

namespace doorbell {

u64 first_sequence() {
  u64 random = 0;
  ssize_t n = 0;
  do n = getrandom(&random, sizeof random, 0);
  while (n < 0 && errno == EINTR);
  if (n != sizeof random) throw Error("random numbers for this run's sequences", reason(errno));
  // Room to count up without passing 2^64.
  return random >> 1 | 1;
}

}  // namespace doorbell
