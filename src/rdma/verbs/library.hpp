// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// libibverbs, loaded at run time: the program starts without it. The build needs only the headers. The calls
// of the data path (ibv_post_send, ibv_poll_cq, ...) are inline functions there, which call through the open
// device.
#pragma once

#include <doorbell/config.hpp>

#include <infiniband/verbs.h>

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "system/backend.hpp"
#include "system/library.hpp"

namespace doorbell::rdma {

/// The functions that are not inline. Macros of verbs.h would replace some of their names, so the names lack
/// ibv_.
struct VerbsLibrary {
  /// Throws doorbell::Error (ExitCode::absent) when there is no usable libibverbs.
  VerbsLibrary();

  Library library;
  ibv_device** (*get_device_list)(int*);
  void (*free_device_list)(ibv_device**);
  ibv_context* (*open_device)(ibv_device*);
  int (*close_device)(ibv_context*);
  int (*query_device)(ibv_context*, ibv_device_attr*);
  int (*query_port)(ibv_context*, uint8_t, _compat_ibv_port_attr*);
  ssize_t (*query_gid_table)(ibv_context*, ibv_gid_entry*, size_t, uint32_t, size_t);
  int (*get_async_event)(ibv_context*, ibv_async_event*);
  void (*ack_async_event)(ibv_async_event*);
  ibv_pd* (*alloc_pd)(ibv_context*);
  int (*dealloc_pd)(ibv_pd*);
  ibv_mr* (*reg_mr)(ibv_pd*, void*, size_t, int);
  /// Null in versions of rdma-core before 34, which have no dma-buf.
  ibv_mr* (*reg_dmabuf_mr)(ibv_pd*, uint64_t, size_t, uint64_t, int, int);
  int (*dereg_mr)(ibv_mr*);
  ibv_cq* (*create_cq)(ibv_context*, int, void*, ibv_comp_channel*, int);
  int (*destroy_cq)(ibv_cq*);
  ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*);
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int);
  int (*query_qp)(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*);
  int (*destroy_qp)(ibv_qp*);
  const char* (*event_type_str)(ibv_event_type);
  /// The drop-in of `doorbell run rdma`, whose devices are software in this process.
  bool drop_in;
};

/// The facts that sysfs shows of one RDMA device, whether libibverbs can use the device or not.
struct RdmaDeviceFacts {
  std::string name;      ///< "mlx5_0", "rxe0"
  std::string driver;    ///< "mlx5_core", "rdma_rxe"; "" if unknown
  std::string port;      ///< state of its first port: "ACTIVE", "DOWN"; "" if unknown
  bool software = true;  ///< the kernel emulates the device (rdma_rxe, siw)
};
/// `root` is where sysfs is mounted.
[[nodiscard]] RdmaDeviceFacts rdma_device_facts(const std::string& name,
                                                const std::filesystem::path& root = "/sys");
[[nodiscard]] std::vector<RdmaDeviceFacts> rdma_devices(const std::filesystem::path& root = "/sys");

/// Whether the verbs back end can be used: with which devices, or why not, on one line. Never throws.
[[nodiscard]] BackendStatus verbs_status();
/// The same, only for devices for which `accepts` returns true; an error that it throws is the reason shown.
[[nodiscard]] BackendStatus verbs_status(const std::function<bool(ibv_device*)>& accepts);

}  // namespace doorbell::rdma
