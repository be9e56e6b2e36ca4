// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Where ctest hands out processors (scripts/test.sh), a test's threads share the one that it is given: those
// that poll take turns, and none of them polls while the other waits for a processor. All that the test
// starts does so, too.
#include <sched.h>

#include <cstdio>
#include <cstdlib>

namespace {

// CTest's form: "id:3,slots:1".
[[gnu::constructor]] void stay_on_it() {
  const char* const given = std::getenv("CTEST_RESOURCE_GROUP_0_PROCESSORS");
  unsigned processor = 0;
  if (given == nullptr || std::sscanf(given, "id:%u", &processor) != 1 || processor >= CPU_SETSIZE) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(processor, &set);
  if (sched_setaffinity(0, sizeof set, &set) != 0) std::perror("the processor that ctest has given");
}

}  // namespace
