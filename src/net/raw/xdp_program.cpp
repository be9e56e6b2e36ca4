// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/raw/xdp_program.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <linux/if_link.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "net/raw/xdp_socket.hpp"
#include "system/sysfs.hpp"

namespace doorbell::net::raw {

namespace {

int bpf_call(bpf_cmd command, bpf_attr& attr) {
  return static_cast<int>(syscall(SYS_bpf, command, &attr, sizeof attr));
}

Descriptor make_map(unsigned queues) {
  bpf_attr a{};
  a.map_type = BPF_MAP_TYPE_XSKMAP;
  a.key_size = a.value_size = 4;
  a.max_entries = queues;
  return Descriptor(bpf_call(BPF_MAP_CREATE, a));
}

/// One instruction. Jumps are in instructions from the next one on.
bpf_insn insn(unsigned code, unsigned to, unsigned from, int offset, int value) {
  bpf_insn i{};
  i.code = static_cast<__u8>(code);
  i.dst_reg = to & 15, i.src_reg = from & 15;
  i.off = static_cast<__s16>(offset);
  i.imm = value;
  return i;
}

}  // namespace

std::vector<bpf_insn> xdp_instructions(int map_fd, const XdpFlows& flows) {
  constexpr int kToPass = -1;
  std::vector<bpf_insn> p;
  const auto load = [&](unsigned width, unsigned to, unsigned from, int offset) {
    p.push_back(insn(BPF_LDX | BPF_MEM | width, to, from, offset, 0));
  };
  const auto pass_if = [&](unsigned condition, unsigned reg, unsigned value) {
    p.push_back(insn(BPF_JMP | condition | BPF_K, reg, 0, kToPass, static_cast<int>(value)));
  };
  enum : unsigned { r0, r1, r2, r3, r4, r5, r6 };
  p.push_back(insn(BPF_ALU64 | BPF_MOV | BPF_X, r6, r1, 0, 0));
  load(BPF_W, r2, r1, offsetof(xdp_md, data));
  load(BPF_W, r3, r1, offsetof(xdp_md, data_end));
  const bool bare = flows.encapsulation == Encapsulation::bare;
  // The headers, and the flow's number, must be there before the verifier lets a byte of them be read.
  p.push_back(insn(BPF_ALU64 | BPF_MOV | BPF_X, r4, r2, 0, 0));
  p.push_back(insn(BPF_ALU64 | BPF_ADD | BPF_K, r4, 0, 0,
                   static_cast<int>(header_bytes(flows.encapsulation) + (bare ? kHeaderBytes : 0))));
  p.push_back(insn(BPF_JMP | BPF_JGT | BPF_X, r4, r3, kToPass, 0));
  load(BPF_H, r5, r2, 12);
  // EtherTypes are in the order of this machine.
  switch (flows.encapsulation) {
    case Encapsulation::udp4:
      pass_if(BPF_JNE, r5, 0x0008);
      load(BPF_B, r5, r2, 14);
      pass_if(BPF_JNE, r5, 0x45);
      load(BPF_B, r5, r2, 23);
      pass_if(BPF_JNE, r5, kUdpProtocol);
      load(BPF_H, r5, r2, 20);
      p.push_back(insn(BPF_ALU64 | BPF_AND | BPF_K, r5, 0, 0, 0xff3f));
      pass_if(BPF_JNE, r5, 0);  // a fragment
      load(BPF_H, r5, r2, 36);
      p.push_back(insn(BPF_ALU | BPF_END | BPF_TO_BE, r5, 0, 0, 16));
      break;
    case Encapsulation::udp6:
      pass_if(BPF_JNE, r5, 0xdd86);
      load(BPF_B, r5, r2, 20);
      pass_if(BPF_JNE, r5, kUdpProtocol);
      load(BPF_H, r5, r2, 56);
      p.push_back(insn(BPF_ALU | BPF_END | BPF_TO_BE, r5, 0, 0, 16));
      break;
    case Encapsulation::bare:
      pass_if(BPF_JNE, r5, 0xb588);
      load(BPF_H, r5, r2, kEthernetBytes + kFlowOffset);
      break;
  }
  pass_if(BPF_JLT, r5, flows.first);
  pass_if(BPF_JGT, r5, flows.last);
  load(BPF_W, r2, r6, offsetof(xdp_md, rx_queue_index));
  p.push_back(insn(BPF_LD | BPF_DW | BPF_IMM, r1, BPF_PSEUDO_MAP_FD, 0, map_fd));
  p.push_back(insn(0, 0, 0, 0, 0));  // its second half
  // Packets that a queue without a socket receives go on to the kernel as well.
  p.push_back(insn(BPF_ALU64 | BPF_MOV | BPF_K, r3, 0, 0, XDP_PASS));
  p.push_back(insn(BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_redirect_map));
  p.push_back(insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
  const std::size_t pass = p.size();
  p.push_back(insn(BPF_ALU64 | BPF_MOV | BPF_K, r0, 0, 0, XDP_PASS));
  p.push_back(insn(BPF_JMP | BPF_EXIT, 0, 0, 0, 0));
  for (std::size_t i = 0; i < p.size(); ++i)
    if (p[i].off == kToPass) p[i].off = static_cast<__s16>(pass - i - 1);
  return p;
}

void XdpProgram::fail(const std::string& call, int error) const {
  const std::string why = fmt::format("{}: {}", call, reason(error));
  const std::string other = fmt::format("use {} af_packet", engine_);
  if (error == EPERM || error == EACCES)
    throw Error(engine_ + " af_xdp",
                why + "; it needs CAP_BPF and CAP_NET_ADMIN, and not those of a user namespace",
                "run as root, or " + other);
  throw Error(engine_ + " af_xdp", why, other);
}

XdpProgram::XdpProgram(std::string engine, unsigned queues, const XdpFlows& flows)
    : engine_(std::move(engine)) {
  map_ = make_map(queues);
  if (map_.get() < 0) fail("a map of AF_XDP sockets", errno);
  const std::vector<bpf_insn> steps = xdp_instructions(map_.get(), flows);
  static constexpr char kLicence[] = "Apache-2.0";
  bpf_attr a{};
  a.prog_type = BPF_PROG_TYPE_XDP;
  a.insns = reinterpret_cast<u64>(steps.data());
  a.insn_cnt = static_cast<__u32>(steps.size());
  a.license = reinterpret_cast<u64>(kLicence);
  // Otherwise no driver takes it at an MTU whose frames need more than a page.
  a.prog_flags = BPF_F_XDP_HAS_FRAGS;
  std::memcpy(a.prog_name, "doorbell_net", sizeof "doorbell_net");
  program_ = Descriptor(bpf_call(BPF_PROG_LOAD, a));
  if (program_.get() < 0) fail("loading the XDP program", errno);
}

void XdpProgram::set_socket(unsigned queue, int fd) {
  bpf_attr a{};
  a.map_fd = static_cast<__u32>(map_.get());
  a.key = reinterpret_cast<u64>(&queue);
  a.value = reinterpret_cast<u64>(&fd);
  if (bpf_call(BPF_MAP_UPDATE_ELEM, a) != 0) fail("entering an AF_XDP socket", errno);
}

void XdpProgram::attach(const std::string& interface, unsigned index) {
  int native_error = 0;
  for (const unsigned flags : {XDP_FLAGS_DRV_MODE, XDP_FLAGS_SKB_MODE}) {
    bpf_attr a{};
    a.link_create.prog_fd = static_cast<__u32>(program_.get());
    a.link_create.target_ifindex = index;
    a.link_create.attach_type = BPF_XDP;
    a.link_create.flags = flags;
    // One that has just been detached is still there for a moment.
    const int fd = until_not_busy([&] { return bpf_call(BPF_LINK_CREATE, a); });
    if (fd >= 0) {
      link_ = Descriptor(fd);
      mode_ = flags == XDP_FLAGS_DRV_MODE ? "native" : "generic";
      return;
    }
    if (errno == EBUSY || errno == EEXIST)
      throw Error(engine_ + " af_xdp", fmt::format("{} has another XDP program", interface),
                  fmt::format("ip link set {} xdp off", interface));
    if (native_error == 0) native_error = errno;
  }
  const int generic_error = errno;
  fail(fmt::format("attaching to {}: natively {}, generically", interface, reason(native_error)),
       generic_error);
}

BackendStatus xdp_status() {
  const Descriptor s(socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
  if (s.get() < 0) {
    if (errno == EAFNOSUPPORT) return {false, "this kernel has no AF_XDP (XDP_SOCKETS)"};
    return {false, "an AF_XDP socket: " + reason(errno) + (errno == EPERM ? ", CAP_NET_RAW is missing" : "")};
  }
  const Descriptor map = make_map(1);
  if (map.get() >= 0) return {true, "AF_XDP in copy mode"};
  if (errno == EPERM)
    return {false, "bpf(2): Operation not permitted, CAP_BPF and CAP_NET_ADMIN are missing"};
  return {false, "a map of AF_XDP sockets: " + reason(errno)};
}

}  // namespace doorbell::net::raw
