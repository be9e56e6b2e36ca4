// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// An NVMe controller that another process serves by vfio-user: doorbell's own server, SPDK's target, or one
// on libvfio-user.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "memory/shared_arena.hpp"
#include "nvme/backends.hpp"
#include "nvme/doorbell_words.hpp"
#include "options/option.hpp"
#include "vfio_user/client.hpp"

namespace doorbell::nvme {

struct VfioUserSpec {
  std::string path;
  bool share_memory = true;   ///< false: the device reaches it by messages
  bool map_doorbells = true;  ///< where the server lets them be mapped
};
/// The keys that may follow the path.
[[nodiscard]] options::OptionTable vfio_user_keys();
/// Of "vfio-user:PATH[,KEY=VALUE,...]". `controller`: the setting that names the controller.
[[nodiscard]] VfioUserSpec parse_vfio_user_spec(const std::string& spec,
                                                const std::string& controller = setting::controller);

/// Memory that the server maps, or asks for. For doorbell's server each region is a mapping of its own, at
/// addresses with gaps. Other servers get mappings that many regions share: libvfio-user takes 64 of them.
class VfioUserMemory final : public AddressSpace, public vfio_user::DmaTarget {
 public:
  explicit VfioUserMemory(bool shared);
  /// From now on mappings are made known. `client` outlives them, or is gone.
  void connect(vfio_user::Client* client) { client_ = client; }
  /// Before the first map(). True: the device gets what map() names and no more. False: mappings are larger,
  /// and to be read and written, because SPDK's target clears submission queues.
  void be_exact(bool exact) { exact_ = exact; }

  [[nodiscard]] Iova map(const Region& region, Access access) override;
  void unmap(Iova iova) noexcept override;
  [[nodiscard]] Region allocate(Place place, u64 bytes, std::shared_ptr<gpu::Gpu> gpu) override;
  [[nodiscard]] u8* dma(u64 address, u64 count, bool write) override;
  /// Bytes that lie at [at, at + n) for the device, if the whole of it is mapped; else null.
  [[nodiscard]] const u8* find(Iova at, u64 n) { return dma(at, n, false); }

 private:
  struct Range {
    u64 bytes = 0;
    u8* base = nullptr;
    Access access = Access::read_write;
  };
  /// A mapping of which regions are parts. Once one of them has gone it takes no more: pages that are given
  /// back and taken again may be others than those that the device knows.
  struct Window {
    u64 offset = 0;  ///< in the arena
    u64 bytes = 0;
    u32 regions = 0;
    bool closed = false;
  };
  [[nodiscard]] Iova take_addresses(u64 bytes);

  bool shared_;
  bool exact_ = true;
  vfio_user::Client* client_ = nullptr;
  std::shared_ptr<SharedArena> arena_;
  std::mutex mutex_;
  Iova next_ = u64{1} << 32;
  std::map<Iova, Range> ranges_;
  std::map<Iova, Window> windows_;
};

/// Doorbells are the server's page where it lets that be mapped. Where not, an initiator stores to words in
/// memory, and a forwarder sends them as messages.
class VfioUserController final : public ControllerInterface, private DoorbellForwarder {
 public:
  /// A server that answers nothing for `timeout_s`, clamped to 1 to 10 s, counts as gone.
  VfioUserController(const VfioUserSpec& spec, std::string name, std::shared_ptr<gpu::Gpu> gpu = nullptr,
                     double timeout_s = 10);
  ~VfioUserController() override;

  [[nodiscard]] std::string kind() const override { return "emulated"; }
  [[nodiscard]] std::string name() const override { return name_; }
  [[nodiscard]] u32 read32(u32 offset) override;
  [[nodiscard]] u64 read64(u32 offset) override;
  void write32(u32 offset, u32 value) override;
  void write64(u32 offset, u64 value) override;
  [[nodiscard]] AddressSpace& address_space() override { return memory_; }
  [[nodiscard]] u32* cpu_register(u64 offset) override;
  [[nodiscard]] u32* gpu_register(u64 offset) override;
  [[nodiscard]] DoorbellForwarder* forwarder() override { return mapped_ ? nullptr : this; }
  [[nodiscard]] nlohmann::ordered_json counters() override;

  /// A reset of the whole device.
  void reset_device();
  [[nodiscard]] vfio_user::Client& client() { return *client_; }

 private:
  void forward(u16 qid) override;
  void by_initiator(bool on) override;
  [[nodiscard]] u64 check_register(u64 offset) const;
  /// For DoorbellWords.
  [[nodiscard]] auto memory_of_queues() {
    return [this](Iova at, u64 bytes) { return memory_.find(at, bytes); };
  }
  [[nodiscard]] auto message() {
    return [this](u64 offset, u32 value) {
      client_->post_write(vfio_user::Region::bar0, offset, vfio_user::bytes_of(value));
    };
  }
  void start_over();
  void watch();

  VfioUserMemory memory_;
  std::string name_;
  std::shared_ptr<gpu::Gpu> gpu_;
  std::unique_ptr<vfio_user::Client> client_;
  bool mapped_ = false;
  u64 bar_bytes_ = 0;
  Region words_;      ///< registers that are looked at without a message: CSTS, and doorbells that are sent
  Region doorbells_;  ///< the server's page, if it is mapped
  vfio_user::Area area_;
  DoorbellWords words_of_doorbells_;
  std::mutex sweep_;
  bool by_initiator_ = false, stop_ = false;
  std::condition_variable wake_;
  std::thread thread_;
};

[[nodiscard]] std::unique_ptr<ControllerInterface> open_vfio_user(const DeviceRequest& request);

}  // namespace doorbell::nvme
