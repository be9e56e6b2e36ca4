// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Makes HTML pages with the Python package that comes with doorbell.
#pragma once

#include <string>
#include <vector>

namespace doorbell::cli {

/// Refuses a page that cannot be written, and one that is among `inputs`; empty is allowed. Throws
/// doorbell::Error.
void check_page(const std::string& page, const std::vector<std::string>& inputs);

/// Why this machine cannot make pages, in one line, or "". For commands that measure for long before they
/// make one.
[[nodiscard]] std::string why_no_page();

/// Makes `page` of a file or folder of results, or of a comparison's JSON. Returns why there is none, in one
/// line, or "". A page that exists stays as it is when this fails. A page that lacks something (its charts)
/// is made all the same, and standard error has a line about it. `bits`: payload a second in bits; without,
/// as each Result says.
[[nodiscard]] std::string make_page(const std::string& from, const std::string& page,
                                    const std::string& title = {}, bool bits = false);

/// The same of a document (the JSON of a Result or of a comparison) that is in no file.
[[nodiscard]] std::string make_page_of(const std::string& document, const std::string& page);

}  // namespace doorbell::cli
