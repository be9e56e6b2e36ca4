// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Streams a file to a QDMA card and back through both channels, and compares.
//   qdma_stream FILE [CARD]        CARD: model, server:PATH, kernel:/dev/slash_qdma_ctl0
#include <doorbell/qdma.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <vector>

namespace qdma = doorbell::qdma;
using doorbell::u64;

constexpr u64 kChunk = 8 << 20;
constexpr double kDeadlineS = 10;

// Reads the next piece of the file; 0 at its end.
u64 read_chunk(std::ifstream& file, void* to) {
  file.read(static_cast<char*>(to), kChunk);
  return static_cast<u64>(file.gcount());
}

void must(int error, const char* what) {
  if (error != 0) throw doorbell::Error(what, std::strerror(error));
}

// While the card takes one buffer, another is filled.
u64 send(qdma::Card& card, qdma::TransferDescriptor& channels, std::ifstream& file) {
  std::array<qdma::Buffer, 3> buffers;
  std::vector<std::size_t> free;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    buffers[i] = card.create_buffer(kChunk);
    free.push_back(i);
  }
  u64 sent = 0;
  for (bool more = true; more || free.size() < buffers.size();) {
    if (more && !free.empty()) {
      const std::size_t b = free.back();
      const u64 n = read_chunk(file, buffers[b].data());
      more = n == kChunk;
      if (n == 0) continue;
      free.pop_back();
      static_cast<void>(channels.submit(qdma::Direction::host_to_card, buffers[b], 0, qdma::kDdrBase + sent,
                                        n, kDeadlineS, b));
      sent += n;
    } else {
      std::array<qdma::TransferCompletion, 1> done;
      if (channels.complete(done, 2 * kDeadlineS) == 0) must(ETIMEDOUT, "a transfer to the card");
      must(done[0].result.error, "a transfer to the card");
      free.push_back(done[0].user);
    }
  }
  return sent;
}

// One plain call for each chunk, compared with what the file says.
u64 different_bytes(qdma::Card& card, qdma::TransferDescriptor& channels, std::ifstream& file) {
  const qdma::Buffer buffer = card.create_buffer(kChunk);
  std::vector<char> expected(kChunk);
  u64 different = 0, offset = 0;
  while (const u64 n = read_chunk(file, expected.data())) {
    std::memset(buffer.data(), 0, n);
    must(channels.transfer(qdma::Direction::card_to_host, buffer, 0, qdma::kDdrBase + offset, n, kDeadlineS)
             .error,
         "a transfer from the card");
    for (u64 i = 0; i < n; ++i)
      different += buffer.data()[i] != static_cast<doorbell::u8>(expected[i]) ? 1 : 0;
    offset += n;
  }
  return different;
}

int main(int argc, char** argv) try {
  if (argc < 2 || argc > 3) {
    std::cerr << "usage: qdma_stream FILE [CARD]\n";
    return 1;
  }
  qdma::Card card = qdma::Card::open(argc == 3 ? argv[2] : "model");
  qdma::TransferDescriptor channels = card.both_channels();
  std::ifstream file(argv[1], std::ios::binary), again(argv[1], std::ios::binary);
  if (!file || !again) throw doorbell::Error(argv[1], "it cannot be read");
  const u64 sent = send(card, channels, file);
  const u64 wrong = different_bytes(card, channels, again);
  std::cout << sent << " bytes to " << card.name() << " and back, " << wrong << " different\n";
  return wrong == 0 ? 0 : 2;
} catch (const doorbell::Error& e) {
  std::cerr << e.what() << (e.hint().empty() ? "" : " (" + e.hint() + ")") << '\n';
  return static_cast<int>(e.code());
}
