// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cctype>
#include <fmt/format.h>

#include "cli/texts.hpp"

namespace doorbell::cli {
namespace {

constexpr std::size_t kHelpColumn = 30;  // where an option's help begins
constexpr const char* kNumberRule =
    "Sizes: 64K = 65536, 64KB = 64000. Counts: 10k = 10000. Times: 5, 20ms, 2m.";
constexpr char kGlue = '\x01';  // a space at which wrap() does not break lines

/// Of a word without an option before it: "STREAM" where the value's own name is a list of choices.
std::string bare_name(const Option& o) {
  if (!o.metavar.empty() || o.choices.empty()) return value_name(o);
  std::string name = o.name;
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return std::toupper(c); });
  return name;
}

std::string heading(std::string_view title) {
  return fmt::format("\n{}:\n", title);
}

/// Keeps "default 10 s" on one line, because wrap() does not break at its spaces. Lists of kinds stay
/// breakable.
std::string glued(std::string facts) {
  std::size_t begin = 0;
  while (begin < facts.size()) {
    const std::size_t end = std::min(facts.find("; ", begin), facts.size());
    if (end - begin <= 30)
      std::replace(facts.begin() + std::ptrdiff_t(begin), facts.begin() + std::ptrdiff_t(end), ' ', kGlue);
    begin = end + 2;
  }
  return facts;
}

std::string option_lines(const Option& o) {
  std::string left = o.letter != '\0' ? fmt::format("  -{}, ", o.letter) : "      ";
  if (o.operand) {
    left = fmt::format("  {}", value_name(o));
  } else {
    left += "--" + o.name;
    if (o.kind != Kind::flag) left += fmt::format(" {}", value_name(o));
  }
  std::string text = o.help;
  const std::string facts = option_facts(o);
  if (!facts.empty()) text += fmt::format(" [{}]", glued(facts));
  if (!o.aliases.empty()) text += fmt::format(" (also --{})", fmt::join(o.aliases, ", --"));
  std::string lines = left;
  if (left.size() + 2 > kHelpColumn) {
    lines += '\n';
    lines.append(kHelpColumn, ' ');
  } else {
    lines.append(kHelpColumn - left.size(), ' ');
  }
  return lines + wrap(text, kHelpWidth - kHelpColumn, kHelpColumn) + "\n";
}

std::string title_lines(const Command& command) {
  return fmt::format("{}\n\nUsage: {}{}\n",
                     wrap(fmt::format("{} - {}", typed_name(command), command.summary), kHelpWidth, 4),
                     command.standalone ? "" : "doorbell ", usage_line(command));
}

/// A command that is too long for a line goes on in the next, as a shell reads it.
std::string typed_lines(const std::string& command) {
  if (command.size() <= kHelpWidth - 2) return command;
  std::string lines = wrap(command, kHelpWidth - 10, 8);
  for (std::size_t at = 0; (at = lines.find('\n', at)) != std::string::npos; at += 3) lines.insert(at, " \\");
  return lines;
}

std::string example_lines(const std::vector<Example>& examples) {
  if (examples.empty()) return {};
  std::string text = heading("Examples");
  for (const Example& example : examples) {
    text +=
        fmt::format("  {}\n      {}\n", typed_lines(example.command), wrap(example.text, kHelpWidth - 6, 6));
  }
  return text;
}

}  // namespace

std::string wrap(std::string_view text, std::size_t width, std::size_t indent) {
  std::string out;
  std::size_t column = 0;
  while (!text.empty()) {
    const auto space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    if (column != 0 && column + 1 + word.size() > width) {
      out += '\n';
      out.append(indent, ' ');
      column = 0;
    } else if (column != 0) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
    text.remove_prefix(space == std::string_view::npos ? text.size() : space + 1);
  }
  std::replace(out.begin(), out.end(), kGlue, ' ');
  return out;
}

std::string typed_name(const Command& command) {
  return command.standalone ? command.name : "doorbell " + command.name;
}

std::string page_name(const Command& command) {
  return command.standalone ? command.name : "doorbell-" + command.name;
}

std::string usage_line(const Command& command) {
  if (!command.usage.empty()) return command.usage;
  std::string line = command.name;
  bool any_required = false;
  for (const Option& o : command.options.all()) {
    if (o.operand || !o.required) continue;
    line += fmt::format(" --{} {}", o.name, value_name(o));
    any_required = true;
  }
  line += any_required ? " [OTHER OPTION]..." : " [OPTION]...";
  std::vector<const Option*> words = command.options.operands();
  if (const Option* const bare = command.options.bare()) words.push_back(bare);
  for (const Option* o : words)
    line += o->required ? fmt::format(" {}", bare_name(*o)) : fmt::format(" [{}]", bare_name(*o));
  return line;
}

std::string option_facts(const Option& o) {
  std::vector<std::string> facts;
  if (o.required && !o.operand) facts.emplace_back("required");
  if (!o.default_text.empty()) {
    const bool bare_seconds =
        o.kind == Kind::seconds && o.default_text.find_last_not_of("0123456789.") == std::string::npos;
    facts.push_back(fmt::format("default {}{}", o.default_text, bare_seconds ? " s" : ""));
  }
  // The name of the value shows the choices, unless the option gives another name.
  if (!o.choices.empty() && value_name(o) != fmt::format("{}", fmt::join(o.choices, "|"))) {
    facts.push_back(
        fmt::format("{}: {}", o.kind == Kind::list ? "KIND" : "one of", fmt::join(o.choices, ", ")));
  }
  std::string range = range_text(o);
  if (!range.empty()) {
    if (o.kind == Kind::seconds) range += " s";
    if (o.kind == Kind::size) range += " bytes";
    if (!o.unit.empty()) range += " " + o.unit;
    if (o.kind == Kind::choice || o.kind == Kind::list) range = "P in " + range;
    facts.push_back(range);
  } else if (!o.unit.empty()) {
    facts.push_back("in " + o.unit);
  }
  return fmt::format("{}", fmt::join(facts, "; "));
}

std::string program_help(const std::vector<Command>& commands) {
  std::string text =
      "doorbell - moves bytes between accelerators and devices, and measures each path\n\n"
      "Usage: doorbell COMMAND [OPTION]...\n";
  std::vector<std::string> groups;
  for (const Command& command : commands) {
    if (std::find(groups.begin(), groups.end(), command.group) == groups.end())
      groups.push_back(command.group);
  }
  for (const std::string& group : groups) {
    text += heading(group);
    for (const Command& command : commands) {
      if (command.group == group)
        text += fmt::format("  {:<15}{}\n", command.name, wrap(command.summary, kHelpWidth - 17, 17));
    }
  }
  text += heading("More");
  text +=
      "  doorbell help COMMAND      a command's usual options, with examples\n"
      "  doorbell help COMMAND all  every option\n"
      "  doorbell --version         the version and what it was built with\n";
  text += heading("Exit status");
  for (const ExitStatus& status : kExitStatuses)
    text += fmt::format("  {:>3}  {}\n", status.code, wrap(status.meaning, kHelpWidth - 7, 7));
  text += example_lines(
      {{"doorbell demo", "Run every path on its model and print a table."},
       {"doorbell doctor", "Say what this machine lacks for good figures, and how to fix it."}});
  return text;
}

std::string command_help(const Command& command) {
  std::string text = title_lines(command);
  for (const std::string& paragraph : command.description)
    text += fmt::format("\n{}\n", wrap(paragraph, kHelpWidth, 0));
  if (!command.options.operands().empty()) {
    text += heading("Arguments");
    for (const Option* o : command.options.operands()) text += option_lines(*o);
  }
  for (const std::string& group : command.options.groups()) {
    text += heading(group.empty() ? "Options" : group);
    for (const Option& o : command.options.all()) {
      if (!o.operand && o.group == group) text += option_lines(o);
    }
  }
  return text + fmt::format("\n{}\n", kNumberRule) + example_lines(command.examples);
}

std::string brief_help(const Command& command) {
  const std::vector<Option>& all = command.options.all();
  if (std::ranges::all_of(all, [](const Option& o) { return o.brief.empty(); })) return command_help(command);
  constexpr std::size_t kColumn = 28, kExamples = 3;
  std::string text = title_lines(command) + "\n";
  for (const Option& o : all) {
    if (o.brief.empty()) continue;
    std::string left = o.letter != '\0' ? fmt::format("  -{}, ", o.letter) : "      ";
    left += "--" + o.name;
    if (o.kind != Kind::flag) left += " " + (value_name(o).size() > 20 ? bare_name(o) : value_name(o));
    const std::string facts = o.default_text.empty() ? "" : fmt::format(" [{}]", o.default_text);
    text +=
        fmt::format("{:<{}}{}{}\n", left, kColumn, left.size() + 1 > kColumn ? "  " : "", o.brief + facts);
  }
  text += fmt::format("\n{}\n", kNumberRule);
  text += example_lines(
      {command.examples.begin(),
       command.examples.begin() + std::ptrdiff_t(std::min(kExamples, command.examples.size()))});
  return text + fmt::format("Every option: {} --help all\n", typed_name(command));
}

std::string key_text(const std::string& title, const OptionTable& keys) {
  std::string text = title;
  for (const Option& o : keys.all())
    text += fmt::format("{} {}={} ({}{}{})", text.ends_with(':') ? "" : ";", o.name,
                        value_name(o).empty() ? "VALUE" : value_name(o), o.help,
                        o.default_text.empty() ? "" : "; default ", o.default_text);
  return text + ".";
}

}  // namespace doorbell::cli
