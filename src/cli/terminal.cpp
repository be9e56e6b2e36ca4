// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/terminal.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

#include "report/layout.hpp"

namespace doorbell::cli {

namespace {

std::string folded_line(std::string_view line, std::size_t columns) {
  if (report::columns(line) <= columns) return std::string(line);
  const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
  std::string out(line.substr(0, indent));
  std::size_t column = indent;
  bool first = true;
  for (std::string_view rest = line.substr(indent); !rest.empty();) {
    const std::size_t end = rest.find(' '), next = std::min(rest.find_first_not_of(' ', end), rest.size());
    const std::string_view word = rest.substr(0, end);
    const std::size_t width = report::columns(word);
    if (!first && column + width > columns) {
      out.erase(out.find_last_not_of(' ') + 1);
      out += '\n' + std::string(indent + 2, ' ');
      column = indent + 2;
    }
    first = false;
    out += word;
    column += width;
    if (end == std::string_view::npos) break;
    const std::string_view gap = rest.substr(end, next - end);
    out += gap;
    column += gap.size();
    rest.remove_prefix(next);
  }
  return out;
}

}  // namespace

std::size_t columns_of(std::FILE* out) {
  winsize size = {};
  if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  return 80;
}

std::size_t table_columns(std::FILE* out, std::size_t most) {
  return isatty(fileno(out)) == 1 ? std::min(columns_of(out), most) : most;
}

std::string folded(std::string_view text, std::size_t columns) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    out += folded_line(text.substr(at, end - at), columns);
    if (end < text.size()) out += '\n';
    at = end + 1;
  }
  return out;
}

void print(std::FILE* out, std::string_view text) {
  const std::string lines = isatty(fileno(out)) == 1 ? folded(text, columns_of(out)) : std::string(text);
  (void)std::fwrite(lines.data(), 1, lines.size(), out);
}

}  // namespace doorbell::cli
