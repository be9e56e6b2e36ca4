// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/completion/words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace doorbell::cli {

std::vector<std::string> spellings(const Option& o) {
  std::vector<std::string> all = {"--" + o.name};
  for (const std::string& alias : o.aliases) all.push_back("--" + alias);
  if (o.letter != '\0') all.push_back(fmt::format("-{}", o.letter));
  return all;
}

std::vector<std::string> choice_words(const Option& o) {
  std::vector<std::string> words;
  for (const std::string& choice : o.choices) {
    const std::size_t equals = choice.find('=');
    const bool number = o.kind == Kind::list || equals != std::string::npos;
    words.push_back(choice.substr(0, equals) + (number ? "=" : ""));
  }
  return words;
}

std::vector<const Option*> free_words(const OptionTable& table) {
  std::vector<const Option*> all = table.operands();
  if (const Option* const bare = table.bare()) all.push_back(bare);
  return all;
}

std::string short_text(const Option& o) {
  constexpr std::size_t kMost = 60;
  if (!o.brief.empty()) return o.brief;
  if (o.help.size() <= kMost) return o.help;
  // A space or a mark before it is no place to end at.
  std::string text = o.help.substr(0, o.help.rfind(' ', kMost - 3));
  while (!text.empty() && std::string_view(" ,;:(").find(text.back()) != std::string_view::npos)
    text.pop_back();
  return text + "...";
}

std::vector<std::string> second_words(const std::vector<Command>& commands, const std::string& name) {
  std::vector<std::string> words;
  for (const Command& command : commands)
    if (command.name.starts_with(name + "-")) words.push_back(command.name.substr(name.size() + 1));
  return words;
}

std::string asked_by(const Command& command, const Option& o) {
  return command.name + " " + o.name;
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string shell_quoted(std::string_view text) {
  return "'" + replaced(std::string(text), "'", "'\\''") + "'";
}

std::string shell_words(const std::vector<std::string>& words) {
  const auto plain = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("-_=+.,:/@%").find(static_cast<char>(c)) != std::string_view::npos;
  };
  std::string all;
  for (const std::string& word : words)
    all += " " +
           (!word.empty() && word[0] != '=' && std::ranges::all_of(word, plain) ? word : shell_quoted(word));
  return all;
}

}  // namespace doorbell::cli
