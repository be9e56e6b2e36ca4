// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "cxi/dropin/pieces.hpp"

#include <doorbell/cxi/cassini.hpp>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

namespace doorbell::cxi::dropin {

namespace {

constexpr u64 kMost = u64{1} << 40;

[[noreturn]] void refuse_memory(int error, const char* why) {
  throw CallError(CallError::Call::map, error, "memory of a client", why);
}

void check(const Piece& piece, int file) {
  struct stat s {};
  if (piece.bytes == 0 || piece.bytes % kPage != 0 || piece.offset % kPage != 0 || piece.bytes > kMost ||
      piece.offset > kMost)
    refuse_memory(EINVAL, "a piece that is not of whole pages");
  if (::fstat(file, &s) != 0 || !S_ISREG(s.st_mode)) refuse_memory(EINVAL, "a piece that is no file");
  const int seals = ::fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) refuse_memory(EPERM, "a file that can become shorter");
  if (piece.offset + piece.bytes > static_cast<u64>(s.st_size))
    refuse_memory(EINVAL, "a piece behind its file's end");
}

}  // namespace

Pieces::Pieces(const Request& request, const SharedMemory& memory, std::span<Descriptor> files,
               bool foreign) {
  if (memory.bytes == 0) return;
  if (!foreign) {
    data_ = reinterpret_cast<u8*>(memory.address);
    bytes_ = memory.bytes;
    return;
  }
  const u64 end = u64{memory.first} + memory.pieces;
  if (memory.pieces == 0 || end > kMaxPieces || end > files.size())
    refuse_memory(EINVAL, "pieces without files");
  if (memory.bytes > kMost) refuse_memory(EINVAL, "more memory than there is");
  u64 sum = 0;
  for (u64 i = memory.first; i < end; ++i) {
    check(request.piece[i], files[i].get());
    sum += request.piece[i].bytes;
  }
  if (sum != memory.bytes) refuse_memory(EINVAL, "pieces that are not the memory");
  void* const at =
      ::mmap(nullptr, memory.bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) refuse_memory(ENOMEM, "no room for it in the server's address space");
  data_ = static_cast<u8*>(at);
  bytes_ = memory.bytes;
  mapped_ = true;
  u64 offset = 0;
  for (u64 i = memory.first; i < end; ++i) {
    const Piece& piece = request.piece[i];
    if (::mmap(data_ + offset, piece.bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, files[i].get(),
               static_cast<off_t>(piece.offset)) == MAP_FAILED) {
      const int error = errno;
      (void)::munmap(data_, bytes_);
      mapped_ = false;
      refuse_memory(error == EACCES ? EPERM : ENOMEM, "a piece that cannot be mapped");
    }
    offset += piece.bytes;
  }
}

Pieces::~Pieces() {
  if (mapped_) (void)::munmap(data_, bytes_);
}

}  // namespace doorbell::cxi::dropin
