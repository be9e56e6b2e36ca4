// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Parsing, --help, the man page, the completion of shells and the JSON echo are all made from one table of
// options. An option is described nowhere else.
#pragma once

#include <doorbell/config.hpp>

#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "options/into.hpp"

namespace doorbell::options {

enum class Kind {
  flag,     ///< present or not; takes no value
  integer,  ///< whole number, with k, M or G for 10^3, 10^6, 10^9
  size,     ///< bytes: K M G T and KiB MiB GiB TiB are powers of 1024, KB MB GB TB powers of 1000; any case
  rate,     ///< bytes a second: K M G T and KB MB GB TB are powers of 1000, KiB MiB GiB TiB powers of 1024
  seconds,  ///< 0.05, 5, 5s, 20ms, 3us, 40ns, 2m, 1h
  real,     ///< decimal number
  choice,   ///< one of `choices`; "sample=P" takes a number within min..max after the '='
  text,     ///< any non-empty text
  list,     ///< KIND=VALUE[,KIND=VALUE...], kinds from `choices`, values within min..max
  path,     ///< a file's name (the shell completes it)
  directory,
};

/// One end of a range: absent, a whole number (never negative) or a real one. Whole numbers keep all 64 bits.
/// Integer and size options need whole bounds, the others take either kind.
class Bound {
 public:
  constexpr Bound() = default;
  template <typename T>
  requires std::is_arithmetic_v<T>
  constexpr Bound(T v)  // NOLINT(google-explicit-constructor): `.min = 1` in a table entry
      : set_(true), real_(static_cast<double>(v)) {
    if constexpr (std::is_integral_v<T>) {
      whole_ = static_cast<u64>(v);
    } else {
      is_whole_ = false;
    }
  }

  [[nodiscard]] constexpr bool set() const { return set_; }
  [[nodiscard]] constexpr bool is_whole() const { return is_whole_; }
  [[nodiscard]] constexpr u64 whole() const { return whole_; }
  [[nodiscard]] constexpr double real() const { return real_; }

 private:
  bool set_ = false;
  bool is_whole_ = true;
  u64 whole_ = 0;
  double real_ = 0;
};

/// The other option without which an option has no meaning: it must have one of these values, or, if there
/// are none, any.
struct Condition {
  std::string option = {};
  std::vector<std::string> values = {};
};

/// An option, by its name, and a value as a user types it.
struct Assignment {
  std::string option, value = {};
};

/// One table entry. Names are written without dashes; text is ASCII.
struct Option {
  std::string name = {};                  ///< "batch-size"
  std::vector<std::string> aliases = {};  ///< other long names, which are accepted
  std::vector<std::string> means = {};    ///< words that are not accepted, for which it is suggested
  char letter = '\0';                     ///< 'b' for -b
  Kind kind = Kind::text;         ///< text: that of the member in `into`, or a choice, if there is one
  std::string metavar = {};       ///< "N"; chosen by kind if empty
  std::string default_text = {};  ///< as a user would type it; empty: no default value
  Bound min = {}, max = {};       ///< inclusive
  std::vector<std::string> choices = {};
  /// Words that are no choices, each with the choice that is suggested for it.
  std::vector<std::pair<std::string, std::string>> choices_mean = {};
  /// Values that only this machine knows, for a shell to offer; others may be given. It opens no device and
  /// is quick; it may throw. A word that goes on ends in ':', '=' or ','; at the end of one '*' stands for a
  /// file's name: "file:*".
  std::function<std::vector<std::string>()> offers = {};
  std::string help = {};   ///< one or more sentences; the final full stop may be left out
  std::string group = {};  ///< heading in --help, in the order of their first options; OptionTable::group()
  std::string unit = {};   ///< a symbol for the JSON key ("ns"); seconds and size imply "s" and "bytes"
  bool operand = false;    ///< a positional argument, shown as `metavar`
  bool bare = false;       ///< a word without an option before it is its value, too; one option a table
  std::string brief = {};  ///< its line in the short help, of which it is part then: a few words
  bool required = false;
  bool echoed = true;      ///< part of Options::echo()
  Into into = {};          ///< what Options::read_into() sets
  Condition only_if = {};  ///< Options::check_conditions()
  /// Of another program's word for what takes other options here: these, with their values, made from its
  /// value. It may throw std::invalid_argument as convert() does. It has no value of its own, and is not
  /// echoed.
  std::function<std::vector<Assignment>(const std::string& value)> stands_for = {};
};

/// The JSON key of an option: its name with '_' for '-' and its unit at the end.
[[nodiscard]] std::string json_key(const Option& o);
/// "--batch-size", or the metavar of an operand.
[[nodiscard]] std::string display_name(const Option& o);
/// The placeholder for the value: "N", "S", "BYTES", "cpu|gpu", "KIND=VALUE[,...]"; empty for a flag.
[[nodiscard]] std::string value_name(const Option& o);
/// "1..1024", "at least 1", "at most 8"; empty without bounds. Units as a user types them.
[[nodiscard]] std::string range_text(const Option& o);

/// Converts and checks `text` for `o`. Throws std::invalid_argument; its what() describes the error without
/// the option's name ("0 is not in 1..1024").
[[nodiscard]] Value convert(const Option& o, std::string_view text);

/// A command's options, in the order of its help.
class OptionTable {
 public:
  /// Adds an entry. A table that contradicts itself (two options with one name, a default outside its range)
  /// is a programming error: std::logic_error.
  OptionTable& add(Option o);
  /// The heading of the options that are added from now on without one.
  OptionTable& group(std::string name);
  /// Gives an option another default, for a command that differs from the common one.
  OptionTable& set_default(std::string_view name, std::string text);

  /// The option with this long name or alias; nullptr if there is none.
  [[nodiscard]] const Option* find(std::string_view name) const;
  /// The same for a name as somebody types it: perftest and others write tx_depth.
  [[nodiscard]] const Option* find_typed(std::string_view name) const;
  [[nodiscard]] const Option* find_letter(char letter) const;
  /// The option that a bare word belongs to; nullptr if there is none.
  [[nodiscard]] const Option* bare() const;
  /// For a name that is no option's: the one that is meant, "" if that cannot be said.
  [[nodiscard]] std::string meant_by(std::string_view name) const;
  [[nodiscard]] const std::vector<Option>& all() const { return options_; }
  /// Headings in order.
  [[nodiscard]] std::vector<std::string> groups() const;
  [[nodiscard]] std::vector<const Option*> operands() const;
  /// The names of the options that go into a member of this very struct.
  template <typename S>
  [[nodiscard]] std::vector<std::string> names_of() const {
    std::vector<std::string> names;
    for (const Option& o : options_)
      if (o.into.belongs_to<S>()) names.push_back(o.name);
    return names;
  }

 private:
  std::vector<Option> options_;
  std::string group_;
};

/// The parsed values of one command line. It is a programming error (std::logic_error) to ask for an option
/// that the table does not have, with the wrong type, or without a value.
class Options {
 public:
  /// Starts with every option at its default.
  explicit Options(OptionTable table);

  [[nodiscard]] u64 integer(std::string_view name) const;
  [[nodiscard]] u64 bytes(std::string_view name) const;
  [[nodiscard]] double seconds(std::string_view name) const;
  [[nodiscard]] double real(std::string_view name) const;
  /// Text, choice ("sample=0.1" in full), path or directory; empty if the option has no value.
  [[nodiscard]] const std::string& text(std::string_view name) const;
  /// The number after '=' of a choice such as "sample=0.1".
  [[nodiscard]] std::optional<double> choice_number(std::string_view name) const;
  /// Items in the order given; empty if the option has no value.
  [[nodiscard]] const std::vector<ListItem>& list(std::string_view name) const;
  [[nodiscard]] bool flag(std::string_view name) const;

  /// Sets the members of this very struct that options are bound to, and leaves those whose option has no
  /// value. Members of a base are set by read_into<Base>().
  template <typename S>
  void read_into(S& object) const {
    for (const Option& o : table_.all()) o.into.set(slot(o.name).value, object);
  }
  /// Throws doorbell::Error for an option on the command line whose `only_if` does not hold.
  void check_conditions() const;

  /// True if the option has a value, from the command line or by default.
  [[nodiscard]] bool has(std::string_view name) const;
  /// True if the option was on the command line.
  [[nodiscard]] bool given(std::string_view name) const;
  [[nodiscard]] std::vector<std::string> given_names() const;

  /// Every option's value, typed, by json_key(); null for options without a value.
  [[nodiscard]] nlohmann::ordered_json echo() const;

  /// Sets an option as if it had been typed; throws std::invalid_argument as convert() does.
  void set(std::string_view name, std::string_view text);

  [[nodiscard]] const OptionTable& table() const { return table_; }

 private:
  struct Slot {
    Value value;
    bool given = false;
  };
  [[nodiscard]] const Slot& slot(std::string_view name) const;
  template <typename T>
  [[nodiscard]] const T& as(std::string_view name) const;

  OptionTable table_;
  std::map<std::string, Slot, std::less<>> slots_;
};

}  // namespace doorbell::options
