// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The templates of nlohmann-json for ordered_json, the one type of JSON values here: compiled once, by
// json_instances.cpp, and not again in each of some hundred objects. The precompiled headers have the
// declarations (cmake/precompiled.cmake). No other source includes this file; one that is compiled without
// precompiled headers instantiates the templates that it uses.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

// DOORBELL_JSON_INSTANCES(extern) declares them, DOORBELL_JSON_INSTANCES() defines them.
#define DOORBELL_JSON_PARSER_INSTANCES(prefix, adapter)                                             \
  prefix template class nlohmann::detail::lexer<nlohmann::ordered_json, nlohmann::detail::adapter>; \
  prefix template class nlohmann::detail::parser<nlohmann::ordered_json, nlohmann::detail::adapter>;
#define DOORBELL_JSON_INSTANCES(prefix)                                                         \
  prefix template class nlohmann::basic_json<nlohmann::ordered_map>;                            \
  prefix template struct nlohmann::ordered_map<std::string, nlohmann::ordered_json>;            \
  prefix template class std::vector<nlohmann::ordered_json>;                                    \
  prefix template class nlohmann::detail::iter_impl<const nlohmann::ordered_json>;              \
  prefix template class nlohmann::detail::serializer<nlohmann::ordered_json>;                   \
  prefix template class nlohmann::detail::json_sax_dom_parser<nlohmann::ordered_json>;          \
  prefix template class nlohmann::detail::json_sax_dom_callback_parser<nlohmann::ordered_json>; \
  DOORBELL_JSON_PARSER_INSTANCES(prefix, iterator_input_adapter<const char*>)                   \
  DOORBELL_JSON_PARSER_INSTANCES(prefix, iterator_input_adapter<std::string::const_iterator>)   \
  DOORBELL_JSON_PARSER_INSTANCES(prefix, input_stream_adapter)

DOORBELL_JSON_INSTANCES(extern)
