// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Receives packets into GPU memory, as windows in the order of their sequence, and checks every word of each
// window: in a kernel when nvcc compiles this file, on the CPU when g++ does (net_receive_cpu.cpp).
#include <doorbell/net.hpp>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstring>
#include <thread>

using namespace doorbell;
constexpr u32 kPayload = 8000, kData = kPayload - net::kHeaderBytes, kWords = kData / 8, kRunTag = 7;
constexpr u64 kPackets = 20'000, kWaitNs = 1'000'000;

/// The stream's data is the numbers 0, 1, 2 and so on; those of a window begin with `first`.
DOORBELL_HD u64 wrong_words(const u64* window, u64 first, u64 n, u64 lane, u64 lanes) {
  u64 wrong = 0;
  for (u64 i = lane; i < n; i += lanes) wrong += window[i] != first + i ? 1 : 0;
  return wrong;
}
#if defined(__CUDACC__)
constexpr bool kHasKernel = true;
__device__ unsigned long long wrong_so_far;
__global__ void check(const u64* window, u64 first, u64 n) {
  atomicAdd(&wrong_so_far, wrong_words(window, first, n, threadIdx.x, blockDim.x));
}
#else
constexpr bool kHasKernel = false;
#endif

struct Checker final : net::WindowConsumer {
  void take(const net::Window& w) override {
    in_order = in_order && w.index == windows++;
    const u64 first = w.first_packet * kWords, n = w.missing == 0 ? w.bytes / 8 : 0;
    if (w.host != nullptr) wrong += wrong_words(reinterpret_cast<const u64*>(w.host), first, n, 0, 1);
#if defined(__CUDACC__)
    else if (check<<<1, 1024>>>(reinterpret_cast<const u64*>(w.device), first, n);
             cudaMemcpyFromSymbol(&wrong, wrong_so_far, sizeof wrong) != cudaSuccess)  // waits for the kernel
      wrong = ~0ull;
#endif
    w.give_back();
  }
  unsigned long long windows = 0, wrong = 0;
  bool in_order = true;
};

void write_packet(u8* payload, u64 n) {
  for (u64 i = 0, word = n * kWords; i < kWords; ++i, ++word)
    std::memcpy(payload + net::kHeaderBytes + 8 * i, &word, 8);
  net::Header h;
  h.version_flags |= net::kHasDataCrc << 4;
  h.run_tag = kRunTag, h.data_bytes = kData, h.stream_sequence = net::stream_sequence(/*flow*/ 0, n);
  h.data_crc32c = net::crc32c(payload + net::kHeaderBytes, kData);
  h.header_crc32c = net::crc32c(&h, net::kHeaderBytes - 4);
  std::memcpy(payload, &h, net::kHeaderBytes);
}

void send(net::TxQueue& queue, const std::atomic<bool>& stop) {
  const net::TxSlots slots = queue.slots();
  for (u64 written = 0, sent = 0; sent < kPackets && !stop && !queue.broken();) {
    const u64 end = std::min({kPackets, sent + 64, queue.completed() + slots.count});  // of what is free
    for (; written < end; ++written) write_packet(slots.payload(written), written);
    const u32 n = queue.send(sent, static_cast<u32>(written - sent), kPayload);
    sent += n;
    if (n == 0) queue.wait(kWaitNs);
  }
  while (!stop && !queue.broken() && !(queue.flush() && queue.finish())) queue.wait(kWaitNs);
}

int main(int argc, char** argv) try {
  const auto gpu = kHasKernel && !gpu::enumerate().empty() ? gpu::open(0) : nullptr;
  if (!gpu) std::puts("no GPU here, or no kernel: the windows lie in host memory");
  const auto stream = net::StreamQueues::open(argc > 1 ? argv[1] : "raw", argc > 2 ? argv[2] : "ring",
                                              {.payload_bytes = kPayload, .socket_bytes = 256u << 20});
  Checker checker;
  net::WindowReceiver receiver(
      *stream, {.run_tag = kRunTag, .place = gpu ? Place::gpu : Place::pageable, .gpu = gpu}, checker);
  std::atomic<bool> stop{false};
  std::thread sender([&] { send(stream->tx(0), stop); });
  for (u32 silent = 0; receiver.counts().unique < kPackets && silent < 2000; ++silent)
    receiver.step() > 0 ? static_cast<void>(silent = 0) : stream->rx(0).wait(kWaitNs);
  stop = true;
  sender.join();
  receiver.finish({kPackets});
  const unsigned long long lost = receiver.lost(/*flow*/ 0, kPackets), dropped = stream->drops().sum();
  std::printf("%s: %llu packets lost, %llu dropped; %llu windows, %s, %llu words wrong\n",
              stream->carrier().c_str(), lost, dropped, checker.windows,
              checker.in_order ? "in order" : "not in order", checker.wrong);
  return lost == dropped && checker.wrong == 0 && checker.in_order && checker.windows > 0 ? 0 : 2;
} catch (const Error& e) {
  std::fprintf(stderr, "net_receive: %s\n%s\n", e.what(), e.hint().c_str());
  return static_cast<int>(e.code());
}
