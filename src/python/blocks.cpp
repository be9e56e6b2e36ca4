// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// nvme::BlockDevice for Python: blocks to and from arrays of any library. Data goes straight to memory of the
// device's own and to large host arrays; the rest is copied on the way.
#include <doorbell/error.hpp>
#include <doorbell/gpu.hpp>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>
#include <optional>

#include "memory.hpp"
#include "module.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace doorbell::python {
namespace {

constexpr u64 kMapFrom = u64{1} << 20;  // smaller arrays are copied faster than they are mapped
constexpr u64 kStagingBytes = u64{64} << 20;
constexpr u64 kGpuWaitNs = 60'000'000'000;

using Array = nb::ndarray<>;
using Source = nb::ndarray<nb::ro>;

const std::map<gpu::Runtime, int> kDeviceTypes = {{gpu::Runtime::cuda, nb::device::cuda::value},
                                                  {gpu::Runtime::hip, nb::device::rocm::value},
                                                  {gpu::Runtime::level_zero, nb::device::oneapi::value}};

bool on_gpu(int device_type) {
  return std::ranges::any_of(kDeviceTypes, [&](const auto& row) { return row.second == device_type; });
}
bool on_host(int device_type) {
  return device_type == nb::device::cpu::value || device_type == nb::device::cuda_host::value ||
         device_type == nb::device::rocm_host::value || device_type == nb::device::cuda_managed::value;
}

/// Waits for the lock without the interpreter's, which its holder may need.
class Turn {
 public:
  explicit Turn(std::mutex& mutex) {
    const nb::gil_scoped_release others_run;
    lock_ = std::unique_lock(mutex);
  }

 private:
  std::unique_lock<std::mutex> lock_;
};

/// Calls `piece(block, blocks)` for all `count` blocks, without the interpreter's lock. Each takes about a
/// fifth of a second, after which Ctrl-C ends it.
template <typename Piece>
void in_pieces(u64 count, u64 block_bytes, const Piece& piece) {
  using Clock = std::chrono::steady_clock;
  u64 step = std::max<u64>((u64{32} << 20) / block_bytes, 1);
  for (u64 done = 0; done < count;) {
    const u64 n = std::min(step, count - done);
    const auto begun = Clock::now();
    {
      const nb::gil_scoped_release others_run;
      piece(done, n);
    }
    done += n;
    if (done < count && PyErr_CheckSignals() != 0) throw nb::python_error();
    const auto took = Clock::now() - begun;
    if (took < std::chrono::milliseconds(100)) step *= 2;
    if (took > std::chrono::milliseconds(400)) step = std::max<u64>(step / 2, 1);
  }
}

class Blocks {
 public:
  Blocks(const std::string& controller, u32 nsid, u32 in_flight, u64 io_bytes, double timeout,
         bool allow_write, std::optional<int> gpu) {
    nvme::BlockOptions o = {.nsid = nsid,
                            .in_flight = in_flight,
                            .io_bytes = io_bytes,
                            .timeout_s = timeout,
                            .allow_write = allow_write};
    const nb::gil_scoped_release others_run;
    if (gpu) o.gpu = gpu_ = gpu::open(*gpu);
    open_ = std::make_shared<OpenDevice>(nvme::BlockDevice::open(controller, o));
    name_ = open_->device().name();
    blocks_ = open_->device().blocks();
    block_bytes_ = open_->device().block_bytes();
  }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] u64 blocks() const { return blocks_; }
  [[nodiscard]] u32 block_bytes() const { return block_bytes_; }
  [[nodiscard]] bool closed() const { return open_->closed(); }

  void close() {
    const Turn turn(busy_);
    const nb::gil_scoped_release others_run;
    staging_.reset();
    open_->close();
  }

  /// A NumPy array, or an object with __dlpack__ in memory of the GPU.
  nb::object allocate(const std::vector<std::size_t>& shape, u8 type_code, u8 type_bits, bool gpu) {
    u64 bytes = type_bits / 8;
    for (const std::size_t n : shape) {
      if (n == 0 || bytes > (u64{1} << 62) / n)
        throw Error("an array in the device's memory", "it has between 1 and 2^62 bytes");
      bytes *= n;
    }
    std::unique_ptr<DeviceMemory> memory;
    {
      const Turn turn(busy_);
      const nb::gil_scoped_release others_run;
      memory = std::make_unique<DeviceMemory>(open_, bytes, gpu ? Place::gpu : Place::pageable);
    }
    u8* const at = memory->address();
    const nb::capsule owner(memory.release(), [](void* p) noexcept { delete static_cast<DeviceMemory*>(p); });
    const nb::dlpack::dtype type = {.code = type_code, .bits = type_bits, .lanes = 1};
    if (!gpu)
      return nb::cast(nb::ndarray<nb::numpy>(at, shape.size(), shape.data(), owner, nullptr, type,
                                             nb::device::cpu::value));
    const auto [device_type, device_id] = gpu_place();
    return nb::cast(nb::ndarray<nb::array_api>(at, shape.size(), shape.data(), owner, nullptr, type,
                                               device_type, device_id));
  }

  /// `wanted`: the blocks that the caller counted; below 0, those of the array.
  void read(u64 lba, const nb::object& out, i64 wanted) {
    Array array;
    if (!nb::try_cast(out, array, false)) refuse(out, "an array that can be written");
    const u64 count = blocks_of(array);
    if (wanted >= 0 && static_cast<u64>(wanted) != count)
      throw nb::value_error(
          ("the array has " + std::to_string(count) + " blocks, not " + std::to_string(wanted)).c_str());
    transfer<Way::read>(lba, static_cast<u8*>(array.data()), count, array.device_type());
  }

  u64 write(u64 lba, const nb::object& from) {
    Source array;
    if (!nb::try_cast(from, array, false)) refuse(from, "an array, or bytes");
    const u64 count = blocks_of(array);
    // The device reads it only.
    transfer<Way::write>(lba, const_cast<u8*>(static_cast<const u8*>(array.data())), count,
                         array.device_type());
    return count;
  }

  /// Waits until all that is in the stream `handle` of CUDA or ROCm has ended.
  void settle(u64 handle) {
    if (gpu_ == nullptr || gpu_->info().runtime == gpu::Runtime::level_zero) return;
    const nb::gil_scoped_release others_run;
    if (!gpu_->wait(gpu::Stream{reinterpret_cast<void*>(handle)}, kGpuWaitNs))
      throw Error(gpu_->info().name, "the work that uses this array has not ended within a minute");
  }

  /// An array for read() and write(), from the words of the CUDA array interface.
  nb::object view(u64 address, u64 bytes, bool read_only, const nb::object& owner) {
    if (gpu_ == nullptr) refuse_gpu();
    const auto [device_type, device_id] = gpu_place();
    const std::size_t shape[] = {bytes};
    if (read_only)
      return nb::cast(nb::ndarray<nb::array_api, const u8>(reinterpret_cast<const void*>(address), 1, shape,
                                                           owner, nullptr, nb::dtype<u8>(), device_type,
                                                           device_id));
    return nb::cast(nb::ndarray<nb::array_api, u8>(reinterpret_cast<void*>(address), 1, shape, owner, nullptr,
                                                   nb::dtype<u8>(), device_type, device_id));
  }

  void flush() {
    const Turn turn(busy_);
    const nb::gil_scoped_release others_run;
    open_->device().flush();
  }

 private:
  /// The way to an array's bytes.
  struct Target {
    nvme::BlockMemory* own = nullptr;         // it is memory of the device's
    std::optional<nvme::BlockMemory> mapped;  // it has become that for the time of the transfer
    u64 offset = 0;
    bool staged = false;  // by way of GPU memory of the device's

    /// Null: copied on the way.
    [[nodiscard]] nvme::BlockMemory* memory() { return mapped ? &*mapped : own; }
  };

  [[noreturn]] static void refuse_gpu() {
    throw Error("data on a GPU", "the device was opened without one",
                "give open() the number of the GPU: gpu=0");
  }

  [[noreturn]] static void refuse(const nb::object& what, const char* wanted) {
    throw nb::type_error(("data must be " + std::string(wanted) + ", contiguous in C's order, and not " +
                          nb::cast<std::string>(nb::str(what.type().attr("__name__"))))
                             .c_str());
  }

  template <typename A>
  [[nodiscard]] u64 blocks_of(const A& array) const {
    i64 below = 1;  // elements per step of the dimension
    for (std::size_t i = array.ndim(); i-- > 0; below *= static_cast<i64>(array.shape(i)))
      if (array.shape(i) > 1 && array.stride(i) != below)
        throw nb::type_error("data must be contiguous in C's order");
    if (array.nbytes() == 0 || array.nbytes() % block_bytes_ != 0)
      throw nb::value_error(("data has " + std::to_string(array.nbytes()) +
                             " bytes, which are not blocks of " + std::to_string(block_bytes_))
                                .c_str());
    return array.nbytes() / block_bytes_;
  }

  /// DLPack's words for the GPU.
  [[nodiscard]] std::pair<int, int> gpu_place() const {
    const gpu::Info& mine = gpu_->info();
    int ordinal = 0;  // among those of its runtime
    for (const gpu::Info& i : gpu::enumerate())
      if (i.runtime == mine.runtime && i.index < mine.index) ++ordinal;
    return {kDeviceTypes.at(mine.runtime), ordinal};
  }

  enum class Way { read, write };

  template <Way way>
  void transfer(u64 lba, u8* data, u64 count, int device_type) {
    const Turn turn(busy_);
    nvme::BlockDevice& device = open_->device();
    Target target = target_of(data, count * block_bytes_, device_type);
    const auto move = [&](u64 at, u64 n, auto&&... memory) {
      if constexpr (way == Way::read) device.read(lba + at, n, memory...);
      else device.write(lba + at, n, memory...);
    };
    in_pieces(count, block_bytes_, [&](u64 at, u64 n) {
      if (target.memory() != nullptr) return move(at, n, *target.memory(), target.offset + at * block_bytes_);
      if (!target.staged) return move(at, n, data + at * block_bytes_);
      through_staging(at, n, [&](u64 first, u64 part, nvme::BlockMemory& staging) {
        u8* const there = data + first * block_bytes_;
        if (way == Way::write) gpu_->copy(staging.device(), there, part * block_bytes_);
        move(first, part, staging);
        if (way == Way::read) gpu_->copy(there, staging.device(), part * block_bytes_);
      });
    });
  }

  Target target_of(u8* data, u64 bytes, int device_type) {
    Target t;
    if (!on_gpu(device_type) && !on_host(device_type))
      throw nb::type_error("data lies neither in host memory nor on a GPU of CUDA or ROCm");
    if (on_gpu(device_type) && gpu_ == nullptr) refuse_gpu();
    t.own = open_->holder(data, bytes);
    if (t.own != nullptr) {
      t.offset = static_cast<u64>(data - (t.own->host() != nullptr ? t.own->host() : t.own->device()));
    } else if (on_gpu(device_type)) {
      t.staged = true;
      const nb::gil_scoped_release others_run;
      if (!staging_)
        staging_.emplace(open_->device().allocate(std::max<u64>(kStagingBytes, block_bytes_), Place::gpu));
    } else if (bytes >= kMapFrom) {
      const nb::gil_scoped_release others_run;
      map(data, bytes, &t);
    }
    return t;
  }

  /// The pages that the array lies in, if the device reaches them.
  void map(u8* data, u64 bytes, Target* t) {
    const u64 page = static_cast<u64>(sysconf(_SC_PAGESIZE));
    t->offset = reinterpret_cast<u64>(data) % page;
    if (t->offset % 4 != 0) return;
    try {
      t->mapped.emplace(open_->device().map(data - t->offset, (t->offset + bytes + page - 1) / page * page));
    } catch (const Error&) {
      // Then it is copied: a controller of QEMU's reaches its own memory only, an IOMMU no read-only pages.
    }
  }

  template <typename Part>
  void through_staging(u64 at, u64 count, const Part& part) {
    const u64 most = staging_->bytes() / block_bytes_;
    for (u64 done = 0; done < count;) {
      const u64 n = std::min(most, count - done);
      part(at + done, n, *staging_);
      done += n;
    }
  }

  std::mutex busy_;  // of the device: one call at a time
  std::shared_ptr<OpenDevice> open_;
  std::shared_ptr<gpu::Gpu> gpu_;
  std::optional<nvme::BlockMemory> staging_;
  std::string name_;
  u64 blocks_ = 0;
  u32 block_bytes_ = 0;
};

}  // namespace

void bind_blocks(nb::module_& m) {
  nb::class_<Blocks>(m, "Blocks", "Blocks of an NVMe namespace; doorbell.nvme.BlockDevice stands on it.")
      .def(nb::init<const std::string&, u32, u32, u64, double, bool, std::optional<int>>(), "controller"_a,
           "nsid"_a, "in_flight"_a, "io_bytes"_a, "timeout"_a, "allow_write"_a, "gpu"_a.none())
      .def_prop_ro("name", &Blocks::name)
      .def_prop_ro("blocks", &Blocks::blocks)
      .def_prop_ro("block_bytes", &Blocks::block_bytes)
      .def_prop_ro("closed", &Blocks::closed)
      .def("allocate", &Blocks::allocate, "shape"_a, "type_code"_a, "type_bits"_a, "gpu"_a)
      .def("read", &Blocks::read, "lba"_a, "out"_a, "blocks"_a)
      .def("write", &Blocks::write, "lba"_a, "data"_a)
      .def_static(
          "address", [](const Array& a) { return reinterpret_cast<u64>(a.data()); }, "array"_a)
      .def("settle", &Blocks::settle, "stream"_a)
      .def("view", &Blocks::view, "address"_a, "bytes"_a, "read_only"_a, "owner"_a)
      .def("flush", &Blocks::flush)
      .def("close", &Blocks::close);
}

}  // namespace doorbell::python
