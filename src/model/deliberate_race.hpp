// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Data races that are deliberate, because they are the effect of an injected fault.
#pragma once

#if defined(__SANITIZE_THREAD__)
// Functions of the sanitizer's run-time library, which has no header for them.
extern "C" void AnnotateIgnoreReadsBegin(const char* file, int line);
extern "C" void AnnotateIgnoreReadsEnd(const char* file, int line);
extern "C" void AnnotateIgnoreWritesBegin(const char* file, int line);
extern "C" void AnnotateIgnoreWritesEnd(const char* file, int line);
#endif

namespace doorbell::model {

/// As long as this object lives, ThreadSanitizer ignores this thread's reads and writes. A fault that changes
/// memory which another thread uses is a deliberate race.
class DeliberateRace {
 public:
#if defined(__SANITIZE_THREAD__)
  DeliberateRace() {
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
  }
  ~DeliberateRace() {
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
  }
#else
  DeliberateRace() {}
  ~DeliberateRace() {}
#endif
  DeliberateRace(const DeliberateRace&) = delete;
  DeliberateRace& operator=(const DeliberateRace&) = delete;
};

}  // namespace doorbell::model
