// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The names of a stream's settings in messages.
#pragma once

#include <string>

namespace doorbell::net {

/// These words, or the options of a command.
struct StreamSettingNames {
  std::string stream = "stream";
  std::string engine = "engine";
  std::string link = "link";
  std::string payload = "payload";
  std::string flows = "flows";
  std::string split = "header-data split";
  std::string rss = "RSS";
  std::string memory = "memory of received packets";
  std::string device = "device";
  std::string provider = "provider";
  std::string connect = "address of the other process";
};

}  // namespace doorbell::net
