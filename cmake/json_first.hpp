// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// nlohmann-json for the precompiled headers. Its literal operator _json is an ordinary inline function that
// calls the parser, so each unit that includes the header instantiates the parser: a quarter of a second, in
// hundreds of units. Here the operator is declared only, and its body is that of a template which nobody
// instantiates. No source of ours uses the literals; one that does is not linked.
#pragma once

#define _json(...)    \
  _json(__VA_ARGS__); \
  template <class>    \
  inline ::nlohmann::json json_of_literal(__VA_ARGS__)
#include <nlohmann/json.hpp>
#undef _json
