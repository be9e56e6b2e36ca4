// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/csv_file.hpp"

#include <algorithm>
#include <doorbell/error.hpp>
#include <fmt/format.h>

namespace doorbell::sweep {

namespace {

class Reader {
 public:
  Reader(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  [[nodiscard]] bool done() const { return at_ >= text_.size(); }

  CsvRow row() {
    CsvRow row{.line = line_, .fields = {}};
    for (;;) {
      row.fields.push_back(field());
      if (done() || text_[at_] != ',') break;
      ++at_;
    }
    end_of_line();
    return row;
  }

  [[noreturn]] void refuse(int line, const std::string& why) const {
    throw Error(fmt::format("{}:{}", name_, line), why);
  }

 private:
  std::string field() {
    if (!done() && text_[at_] == '"') return quoted();
    const std::size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
    std::string out(text_.substr(at_, end - at_));
    at_ = end;
    if (out.find('"') != std::string::npos) refuse(line_, "a quote inside a field that is not quoted");
    return out;
  }

  std::string quoted() {
    std::string out;
    for (++at_; !done(); ++at_) {
      if (text_[at_] == '"') {
        if (at_ + 1 >= text_.size() || text_[at_ + 1] != '"') {
          ++at_;
          return out;
        }
        ++at_;
      }
      if (text_[at_] == '\n') ++line_;
      out += text_[at_];
    }
    refuse(line_, "a quoted field does not end");
  }

  void end_of_line() {
    if (done()) return;
    if (text_[at_] == '\r') ++at_;
    if (!done() && text_[at_] == '\n') {
      ++at_;
      ++line_;
      return;
    }
    refuse(line_, "text behind the end of a quoted field, or a lone carriage return");
  }

  std::string_view text_;
  const std::string& name_;
  std::size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

std::optional<std::size_t> CsvFile::column(std::string_view wanted) const {
  const auto found = std::ranges::find(header, wanted);
  if (found == header.end()) return std::nullopt;
  return static_cast<std::size_t>(found - header.begin());
}

CsvFile parse_csv(std::string_view text, const std::string& name) {
  Reader reader(text, name);
  if (reader.done()) throw Error(name, "it is empty");
  CsvFile file{.name = name, .header = reader.row().fields, .rows = {}};
  while (!reader.done()) {
    CsvRow row = reader.row();
    if (row.fields.size() == 1 && row.fields[0].empty()) continue;
    if (row.fields.size() != file.header.size())
      reader.refuse(row.line,
                    fmt::format("{} fields, but the header has {}", row.fields.size(), file.header.size()));
    file.rows.push_back(std::move(row));
  }
  return file;
}

}  // namespace doorbell::sweep
