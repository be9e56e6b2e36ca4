// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/dpdk/loader.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string_view>

#include "system/library.hpp"

namespace doorbell::net::dpdk {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFoldersVariable = "DOORBELL_PLUGINS";
constexpr const char* kFileVariable = "DOORBELL_DPDK_PLUGIN";
constexpr const char* kInstall = "install DPDK's libraries (Debian: librte-meta-all, or libdpdk-dev)";

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  throw Error(fmt::format("{} cannot be used", file), why,
              "install or build the plugin together with the program", ExitCode::absent);
}

struct Loaded {
  explicit Loaded(const std::string& file)
      : library(kFileVariable, std::vector<const char*>{file.c_str()}, kInstall) {
    PluginEntry* const entry = library.find(kPluginEntry);
    if (entry == nullptr) refuse(file, fmt::format("it has no function {}", kPluginEntry));
    const PluginTable* const found = entry();
    if (found->abi != kPluginAbi)
      refuse(file, fmt::format("its interface has version {}, the program's has {}", found->abi, kPluginAbi));
    if (std::string_view(found->build_id) != DOORBELL_PLUGIN_BUILD_ID)
      refuse(file, fmt::format("it was built with another doorbell or compiler: its build id is {}, the "
                               "program's is {}",
                               found->build_id, DOORBELL_PLUGIN_BUILD_ID));
    table = found;
  }
  Library library;
  const PluginTable* table = nullptr;
};

}  // namespace

std::vector<fs::path> plugin_folders() {
  std::vector<fs::path> folders;
  const char* const given = std::getenv(kFoldersVariable);
  if (given != nullptr && *given != '\0') {
    std::istringstream text(given);
    for (std::string folder; std::getline(text, folder, ':');)
      if (!folder.empty()) folders.emplace_back(folder);
    return folders;
  }
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  folders = {program, program / "../lib/doorbell"};
  const fs::path installed = program / ".." / DOORBELL_PLUGIN_FOLDER;
  if (installed != folders.back()) folders.push_back(installed);
  return folders;
}

const PluginTable& load_plugin(const std::vector<fs::path>& folders) {
  std::string looked;
  for (const fs::path& folder : folders) {
    const fs::path file = folder / kPluginFile;
    std::error_code ignored;
    if (!fs::exists(file, ignored)) {
      looked += fmt::format("{}{}", looked.empty() ? "" : ", ", folder.string());
      continue;
    }
    static std::mutex mutex;
    static std::map<std::string, std::unique_ptr<Loaded>> all;
    const std::lock_guard lock(mutex);
    std::unique_ptr<Loaded>& loaded = all[file.string()];
    if (!loaded) loaded = std::make_unique<Loaded>(file.string());
    return *loaded->table;
  }
  throw Error(fmt::format("{} is not here", kPluginFile),
              looked.empty() ? fmt::format("{} names no folder", kFoldersVariable) : "looked in " + looked,
              fmt::format("it is built where libdpdk is found (Debian: libdpdk-dev); {} may name its folder",
                          kFoldersVariable),
              ExitCode::absent);
}

const PluginTable& load_plugin() {
  return load_plugin(plugin_folders());
}

}  // namespace doorbell::net::dpdk
