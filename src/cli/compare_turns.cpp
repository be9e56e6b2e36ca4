// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/compare_turns.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>

#include "cli/commands.hpp"
#include "cli/compare_output.hpp"
#include "cli/parse.hpp"
#include "cli/progress.hpp"
#include "cli/report_page.hpp"
#include "cli/run_plan.hpp"
#include "cli/run_sweep.hpp"
#include "cli/texts.hpp"
#include "options/suggest.hpp"
#include "report/layout.hpp"
#include "sweep/in_turns.hpp"
#include "sweep/shift.hpp"

namespace doorbell::cli {

namespace {

using Words = std::vector<std::string>;

constexpr const char* kRunTime = "0.5";

/// Of runs that do not end or have two ends: a side has none of these, and no outputs, which are the
/// comparison's.
constexpr std::array kNotOfASide = {"infinite", "listen", "listen-wait"};
constexpr std::array kCounts = {"count", "iterations", "read-io", "write-io"};

struct Side {
  const char* name;
  const sweep::Subject* subject = nullptr;
  Words words = {};   ///< options
  Words chosen = {};  ///< those that were not given
};

/// The subject at the beginning of the words, which is taken out.
const sweep::Subject* take_subject(const std::vector<sweep::Subject>& all, Words* words) {
  std::span<const std::string> rest = *words;
  const sweep::Subject* const found = take_named(all, &rest);
  words->erase(words->begin(), words->end() - static_cast<std::ptrdiff_t>(rest.size()));
  return found;
}

bool is_option(const std::string& word) {
  return word.starts_with("-");
}

template <typename Function>
auto of_side(const Side& side, Function function) {
  try {
    return function();
  } catch (const Error& e) {
    throw Error(side.name, e.what(), e.hint(), e.code());
  }
}

/// Whether an option is on the command line of a command that may not have it.
bool is_given(const Options& options, const std::string& name) {
  return options.table().find(name) != nullptr && options.given(name);
}

/// Checks a side, and adds how long its runs are where it does not say that.
void complete(Side* side) {
  of_side(*side, [&] {
    const Options options = side->subject->parse(side->words);
    for (const std::string& name : options.given_names())
      if (sweep::is_output(name) || std::ranges::find(kNotOfASide, name) != kNotOfASide.end())
        throw Error(fmt::format("--{}", name), "a run of a comparison cannot have it",
                    "outputs of the comparison stand before the first '--'");
    const auto has = [&](const char* name) { return options.table().find(name) != nullptr; };
    const auto given = [&](const char* name) { return is_given(options, name); };
    const auto try_with = [&](const std::string& word) {
      Words more = side->words;
      more.push_back(word);
      try {
        (void)side->subject->parse(more);
      } catch (const Error&) {
        return false;  // a mode that has its own
      }
      side->words = std::move(more);
      side->chosen.push_back(word);
      return true;
    };
    bool timed = given("duration");
    if (!timed && has("duration") && std::ranges::none_of(kCounts, given))
      timed = try_with(fmt::format("--duration={}", kRunTime));
    if (timed && has("repeats") && !given("repeats")) (void)try_with("--repeats=1");
  });
}

Words command_of(const Side& side) {
  Words words = {side.subject->name};
  words.insert(words.end(), side.words.begin(), side.words.end());
  return words;
}

std::string line_of(const Side& side) {
  std::string text = fmt::format("doorbell {}", fmt::join(command_of(side), " "));
  if (!side.chosen.empty()) text += fmt::format("  (not given: {})", fmt::join(side.chosen, " "));
  return report::printable(text);
}

/// Throws Error for a command that cannot be a side.
[[noreturn]] void refuse_command(const char* side, const Words& words,
                                 const std::vector<sweep::Subject>& all) {
  std::vector<std::string> names;
  for (const sweep::Subject& s : all) names.push_back(s.name);
  const std::string word = words.empty() ? "" : words[0];
  const std::string near = nearest(word, names);
  throw Error(side,
              word.empty() || is_option(word) ? std::string("no command is named")
                                              : fmt::format("'{}' is no command that measures", word),
              near.empty() ? fmt::format("the commands are {}", fmt::join(names, ", "))
                           : fmt::format("did you mean '{}'?", near));
}

std::array<Side, 2> sides_of(const Words& rest, bool baseline, const std::vector<sweep::Subject>& all) {
  const auto dashes = std::ranges::find(rest, "--");
  std::array<Side, 2> sides = {Side{.name = "A"}, Side{.name = "B"}};
  sides[0].words.assign(rest.begin(), dashes);
  sides[0].subject = take_subject(all, &sides[0].words);
  if (sides[0].subject == nullptr) refuse_command("A", sides[0].words, all);
  if (dashes == rest.end()) {
    if (!baseline)
      throw Error("B", "its options are missing", "doorbell compare -- COMMAND A-OPTIONS -- B-OPTIONS");
    sides[1].words = sides[0].words;
    sides[1].subject = sides[0].subject;
    return sides;
  }
  sides[1].words.assign(dashes + 1, rest.end());
  sides[1].subject = sides[0].subject;
  if (!sides[1].words.empty() && !is_option(sides[1].words[0])) {
    const sweep::Subject* const own = take_subject(all, &sides[1].words);
    // A word without an option may be the value of the one that takes it.
    if (own == nullptr && sides[0].subject->table.bare() == nullptr) refuse_command("B", sides[1].words, all);
    if (own != nullptr && own != sides[0].subject)
      throw Error("B",
                  fmt::format("it is doorbell {}, and A is doorbell {}", own->name, sides[0].subject->name),
                  "two settings of one command are compared");
  }
  return sides;
}

std::string beginning(const std::array<Side, 2>& sides, const sweep::Turning& what) {
  std::string text = fmt::format("A: {}\nB: {}\n", line_of(sides[0]), line_of(sides[1]));
  if (what.programs[0] != what.programs[1])
    text += fmt::format("A is run by {}\n", report::printable(what.programs[0]));
  return text +
         fmt::format(
             "in turns, at most {}; ends when a look (after {} runs of each, and at the end) decides\n",
             rough_time(what.limit_s), fmt::join(sweep::kLooks, ", "));
}

std::string progress_text(const sweep::TurnsState& s) {
  std::string text =
      fmt::format("{} runs of A, {} of B; {} runs", s.runs[0], s.runs[1], s.side == 0 ? "A" : "B");
  if (s.look != nullptr && s.look->figures() == 1)
    for (const sweep::Compared& cell : s.look->cells)
      for (const sweep::Ratio& r : cell.ratios)
        text +=
            fmt::format("; at the last look B/A {:.3f} ({:.3f} to {:.3f})", r.median, r.ci_low, r.ci_high);
  return text;
}

/// Wrong data is said first, the sentence last.
std::string text_of(const sweep::Turns& t, const std::array<Side, 2>& sides, double percent) {
  const std::string sentence = sweep::sentence(t, percent);
  if (t.end == sweep::TurnsEnd::failed || t.comparison.cells.empty()) return sentence;
  std::string text = sweep::to_text(t.comparison, line_of(sides[0]), line_of(sides[1]));
  if (t.end != sweep::TurnsEnd::interrupted) text += sweep::verdict(t.comparison, percent) + "\n";
  return text + sentence;
}

int compare_sides(std::array<Side, 2> sides, const Options& options, Context& context) {
  sweep::Turning what;
  what.rules = rules_of(options);
  what.limit_s = options.seconds("time-limit");
  what.seed = options.integer("seed");
  if (options.has("across"))
    throw Error("--across", "the two settings differ on purpose already", "leave it out");
  for (std::size_t i = 0; i < 2; ++i) {
    complete(&sides[i]);
    what.words[i] = command_of(sides[i]);
  }
  std::vector<std::string> inputs;
  if (options.has("baseline")) {
    what.programs[0] = options.text("baseline");
    std::error_code error;
    if (!std::filesystem::is_regular_file(what.programs[0], error))
      throw Error("--baseline " + what.programs[0], "there is no such program");
    what.programs[0] = std::filesystem::absolute(what.programs[0]).string();
    inputs.push_back(what.programs[0]);
  }
  check_comparison_outputs(options, inputs);
  const std::string& html = options.text("html");
  if (const std::string why = html.empty() ? "" : why_no_page(); !why.empty())
    throw Error("--html " + html, why, "install what is missing");
  const bool quiet = options.flag("quiet");
  if (!quiet) {
    fmt::print(stderr, "{}", beginning(sides, what));
    std::fflush(stderr);
  }
  Progress progress(context.stderr_tty && !quiet);
  const sweep::Turns t = sweep::run_in_turns(
      what, {.stop = [&] { return context.stop.requested(); },
             .progress =
                 [&](const sweep::TurnsState& s) {
                   progress.update(std::min(s.elapsed_s / what.limit_s, 1.0), progress_text(s));
                 }});
  progress.clear();
  const double percent = options.real("threshold");
  ComparisonOutput out{.document = sweep::to_json(t.comparison),
                       .cases = cases_of(t.comparison),
                       .text = text_of(t, sides, percent),
                       .short_text = sweep::sentence(t, percent),
                       .code = t.code()};
  if (t.code() != t.comparison.exit_code() || t.comparison.cells.empty())
    out.cases.push_back(
        report::case_of_end("doorbell.compare", "the whole comparison", t.code(), out.short_text));
  if (out.code == static_cast<int>(ExitCode::regression))
    out.short_text = sweep::verdict(t.comparison, percent) + "\n" + out.short_text;
  out.document["exit_code"] = out.code;
  out.document["before"] = line_of(sides[0]);
  out.document["after"] = line_of(sides[1]);
  out.document["threshold_percent"] = percent;
  out.document["in_turns"] = sweep::to_json(t, what);
  out.document["in_turns"]["sentence"] = sweep::sentence(t, percent);
  for (std::size_t i = 0; i < 2; ++i) out.document["in_turns"]["sides"][i]["chosen"] = sides[i].chosen;
  return deliver_comparison(out, options, context);
}

}  // namespace

int run_turns(const Options& options, const Words& rest, Context& context) {
  for (const char* name : {"before", "after"})
    if (options.has(name))
      throw Error(options.text(name), "a result cannot be compared with a setting",
                  "give two results, or two lists of options behind '--' each");
  const std::vector<sweep::Subject> all = subjects(context);
  if (std::ranges::any_of(rest, [](const std::string& word) { return word == "--help" || word == "-h"; })) {
    Words words = rest;
    const sweep::Subject* const subject = take_subject(all, &words);
    const auto named = [&](const Command& c) { return subject != nullptr && c.name == subject->name; };
    const auto command = std::ranges::find_if(context.commands, named);
    if (command == context.commands.end()) refuse_command("A", rest, all);
    std::fputs(command_help(*command).c_str(), stdout);
    return 0;
  }
  const std::array<Side, 2> sides = sides_of(rest, options.has("baseline"), all);
  context.stop.install();
  return compare_sides(sides, options, context);
}

Words join_versus(std::span<const std::string> words) {
  const std::string name = "--" + versus_option().name;
  Words joined;
  for (std::size_t i = 0; i < words.size(); ++i)
    if (words[i] == name && i + 1 < words.size()) {
      joined.push_back(name + "=" + words[i + 1]);
      ++i;
    } else {
      joined.push_back(words[i]);
    }
  return joined;
}

bool asks_for_versus(const Options& options) {
  return is_given(options, "versus");
}

Words without(const OptionTable& table, std::span<const std::string> words, const Words& names) {
  Words kept;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    const bool is_long = word.starts_with("--");
    const Option* o = nullptr;
    if (is_long) {
      o = table.find_typed(std::string_view(word).substr(2, word.find('=') - 2));
    } else if (is_option(word) && word.size() > 1) {
      o = table.find_letter(word[1]);
    }
    const bool whole = is_long ? word.find('=') != std::string::npos : word.size() > 2;
    const bool takes_next = o != nullptr && o->kind != Kind::flag && !whole && i + 1 < words.size();
    const Option* const set = o == nullptr && !is_option(word) ? table.bare() : o;
    const bool drop = set != nullptr && std::ranges::find(names, set->name) != names.end();
    if (!drop) kept.push_back(word);
    if (!takes_next) continue;
    ++i;
    if (!drop) kept.push_back(words[i]);
  }
  return kept;
}

Words words_of(const std::string& text, const std::string& setting) {
  Words words;
  bool inside = false;
  char quote = '\0';
  for (const char c : text) {
    if (quote == '\0' && c == ' ') {
      inside = false;
      continue;
    }
    if (!inside) words.emplace_back();
    inside = true;
    if (quote == '\0' && (c == '\'' || c == '"')) quote = c;
    else if (c == quote) quote = '\0';
    else words.back() += c;
  }
  if (quote != '\0') throw Error(setting, fmt::format("a {} has no end", quote));
  return words;
}

int run_versus(const Command& command, const Options& options, std::span<const std::string> words,
               Context& context) {
  const std::vector<sweep::Subject> all = subjects(context);
  std::array<Side, 2> sides = {Side{.name = "A"}, Side{.name = "B"}};
  for (const sweep::Subject& s : all)
    if (s.name == command.name)
      for (Side& side : sides) side.subject = &s;
  if (sides[0].subject == nullptr) throw Error("--versus", fmt::format("doorbell {} has none", command.name));
  const Words own = {"versus", "json", "html", "junit", "quiet"};
  sides[0].words = without(command.options, words, own);
  const Words more = words_of(options.text("versus"), "--versus");
  if (!more.empty() && !is_option(more[0]))
    throw Error("--versus", fmt::format("'{}' is no option", more[0]));
  const Options of_b =
      of_side(sides[1], [&] { return parse(context.program + " " + command.name, command.options, more); });
  sides[1].words = without(command.options, sides[0].words, of_b.given_names());
  sides[1].words.insert(sides[1].words.end(), more.begin(), more.end());
  Words outputs;
  const Command compare = compare_command();
  for (const std::string& name : own) {
    if (name == "versus" || !is_given(options, name)) continue;
    const bool flag = command.options.find(name)->kind == Kind::flag;
    outputs.push_back(flag ? "--" + name : fmt::format("--{}={}", name, options.text(name)));
  }
  return compare_sides(sides, parse(context.program + " compare", compare.options, outputs), context);
}

}  // namespace doorbell::cli
