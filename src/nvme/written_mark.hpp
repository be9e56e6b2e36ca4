// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Which bytes of a file doorbell has written, noted with the file: a later run that only reads can then tell
// damage from blocks that were never written.
#pragma once

#include <doorbell/config.hpp>
#include <doorbell/nvme/io_types.hpp>

#include <string>
#include <vector>

namespace doorbell::nvme {

/// Ranges that are in order and apart. Adding and removing keeps them so.
void add_range(std::vector<ByteRange>& ranges, ByteRange range);
void remove_range(std::vector<ByteRange>& ranges, ByteRange range);

/// The mark is the extended attribute "user.doorbell.written" of a regular file: it moves with the file. A
/// file system without such attributes has no marks, and nothing else depends on them. Thread rule: one
/// thread at a time.
class WrittenMark {
 public:
  /// Of the file `path`; "" for what is no file, which has no mark. The mark of a file that holds nothing is
  /// void.
  explicit WrittenMark(std::string path);

  /// What earlier runs, and those told since, wrote completely.
  [[nodiscard]] const std::vector<ByteRange>& ranges() const { return ranges_; }
  static constexpr std::size_t kRangesAtMost = 64;  ///< some file systems keep all attributes in one block
  /// The parts of `range` that were written: kRangesAtMost of them, the longest first.
  [[nodiscard]] std::vector<ByteRange> known(ByteRange range) const;

  /// Before bytes are written: until written() says so, what is there is not known. On the file at once, so
  /// that a run that is killed leaves no false mark.
  void about_to_write(ByteRange range);
  /// All of `range` has been written and acknowledged. On the file with the next save().
  void written(ByteRange range);
  void save();

 private:
  std::string path_;
  std::vector<ByteRange> ranges_;
  bool changed_ = false;
};

}  // namespace doorbell::nvme
