// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Memory of this program that a server reaches: private pages become pages of a file in place, at the same
// addresses and with the same bytes.
#pragma once

#include <doorbell/config.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "system/descriptor.hpp"

namespace doorbell::cxi::dropin {

/// Pages of a file that this process has mapped.
struct SharedPart {
  int file = -1;
  u64 offset = 0;
  u64 bytes = 0;
};

/// A file of so many bytes that cannot become shorter; its errno is in the sign of `error`.
[[nodiscard]] Descriptor sealed_file(u64 bytes, int& error);

/// One caller at a time.
class Sharing {
 public:
  /// Whether all of [address, address + bytes) is memory that can be read, and written if `writable`.
  /// 0 or -EFAULT.
  [[nodiscard]] static int check(u64 address, u64 bytes, bool writable);

  /// The files behind [address, address + bytes), which are whole pages. Private pages are replaced first, so
  /// no other thread may store to them meanwhile. 0 or a negative errno, with the reason in `why`.
  [[nodiscard]] int share(u64 address, u64 bytes, std::vector<SharedPart>& parts, std::string& why);

 private:
  /// The files of memory that was replaced and is still mapped, by device and inode.
  std::map<std::pair<u64, u64>, Descriptor> files_;
};

}  // namespace doorbell::cxi::dropin
