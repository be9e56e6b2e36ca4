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

bool is_one_of(const std::string& name, const std::vector<std::string>& names) {
  return std::ranges::any_of(names, [&](const auto& n) { return dashed(n) == dashed(name); });
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

bool given(const std::string& option, const Measured& m) {
  return std::ranges::any_of(m.cells, [&](const auto& c) { return c.second.given.contains(option); });
}

void check_names(const std::vector<std::string>& names, const std::array<Values, 4>& all,
                 const std::string& setting) {
  std::set<std::string> known;
  for (const Values& values : all)
    for (const auto& [name, ignored] : values) known.insert(dashed(name));
  for (const std::string& name : names) {
    if (known.contains(dashed(name))) continue;
    const std::string near = options::nearest(dashed(name), {known.begin(), known.end()});
    throw Error(setting, fmt::format("no cell has an option or parameter '{}'{}", name,
                                     near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
  }
}

/// The options besides `names` that were given and that differ.
std::vector<std::string> others(const std::vector<std::string>& names, const Measured& a, const Measured& b) {
  const Values of_a = options_of_side(a), of_b = options_of_side(b);
  std::vector<std::string> found;
  for (const auto& [option, values] : of_a) {
    const auto other = of_b.find(option);
    const bool same = other != of_b.end() && other->second == values;
    if (!same && !is_one_of(option, names) && (given(option, a) || given(option, b))) found.push_back(option);
  }
  return found;
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

}  // namespace doorbell::sweep
