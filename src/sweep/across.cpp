// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/across.hpp"

#include <algorithm>
#include <array>
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "options/suggest.hpp"

namespace doorbell::sweep {

namespace {

using Values = std::map<std::string, std::set<std::string>>;

/// Options have dashes, parameters have underscores.
std::string dashed(std::string name) {
  std::ranges::replace(name, '_', '-');
  return name;
}

/// The option that a Result's key ("file_size_bytes") stands for, of those on a command line ("file-size").
bool is_key_of(const std::string& key, const std::string& option) {
  const std::string dashes = dashed(key);
  if (dashes == option) return true;
  return std::ranges::any_of(std::array{"-s", "-bytes", "-ns"},
                             [&](const char* unit) { return dashes == option + unit; });
}

bool is_one_of(const std::string& name, const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [&](const auto& n) { return is_key_of(name, dashed(n)); });
}

void add_values(const nlohmann::ordered_json& parameters, Values* to) {
  if (!parameters.is_object()) return;
  for (const auto& [key, value] : parameters.items())
    (*to)[key].insert(value.dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace));
}

Values parameters_of_side(const Measured& m) {
  Values values;
  for (const auto& [key, samples] : m.cells) {
    add_values(samples.key.parameters, &values);
    add_values(samples.key.own, &values);
  }
  for (const auto& [group, runs] : m.without_result) add_values(runs.options, &values);
  return values;
}

Values parameters_of_samples(const Samples& samples) {
  Values values;
  add_values(samples.key.parameters, &values);
  add_values(samples.key.own, &values);
  return values;
}

/// The options' values, from the facts of all cells.
Values options_of_side(const Measured& m) {
  constexpr std::string_view kOption = "option ";
  Values values;
  for (const auto& [key, samples] : m.cells)
    for (const auto& [what, of_cell] : samples.facts)
      if (what.starts_with(kOption))
        values[what.substr(kOption.size())].insert(of_cell.begin(), of_cell.end());
  return values;
}

bool given(const std::string& key, const Measured& m) {
  return std::ranges::any_of(m.cells, [&](const auto& c) {
    return std::ranges::any_of(c.second.given, [&](const auto& option) { return is_key_of(key, option); });
  });
}

/// Options that say how long is measured, and not what.
constexpr std::array kLengths = {"duration", "warmup",  "repeats", "iterations",
                                 "count",    "read-io", "write-io"};

bool is_length(const std::string& key) {
  return std::ranges::any_of(kLengths, [&](const char* name) { return is_key_of(key, name); });
}

void check_names(const std::vector<std::string>& names, const std::array<Values, 4>& all,
                 const std::string& setting) {
  std::set<std::string> known;
  for (const Values& values : all)
    for (const auto& [name, ignored] : values) known.insert(dashed(name));
  for (const std::string& name : names) {
    if (std::ranges::any_of(known, [&](const auto& key) { return is_key_of(key, dashed(name)); })) continue;
    const std::string near = options::nearest(dashed(name), {known.begin(), known.end()});
    throw Error(setting, fmt::format("no cell has an option or parameter '{}'{}", name,
                                     near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
  }
}

/// The options besides `names` and lengths that were given and that differ.
std::vector<std::string> others(const std::vector<std::string>& names, const Measured& a, const Measured& b) {
  const Values of_a = options_of_side(a), of_b = options_of_side(b);
  std::vector<std::string> found;
  for (const auto& [option, values] : of_a) {
    const auto other = of_b.find(option);
    const bool same = other != of_b.end() && other->second == values;
    if (!same && !is_length(option) && !is_one_of(option, names) && (given(option, a) || given(option, b)))
      found.push_back(option);
  }
  return found;
}

/// A parameter's values on one side; "" for cells that do not have it.
std::set<std::string> states_of(const std::string& key, const Measured& m) {
  std::set<std::string> states;
  for (const auto& [name, samples] : m.cells) {
    const Values values = parameters_of_samples(samples);
    const auto found = values.find(key);
    if (found == values.end()) states.insert("");
    else states.insert(found->second.begin(), found->second.end());
  }
  return states;
}

bool is_none(const std::string& value) {
  return value == "0" || value == "\"0\"";
}

void take_out(const std::set<std::string>& keys, nlohmann::ordered_json* from, Facts* facts) {
  if (!from->is_object()) return;
  for (const std::string& key : keys) {
    const auto found = from->find(key);
    if (found == from->end()) continue;
    if (facts != nullptr && !facts->contains("option " + dashed(key)))
      (*facts)["parameter " + key].insert(
          found->is_string() ? found->get<std::string>()
                             : found->dump(-1, ' ', true, nlohmann::ordered_json::error_handler_t::replace));
    from->erase(found);
  }
}

void rename_cells(const std::set<std::string>& keys, const std::vector<std::string>& names, Measured* m,
                  const std::string& setting) {
  std::map<std::string, Samples> cells;
  std::map<std::string, std::string> was;
  for (std::string& name : m->order) {
    Samples samples = std::move(m->cells.at(name));
    take_out(keys, &samples.key.parameters, &samples.facts);
    take_out(keys, &samples.key.own, &samples.facts);
    samples.label = samples.key.text();
    if (!samples.group.empty()) samples.group = samples.key.group();
    const auto [first, fresh] = was.try_emplace(samples.label, name);
    if (!fresh)
      throw Error(setting,
                  fmt::format("{} has cells that differ in {} alone: '{}' and '{}'", m->name,
                              fmt::join(names, ", "), first->second, name),
                  "give each side one value of it");
    name = samples.label;
    cells.emplace(samples.label, std::move(samples));
  }
  m->cells = std::move(cells);
  std::map<std::string, Measured::WithoutResult> groups;
  for (auto& [group, runs] : m->without_result) {
    nlohmann::ordered_json options = std::move(runs.options);
    take_out(keys, &options, nullptr);
    Measured::WithoutResult& into = groups[group.empty() ? "" : CellKey{.parameters = options}.group()];
    into.options = std::move(options);
    into.bad_data = into.bad_data || runs.bad_data;
    for (const auto& [what, count] : runs.failures) into.failures[what] += count;
  }
  m->without_result = std::move(groups);
}

}  // namespace

void pair_across(const std::vector<std::string>& names, Measured* before, Measured* after,
                 const std::string& setting) {
  const Values a = parameters_of_side(*before), b = parameters_of_side(*after);
  check_names(names, {a, b, options_of_side(*before), options_of_side(*after)}, setting);
  const bool alone = others(names, *before, *after).empty();
  std::set<std::string> keys;
  for (const Values* side : {&a, &b})
    for (const auto& [key, ignored] : *side) {
      const auto of_a = a.find(key), of_b = b.find(key);
      const bool in_both = of_a != a.end() && of_b != b.end();
      const bool follows = alone && in_both && of_a->second.size() == 1 && of_b->second.size() == 1 &&
                           of_a->second != of_b->second;
      if (follows || is_one_of(key, names)) keys.insert(key);
    }
  rename_cells(keys, names, before, setting);
  rename_cells(keys, names, after, setting);
}

void pair_lengths(Measured* before, Measured* after) {
  std::set<std::string> keys;
  std::vector<std::string> names;
  for (const Measured* side : {before, after})
    for (const auto& [key, ignored] : parameters_of_side(*side)) {
      if (!is_length(key) || keys.contains(key)) continue;
      const std::set<std::string> a = states_of(key, *before), b = states_of(key, *after);
      if (a.size() != 1 || b.size() != 1 || a == b || is_none(*a.begin()) != is_none(*b.begin())) continue;
      keys.insert(key);
      names.push_back(key);
    }
  if (keys.empty()) return;
  rename_cells(keys, names, before, before->name);
  rename_cells(keys, names, after, after->name);
}

void pair_by_place(Measured* before, Measured* after) {
  const auto sorted = [](std::vector<std::string> order) {
    std::ranges::sort(order);
    return order;
  };
  if (before->order.size() != after->order.size() || sorted(before->order) == sorted(after->order)) return;
  std::set<std::string> used;
  std::map<std::string, Samples> a, b;
  for (std::size_t i = 0; i < before->order.size(); ++i) {
    Samples x = std::move(before->cells.at(before->order[i])),
            y = std::move(after->cells.at(after->order[i]));
    const Values of_x = parameters_of_samples(x), of_y = parameters_of_samples(y);
    std::set<std::string> keys;
    for (const Values* side : {&of_x, &of_y})
      for (const auto& [key, value] : *side) {
        const auto in_x = of_x.find(key), in_y = of_y.find(key);
        if (in_x == of_x.end() || in_y == of_y.end() || in_x->second != in_y->second) keys.insert(key);
      }
    for (Samples* s : {&x, &y}) {
      take_out(keys, &s->key.parameters, &s->facts);
      take_out(keys, &s->key.own, &s->facts);
    }
    std::string label = x.key.text();
    for (int n = 2; !used.insert(label).second; ++n) label = fmt::format("{} ({})", x.key.text(), n);
    x.label = y.label = before->order[i] = after->order[i] = label;
    a.emplace(label, std::move(x));
    b.emplace(label, std::move(y));
  }
  before->cells = std::move(a);
  after->cells = std::move(b);
}

std::vector<std::string> differing_options(const Measured& before, const Measured& after) {
  std::vector<std::string> names;
  for (const std::string& key : others({}, before, after))
    for (const Measured* side : {&before, &after})
      for (const auto& [cell, samples] : side->cells)
        for (const std::string& option : samples.given)
          if (is_key_of(key, option) && std::ranges::find(names, option) == names.end())
            names.push_back(option);
  return names;
}

}  // namespace doorbell::sweep
