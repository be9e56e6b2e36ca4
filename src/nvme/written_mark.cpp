// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "nvme/written_mark.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>

#include "nvme/foreign_data.hpp"
#include "system/open_file.hpp"

namespace doorbell::nvme {

namespace {

constexpr const char* kName = "user.doorbell.written";
constexpr std::size_t kBytesAtMost = 3500;  // ext4 keeps all attributes of a file in 4096

// The text: words with a blank between them, numbers in hexadecimal.
//   "2"                          the form
//   SECONDS.NANOSECONDS.SIZE     of the file's last change, and its bytes
//   then, the newest write first:
//   wSEED.SEQUENCE               of the writes that follow
//   BEGIN.END.N                  bytes that have the sequence + N
//   BEGIN.END.N.ORIGIN.IO_BYTES.SPAN.POSTED.ORDER_SEED    of a phase in random order, N that of its first
//   pass
constexpr std::string_view kForm = "2";
constexpr std::size_t kPlainNumbers = 3, kRandomNumbers = 8;

/// One position that is all of `bytes`.
EarlierWrite plain(ByteRange bytes, u64 seed, u64 sequence) {
  return {.bytes = bytes,
          .origin = bytes.begin,
          .io_bytes = bytes.end - bytes.begin,
          .posted = 1,
          .seed = seed,
          .sequence = sequence};
}

/// The numbers of a word, which points separate; none if it is anything else.
std::vector<u64> numbers_of(std::string_view word) {
  std::vector<u64> numbers;
  const char* at = word.data();
  const char* const end = at + word.size();
  for (;;) {
    u64 n = 0;
    const auto r = std::from_chars(at, end, n, 16);
    if (r.ec != std::errc{}) return {};
    numbers.push_back(n);
    if (r.ptr == end) return numbers;
    if (*r.ptr != '.') return {};
    at = r.ptr + 1;
  }
}

std::optional<EarlierWrite> write_of(const std::vector<u64>& n, u64 seed, u64 sequence) {
  if (n.size() != kPlainNumbers && n.size() != kRandomNumbers) return std::nullopt;
  const ByteRange bytes{n[0], n[1]};
  if (bytes.end <= bytes.begin) return std::nullopt;
  EarlierWrite w = plain(bytes, seed, sequence + n[2]);
  if (n.size() == kPlainNumbers) return w;
  w.origin = n[3];
  w.io_bytes = n[4];
  w.span = n[5];
  w.posted = n[6];
  w.order_seed = n[7];
  w.random = 1;
  const bool sound = w.origin <= bytes.begin && w.io_bytes != 0 && w.span != 0 &&
                     (bytes.end - 1 - w.origin) / w.io_bytes < w.span &&
                     w.span <= (~u64{0} - w.origin) / w.io_bytes;  // no position's end passes 2^64
  return sound ? std::optional(w) : std::nullopt;
}

std::string header_of(const struct stat& st) {
  return fmt::format("{} {:x}.{:x}.{:x}", kForm, static_cast<u64>(st.st_mtim.tv_sec),
                     static_cast<u64>(st.st_mtim.tv_nsec), static_cast<u64>(st.st_size));
}

/// Of the text behind the header. Nothing, if any of it has another form.
std::vector<EarlierWrite> parse(std::string_view text) {
  std::vector<EarlierWrite> writes;
  u64 seed = 0, sequence = 0;
  while (!text.empty()) {
    if (text.front() != ' ') return {};
    text.remove_prefix(1);
    std::string_view word = text.substr(0, text.find(' '));
    text.remove_prefix(word.size());
    const bool writer = word.starts_with('w');
    if (writer) word.remove_prefix(1);
    const std::vector<u64> n = numbers_of(word);
    if (writer && n.size() == 2) {
      seed = n[0];
      sequence = n[1];
    } else {
      const auto w = writer ? std::nullopt : write_of(n, seed, sequence);
      if (!w) return {};
      writes.push_back(*w);
    }
  }
  return writes;
}

std::string text_of(const std::string& header, std::span<const EarlierWrite> writes) {
  std::string text = header;
  const EarlierWrite* writer = nullptr;
  for (const EarlierWrite& w : writes) {
    // Sequences of a run differ by little.
    if (writer == nullptr || w.seed != writer->seed || w.sequence < writer->sequence) {
      writer = &w;
      text += fmt::format(" w{:x}.{:x}", w.seed, w.sequence);
    }
    text += fmt::format(" {:x}.{:x}.{:x}", w.bytes.begin, w.bytes.end, w.sequence - writer->sequence);
    if (w.random != 0)
      text += fmt::format(".{:x}.{:x}.{:x}.{:x}.{:x}", w.origin, w.io_bytes, w.span, w.posted, w.order_seed);
  }
  return text;
}

/// The parts of `writes` outside of `range`; the pieces within it go behind those of `*inside`.
std::vector<EarlierWrite> without(const std::vector<EarlierWrite>& writes, ByteRange range,
                                  std::vector<EarlierWrite>* inside) {
  std::vector<EarlierWrite> left;
  const auto add = [](std::vector<EarlierWrite>& to, EarlierWrite w, u64 begin, u64 end) {
    w.bytes = {std::max(begin, w.bytes.begin), std::min(end, w.bytes.end)};
    if (w.bytes.begin < w.bytes.end) to.push_back(w);
  };
  for (const EarlierWrite& w : writes) {
    add(left, w, 0, range.begin);
    add(left, w, range.end, ~u64{0});
    add(*inside, w, range.begin, range.end);
  }
  return left;
}

/// The unit that is to lie at `address`.
std::optional<pattern::Identity> unit_at(const std::vector<EarlierWrite>& writes, u64 address) {
  u64 sequence = 0;
  for (const EarlierWrite& w : writes)
    if (address >= w.bytes.begin && address < w.bytes.end && w.covers(address, &sequence))
      return pattern::Identity{w.seed, address, sequence};
  return std::nullopt;
}

/// Whether a file that another program has written to still holds what the mark says, but for a few units: by
/// a sample, and by its first unit, where other contents (file systems, images) have their header.
bool holds_still(int fd, const std::vector<EarlierWrite>& writes) {
  constexpr u64 kSample = 1024, kWrongShare = 8;
  std::array<u32, pattern::kUnitWords> unit;
  u64 seen = 0, wrong = 0;
  const auto right = [&](u64 address) {
    const auto id = unit_at(writes, address);
    if (!id) return true;
    ++seen;
    return pread(fd, unit.data(), sizeof unit, static_cast<off_t>(address)) == sizeof unit &&
           pattern::same_unit(unit.data(), *id);
  };
  if (!right(0)) return false;
  u64 units = 0;
  for (const EarlierWrite& w : writes) units += (w.bytes.end - w.bytes.begin) / pattern::kUnitBytes;
  const u64 step = std::max<u64>(units / kSample, 1) * pattern::kUnitBytes;
  for (const EarlierWrite& w : writes)
    for (u64 n = (w.bytes.end - w.bytes.begin - 1) / step + 1, at = w.bytes.begin; n > 0; --n, at += step)
      if (!right(at)) ++wrong;
  return wrong * kWrongShare <= seen;
}

bool is_plain(const EarlierWrite& w) {
  return w.span == 1 && w.posted == 1 && w.random == 0;
}

/// True if nothing of `older` is to be seen through `newer`, both in random order.
bool hides(const EarlierWrite& newer, const EarlierWrite& older) {
  return newer.origin == older.origin && newer.io_bytes == older.io_bytes && newer.span == older.span &&
         newer.order_seed == older.order_seed && newer.random == older.random && newer.posted >= older.posted;
}

}  // namespace

std::vector<EarlierWrite> simplified(const EarlierWrite& w) {
  if (w.posted == 0 || w.bytes.begin >= w.bytes.end) return {};
  const u64 passes = w.posted / w.span, rest = w.posted % w.span;
  if (rest == 0) return {plain(w.bytes, w.seed, w.sequence + passes - 1)};
  if (w.random != 0) return {w};
  std::vector<EarlierWrite> parts;
  const u64 border = std::clamp(w.origin + rest * w.io_bytes, w.bytes.begin, w.bytes.end);
  if (w.bytes.begin < border) parts.push_back(plain({w.bytes.begin, border}, w.seed, w.sequence + passes));
  if (border < w.bytes.end && passes > 0)
    parts.push_back(plain({border, w.bytes.end}, w.seed, w.sequence + passes - 1));
  return parts;
}

WrittenMark::WrittenMark(std::string path) : path_(std::move(path)) {
  open(true);
}

void WrittenMark::open(bool load) {
  if (path_.empty() || fd_.get() >= 0) return;
  fd_ = open_file(path_, O_RDONLY, FileKinds::regular).fd;
  if (fd_.get() < 0 || !load) return;
  std::array<char, kBytesAtMost> bytes;
  const ssize_t n = fgetxattr(fd_.get(), kName, bytes.data(), bytes.size());
  struct stat st {};
  if (n <= 0 || holds_nothing(fd_.get()) || fstat(fd_.get(), &st) != 0) return;
  const std::string_view text(bytes.data(), static_cast<std::size_t>(n));
  const std::size_t form = text.find(' ');
  const std::string_view header = text.substr(0, text.find(' ', form + 1));
  if (!header.starts_with(kForm)) return;
  writes_ = parse(text.substr(header.size()));
  on_file_ = writes_;
  if (header == header_of(st)) return;
  changed_by_others_ = true;
  outdated_ = !holds_still(fd_.get(), writes_);
  if (outdated_) writes_.clear();
}

std::vector<EarlierWrite> WrittenMark::known(ByteRange range) const {
  std::vector<EarlierWrite> inside;
  (void)without(writes_, range, &inside);
  if (inside.size() > kWritesAtMost) inside.resize(kWritesAtMost);
  return inside;
}

void WrittenMark::about_to_write(ByteRange range) {
  if (range.begin >= range.end) return;
  std::vector<EarlierWrite> inside;
  std::vector<EarlierWrite> left = without(writes_, range, &inside);
  std::vector<EarlierWrite> dropped;
  covered_ = without(covered_, range, &dropped);
  covered_.insert(covered_.end(), inside.begin(), inside.end());
  if (!inside.empty()) {
    writes_ = std::move(left);
    changed_ = true;
  }
  const bool on_file = std::ranges::any_of(on_file_, [&](const EarlierWrite& w) {
    return w.bytes.begin < range.end && range.begin < w.bytes.end;
  });
  if (!on_file && !outdated_) return;
  changed_ = true;
  save();
}

void WrittenMark::written(const EarlierWrite& write) {
  open(false);
  // Where the phase did not come to, what was there before is there still.
  std::vector<EarlierWrite> before, hidden;
  covered_ = without(covered_, write.bytes, &before);
  if (write.posted >= write.span) before.clear();
  for (const EarlierWrite& w : simplified(write)) {
    if (is_plain(w)) before = without(before, w.bytes, &hidden);
    else std::erase_if(before, [&](const EarlierWrite& b) { return hides(w, b); });
    // Another queue's write next to this one, as good as one write with it.
    if (!writes_.empty() && is_plain(w) && is_plain(writes_.front()) && writes_.front().seed == w.seed &&
        writes_.front().sequence == w.sequence && writes_.front().bytes.end == w.bytes.begin)
      writes_.front() = plain({writes_.front().bytes.begin, w.bytes.end}, w.seed, w.sequence);
    else writes_.insert(writes_.begin(), w);
  }
  writes_.insert(writes_.end(), before.begin(), before.end());
  changed_ = true;
}

void WrittenMark::save() {
  open(false);
  if (!changed_ || fd_.get() < 0) return;
  changed_ = false;
  outdated_ = false;
  on_file_ = writes_;
  struct stat st {};
  if (writes_.empty() || fstat(fd_.get(), &st) != 0) {
    (void)fremovexattr(fd_.get(), kName);
    return;
  }
  // The oldest go first: a newer one must not be missed above an older one.
  std::size_t n = std::min(writes_.size(), kWritesAtMost);
  std::string text;
  do text = text_of(header_of(st), std::span(writes_).first(n));
  while (text.size() > kBytesAtMost && --n > 0);
  (void)fsetxattr(fd_.get(), kName, text.data(), text.size(), 0);
}

}  // namespace doorbell::nvme
