// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A YAML file read strictly: whatever is not expected is refused with its line.
#pragma once

#include <string>
#include <string_view>
#include <vector>
#include <yaml-cpp/yaml.h>

namespace doorbell::sweep {

/// A node with what an error says of it.
struct Item {
  std::string path;  ///< "matrix.size"
  int line = 0;      ///< from 1
  YAML::Node node;
};

class Document {
 public:
  /// Throws doorbell::Error for what is no YAML, or more than one document. `file` begins every message.
  Document(std::string_view text, std::string file);

  [[nodiscard]] const Item& root() const { return root_; }

  /// Throws doorbell::Error "FILE:LINE: PATH: WHY".
  [[noreturn]] void refuse(const Item& at, const std::string& why, std::string hint = {}) const;

  /// A map's members in the file's order. A key given twice is refused, and so is one outside `known`
  /// (empty: any).
  [[nodiscard]] std::vector<Item> members(const Item& at, const std::vector<std::string>& known = {}) const;
  /// A list's items; an empty one is refused.
  [[nodiscard]] std::vector<Item> items(const Item& at) const;
  /// A scalar as it is written; an empty one is refused.
  [[nodiscard]] std::string text(const Item& at) const;
  /// A whole number in low..high.
  [[nodiscard]] unsigned number(const Item& at, unsigned low, unsigned high) const;
  /// Refuses a word outside `words`, with the nearest one.
  [[noreturn]] void unknown(const Item& at, const std::string& what, const std::string& word,
                            const std::vector<std::string>& words) const;

 private:
  std::string file_;
  Item root_;
};

/// The last part of an item's path.
[[nodiscard]] std::string key_of(const Item& item);

}  // namespace doorbell::sweep
