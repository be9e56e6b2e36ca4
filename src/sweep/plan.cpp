// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/plan.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <stdexcept>

#include "sweep/document.hpp"
#include "sweep/ranks/addresses.hpp"
#include "sweep/samples.hpp"
#include "sweep/units.hpp"
#include "sweep/value_key.hpp"

namespace doorbell::sweep {

namespace {

using options::Kind;
using options::Option;

constexpr std::size_t kMaxName = 64;

class Parser {
 public:
  Parser(std::string_view text, const std::string& file, const std::vector<Subject>& subjects)
      : doc_(text, file), subjects_(subjects) {
    plan_.file = file;
  }

  Plan run() {
    const std::vector<Item> keys =
        doc_.members(doc_.root(), {"name", "title", "source", "command", "options", "matrix", "cells",
                                   "order", "rounds", "reference", "profiles", "pairs"});
    plan_.name = name(required(keys, "name"));
    const Item command = required(keys, "command");
    has_pairs_ = std::ranges::any_of(keys, [](const Item& item) { return item.path == "pairs"; });
    plan_.subject = &subject(command);
    for (const Item& item : keys) member(item);
    if (plan_.matrix.empty() && plan_.cells.empty())
      plan_.cells.emplace_back(), plan_.cell_lines.push_back(1);
    check_size();
    return std::move(plan_);
  }

 private:
  [[nodiscard]] Item required(const std::vector<Item>& keys, const std::string& key) const {
    for (const Item& item : keys)
      if (item.path == key) return item;
    doc_.refuse(doc_.root(), fmt::format("the key '{}' is missing", key));
  }

  // The name is also the name of a folder.
  [[nodiscard]] std::string name(const Item& item) const {
    std::string text = doc_.text(item);
    const bool plain = std::ranges::all_of(text, [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
             c == '_' || c == '.';
    });
    if (!plain || text.starts_with('.') || text.starts_with('-') || text.size() > kMaxName)
      doc_.refuse(item,
                  fmt::format("a name has at most {} letters, digits, '-', '_' and '.', and begins with none "
                              "of '-' and '.'",
                              kMaxName));
    return text;
  }

  [[nodiscard]] const Subject& subject(const Item& item) const {
    const std::string word = doc_.text(item);
    std::vector<std::string> names;
    for (const Subject& s : subjects_) {
      if (s.name == word) return s;
      names.push_back(s.name);
    }
    doc_.unknown(item, "command", word, names);
  }

  void member(const Item& item) {
    if (item.path == "title") plan_.title = doc_.text(item);
    if (item.path == "source") plan_.source = name(item);
    if (item.path == "profiles")
      for (const Item& one : doc_.members(item)) profile(one);
    if (item.path == "options") plan_.options = settings(item);
    if (item.path == "matrix") matrix(item);
    if (item.path == "pairs") pairs(item);
    if (item.path == "rounds") plan_.rounds = doc_.number(item, 1, kMaxRounds);
    if (item.path == "cells") {
      for (const Item& cell : doc_.items(item)) {
        plan_.cells.push_back(settings(cell));
        plan_.cell_lines.push_back(cell.line);
      }
    }
    if (item.path == "order") {
      const std::string order = doc_.text(item);
      if (order != "listed" && order != "shuffled")
        doc_.unknown(item, "order", order, {"listed", "shuffled"});
      plan_.shuffled = order == "shuffled";
    }
    if (item.path == "reference") {
      if (item.node.IsSequence())
        for (const Item& one : doc_.items(item)) reference(one);
      else reference(item);
    }
  }

  /// The option that an item's key stands for.
  [[nodiscard]] const Option& option(const Item& item, const std::string& key) const {
    const options::OptionTable& table = plan_.subject->table;
    const Option* o = table.find(key);
    if (o != nullptr && !o->operand) {
      if (is_output(o->name) || o->name == "help") doc_.refuse(item, "the sweep sets it itself");
      for (const char* own : {"listen", "listen-wait", "connect"})
        if (o->name == own && has_pairs_) doc_.refuse(item, "the key 'pairs' sets it");
      return *o;
    }
    std::vector<std::string> names;
    for (const Option& known : table.all())
      if (!known.operand) names.push_back(known.name);
    doc_.unknown(item, fmt::format("option of doorbell {}", plan_.subject->name), key, names);
  }

  [[nodiscard]] Setting setting(const Option& o, const Item& item) const {
    Setting s{.name = o.name, .text = doc_.text(item), .flag = o.kind == Kind::flag};
    if (s.flag) {
      if (s.text != "true" && s.text != "false")
        doc_.refuse(item, fmt::format("'{}' is neither true nor false", s.text));
      return s;
    }
    try {
      (void)options::convert(o, s.text);
    } catch (const std::invalid_argument& e) {
      const std::string range = options::range_text(o);
      doc_.refuse(item, e.what(), range.empty() ? "" : fmt::format("--{} takes {}", o.name, range));
    }
    return s;
  }

  [[nodiscard]] std::vector<Setting> settings(const Item& map) const {
    std::vector<Setting> found;
    for (const Item& item : doc_.members(map)) {
      Setting s = setting(option(item, key_of(item)), item);
      for (const Setting& earlier : found)
        if (earlier.name == s.name) doc_.refuse(item, fmt::format("--{} is given twice", s.name));
      found.push_back(std::move(s));
    }
    return found;
  }

  [[nodiscard]] bool is_second(const Item& item, const std::string& first, const std::string& second) const {
    const std::string word = doc_.text(item);
    if (word != first && word != second) doc_.unknown(item, key_of(item), word, {first, second});
    return word == second;
  }

  void pairs(const Item& map) {
    if (plan_.subject->listening.empty())
      doc_.refuse(map, fmt::format("doorbell {} has no --listen and --connect", plan_.subject->name),
                  "pairs are for commands of two hosts: net, rdma");
    PairPlan p;
    for (const Item& item : doc_.members(map, {"directions", "at-once", "network"})) {
      const std::string key = key_of(item);
      if (key == "directions") p.both_directions = !is_second(item, "both", "one");
      if (key == "at-once") p.disjoint = is_second(item, "one", "disjoint");
      if (key == "network") p.network = doc_.text(item);
      try {
        if (key == "network") check_network(p.network);
      } catch (const std::invalid_argument& e) {
        doc_.refuse(item, e.what());
      }
    }
    plan_.pairs = p;
  }

  void profile(const Item& map) {
    Profile p{.name = name_of_profile(map), .options = {}, .only = {}};
    for (const Item& item : doc_.members(map, {"options", "rounds", "only"})) {
      const std::string key = key_of(item);
      if (key == "options") p.options = settings(item);
      if (key == "rounds") p.rounds = doc_.number(item, 1, kMaxRounds);
      if (key == "only") p.only = doc_.text(item);
    }
    plan_.profiles.push_back(std::move(p));
    profile_items_.push_back(map);
  }

  [[nodiscard]] std::string name_of_profile(const Item& map) const {
    // A new node is needed, because assigning to an existing one changes the document.
    return name({.path = map.path, .line = map.line, .node = YAML::Node(key_of(map))});
  }

  /// `seen`: the values so far, each by its key.
  void refuse_repeated(const Item& item, const Option& o, const std::string& text,
                       std::map<std::string, std::string>* seen, const std::string& hint = {}) const {
    if (const auto [earlier, fresh] = seen->emplace(value_key(o, text), text); !fresh)
      doc_.refuse(item, fmt::format("'{}' is the same value as '{}'", text, earlier->second), hint);
  }

  void matrix(const Item& map) {
    for (const Item& item : doc_.members(map)) {
      const Option& o = option(item, key_of(item));
      Axis axis{.name = o.name, .values = {}};
      for (const Axis& earlier : plan_.matrix)
        if (earlier.name == o.name) doc_.refuse(item, fmt::format("--{} is given twice", o.name));
      std::map<std::string, std::string> seen;
      for (const Item& value : doc_.items(item)) {
        axis.values.push_back(setting(o, value));
        refuse_repeated(value, o, axis.values.back().text, &seen, "'rounds: N' runs every cell N times");
        if (axis.values.size() > kMaxCells)
          doc_.refuse(item, fmt::format("it has more than {} values", kMaxCells));
      }
      plan_.matrix.push_back(std::move(axis));
      matrix_items_.push_back(item);
    }
    if (plan_.matrix.empty()) doc_.refuse(map, "it has no option");
  }

  void check_size() const {
    for (std::size_t i = 0; i < plan_.matrix.size(); ++i)
      for (const Setting& s : plan_.options)
        if (s.name == plan_.matrix[i].name)
          doc_.refuse(matrix_items_[i], "it stands under 'options', too", "give it in one of the two places");
    for (std::size_t i = 0; i < plan_.profiles.size(); ++i)
      for (const Axis& axis : plan_.matrix)
        for (const Setting& s : plan_.profiles[i].options)
          if (s.name == axis.name)
            doc_.refuse(profile_items_[i], fmt::format("--{} is in the matrix", s.name),
                        "a profile selects cells by 'only'");
    std::size_t product = plan_.matrix.empty() ? 0 : 1;
    for (const Axis& axis : plan_.matrix) product = std::min(product * axis.values.size(), kMaxCells + 1);
    if ((product + plan_.cells.size()) * plan_.rounds > kMaxCells)
      doc_.refuse(doc_.root(), fmt::format("it has more than {} cells, each round counted", kMaxCells));
  }

  void where(const Item& map, Reference* r) const {
    for (const Item& item : doc_.members(map)) {
      std::vector<std::string> values;
      if (item.node.IsSequence())
        for (const Item& one : doc_.items(item)) values.push_back(doc_.text(one));
      else values.push_back(doc_.text(item));
      r->where.emplace_back(key_of(item), std::move(values));
    }
  }

  [[nodiscard]] Match match(const Item& item) const {
    Match m{.option = option(item, key_of(item)).name, .column = {}, .values = {}};
    if (!item.node.IsMap()) {
      m.column = doc_.text(item);
      return m;
    }
    const Option& o = *plan_.subject->table.find(m.option);
    std::map<std::string, std::string> seen;
    for (const Item& part : doc_.members(item, {"column", "values"})) {
      if (key_of(part) == "column") m.column = doc_.text(part);
      else
        for (const Item& value : doc_.members(part)) {
          // A new node is needed, because assigning to an existing one changes the document.
          const Item ours{.path = value.path,
                          .line = value.line,
                          .node = YAML::Node(value.path.substr(part.path.size() + 1))};
          const std::string text = setting(o, ours).text;
          refuse_repeated(value, o, text, &seen);
          m.values.emplace_back(text, doc_.text(value));
        }
    }
    if (m.column.empty()) doc_.refuse(item, "the key 'column' is missing");
    return m;
  }

  void columns(const Item& map, Reference* r) const {
    for (const Item& item : doc_.members(map, {"mean", "std", "min", "max", "value", "unit"})) {
      if (key_of(item) == "unit") {
        r->unit = doc_.text(item);
        if (!find_unit(r->unit)) doc_.unknown(item, "unit", r->unit, unit_names());
      } else {
        r->columns.emplace_back(key_of(item), doc_.text(item));
      }
    }
    if (r->columns.empty()) doc_.refuse(map, "it names no column");
    if (r->unit.empty()) doc_.refuse(map, "the key 'unit' is missing");
  }

  void reference(const Item& map) {
    Reference r;
    r.line = map.line;
    const std::vector<Item> keys = doc_.members(map, {"file", "where", "match", "columns", "ours", "note"});
    for (const char* needed : {"file", "match", "columns", "ours"})
      if (std::ranges::none_of(keys, [&](const Item& i) { return key_of(i) == needed; }))
        doc_.refuse(map, fmt::format("the key '{}' is missing", needed));
    for (const Item& item : keys) {
      const std::string key = key_of(item);
      if (key == "file") r.file = doc_.text(item);
      if (key == "where") where(item, &r);
      if (key == "match")
        for (const Item& one : doc_.members(item)) r.match.push_back(match(one));
      if (key == "columns") columns(item, &r);
      if (key == "ours") r.ours = doc_.text(item);
      if (key == "note") r.note = doc_.text(item);
    }
    for (const Item& item : keys)
      if (key_of(item) == "ours") check_units(item, r);
    plan_.references.push_back(std::move(r));
  }

  void check_units(const Item& item, const Reference& r) const {
    const Unit ours = unit_of_path(r.ours);
    if (ours.quantity != find_unit(r.unit)->quantity)
      doc_.refuse(item, fmt::format("'{}' is a {}, but the published columns are in {}", r.ours,
                                    ours.quantity, r.unit));
  }

  Document doc_;
  const std::vector<Subject>& subjects_;
  Plan plan_;
  std::vector<Item> matrix_items_;
  std::vector<Item> profile_items_;
  bool has_pairs_ = false;
};

}  // namespace

Plan parse_plan(std::string_view text, const std::string& file, const std::vector<Subject>& subjects) {
  return Parser(text, file, subjects).run();
}

std::string file_of(const Plan& plan, const Reference& reference) {
  return std::filesystem::path(plan.file).parent_path() / reference.file;
}

std::vector<std::string> files_of(const Plan& plan) {
  std::vector<std::string> files = {plan.file};
  for (const Reference& r : plan.references) files.push_back(file_of(plan, r));
  return files;
}

void apply_profile(Plan* plan, const std::string& name, const std::string& setting) {
  const auto profile = std::ranges::find(plan->profiles, name, &Profile::name);
  if (profile == plan->profiles.end()) {
    std::vector<std::string> names;
    for (const Profile& p : plan->profiles) names.push_back(p.name);
    throw Error(fmt::format("{} {}", setting, name), fmt::format("{} has no such profile", plan->file),
                names.empty() ? "" : fmt::format("it has {}", fmt::join(names, ", ")));
  }
  for (const Setting& s : profile->options) {
    const auto there = std::ranges::find(plan->options, s.name, &Setting::name);
    if (there == plan->options.end()) plan->options.push_back(s);
    else *there = s;
  }
  if (profile->rounds != 0) plan->rounds = profile->rounds;
  plan->only = profile->only;
}

}  // namespace doorbell::sweep
