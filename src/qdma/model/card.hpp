// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The software card: memory, channels, rings. It knows nothing of calls, processes and descriptors: these are
// CardServer's.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "model/config.hpp"
#include "model/use.hpp"
#include "options/option.hpp"
#include "qdma/settings.hpp"

namespace doorbell::qdma {

/// "model" or "model:KEY=VALUE,...".
[[nodiscard]] bool is_model(std::string_view spec);
/// CardConfig::lowest_rate() of the model that `spec` describes; 0 for another card. Throws Error.
[[nodiscard]] double lowest_model_rate(const std::string& spec);
/// Bytes a second that a software card moves about now, by its limit and this machine; 0 for another card.
/// Throws Error.
[[nodiscard]] double expected_rate(const std::string& spec);
/// The keys of "model:KEY=VALUE,...".
[[nodiscard]] options::OptionTable model_keys();

class ModelCard;
/// Makes the card that `spec` describes, adapted to `use`. Throws Error.
[[nodiscard]] std::shared_ptr<ModelCard> make_model_card(const std::string& spec, const model::Use& use = {},
                                                         const Setting& named_by = setting::card);
/// Its counters and injected faults. Any thread.
[[nodiscard]] nlohmann::ordered_json counters_of(const ModelCard& card);

}  // namespace doorbell::qdma
