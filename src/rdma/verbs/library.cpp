// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/verbs/library.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "system/file_table.hpp"
#include "system/sysfs.hpp"

namespace doorbell::rdma {

namespace fs = std::filesystem;

namespace {

constexpr const char* kOverride = "DOORBELL_LIBIBVERBS";
constexpr std::array kNames = {"libibverbs.so.1"};
constexpr const char* kInstall = "install libibverbs1 and ibverbs-providers";

std::string describe(const RdmaDeviceFacts& d) {
  std::string text = fmt::format("{} ({}", d.name, d.software ? "emulated" : "hardware");
  if (!d.driver.empty()) text += fmt::format(", {}", d.driver);
  if (!d.port.empty()) text += fmt::format(", port {}", d.port);
  return text + ")";
}

/// The reason why a device of libibverbs cannot be opened; "" if it can.
std::string obstacle(const VerbsLibrary& verbs, const ibv_device& device) {
  if (verbs.drop_in) return {};  // its devices have no file
  const fs::path file = fs::path("/dev/infiniband") / device.dev_name;
  if (::access(file.c_str(), R_OK | W_OK) == 0) return {};
  return fmt::format("{}: {}", file.string(), reason(errno));
}

/// The reason why libibverbs shows no device.
std::string nothing_shown() {
  const std::vector<RdmaDeviceFacts> kernel = rdma_devices();
  if (kernel.empty())
    return "no RDMA device in /sys/class/infiniband (soft-RoCE: rdma link add rxe0 type rxe)";
  if (!present("/sys/class/infiniband_verbs"))
    return "the kernel's verbs interface is missing: modprobe ib_uverbs";
  return fmt::format("libibverbs has no provider for {}: install ibverbs-providers",
                     describe(kernel.front()));
}

BackendStatus status_of_devices(const VerbsLibrary& verbs, const std::function<bool(ibv_device*)>& accepts) {
  int count = 0;
  ibv_device** list = verbs.get_device_list(&count);
  if (list == nullptr && errno == ENOSYS) return {false, nothing_shown()};  // a kernel without RDMA
  if (list == nullptr) return {false, fmt::format("libibverbs lists no devices: {}", reason(errno))};
  BackendStatus status;
  for (int i = 0; i < count; ++i) {
    if (!accepts(list[i])) continue;
    const std::string why = obstacle(verbs, *list[i]);
    status.usable = status.usable || why.empty();
    status.detail += status.detail.empty() ? "" : "; ";
    status.detail += describe(rdma_device_facts(list[i]->name));
    if (!why.empty()) status.detail += " cannot be opened: " + why;
  }
  verbs.free_device_list(list);
  if (count == 0) status.detail = nothing_shown();
  return status;
}

}  // namespace

// Some functions also exist in an older form; dlsym() finds the newest, which is the one that the header
// declares.
VerbsLibrary::VerbsLibrary()
    : library(kOverride, kNames, kInstall),
      get_device_list(library.need("ibv_get_device_list")),
      free_device_list(library.need("ibv_free_device_list")),
      open_device(library.need("ibv_open_device")),
      close_device(library.need("ibv_close_device")),
      query_device(library.need("ibv_query_device")),
      query_port(library.need("ibv_query_port")),
      query_gid_table(library.need("_ibv_query_gid_table")),
      get_async_event(library.need("ibv_get_async_event")),
      ack_async_event(library.need("ibv_ack_async_event")),
      alloc_pd(library.need("ibv_alloc_pd")),
      dealloc_pd(library.need("ibv_dealloc_pd")),
      reg_mr(library.need("ibv_reg_mr")),
      reg_dmabuf_mr(library.find("ibv_reg_dmabuf_mr")),
      dereg_mr(library.need("ibv_dereg_mr")),
      create_cq(library.need("ibv_create_cq")),
      destroy_cq(library.need("ibv_destroy_cq")),
      create_qp(library.need("ibv_create_qp")),
      modify_qp(library.need("ibv_modify_qp")),
      query_qp(library.need("ibv_query_qp")),
      destroy_qp(library.need("ibv_destroy_qp")),
      event_type_str(library.need("ibv_event_type_str")),
      drop_in(library.has("doorbell_verbs_owns")) {
  // Its NIC opens sockets in whichever thread moves packets.
  if (drop_in) keep_one_file_table();
}

RdmaDeviceFacts rdma_device_facts(const std::string& name, const fs::path& root) {
  const fs::path folder = root / "class/infiniband" / name;
  RdmaDeviceFacts facts;
  facts.name = name;
  facts.driver = link_name(folder / "device/driver");
  // rdma_rxe names its network device in this file; drivers of hardware have no such file.
  const bool rxe = present(folder / "parent");
  facts.software = rxe || facts.driver.empty();
  if (rxe) facts.driver = "rdma_rxe";
  for (const std::string& port : names_in(folder / "ports")) {
    const std::string state = read_line(folder / "ports" / port / "state").value_or("");
    facts.port = state.substr(state.find(' ') + 1);  // "4: ACTIVE"
    break;
  }
  return facts;
}

std::vector<RdmaDeviceFacts> rdma_devices(const fs::path& root) {
  std::vector<RdmaDeviceFacts> all;
  for (const std::string& name : names_in(root / "class/infiniband"))
    all.push_back(rdma_device_facts(name, root));
  return all;
}

BackendStatus verbs_status() {
  return verbs_status([](ibv_device*) { return true; });
}

BackendStatus verbs_status(const std::function<bool(ibv_device*)>& accepts) {
  try {
    return status_of_devices(VerbsLibrary(), accepts);
  } catch (const Error& e) {
    return {false, e.what()};
  }
}

}  // namespace doorbell::rdma
