// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/document.hpp"

#include <algorithm>
#include <charconv>
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "options/suggest.hpp"

namespace doorbell::sweep {

namespace {

constexpr std::size_t kMaxBytes = 1 << 20;

int line_of(const YAML::Mark& mark, int otherwise) {
  return mark.is_null() ? otherwise : mark.line + 1;
}

}  // namespace

Document::Document(std::string_view text, std::string file) : file_(std::move(file)) {
  if (text.size() > kMaxBytes)
    throw Error(file_, fmt::format("it has {} bytes, more than {}", text.size(), kMaxBytes));
  try {
    const std::vector<YAML::Node> documents = YAML::LoadAll(std::string(text));
    if (documents.empty()) throw Error(file_, "it is empty");
    if (documents.size() > 1) throw Error(file_, "it holds more than one YAML document");
    root_ = {.path = "", .line = line_of(documents[0].Mark(), 1), .node = documents[0]};
  } catch (const YAML::Exception& e) {
    throw Error(fmt::format("{}:{}", file_, line_of(e.mark, 1)), fmt::format("not YAML: {}", e.msg));
  }
}

void Document::refuse(const Item& at, const std::string& why, std::string hint) const {
  const std::string where = fmt::format("{}:{}", file_, at.line);
  throw Error(at.path.empty() ? where : fmt::format("{}: {}", where, at.path), why, std::move(hint));
}

void Document::unknown(const Item& at, const std::string& what, const std::string& word,
                       const std::vector<std::string>& words) const {
  const std::string near = options::nearest(word, words);
  refuse(at,
         fmt::format("unknown {} '{}'{}", what, word,
                     near.empty() ? "" : fmt::format("; did you mean '{}'?", near)),
         words.size() <= 12 ? fmt::format("known here: {}", fmt::join(words, ", ")) : "");
}

std::vector<Item> Document::members(const Item& at, const std::vector<std::string>& known) const {
  if (!at.node.IsMap()) refuse(at, "it must be a map: KEY: VALUE");
  std::vector<Item> found;
  for (const auto& member : at.node) {
    Item item{.path = at.path, .line = line_of(member.first.Mark(), at.line), .node = member.second};
    if (!member.first.IsScalar()) refuse(item, "a key must be a word");
    const std::string key = member.first.Scalar();
    if (!known.empty() && std::ranges::find(known, key) == known.end()) unknown(item, "key", key, known);
    item.path += (at.path.empty() ? "" : ".") + key;
    for (const Item& earlier : found)
      if (earlier.path == item.path)
        refuse(item, fmt::format("it is given twice, first in line {}", earlier.line));
    found.push_back(std::move(item));
  }
  return found;
}

std::vector<Item> Document::items(const Item& at) const {
  if (!at.node.IsSequence() || at.node.size() == 0) refuse(at, "it must be a list of one item or more");
  std::vector<Item> found;
  for (const auto& node : at.node)
    found.push_back({.path = at.path, .line = line_of(node.Mark(), at.line), .node = node});
  return found;
}

std::string Document::text(const Item& at) const {
  if (at.node.IsNull()) refuse(at, "it has no value");
  if (!at.node.IsScalar()) refuse(at, "it must be one value, not a list or a map");
  if (at.node.Scalar().empty()) refuse(at, "the value is empty");
  return at.node.Scalar();
}

unsigned Document::number(const Item& at, unsigned low, unsigned high) const {
  const std::string word = text(at);
  unsigned value = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), value);
  if (parsed.ec != std::errc{} || parsed.ptr != word.data() + word.size() || value < low || value > high)
    refuse(at, fmt::format("'{}' is not a whole number in {}..{}", word, low, high));
  return value;
}

std::string key_of(const Item& item) {
  return item.path.substr(item.path.rfind('.') + 1);
}

}  // namespace doorbell::sweep
