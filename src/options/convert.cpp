// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Converts text to checked values. Every number is parsed and range-checked in 64 bits; callers that need
// fewer bits narrow it afterwards.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <stdexcept>

#include "options/option.hpp"
#include "options/suggest.hpp"

namespace doorbell::options {
namespace {

constexpr u64 kMax = std::numeric_limits<u64>::max();

[[noreturn]] void refuse(const std::string& why) {
  throw std::invalid_argument(why);
}

/// Splits a text such as "20ms" into its number and "ms".
std::pair<std::string_view, std::string_view> split_suffix(std::string_view text) {
  const auto end = text.find_last_of("0123456789.");
  if (end == std::string_view::npos) return {text, {}};
  return {text.substr(0, end + 1), text.substr(end + 1)};
}

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

[[noreturn]] void out_of_range(const Option& o, std::string_view text) {
  const std::string range = range_text(o);
  if (range.starts_with("at ")) refuse(fmt::format("{} is not {}", text, range));
  refuse(fmt::format("{} is not in {}", text, range.empty() ? fmt::format("0..{}", kMax) : range));
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return lower(c); });
  return out;
}

/// The factor of a whole number's suffix, in capitals or not; 0 for an unknown suffix. A prefix alone is
/// binary of sizes, as fio and everybody who types 64K means it, and decimal of what is counted or goes by
/// the second.
u64 factor_of(Kind kind, std::string_view typed) {
  constexpr std::string_view kPrefixes = "kmgt";
  std::string suffix = lower(typed);
  const bool bytes = kind != Kind::integer;
  const bool b = bytes && suffix.ends_with('b');
  if (b) suffix.pop_back();
  const bool i = bytes && suffix.size() == 2 && suffix.ends_with('i');
  if (i) suffix.pop_back();
  if (suffix.empty()) return 1;
  const std::size_t power = kPrefixes.find(suffix[0]);
  if (suffix.size() > 1 || power == std::string_view::npos || (!bytes && suffix == "t")) return 0;
  const u64 base = i || (kind == Kind::size && !b) ? 1024 : 1000;
  u64 factor = base;
  for (std::size_t n = 0; n < power; ++n) factor *= base;
  return factor;
}

u64 convert_whole(const Option& o, std::string_view text) {
  const bool negative = text.starts_with('-');
  const auto [number, suffix] = split_suffix(negative ? text.substr(1) : text);
  const u64 factor = factor_of(o.kind, suffix);
  if (!all_digits(number) || factor == 0) {
    if (o.kind == Kind::size)
      refuse(
          fmt::format("'{}' is not a size; write it as 4096, 64K or 64KiB (65536), or 64KB (64000)", text));
    if (o.kind == Kind::rate)
      refuse(fmt::format("'{}' is not a number of bytes a second; write it as 500M or 12G (powers of 1000)",
                         text));
    refuse(fmt::format("'{}' is not a whole number; write it as 10000, 10k or 1M", text));
  }
  u64 value = 0;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), value);
  if (negative || parsed.ec != std::errc{} || value > kMax / factor) out_of_range(o, text);
  value *= factor;
  if ((o.min.set() && value < o.min.whole()) || (o.max.set() && value > o.max.whole())) out_of_range(o, text);
  return value;
}

std::optional<double> decimal(std::string_view text, std::chars_format format) {
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, format);
  if (parsed.ec != std::errc{} || parsed.ptr != text.data() + text.size() || !std::isfinite(value)) return {};
  return value;
}

void check_real(const Option& o, double value, std::string_view text) {
  if ((o.min.set() && value < o.min.real()) || (o.max.set() && value > o.max.real())) out_of_range(o, text);
}

double convert_seconds(const Option& o, std::string_view text) {
  const auto [number, suffix] = split_suffix(text);
  auto value = decimal(number, std::chars_format::fixed);
  // With a division, 20ms equals the literal 0.02; a product with 1e-3 is off by one ulp.
  if (value && suffix == "ms") {
    *value /= 1e3;
  } else if (value && suffix == "us") {
    *value /= 1e6;
  } else if (value && suffix == "ns") {
    *value /= 1e9;
  } else if (value && suffix == "m") {
    *value *= 60;
  } else if (value && suffix == "h") {
    *value *= 3600;
  } else if (!value || (!suffix.empty() && suffix != "s")) {
    refuse(fmt::format("'{}' is not a time; write it as 5, 0.05, 20ms, 3us or 2m (seconds without a suffix)",
                       text));
  }
  check_real(o, *value, text);
  return *value;
}

double convert_real(const Option& o, std::string_view text) {
  const auto value = decimal(text, std::chars_format::general);
  if (!value) refuse(fmt::format("'{}' is not a number", text));
  check_real(o, *value, text);
  return *value;
}

/// The part of "sample=P" before the '='; for a plain choice, all of it.
std::string_view stem(std::string_view choice) {
  return choice.substr(0, choice.find('='));
}

/// Of an option that is "on" or "off": 1, yes and true are on, as fio and others write it.
std::string switch_word(const Option& o, std::string word) {
  const auto has = [&](const char* choice) {
    return std::ranges::find(o.choices, choice) != o.choices.end();
  };
  if (!has("on") || !has("off")) return word;
  if (word == "1" || word == "yes" || word == "true") return "on";
  if (word == "0" || word == "no" || word == "false") return "off";
  return word;
}

[[noreturn]] void not_a_choice(const Option& o, std::string_view word,
                               const std::vector<std::string>& words) {
  std::string why = fmt::format("'{}' is not one of {}", word, fmt::join(o.choices, ", "));
  const auto meant =
      std::ranges::find_if(o.choices_mean, [&](const auto& m) { return m.first == lower(word); });
  const std::string near = meant != o.choices_mean.end() ? meant->second : nearest(word, words);
  if (!near.empty()) why += fmt::format("; did you mean '{}'?", near);
  refuse(why);
}

ChoiceValue convert_choice(const Option& o, std::string_view text) {
  std::vector<std::string> words;
  for (const std::string& choice : o.choices) {
    const std::string_view word = stem(choice);
    const auto place = static_cast<u32>(words.size());
    words.emplace_back(word);
    if (lower(word) != switch_word(o, lower(stem(text)))) continue;
    const bool wants_number = choice.size() != word.size();
    const bool has_number = text.size() != stem(text).size();
    if (wants_number && !has_number) {
      refuse(fmt::format("'{}' needs a number; write {}, {} in {}", text, choice,
                         choice.substr(word.size() + 1), range_text(o)));
    }
    if (!wants_number && has_number) refuse(fmt::format("'{}' takes no '='", word));
    if (!wants_number) return {std::string(word), place};
    const std::string_view p = text.substr(word.size());
    return {std::string(word) + std::string(p), place, convert_real(o, p.substr(1))};
  }
  not_a_choice(o, stem(text), words);
}

std::vector<ListItem> convert_list(const Option& o, std::string_view text) {
  std::vector<ListItem> items;
  for (std::string_view rest = text;;) {
    const auto comma = rest.find(',');
    const std::string_view item = rest.substr(0, comma);
    const auto equals = item.find('=');
    const std::string_view kind = item.substr(0, equals);
    if (item.empty()) refuse(fmt::format("'{}' has an empty item", text));
    bool known = o.choices.empty();
    for (const std::string& choice : o.choices) known = known || choice == kind;
    if (!known) not_a_choice(o, kind, o.choices);
    if (equals == std::string_view::npos) {
      refuse(fmt::format("'{}' has no value; write {}=0.01", kind, kind));
    }
    for (const ListItem& earlier : items) {
      if (earlier.kind == kind) refuse(fmt::format("'{}' is given twice", kind));
    }
    items.push_back({std::string(kind), convert_real(o, item.substr(equals + 1))});
    if (comma == std::string_view::npos) return items;
    rest.remove_prefix(comma + 1);
  }
}

std::string bound_text(const Option& o, const Bound& b) {
  if (o.kind == Kind::integer) return fmt::format("{}", b.whole());
  if (o.kind == Kind::rate) return bound_text({.kind = Kind::size}, b);
  if (o.kind != Kind::size) {
    std::string text = fmt::format("{:.9f}", b.real());
    text.erase(text.find_last_not_of('0') + 1);
    if (text.ends_with('.')) text.pop_back();
    return text;
  }
  constexpr std::pair<u64, const char*> kUnits[] = {
      {u64{1} << 40, "Ti"}, {u64{1} << 30, "Gi"}, {u64{1} << 20, "Mi"}, {u64{1} << 10, "Ki"}};
  for (const auto& [factor, name] : kUnits) {
    if (b.whole() != 0 && b.whole() % factor == 0) return fmt::format("{}{}", b.whole() / factor, name);
  }
  return fmt::format("{}", b.whole());
}

}  // namespace

Value convert(const Option& o, std::string_view text) {
  if (text.empty()) refuse("the value is empty");
  switch (o.kind) {
    case Kind::flag:
      refuse("takes no value");
    case Kind::integer:
    case Kind::size:
    case Kind::rate:
      return convert_whole(o, text);
    case Kind::seconds:
      return convert_seconds(o, text);
    case Kind::real:
      return convert_real(o, text);
    case Kind::choice:
      return convert_choice(o, text);
    case Kind::list:
      return convert_list(o, text);
    case Kind::text:
    case Kind::path:
    case Kind::directory:
      break;
  }
  return std::string(text);
}

std::string range_text(const Option& o) {
  if (o.min.set() && o.max.set()) return fmt::format("{}..{}", bound_text(o, o.min), bound_text(o, o.max));
  if (o.min.set()) return fmt::format("at least {}", bound_text(o, o.min));
  if (o.max.set()) return fmt::format("at most {}", bound_text(o, o.max));
  return {};
}

}  // namespace doorbell::options
