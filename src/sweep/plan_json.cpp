// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "sweep/plan_json.hpp"

#include "sweep/units.hpp"

namespace doorbell::sweep {

nlohmann::ordered_json to_json(const Plan& plan, const std::vector<ReferenceTable>& tables) {
  using Json = nlohmann::ordered_json;
  const auto text_or_null = [](const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); };
  Json out{{"schema", "doorbell.plan/1"},       {"name", plan.name},
           {"title", text_or_null(plan.title)}, {"source", text_or_null(plan.source)},
           {"command", plan.subject->name},     {"published", Json::array()}};
  for (const ReferenceTable& table : tables) {
    const Reference& r = table.reference;
    Json where = Json::object(), columns = Json::object(), rows = Json::array();
    for (const auto& [column, values] : r.where) where[column] = values;
    for (const auto& [name, column] : r.columns) columns[name] = column;
    for (std::size_t cell = 0; cell < table.rows.size(); ++cell)
      if (table.rows[cell])
        rows.push_back(
            {{"cell", cell}, {"line", table.rows[cell]->line}, {"figures", table.rows[cell]->figures}});
    out["published"].push_back({{"file", r.file},
                                {"where", std::move(where)},
                                {"note", text_or_null(r.note)},
                                {"unit", r.unit},
                                {"columns", std::move(columns)},
                                {"ours", r.ours},
                                // Both are of one quantity: the plan's checks made sure of that.
                                {"ours_scale", unit_of_path(r.ours).factor / find_unit(r.unit)->factor},
                                {"rows", std::move(rows)}});
  }
  return out;
}

}  // namespace doorbell::sweep
