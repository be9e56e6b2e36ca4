// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/cells.hpp"

#include <algorithm>
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <map>
#include <numeric>
#include <random>
#include <stdexcept>

#include "options/suggest.hpp"
#include "report/json.hpp"
#include "sweep/value_key.hpp"

namespace doorbell::sweep {

namespace {

using options::Kind;
using options::Option;
using options::Options;

void put(std::vector<Setting>* settings, const Setting& s) {
  for (Setting& earlier : *settings)
    if (earlier.name == s.name) {
      earlier = s;
      return;
    }
  settings->push_back(s);
}

std::vector<std::string> arguments_of(const std::vector<Setting>& settings) {
  std::vector<std::string> words;
  for (const Setting& s : settings) {
    if (!s.flag) words.push_back(fmt::format("--{}={}", s.name, s.text));
    else if (s.text == "true") words.push_back("--" + s.name);
  }
  return words;
}

/// The settings of cell `n` of the matrix.
std::vector<Setting> of_matrix(const Plan& plan, std::size_t n) {
  std::vector<Setting> own(plan.matrix.size());
  for (std::size_t i = plan.matrix.size(); i-- > 0;) {
    const std::vector<Setting>& values = plan.matrix[i].values;
    own[i] = values[n % values.size()];
    n /= values.size();
  }
  return own;
}

/// A cell's options; the same text for the same cell in other spellings.
std::string cell_key(const Options& options) {
  nlohmann::ordered_json echo = options.echo();
  for (const Option& o : options.table().all())
    if (o.echoed && (o.kind == Kind::text || o.kind == Kind::choice) && options.has(o.name))
      echo[options::json_key(o)] = value_key(o, options.text(o.name));
  return report::to_line(echo);
}

/// Whether "2", "node7" or "node7:2" is this rank.
bool is_rank(const RankName& rank, const std::string& text) {
  return text == std::to_string(rank.rank) || text == rank.host || text == rank.text();
}

/// Uniform in 0..below-1 and the same on every machine, unlike std::uniform_int_distribution.
u64 draw(std::mt19937_64* random, u64 below) {
  const u64 limit = std::mt19937_64::max() - std::mt19937_64::max() % below;
  for (;;) {
    const u64 v = (*random)();
    if (v < limit) return v % below;
  }
}

void shuffle(std::vector<u32>* order, std::mt19937_64* random) {
  for (std::size_t i = order->size(); i > 1; --i) std::swap((*order)[i - 1], (*order)[draw(random, i)]);
}

}  // namespace

std::vector<Cell> expand(const Plan& plan) {
  std::size_t product = plan.matrix.empty() ? 0 : 1;
  for (const Axis& axis : plan.matrix) product *= axis.values.size();
  std::vector<Cell> cells;
  std::map<std::string, u32> seen;
  for (std::size_t n = 0; n < product + plan.cells.size(); ++n) {
    std::vector<Setting> settings = plan.options;
    const std::vector<Setting> own = n < product ? of_matrix(plan, n) : plan.cells[n - product];
    for (const Setting& s : own) put(&settings, s);
    std::vector<std::string> words = arguments_of(settings);
    const auto index = static_cast<u32>(n);
    const std::string where =
        n < product ? plan.file : fmt::format("{}:{}", plan.file, plan.cell_lines[n - product]);
    const auto title = [&] {
      return fmt::format("{}: cell {} ({})", where, shown_number(index), fmt::join(words, " "));
    };
    try {
      std::vector<std::string> checked = words;
      // Any address: what the two ends take does not depend on it.
      if (plan.pairs) checked.emplace_back("--connect=192.0.2.1:1");
      cells.push_back({index, std::move(settings), words, plan.subject->parse(checked), {}, index});
    } catch (const Error& e) {
      throw Error(title(), e.what(), e.hint());
    }
    const auto [earlier, fresh] = seen.emplace(cell_key(cells.back().options), index);
    if (!fresh)
      throw Error(title(), fmt::format("it is the same as cell {}", shown_number(earlier->second)),
                  "'rounds: N' runs every cell N times");
  }
  return cells;
}

std::vector<std::string> listening_arguments(const Plan& plan, const Cell& cell) {
  std::vector<Setting> theirs;
  for (const Setting& s : cell.settings)
    if (std::ranges::find(plan.subject->listening, s.name) != plan.subject->listening.end())
      theirs.push_back(s);
  return arguments_of(theirs);
}

std::vector<Cell> expand_pairs(const Plan& plan, std::vector<Cell> cells,
                               const std::vector<std::string>& hosts) {
  for (const Cell& cell : cells) {
    std::vector<std::string> words = listening_arguments(plan, cell);
    words.emplace_back("--listen=0");
    try {
      (void)plan.subject->parse(words);
    } catch (const Error& e) {
      throw Error(fmt::format("{}: cell {}, the listening end ({})", plan.file, shown_number(cell.index),
                              fmt::join(words, " ")),
                  e.what(), e.hint());
    }
  }
  if (hosts.empty()) return cells;
  const std::vector<Pair> pairs = tournament(hosts, *plan.pairs);
  if (cells.size() * pairs.size() * plan.rounds > kMaxCells)
    throw Error(plan.file, fmt::format("{} cells, {} pairs of ranks and {} rounds are more than {} runs",
                                       cells.size(), pairs.size(), plan.rounds, kMaxCells));
  std::vector<Cell> found;
  for (const Cell& cell : cells)
    for (const Pair& pair : pairs) {
      found.push_back(cell);
      found.back().index = static_cast<u32>(found.size()) - 1;
      found.back().pair = pair;
      found.back().group = cell.index * (pairs.back().slot + 1) + pair.slot;
    }
  return found;
}

std::vector<std::string> varied(const Plan& plan) {
  std::vector<std::string> names;
  for (const Axis& axis : plan.matrix) names.push_back(axis.name);
  for (const std::vector<Setting>& cell : plan.cells)
    for (const Setting& s : cell)
      if (std::ranges::find(names, s.name) == names.end()) names.push_back(s.name);
  if (plan.pairs) names.insert(names.end(), {kFrom, kTo});
  return names;
}

std::string value_of(const Cell& cell, const std::string& option) {
  if (cell.pair && option == kFrom) return cell.pair->from.text();
  if (cell.pair && option == kTo) return cell.pair->to.text();
  for (const Setting& s : cell.settings)
    if (s.name == option) return s.text;
  const Option* o = cell.options.table().find(option);
  if (o == nullptr) return "";
  return o->kind == Kind::flag ? "false" : o->default_text;
}

std::string label_of(const Plan& plan, const Cell& cell) {
  std::string text;
  for (const std::string& name : varied(plan)) {
    const std::string value = value_of(cell, name);
    if (!value.empty()) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
  }
  return text;
}

bool same_value(const Option& o, const std::string& a, const std::string& b) {
  return a == b || (!a.empty() && !b.empty() && value_key(o, a) == value_key(o, b));
}

std::vector<u32> select(const Plan& plan, const std::vector<Cell>& cells, const std::string& only,
                        const std::string& setting) {
  std::map<std::string, std::vector<std::string>> wanted, ends;
  for (std::string_view rest = only; !rest.empty();) {
    const std::string_view item = rest.substr(0, rest.find(','));
    rest = item.size() == rest.size() ? std::string_view{} : rest.substr(item.size() + 1);
    const std::string key(item.substr(0, item.find('=')));
    if (plan.pairs && (key == kFrom || key == kTo) && item.size() > key.size() + 1) {
      ends[key].emplace_back(item.substr(key.size() + 1));
      continue;
    }
    const Option* o = plan.subject->table.find(key);
    if (o == nullptr || o->operand) {
      const std::string near = options::nearest(key, varied(plan));
      throw Error(fmt::format("{} {}", setting, only),
                  fmt::format("doorbell {} has no option '{}'", plan.subject->name, key),
                  near.empty() ? fmt::format("the plan varies {}", fmt::join(varied(plan), ", "))
                               : fmt::format("did you mean '{}'?", near));
    }
    if (item.size() == key.size())
      throw Error(fmt::format("{} {}", setting, only), fmt::format("'{}' has no value", key),
                  fmt::format("write {}=VALUE", key));
    const std::string value(item.substr(key.size() + 1));
    try {
      if (o->kind != Kind::flag) (void)options::convert(*o, value);
    } catch (const std::invalid_argument& e) {
      throw Error(fmt::format("{} {}: {}", setting, only, key), e.what());
    }
    wanted[o->name].push_back(value);
  }
  std::vector<u32> selected;
  for (const Cell& cell : cells) {
    const bool fits = std::ranges::all_of(wanted, [&](const auto& w) {
      const Option& o = *plan.subject->table.find(w.first);
      const std::string has = value_of(cell, w.first);
      return std::ranges::any_of(w.second, [&](const std::string& v) { return same_value(o, has, v); });
    });
    const bool between = std::ranges::all_of(ends, [&](const auto& e) {
      return std::ranges::any_of(e.second, [&](const std::string& v) {
        return cell.pair && is_rank(e.first == kFrom ? cell.pair->from : cell.pair->to, v);
      });
    });
    if (fits && between) selected.push_back(cell.index);
  }
  if (selected.empty())
    throw Error(fmt::format("{} {}", setting, only), fmt::format("none of the {} cells fits", cells.size()),
                "doorbell sweep --list prints them");
  return selected;
}

std::vector<Turn> turns(const Plan& plan, const std::vector<u32>& selected, u64 seed) {
  std::mt19937_64 random(seed);
  std::vector<Turn> all;
  for (u32 round = 0; round < plan.rounds; ++round) {
    std::vector<u32> order = selected;
    if (plan.shuffled) shuffle(&order, &random);
    for (const u32 cell : order) all.push_back({cell, round});
  }
  return all;
}

void join_groups(const std::vector<Cell>& cells, std::vector<Turn>* turns) {
  std::map<std::pair<u32, u32>, std::size_t> first;  // where the first turn of a round and group stands
  for (const Turn& t : *turns) first.emplace(std::pair(t.round, cells[t.cell].group), first.size());
  std::ranges::stable_sort(*turns, {}, [&](const Turn& t) {
    return first.at({t.round, cells[t.cell].group});
  });
}

std::size_t group_at(const std::vector<Cell>& cells, const std::vector<Turn>& turns, std::size_t at) {
  std::size_t end = at + 1;
  while (end < turns.size() && turns[end].round == turns[at].round &&
         cells[turns[end].cell].group == cells[turns[at].cell].group)
    ++end;
  return end - at;
}

}  // namespace doorbell::sweep
