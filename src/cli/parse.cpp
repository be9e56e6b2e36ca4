// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cli/parse.hpp"

#include <algorithm>
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <map>
#include <optional>
#include <stdexcept>
#include <utility>

namespace doorbell::cli {
namespace {

/// "-", "-5" and "-.5" are values; everything else that begins with '-' is an option.
bool looks_like_option(std::string_view word) {
  return word.size() > 1 && word[0] == '-' &&
         std::string_view("0123456789.").find(word[1]) == std::string_view::npos;
}

bool is_number(std::string_view word) {
  return !word.empty() && word.find_first_not_of("0123456789.") == std::string_view::npos;
}

class Parser {
 public:
  Parser(const std::string& title, const OptionTable& table, std::span<const std::string> words)
      : title_(title), words_(words), options_(table), operands_(options_.table().operands()) {}

  Options run() {
    bool only_operands = false;
    while (at_ < words_.size()) {
      const std::string& word = words_[at_++];
      const Option* const before = std::exchange(flag_, nullptr);
      if (!only_operands && word == "--") {
        only_operands = true;
      } else if (!only_operands && word.starts_with("--")) {
        long_option(word);
      } else if (!only_operands && looks_like_option(word)) {
        letter_option(word);
      } else {
        if (before != nullptr && is_number(word)) refuse_value(*before, word);
        operand(word);
      }
    }
    for (const Option& o : options_.table().all()) {
      if (o.required && !options_.given(o.name)) refuse(fmt::format("{} is missing", display_name(o)));
    }
    return std::move(options_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(title_, why, fmt::format("'{} --help' lists the options", title_));
  }

  void long_option(const std::string& word) {
    const auto equals = word.find('=');
    const std::string name = word.substr(2, equals == std::string::npos ? equals : equals - 2);
    const Option* o = options_.table().find_typed(name);
    if (o == nullptr || o->operand) unknown("--" + name);
    if (equals == std::string::npos) {
      assign(*o, "--" + name, std::nullopt);
    } else {
      assign(*o, "--" + name, word.substr(equals + 1));
    }
  }

  void letter_option(const std::string& word) {
    const Option* o = options_.table().find_letter(word[1]);
    if (o == nullptr || (o->kind == Kind::flag && word.size() > 2)) unknown(word);
    if (word.size() == 2) {
      assign(*o, word, std::nullopt);
    } else {
      assign(*o, word.substr(0, 2), word.substr(word[2] == '=' ? 3 : 2));
    }
  }

  /// A number is no name of a device: it was meant for the flag before it, which another program has for
  /// something else.
  [[noreturn]] void refuse_value(const Option& flag, const std::string& word) const {
    const std::string& typed = typed_.at(flag.name);
    std::string why = fmt::format("{}: ", typed);
    if (typed != "--" + flag.name) why += fmt::format("it is --{} here; ", flag.name);
    why += fmt::format("it takes no value, but '{}' follows", word);
    const std::string bare_word = typed.substr(typed.find_first_not_of('-'));
    for (const Option& o : options_.table().all())
      if (std::ranges::find(o.means, bare_word) != o.means.end())
        why += fmt::format("; did you mean '--{} {}'?", o.name, word);
    refuse(why);
  }

  void operand(const std::string& word) {
    if (operands_seen_ < operands_.size()) {
      const Option& o = *operands_[operands_seen_++];
      store(o, display_name(o), word);
      return;
    }
    const Option* const bare = options_.table().bare();
    if (bare != nullptr && !options_.given(bare->name) && may_be(*bare, word)) {
      store(*bare, display_name(*bare), word);
      return;
    }
    const std::string near = nearest_option("--" + word);
    refuse(fmt::format("unexpected argument '{}'{}", word,
                       near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
  }

  /// Somebody who leaves out the dashes of an option does not name a device with it.
  [[nodiscard]] bool may_be(const Option& bare, const std::string& word) const {
    return std::ranges::find(bare.choices, word) != bare.choices.end() ||
           options_.table().find(word) == nullptr;
  }

  /// `typed` is the option as the user wrote it, so that error messages show the same text.
  void assign(const Option& o, const std::string& typed, std::optional<std::string> value) {
    if (options_.given(o.name)) {
      const std::string& before = typed_[o.name];
      refuse(before.empty() || before == typed
                 ? fmt::format("{}: given twice", typed)
                 : fmt::format("{}: it is another name of {}, which is given, too", typed, before));
    }
    typed_[o.name] = typed;
    if (o.kind == Kind::flag) flag_ = &o;
    if (o.kind != Kind::flag && !value) {
      if (at_ == words_.size()) refuse(fmt::format("{}: needs a value ({})", typed, value_name(o)));
      if (looks_like_option(words_[at_])) {
        refuse(fmt::format("{}: needs a value ({}), but '{}' follows", typed, value_name(o), words_[at_]));
      }
      value = words_[at_++];
    }
    if (o.kind == Kind::flag && value)
      refuse(fmt::format("{}: takes no value, but '{}' is given", typed, *value));
    if (o.stands_for) replace(o, typed, value.value_or(""));
    else store(o, typed, value.value_or(""));
  }

  /// Another program's word: sets what it stands for.
  void replace(const Option& o, const std::string& typed, const std::string& value) {
    try {
      if (o.kind != Kind::flag) (void)convert(o, value);
      for (const auto& [name, text] : o.stands_for(value)) {
        if (options_.given(name))
          refuse(fmt::format("{}: it stands for --{}, which is given, too", typed, name));
        options_.set(name, text);
      }
    } catch (const std::invalid_argument& e) {
      refuse(fmt::format("{}: {}", typed, e.what()));
    }
  }

  void store(const Option& o, const std::string& typed, const std::string& value) {
    try {
      options_.set(o.name, value);
    } catch (const std::invalid_argument& e) {
      refuse(fmt::format("{}: {}", typed, e.what()));
    }
  }

  [[nodiscard]] std::string nearest_option(std::string_view typed) const {
    // Names are compared without dashes, so that -batch-size finds --batch-size.
    const auto bare = typed.find_first_not_of('-');
    if (bare == std::string_view::npos) return {};
    const std::string near = options_.table().meant_by(typed.substr(bare));
    return near.empty() ? near : "--" + near;
  }

  [[noreturn]] void unknown(const std::string& typed) const {
    const std::string near = nearest_option(typed);
    refuse(fmt::format("unknown option '{}'{}", typed,
                       near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
  }

  const std::string& title_;
  std::map<std::string, std::string> typed_;  ///< the options so far, as they were written
  const Option* flag_ = nullptr;              ///< that stands right before the word at hand
  std::span<const std::string> words_;
  Options options_;
  std::vector<const Option*> operands_;
  std::size_t at_ = 0;
  std::size_t operands_seen_ = 0;
};

}  // namespace

Options parse(const std::string& title, const OptionTable& table, std::span<const std::string> arguments) {
  return Parser(title, table, arguments).run();
}

Help wanted_help(std::span<const std::string> arguments) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "--") break;
    if (word == "--help=all") return Help::all;
    if (word == "--help" || word == "-h")
      return i + 1 < arguments.size() && arguments[i + 1] == "all" ? Help::all : Help::brief;
  }
  return Help::none;
}

}  // namespace doorbell::cli
