// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/folder.hpp"

#include <doorbell/error.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "report/file.hpp"
#include "sweep/text_file.hpp"
#include "system/clock.hpp"
#include "system/sysfs.hpp"

namespace doorbell::sweep {

namespace {

namespace fs = std::filesystem;

constexpr const char* kPlan = "plan.yaml";
constexpr const char* kResults = kWritten[0];
constexpr const char* kRuns = kWritten[1];
constexpr const char* kRunning = ".running-";

void append_to(const std::string& path, std::string_view text) {
  const auto fail = [&](const char* step) {
    throw Error("writing " + path, fmt::format("{}: {}", step, reason(errno)),
                "what is there already is kept; the same command goes on from there");
  };
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (file.get() < 0) fail("open");
  while (!text.empty()) {
    const ssize_t n = ::write(file.get(), text.data(), text.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("write");
    text.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fsync(file.get()) != 0) fail("fsync");
}

}  // namespace

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files = {fs::path(folder) / kPlan};
  for (const char* name : kWritten) files.push_back(fs::path(folder) / name);
  return files;
}

std::vector<std::string> stale_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    // The second is a Result that was only partly written.
    if ((name.starts_with(kRunning) && name.ends_with(".json")) ||
        (name.starts_with(std::string(".") + kRunning) && name.ends_with(".tmp")))
      files.push_back(entry.path().string());
  }
  return files;
}

Found look(const std::string& folder, std::string_view plan_text, const std::string& setting) {
  std::error_code error;
  if (!fs::exists(folder, error)) return Found::nothing;
  if (!fs::is_directory(folder, error)) throw Error(setting.empty() ? folder : setting, "it is no folder");
  if (fs::exists(fs::path(folder) / kPlan, error))
    return read_text(folder + "/" + kPlan) == plan_text ? Found::same : Found::another;
  return fs::is_empty(folder, error) ? Found::nothing : Found::foreign;
}

Folder::Folder(std::string path, std::string_view plan_text, const std::string& setting)
    : path_(std::move(path)) {
  const std::string& title = setting.empty() ? path_ : setting;
  std::error_code error;
  fs::create_directories(path_, error);
  if (error) throw Error(title, error.message(), "give another folder");
  lock_ = Descriptor(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock_.get() < 0 || ::access(path_.c_str(), W_OK | X_OK) != 0) throw Error(title, reason(errno));
  if (::flock(lock_.get(), LOCK_EX | LOCK_NB) != 0)
    throw Error(title, errno == EWOULDBLOCK ? "another sweep is at work in it" : reason(errno));
  if (!fs::exists(file(kPlan), error)) report::write_file(file(kPlan), plan_text);
  for (const std::string& stale : stale_in(path_)) fs::remove(stale, error);
}

std::string Folder::new_result() const {
  return file(fmt::format("{}{}-{}.json", kRunning, ::getpid(), wall_ns()).c_str());
}

Records Folder::read() const {
  std::error_code error;
  if (!fs::exists(file(kResults), error)) return {};
  return parse_records(read_text(file(kResults)), file(kResults));
}

void Folder::keep(const std::vector<Record>& kept) {
  std::string lines, rows = csv_header();
  for (const Record& record : kept) {
    lines += to_line(record);
    rows += csv_rows(record);
  }
  report::write_file(file(kResults), lines);
  report::write_file(file(kRuns), rows);
}

void Folder::append(const Record& record) {
  append_to(file(kResults), to_line(record));
  append_to(file(kRuns), csv_rows(record));
}

}  // namespace doorbell::sweep
