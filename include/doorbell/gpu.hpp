// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One accelerator of any vendor. CUDA, HIP and Level Zero are loaded at run time behind this interface; the
// program links none and starts without all. A GPU of Level Zero (Intel's) holds data and copies it; doorbell
// has no kernels for it.
#pragma once

#include <doorbell/config.hpp>

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace doorbell::gpu {

/// The vendor's library behind a GPU.
enum class Runtime {
  cuda,        ///< NVIDIA, libcuda.so.1
  hip,         ///< AMD, libamdhip64.so
  level_zero,  ///< Intel, libze_loader.so.1
};
/// "cuda", "hip", "level_zero".
[[nodiscard]] std::string_view name(Runtime runtime);

/// One GPU as enumeration knows it. `index` is the number that `--gpu` takes.
struct Info {
  int index = 0;                    ///< from 0, over all runtimes
  Runtime runtime = Runtime::cuda;  ///< the library that drives it
  std::string name;                 ///< as the vendor's driver has it
  std::string arch;                 ///< "sm_90", "gfx90a"; of Level Zero, the ids of vendor and device
  std::string pci_address;          ///< "0000:3b:00.0"
  std::string driver;               ///< the driver's version
  u64 memory_bytes = 0;             ///< of the whole GPU
  int multiprocessors = 0;          ///< each runs blocks of its own
  int warp_size = 32;               ///< lanes: GpuWarp::size of its kernels
};

/// Why GPUs of one runtime cannot be used, for `doctor` and for the error of `--initiator gpu`.
struct RuntimeStatus {
  Runtime runtime;      ///< which one
  bool usable = false;  ///< its library is there, and at least one GPU
  std::string detail;   ///< "driver 580.159, 1 GPU" or "libcuda.so.1 cannot be loaded: ..."
};

/// A queue of work on the GPU, done in its order. Owned by the Gpu that made it; freed with it or by
/// destroy().
struct Stream {
  void* handle = nullptr;  ///< the runtime's own
};

/// A place in a stream, for other streams to wait for. Owned by the Gpu that made it.
struct Event {
  void* handle = nullptr;  ///< the runtime's own
};

/// A kernel from one of the embedded code objects.
struct Kernel {
  void* handle = nullptr;  ///< the runtime's own; valid as long as the Gpu
};

/// One copy; either side may be host or GPU memory.
struct Copy {
  void* to;          ///< must not overlap `from`
  const void* from;  ///< read until the copy has finished
  u64 bytes;         ///< any number
};

/// An open GPU with a current context. Every call throws doorbell::Error on failure unless it says
/// otherwise. Thread rule: calls may come from any thread; each makes the context current.
class Gpu {
 public:
  virtual ~Gpu() = default;
  /// As enumerate() has it.
  [[nodiscard]] virtual const Info& info() const = 0;

  /// GPU memory, zeroed, aligned to at least 64 KiB. The pointer is valid on the GPU only.
  [[nodiscard]] virtual void* allocate(u64 bytes) = 0;
  /// Gives back what allocate() returned; the GPU must have stopped using it.
  virtual void free(void* p) noexcept = 0;
  /// Page-locked host memory mapped into the GPU at the same address (unified addressing); zeroed.
  [[nodiscard]] virtual void* allocate_pinned(u64 bytes) = 0;
  /// Gives back what allocate_pinned() returned.
  virtual void free_pinned(void* p) noexcept = 0;
  /// Makes existing host memory reachable by the GPU and returns the GPU's address for it.
  /// `mmio` registers a device's BAR mapping instead of memory.
  [[nodiscard]] virtual void* register_host(void* p, u64 bytes, bool mmio) = 0;
  /// Ends register_host() of `p`, before the memory is freed.
  virtual void unregister_host(void* p) noexcept = 0;

  /// Copies, and returns when the bytes are there; either side may be host or GPU memory.
  virtual void copy(void* to, const void* from, u64 bytes) = 0;
  /// Several at once, in any order; returns when all are done.
  virtual void copy(std::span<const Copy> batch) = 0;
  /// Zeros to GPU memory. Blocking.
  virtual void fill_zero(void* p, u64 bytes) = 0;

  /// A new one, whose work runs beside that of other streams.
  [[nodiscard]] virtual Stream create_stream() = 0;
  /// One whose kernels get a multiprocessor that becomes free before those of other streams do.
  [[nodiscard]] virtual Stream create_urgent_stream() = 0;
  /// Frees a stream whose work has finished.
  virtual void destroy(Stream s) noexcept = 0;
  /// Finds `name` in the embedded code objects; throws when this build has no kernels for this GPU.
  [[nodiscard]] virtual Kernel kernel(const std::string& name) = 0;
  /// A kernel's grid, in one dimension.
  struct Launch {
    u32 blocks = 1;        ///< of the grid
    u32 threads = 32;      ///< of a block
    u32 shared_bytes = 0;  ///< dynamic shared memory, raised past 48 KiB as needed
  };
  /// Puts a kernel into a stream and returns. `args` points at each argument's value, in order.
  virtual void launch(Kernel k, const Launch& shape, Stream s, std::span<void*> args) = 0;
  /// Starts a copy behind what is in the stream, and returns; where host memory is not pinned, perhaps only
  /// when it has been read. Both sides are left alone until the stream has come that far.
  virtual void start_copy(const Copy& copy, Stream s) = 0;
  /// One that stands for nothing until record().
  [[nodiscard]] virtual Event create_event() = 0;
  /// Frees an event that nothing waits for.
  virtual void destroy(Event e) noexcept = 0;
  /// From now on `e` stands for all that is in the stream by now.
  virtual void record(Event e, Stream s) = 0;
  /// Work put into the stream from now on begins when the work that `e` stands for has finished.
  virtual void follow(Stream s, Event e) = 0;
  /// True when everything in the stream has finished; throws on an error found by then.
  [[nodiscard]] virtual bool finished(Stream s) = 0;
  /// Waits until finished(s) or the deadline; false on expiry (the work is still running).
  [[nodiscard]] virtual bool wait(Stream s, u64 timeout_ns) = 0;
  /// Lets this GPU's kernels and copies use what `other`, a GPU of the same runtime, allocates, at the same
  /// addresses. Call it before kernels that run for good. Throws where the two have no way to each other.
  virtual void reach(Gpu& other) = 0;
  /// Makes the GPU the one that the vendor's own libraries use on this thread, until the thread ends.
  virtual void make_current() {}
  /// A dma-buf file descriptor for [p, p+bytes) of GPU memory; the caller closes it.
  [[nodiscard]] virtual int export_dmabuf(void* p, u64 bytes) = 0;
};

/// Every GPU that a usable runtime shows: CUDA's first, then HIP's, then Level Zero's. Never throws.
[[nodiscard]] std::vector<Info> enumerate();
/// One entry a runtime, usable or not. Never throws.
[[nodiscard]] std::vector<RuntimeStatus> runtimes();
/// Opens a GPU by its index. Throws with ExitCode::absent when there is none, saying what is missing.
[[nodiscard]] std::shared_ptr<Gpu> open(int index);

/// A code object that the build embedded ("sm_90", "ptx", "gfx90a", ...); empty without a GPU compiler.
struct CodeObject {
  Runtime runtime;                   ///< that loads it
  std::string name;                  ///< the source's stem, for messages
  std::span<const std::byte> image;  ///< as the compiler wrote it
};
/// All that this build has: none without a GPU compiler.
[[nodiscard]] std::span<const CodeObject> code_objects();

}  // namespace doorbell::gpu
