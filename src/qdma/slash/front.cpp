// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "qdma/slash/front.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "system/sysfs.hpp"

namespace doorbell::qdma::slash {

Front::Folder::Folder(const std::string& p) : path(p) {
  if (::mkdir(path.c_str(), 0700) == 0) made = true;
  else if (errno != EEXIST) throw Error(fmt::format("folder {}", path), reason(errno));
}

Front::Folder::~Folder() {
  if (made) ::rmdir(path.c_str());
}

Front::Front(Surroundings around, const std::string& folder)
    : folder_(folder),
      around_(std::move(around)),
      qdma_(around_, folder + "/" + kQdmaFile),
      control_(around_, folder + "/" + kControlFile),
      hotplug_(around_, folder + "/" + kHotplugFile, {nullptr, &qdma_, &control_}),
      bound_{bind_at(qdma_.path()), bind_at(control_.path()), bind_at(hotplug_.path())} {}

Front::~Front() = default;

void Front::open() {
  qdma_.open(std::move(bound_[0]));
  control_.open(std::move(bound_[1]));
  hotplug_.open(std::move(bound_[2]));
}

}  // namespace doorbell::qdma::slash
