// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/offers.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "cli/path.hpp"
#include "cli/shipped.hpp"

namespace doorbell::cli {

namespace {

namespace fs = std::filesystem;

/// Sorted; none if doorbell's plans are not here.
std::vector<fs::path> shipped_plans() {
  std::vector<fs::path> files;
  std::error_code failed;
  for (fs::directory_iterator at(shipped("plans"), failed), end; !failed && at != end; at.increment(failed))
    if (at->path().extension() == ".yaml") files.push_back(at->path());
  std::ranges::sort(files);
  return files;
}

}  // namespace

std::vector<std::string> syntax_words(std::string_view syntax) {
  const std::size_t at = syntax.find_first_of("[:");
  const std::string head(syntax.substr(0, at));
  // Capitals stand for what the user puts there.
  const auto stands_for_text = [](unsigned char c) { return c == ' ' || std::isupper(c) != 0; };
  if (syntax.find(' ') != std::string_view::npos || std::ranges::any_of(head, stands_for_text)) return {};
  if (at == std::string_view::npos) return {head};
  const std::string_view rest = syntax.substr(syntax.find(':', at) + 1);
  const std::string goes_on = head + (rest.starts_with("PATH") || rest.starts_with("/") ? ":*" : ":");
  if (syntax[at] == '[') return {head, goes_on};
  return {goes_on};
}

std::vector<FoundDevice> found_devices(std::string_view path) {
  for (const PathDescription& p : paths())
    if (p.name() == path) return p.devices("/");
  return {};
}

void add_found(std::vector<std::string>* words, const std::string& name) {
  // At the end of a word '*' stands for a file's name.
  if (!name.empty() && name.back() != '*') words->push_back(name);
}

std::vector<std::string> device_words(std::string_view path, std::vector<std::string> beginnings) {
  std::vector<std::string> words;
  for (const PathDescription& p : paths())
    if (p.name() == path)
      for (const PathModel& model : p.models) words.push_back(model.name);
  for (std::string& word : beginnings)
    if (std::ranges::find(words, word) == words.end()) words.push_back(std::move(word));
  for (const FoundDevice& device : found_devices(path)) add_found(&words, device.name);
  return words;
}

std::vector<std::string> plan_words() {
  std::vector<std::string> words;
  for (const fs::path& file : shipped_plans()) add_found(&words, "plans/" + file.filename().string());
  return words;
}

std::vector<std::string> reproduce_words() {
  constexpr std::string_view kName = "name: ", kSource = "source: ";
  std::vector<std::string> words = {"all"}, names;
  for (const fs::path& file : shipped_plans()) {
    // Reading a plan in full checks all its cells, which takes longer than a shell should wait.
    std::ifstream in(file);
    std::string name, source;
    for (std::string line; std::getline(in, line);) {
      if (line.starts_with(kName)) name = line.substr(kName.size());
      if (line.starts_with(kSource)) source = line.substr(kSource.size());
    }
    if (source.empty()) continue;
    if (std::ranges::find(words, source) == words.end()) add_found(&words, source);
    add_found(&names, name);
  }
  std::ranges::move(names, std::back_inserter(words));
  words.emplace_back("*");
  return words;
}

}  // namespace doorbell::cli
