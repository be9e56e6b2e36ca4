// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/vendors.hpp"

#include <fmt/format.h>

#include <array>

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

std::string vendors_text(const char* last) {
  std::vector<std::string> names = provider_names();
  names.pop_back();  // verbs
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 == names.size() ? fmt::format(" {} ", last) : ", ") + names[i];
  return text;
}

const Vendor* vendor_of(Provider p) {
#define DOORBELL_ROW(name) &name##_vendor,
  static constexpr std::array vendors = {DOORBELL_RDMA_VENDORS(DOORBELL_ROW)};
#undef DOORBELL_ROW
  const auto i = static_cast<std::size_t>(p);
  return i < vendors.size() ? vendors[i] : nullptr;
}

measure::KernelNames kernels_of(Provider p) {
  const std::string plain = fmt::format("doorbell_rdma_{}", name(p));
  return {plain, plain + "_substeps"};
}

}  // namespace doorbell::rdma
