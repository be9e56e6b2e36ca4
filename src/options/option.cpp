// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "options/option.hpp"

#include <algorithm>
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <stdexcept>

#include "options/enumeration.hpp"
#include "options/suggest.hpp"

namespace doorbell::options {
namespace {

[[noreturn]] void bad_table(const Option& o, std::string_view why) {
  throw std::logic_error(fmt::format("option table: {}: {}", o.name, why));
}

Kind kind_by_member(const Option& o) {
  const Value value = o.into.example();
  if (std::holds_alternative<bool>(value) && o.choices.empty()) return Kind::flag;
  if (std::holds_alternative<u64>(value)) return Kind::integer;
  if (std::holds_alternative<double>(value)) return Kind::real;
  if (std::holds_alternative<std::vector<ListItem>>(value)) return Kind::list;
  return o.choices.empty() ? Kind::text : Kind::choice;
}

/// A value such as convert() returns for the option.
Value example_of(const Option& o) {
  switch (o.kind) {
    case Kind::flag:
      return false;
    case Kind::integer:
    case Kind::size:
    case Kind::rate:
      return u64{0};
    case Kind::seconds:
    case Kind::real:
      return 0.0;
    case Kind::choice:
      return ChoiceValue{};
    case Kind::list:
      return std::vector<ListItem>{};
    case Kind::text:
    case Kind::path:
    case Kind::directory:
      break;
  }
  return std::string();
}

}  // namespace

std::string json_key(const Option& o) {
  std::string key = o.name;
  std::replace(key.begin(), key.end(), '-', '_');
  const std::string unit = o.kind == Kind::seconds ? "s"
                           : o.kind == Kind::size  ? "bytes"
                           : o.kind == Kind::rate  ? "bytes_per_s"
                                                   : o.unit;
  if (!unit.empty() && !key.ends_with("_" + unit)) key += "_" + unit;
  return key;
}

std::string display_name(const Option& o) {
  return o.operand ? value_name(o) : "--" + o.name;
}

std::string value_name(const Option& o) {
  if (o.kind == Kind::flag) return {};
  if (!o.metavar.empty()) return o.metavar;
  switch (o.kind) {
    case Kind::integer:
      return "N";
    case Kind::size:
      return "BYTES";
    case Kind::rate:
      return "BYTES_PER_S";
    case Kind::seconds:
      return "S";
    case Kind::real:
      return "X";
    case Kind::choice:
      return fmt::format("{}", fmt::join(o.choices, "|"));
    case Kind::list:
      return "KIND=VALUE[,...]";
    case Kind::path:
      return "FILE";
    case Kind::directory:
      return "DIR";
    case Kind::flag:
    case Kind::text:
      break;
  }
  return "TEXT";
}

OptionTable& OptionTable::add(Option o) {
  if (o.name.empty()) bad_table(o, "has no name");
  if (o.group.empty() && !o.operand) o.group = group_;
  std::vector<std::string> names = o.aliases;
  names.push_back(o.name);
  for (const std::string& name : names) {
    if (name.starts_with('-') || name.find_first_of("= ") != std::string::npos)
      bad_table(o, "bad name " + name);
    if (find(name) != nullptr) bad_table(o, name + " is there already");
  }
  if (o.letter != '\0' && find_letter(o.letter) != nullptr) bad_table(o, "its letter is taken");
  if (o.kind == Kind::text) o.kind = kind_by_member(o);
  if (o.kind == Kind::choice && o.choices.empty()) bad_table(o, "has no choices");
  if (o.kind == Kind::flag && !o.default_text.empty()) bad_table(o, "a flag is off by default");
  if (o.kind == Kind::flag && o.offers) bad_table(o, "a flag has no values to offer");
  if (o.bare && bare() != nullptr) bad_table(o, "a bare word is another one's");
  if (o.stands_for) o.echoed = false;
  const bool whole = o.kind == Kind::integer || o.kind == Kind::size || o.kind == Kind::rate;
  if (whole && (!o.min.is_whole() || !o.max.is_whole())) bad_table(o, "its range is not of whole numbers");
  if (!o.into.takes(example_of(o), !whole ? 0 : o.max.set() ? o.max.whole() : ~u64{0}))
    bad_table(o, "a member that it goes into has another type, or is too small");
  if (o.required && !o.default_text.empty()) bad_table(o, "required, yet it has a default");
  options_.push_back(std::move(o));
  set_default(options_.back().name, options_.back().default_text);
  return *this;
}

OptionTable& OptionTable::group(std::string name) {
  group_ = std::move(name);
  return *this;
}

OptionTable& OptionTable::set_default(std::string_view name, std::string text) {
  const auto it =
      std::find_if(options_.begin(), options_.end(), [&](const Option& o) { return o.name == name; });
  if (it == options_.end()) throw std::logic_error(fmt::format("option table: no option {}", name));
  it->default_text = std::move(text);
  if (it->default_text.empty()) return *this;
  try {
    static_cast<void>(convert(*it, it->default_text));
  } catch (const std::invalid_argument& e) {
    bad_table(*it, fmt::format("its default: {}", e.what()));
  }
  return *this;
}

const Option* OptionTable::find(std::string_view name) const {
  for (const Option& o : options_) {
    if (o.name == name || std::find(o.aliases.begin(), o.aliases.end(), name) != o.aliases.end()) return &o;
  }
  return nullptr;
}

const Option* OptionTable::find_typed(std::string_view name) const {
  if (const Option* const o = find(name)) return o;
  std::string dashed(name);
  std::ranges::replace(dashed, '_', '-');
  return find(dashed);
}

const Option* OptionTable::find_letter(char letter) const {
  for (const Option& o : options_) {
    if (letter != '\0' && o.letter == letter) return &o;
  }
  return nullptr;
}

const Option* OptionTable::bare() const {
  const auto it = std::ranges::find_if(options_, &Option::bare);
  return it == options_.end() ? nullptr : &*it;
}

std::string OptionTable::meant_by(std::string_view name) const {
  std::vector<std::string> names;
  for (const Option& o : options_) {
    if (std::ranges::find(o.means, name) != o.means.end()) return o.name;
    if (o.operand) continue;
    names.push_back(o.name);
    names.insert(names.end(), o.aliases.begin(), o.aliases.end());
  }
  return nearest(name, names);
}

std::vector<std::string> OptionTable::groups() const {
  std::vector<std::string> names;
  for (const Option& o : options_) {
    if (!o.operand && std::find(names.begin(), names.end(), o.group) == names.end()) names.push_back(o.group);
  }
  return names;
}

std::vector<const Option*> OptionTable::operands() const {
  std::vector<const Option*> found;
  for (const Option& o : options_) {
    if (o.operand) found.push_back(&o);
  }
  return found;
}

Options::Options(OptionTable table) : table_(std::move(table)) {
  for (const Option& o : table_.all()) {
    if (!o.only_if.option.empty() && table_.find(o.only_if.option) == nullptr)
      bad_table(o, "it depends on what is no option");
    Slot& s = slots_[o.name];
    if (o.kind == Kind::flag) {
      s.value = false;
    } else if (!o.default_text.empty()) {
      s.value = convert(o, o.default_text);
    }
  }
}

void Options::set(std::string_view name, std::string_view text) {
  const Option* o = table_.find(name);
  if (o == nullptr) throw std::logic_error(fmt::format("no option {}", name));
  Slot& s = slots_[o->name];
  s.value = o->kind == Kind::flag ? Value{true} : convert(*o, text);
  s.given = true;
}

const Options::Slot& Options::slot(std::string_view name) const {
  auto it = slots_.find(name);
  if (it == slots_.end())
    if (const Option* const o = table_.find(name)) it = slots_.find(o->name);
  if (it == slots_.end()) throw std::logic_error(fmt::format("no option {}", name));
  return it->second;
}

template <typename T>
const T& Options::as(std::string_view name) const {
  const Slot& s = slot(name);
  if (const T* value = std::get_if<T>(&s.value)) return *value;
  throw std::logic_error(fmt::format("option {} has no value of that type", name));
}

u64 Options::integer(std::string_view name) const {
  return as<u64>(name);
}
u64 Options::bytes(std::string_view name) const {
  return as<u64>(name);
}
double Options::seconds(std::string_view name) const {
  return as<double>(name);
}
double Options::real(std::string_view name) const {
  return as<double>(name);
}
bool Options::flag(std::string_view name) const {
  return as<bool>(name);
}

const std::string& Options::text(std::string_view name) const {
  static const std::string empty;
  if (!has(name)) return empty;
  if (const ChoiceValue* choice = std::get_if<ChoiceValue>(&slot(name).value)) return choice->text;
  return as<std::string>(name);
}

std::optional<double> Options::choice_number(std::string_view name) const {
  return has(name) ? as<ChoiceValue>(name).number : std::nullopt;
}

const std::vector<ListItem>& Options::list(std::string_view name) const {
  static const std::vector<ListItem> empty;
  return has(name) ? as<std::vector<ListItem>>(name) : empty;
}

void Options::check_conditions() const {
  for (const Option& o : table_.all()) {
    if (o.only_if.option.empty() || !given(o.name)) continue;
    const Option& other = *table_.find(o.only_if.option);
    const std::vector<std::string>& values = o.only_if.values;
    const std::string name = display_name(other);
    const bool flag = other.kind == Kind::flag;
    if (flag ? !this->flag(other.name) : !has(other.name))
      throw Error(display_name(o), fmt::format("it has no meaning without {}", name),
                  fmt::format("add {}{}{}", name, flag ? "" : " ",
                              values.empty() ? value_name(other) : enumeration(values, "or")));
    if (!values.empty() && std::ranges::find(values, text(other.name)) == values.end())
      throw Error(display_name(o), fmt::format("it has no meaning with {} {}", name, text(other.name)),
                  fmt::format("it goes with {} {}", name, enumeration(values, "or")));
  }
}

bool Options::has(std::string_view name) const {
  return !std::holds_alternative<std::monostate>(slot(name).value);
}

bool Options::given(std::string_view name) const {
  return slot(name).given;
}

std::vector<std::string> Options::given_names() const {
  std::vector<std::string> names;
  for (const Option& o : table_.all()) {
    if (given(o.name)) names.push_back(o.name);
  }
  return names;
}

nlohmann::ordered_json Options::echo() const {
  auto json = nlohmann::ordered_json::object();
  for (const Option& o : table_.all()) {
    if (!o.echoed) continue;
    auto& out = json[json_key(o)];
    const Value& value = slot(o.name).value;
    if (const bool* v = std::get_if<bool>(&value)) {
      out = *v;
    } else if (const u64* whole = std::get_if<u64>(&value)) {
      out = *whole;
    } else if (const double* number = std::get_if<double>(&value)) {
      out = *number;
    } else if (const std::string* text_value = std::get_if<std::string>(&value)) {
      out = *text_value;
    } else if (const ChoiceValue* choice = std::get_if<ChoiceValue>(&value)) {
      out = choice->text;
    } else if (const auto* items = std::get_if<std::vector<ListItem>>(&value)) {
      out = nlohmann::ordered_json::object();
      for (const ListItem& item : *items) out[item.kind] = item.value;
    }
  }
  return json;
}

}  // namespace doorbell::options
