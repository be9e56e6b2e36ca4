// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/report_page.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "cli/output.hpp"
#include "cli/shipped.hpp"
#include "report/file.hpp"
#include "report/layout.hpp"
#include "system/child.hpp"
#include "system/temporary_folder.hpp"

namespace doorbell::cli {

namespace {

constexpr double kReportLimitS = 300;

std::string last_line(std::string text) {
  while (!text.empty() && text.back() == '\n') text.pop_back();
  return report::printable(text.substr(text.rfind('\n') + 1));
}

/// Says what the page lacks: Python's own warnings are not for the user.
void print_notes(const std::string& text) {
  constexpr std::string_view kOurs = "doorbell_report: ";
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    const std::string_view line = std::string_view(text).substr(at, end - at);
    if (line.starts_with(kOurs))
      fmt::print(stderr, "doorbell: {}\n", report::printable(line.substr(kOurs.size())));
    at = end + 1;
  }
}

/// Runs python3 so that it finds the package doorbell_report. Returns why that failed, in one line, or "".
std::string run_python(const std::vector<std::string>& arguments) {
  const std::filesystem::path python = shipped("python");
  if (python.empty()) return "the package doorbell_report is not beside this program";
  const char* before = std::getenv("PYTHONPATH");
  const char* programs = std::getenv("PATH");
  const std::string path = before == nullptr ? python.string() : python.string() + ":" + before;
  // Debian's packages belong to the interpreter in /usr/bin, whatever else is first in PATH.
  std::vector<std::string> words = {"env", "PYTHONPATH=" + path,
                                    fmt::format("PATH=/usr/bin:{}", programs == nullptr ? "" : programs),
                                    "python3"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  try {
    Child child(words);
    if (!child.wait(kReportLimitS)) {
      child.stop(SIGKILL);
      return fmt::format("python3 took longer than {} s", kReportLimitS);
    }
    if (child.exit_code() == 0) {
      print_notes(child.errors());
      return "";
    }
    const std::string why = last_line(child.errors());
    return why.empty() ? fmt::format("python3 ended with exit code {}", child.exit_code()) : why;
  } catch (const std::system_error& e) {
    return fmt::format("python3 cannot be started: {}", e.code().message());
  }
}

}  // namespace

void check_page(const std::string& page, const std::vector<std::string>& inputs) {
  if (page == "-") throw Error("--html -", "a page needs a file of its own", "name one");
  check_output("html", page, inputs);
}

std::string why_no_page() {
  return run_python({"-c",
                     "import sys; from doorbell_report import template; "
                     "sys.exit(None if template.available() else 'python3-jinja2 is not installed')"});
}

std::string make_page(const std::string& from, const std::string& page, const std::string& title, bool bits) {
  // In one word each, and the input last: any of them may begin with a dash.
  std::vector<std::string> words = {"-m", "doorbell_report", "--output=" + page};
  if (!title.empty()) words.push_back("--title=" + title);
  if (bits) words.emplace_back("--units=bits");
  words.insert(words.end(), {"--", from});
  return run_python(words);
}

std::string make_page_of(const std::string& document, const std::string& page) {
  try {
    // A file of its own, because another program makes the page.
    const TemporaryFolder folder("page");
    const std::string file = folder.file("result.json");
    report::write_file(file, document);
    return make_page(file, page);
  } catch (const Error& e) {
    return e.what();
  }
}

}  // namespace doorbell::cli
