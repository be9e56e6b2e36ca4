// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/vendors.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "options/enumeration.hpp"
#include "rdma/settings.hpp"
#include "rma/operation_work.hpp"

namespace doorbell::rdma {

#define DOORBELL_ROW(name) extern const Vendor name##_vendor;
DOORBELL_RDMA_VENDORS(DOORBELL_ROW)
#undef DOORBELL_ROW

const std::vector<std::string>& provider_names() {
#define DOORBELL_ROW(name) #name,
  static const std::vector<std::string> names = {DOORBELL_RDMA_VENDORS(DOORBELL_ROW) "verbs"};
#undef DOORBELL_ROW
  return names;
}

std::string_view name(Provider p) {
  return provider_names()[static_cast<std::size_t>(p)];
}

Provider provider_named(std::string_view wanted) {
  const auto& names = provider_names();
  const auto at = std::ranges::find(names, wanted);
  if (at == names.end())
    throw Error(setting::provider, fmt::format("'{}' is none", wanted),
                fmt::format("give one of {}", fmt::join(names, ", ")));
  return static_cast<Provider>(at - names.begin());
}

const std::vector<Provider>& vendors() {
#define DOORBELL_ROW(name) Provider::name,
  static const std::vector<Provider> all = {DOORBELL_RDMA_VENDORS(DOORBELL_ROW)};
#undef DOORBELL_ROW
  return all;
}

std::string vendors_text(std::string_view conjunction) {
  std::vector<std::string> names;
  for (const Provider p : vendors()) names.emplace_back(name(p));
  return options::enumeration(names, conjunction);
}

const Vendor* vendor_of(Provider p) {
#define DOORBELL_ROW(name) &name##_vendor,
  static constexpr std::array rows = {DOORBELL_RDMA_VENDORS(DOORBELL_ROW)};
#undef DOORBELL_ROW
  const auto i = static_cast<std::size_t>(p);
  return i < rows.size() ? rows[i] : nullptr;
}

measure::KernelNames kernels_of(Provider p) {
  const std::string plain = fmt::format("doorbell_rdma_{}", name(p));
  return rma::op_kernels(plain);
}

}  // namespace doorbell::rdma
