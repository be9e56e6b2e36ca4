// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/sockets/arrival_counter.hpp"

#include <linux/bpf.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>

#include "system/descriptor.hpp"

namespace doorbell::net::sockets {

namespace {

Descriptor bpf(bpf_cmd command, bpf_attr attributes) {
  return Descriptor(static_cast<int>(::syscall(SYS_bpf, command, &attributes, sizeof attributes)));
}

u64 page_bytes() {
  return static_cast<u64>(::sysconf(_SC_PAGESIZE));
}

/// One number that this process maps.
Descriptor make_map() {
  bpf_attr a{};
  a.map_type = BPF_MAP_TYPE_ARRAY;
  a.key_size = sizeof(u32);
  a.value_size = sizeof(u64);
  a.max_entries = 1;
  a.map_flags = BPF_F_MMAPABLE;
  return bpf(BPF_MAP_CREATE, a);
}

constexpr bpf_insn instruction(u8 code, u8 to, u8 from, short offset, int value) {
  bpf_insn i{};
  i.code = code;
  i.dst_reg = to & 15;
  i.src_reg = from & 15;
  i.off = offset;
  i.imm = value;
  return i;
}

/// Adds a datagram's packets to the number, and lets all of it pass.
Descriptor load_program(int map) {
  const std::array<bpf_insn, 8> code{
      instruction(BPF_LDX | BPF_MEM | BPF_W, BPF_REG_6, BPF_REG_1, offsetof(__sk_buff, gso_segs), 0),
      instruction(BPF_JMP | BPF_JNE | BPF_K, BPF_REG_6, 0, 1, 0),
      instruction(BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_6, 0, 0, 1),  // not coalesced
      instruction(BPF_LD | BPF_DW | BPF_IMM, BPF_REG_1, BPF_PSEUDO_MAP_VALUE, 0, map),
      instruction(0, 0, 0, 0, 0),  // the upper half of the address above
      instruction(BPF_STX | BPF_ATOMIC | BPF_DW, BPF_REG_1, BPF_REG_6, 0, BPF_ADD),
      instruction(BPF_ALU | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, -1),
      instruction(BPF_JMP | BPF_EXIT, 0, 0, 0, 0),
  };
  bpf_attr a{};
  a.prog_type = BPF_PROG_TYPE_SOCKET_FILTER;
  a.insn_cnt = code.size();
  a.insns = reinterpret_cast<std::uintptr_t>(code.data());
  a.license = reinterpret_cast<std::uintptr_t>("Apache-2.0");
  return bpf(BPF_PROG_LOAD, a);
}

}  // namespace

std::optional<ArrivalCounter> ArrivalCounter::attach(int socket) {
  const Descriptor map = make_map();
  if (map.get() < 0) return std::nullopt;
  const Descriptor program = load_program(map.get());
  if (program.get() < 0) return std::nullopt;
  void* const page = ::mmap(nullptr, page_bytes(), PROT_READ, MAP_SHARED, map.get(), 0);
  if (page == MAP_FAILED) return std::nullopt;
  ArrivalCounter counter(static_cast<u64*>(page));
  const int fd = program.get();
  if (::setsockopt(socket, SOL_SOCKET, SO_ATTACH_BPF, &fd, sizeof fd) != 0) return std::nullopt;
  return counter;
}

u64 ArrivalCounter::count() const {
  return std::atomic_ref<u64>(*count_).load(std::memory_order_acquire);
}

void ArrivalCounter::Unmap::operator()(u64* page) const {
  ::munmap(page, page_bytes());
}

}  // namespace doorbell::net::sockets
