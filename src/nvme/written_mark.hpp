// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Which bytes of a file doorbell has written, and by which write, noted with the file: a later run that only
// reads can then tell damage from blocks that were never written, and a write that was lost from one that was
// not.
#pragma once

#include <doorbell/config.hpp>

#include <string>
#include <vector>

#include "nvme/earlier_write.hpp"
#include "system/descriptor.hpp"

namespace doorbell::nvme {

/// The mark is the extended attribute "user.doorbell.written" of a regular file. It belongs to the content:
/// it names the file's size and the time of its last change, and says nothing of a file that has others. A
/// file system without such attributes has no marks, and nothing else depends on them. Thread rule: one
/// thread at a time.
class WrittenMark {
 public:
  /// Of the file `path`, which stays this one when it is renamed; "" for what is no file, which has no mark
  /// but remembers what it is told. The mark of a file that holds nothing is void.
  explicit WrittenMark(std::string path);

  /// Writes at most: some file systems keep all attributes in one block.
  static constexpr std::size_t kWritesAtMost = 128;
  /// The writes of earlier phases and runs to `range`, kWritesAtMost at most: the newest first, and each says
  /// more than those behind it.
  [[nodiscard]] std::vector<EarlierWrite> known(ByteRange range) const;
  /// True if another program has written to the file since it was marked.
  [[nodiscard]] bool changed_by_others() const { return changed_by_others_; }
  /// True if the mark was of another content, and says nothing.
  [[nodiscard]] bool outdated() const { return outdated_; }

  /// Before bytes are written: until written() says so, what is there is not known. On the file at once, so
  /// that a run that is killed leaves no false mark.
  void about_to_write(ByteRange range);
  /// This has been written and acknowledged, and nothing else of what about_to_write() was told of the same
  /// bytes. On the file with the next save().
  void written(const EarlierWrite& write);
  /// To be called when nothing writes to the file any more.
  void save();

 private:
  void open(bool load);

  std::string path_;
  Descriptor fd_;
  std::vector<EarlierWrite> writes_;   ///< the newest first
  std::vector<EarlierWrite> on_file_;  ///< as the file's mark has them
  std::vector<EarlierWrite> covered_;  ///< what writes that are under way may overwrite, in part
  bool changed_ = false;
  bool changed_by_others_ = false;
  bool outdated_ = false;
};

/// `w` in its simplest form: a phase that left one sequence everywhere in its bytes is one position.
[[nodiscard]] std::vector<EarlierWrite> simplified(const EarlierWrite& w);

}  // namespace doorbell::nvme
