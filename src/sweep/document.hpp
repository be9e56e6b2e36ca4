// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Reads a YAML file strictly: unknown content is refused, with its line number.
#pragma once

#include <string>
#include <string_view>
#include <vector>
#include <yaml-cpp/yaml.h>

namespace doorbell::sweep {

/// A node, with its place for error messages.
struct Item {
  std::string path;  ///< "matrix.size"
  int line = 0;      ///< from 1
  YAML::Node node;
};

class Document {
 public:
  /// Throws doorbell::Error for invalid YAML, or for more than one document. Messages begin with `file`.
  Document(std::string_view text, std::string file);

  [[nodiscard]] const Item& root() const { return root_; }

  /// Throws doorbell::Error "FILE:LINE: PATH: WHY".
  [[noreturn]] void refuse(const Item& at, const std::string& why, std::string hint = {}) const;

  /// A map's members in the file's order. Refuses a key that is given twice, or that is not in `known`
  /// (empty: any key).
  [[nodiscard]] std::vector<Item> members(const Item& at, const std::vector<std::string>& known = {}) const;
  /// A list's items; refuses an empty list.
  [[nodiscard]] std::vector<Item> items(const Item& at) const;
  /// A scalar as it is written; refuses an empty one.
  [[nodiscard]] std::string text(const Item& at) const;
  /// A whole number in low..high.
  [[nodiscard]] unsigned number(const Item& at, unsigned low, unsigned high) const;
  /// Refuses a word that is not in `words`, and names the nearest one.
  [[noreturn]] void unknown(const Item& at, const std::string& what, const std::string& word,
                            const std::vector<std::string>& words) const;

 private:
  std::string file_;
  Item root_;
};

/// The last part of an item's path.
[[nodiscard]] std::string key_of(const Item& item);

}  // namespace doorbell::sweep
