// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/written_mark.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/xattr.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "nvme/foreign_data.hpp"
#include "system/open_file.hpp"

namespace doorbell::nvme {

namespace {

constexpr const char* kName = "user.doorbell.written";
constexpr std::string_view kForm = "1 ";  // of the text behind it: "BEGIN-END BEGIN-END ..."
constexpr std::size_t kBytesAtMost = WrittenMark::kRangesAtMost * 48;

void keep_the_longest(std::vector<ByteRange>& ranges) {
  std::ranges::sort(ranges, std::greater{}, [](const ByteRange& r) { return r.end - r.begin; });
  if (ranges.size() > WrittenMark::kRangesAtMost) ranges.resize(WrittenMark::kRangesAtMost);
}

std::vector<ByteRange> parse(std::string_view text) {
  std::vector<ByteRange> ranges;
  if (!text.starts_with(kForm)) return {};
  text.remove_prefix(kForm.size());
  while (!text.empty()) {
    ByteRange r;
    const char* const end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, r.begin);
    if (first.ec != std::errc{} || first.ptr == end || *first.ptr != '-') return {};
    const auto second = std::from_chars(first.ptr + 1, end, r.end);
    if (second.ec != std::errc{} || r.end <= r.begin) return {};
    add_range(ranges, r);
    text.remove_prefix(static_cast<std::size_t>(second.ptr - text.data()));
    if (!text.empty() && text.front() != ' ') return {};
    if (!text.empty()) text.remove_prefix(1);
  }
  return ranges;
}

}  // namespace

void add_range(std::vector<ByteRange>& ranges, ByteRange range) {
  if (range.end <= range.begin) return;
  std::vector<ByteRange> all;
  for (const ByteRange& r : ranges) {
    if (r.end < range.begin || r.begin > range.end) all.push_back(r);
    else range = {std::min(r.begin, range.begin), std::max(r.end, range.end)};
  }
  all.push_back(range);
  std::ranges::sort(all, {}, &ByteRange::begin);
  ranges = std::move(all);
}

void remove_range(std::vector<ByteRange>& ranges, ByteRange range) {
  std::vector<ByteRange> left;
  for (const ByteRange& r : ranges) {
    if (const u64 end = std::min(r.end, range.begin); r.begin < end) left.push_back({r.begin, end});
    if (const u64 begin = std::max(r.begin, range.end); begin < r.end) left.push_back({begin, r.end});
  }
  ranges = std::move(left);
}

WrittenMark::WrittenMark(std::string path) : path_(std::move(path)) {
  if (path_.empty()) return;
  const Opened file = open_file(path_, O_RDONLY, FileKinds::regular);
  if (!file) return;
  std::array<char, kBytesAtMost> text;
  const ssize_t n = fgetxattr(file.fd.get(), kName, text.data(), text.size());
  if (n > 0 && !holds_nothing(file.fd.get())) ranges_ = parse({text.data(), static_cast<std::size_t>(n)});
}

std::vector<ByteRange> WrittenMark::known(ByteRange range) const {
  std::vector<ByteRange> parts;
  for (const ByteRange& r : ranges_) {
    const ByteRange both{std::max(r.begin, range.begin), std::min(r.end, range.end)};
    if (both.begin < both.end) parts.push_back(both);
  }
  keep_the_longest(parts);
  return parts;
}

void WrittenMark::about_to_write(ByteRange range) {
  const std::vector<ByteRange> before = ranges_;
  remove_range(ranges_, range);
  if (ranges_ == before) return;
  changed_ = true;
  save();
}

void WrittenMark::written(ByteRange range) {
  add_range(ranges_, range);
  changed_ = true;
}

void WrittenMark::save() {
  if (!changed_ || path_.empty()) return;
  changed_ = false;
  std::vector<ByteRange> kept = ranges_;
  // The longest are what a later run is most likely to read.
  keep_the_longest(kept);
  std::ranges::sort(kept, {}, &ByteRange::begin);
  std::string text(kForm);
  for (const ByteRange& r : kept) text += fmt::format("{}{}-{}", text == kForm ? "" : " ", r.begin, r.end);
  if (kept.empty()) (void)removexattr(path_.c_str(), kName);
  else (void)setxattr(path_.c_str(), kName, text.data(), text.size(), 0);
}

}  // namespace doorbell::nvme
