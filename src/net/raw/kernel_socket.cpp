// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/raw/kernel_socket.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include <cerrno>

#include "net/raw/frames.hpp"
#include "net/settings.hpp"
#include "system/sysfs.hpp"

namespace doorbell::net::raw {

Mapping::Mapping(const std::string& subject, int fd, u64 offset, u64 bytes) {
  void* const p =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, static_cast<off_t>(offset));
  require(p != MAP_FAILED, subject, fmt::format("mmap of {} bytes", bytes));
  base_ = static_cast<u8*>(p), bytes_ = bytes;
}

Mapping::~Mapping() {
  if (base_ != nullptr) munmap(base_, bytes_);
}

void refuse(const std::string& subject, const std::string& call, int error) {
  const std::string why = fmt::format("{}: {}", call, reason(error));
  if (error == EPERM || error == EACCES)
    throw Error(subject, why + "; it needs CAP_NET_RAW in the interface's namespace",
                "run as root, or use the link veth, whose namespaces are this program's own");
  throw Error(subject, why);
}

void require(bool done, const std::string& subject, const std::string& call) {
  if (!done) refuse(subject, call, errno);
}

std::string interface_of(const Link& link, End end, const std::string& subject) {
  std::string name = link.interface(end);
  if (name.empty())
    throw Error(subject, fmt::format("the link {} has no interface", link.name()),
                fmt::format("use {} veth, lo, or a pair of interfaces", setting::link));
  return name;
}

u32 interface_index(const std::string& interface, const std::string& subject) {
  const u32 index = if_nametoindex(interface.c_str());
  require(index != 0, subject, "interface " + interface);
  return index;
}

void poll_socket(int fd, short events, u64 limit_ns) {
  pollfd p = {fd, events, 0};
  const timespec limit = {static_cast<time_t>(limit_ns / 1'000'000'000),
                          static_cast<long>(limit_ns % 1'000'000'000)};
  // An error or a signal ends the wait as well: the waiting thread checks again.
  static_cast<void>(ppoll(&p, fd < 0 ? 0 : 1, &limit, nullptr));
}

std::vector<sock_filter> socket_filter(const PortFilter& f) {
  constexpr u32 kIp = kEthernetBytes;
  constexpr u8 kToReject = 255;
  std::vector<sock_filter> p;
  const auto step = [&](u32 code, u32 k, u8 if_true = 0, u8 if_false = 0) {
    p.push_back({static_cast<u16>(code), if_true, if_false, k});
  };
  const auto reject_unless = [&](u32 width, u32 at, u32 value) {
    step(BPF_LD | width | BPF_ABS, at);
    step(BPF_JMP | BPF_JEQ | BPF_K, value, 0, kToReject);
  };
  u32 first = f.first_port;
  switch (f.encapsulation) {
    case Encapsulation::udp4:
      reject_unless(BPF_H, 12, kIpv4Type);
      reject_unless(BPF_B, kIp + 9, kUdpProtocol);
      step(BPF_LD | BPF_H | BPF_ABS, kIp + 6);
      step(BPF_JMP | BPF_JSET | BPF_K, 0x3fff, kToReject, 0);  // more fragments, or an offset
      step(BPF_LDX | BPF_B | BPF_MSH, kIp);                    // the header's length
      step(BPF_LD | BPF_H | BPF_IND, kIp + 2);
      break;
    case Encapsulation::udp6:
      reject_unless(BPF_H, 12, kIpv6Type);
      reject_unless(BPF_B, kIp + 6, kUdpProtocol);
      step(BPF_LD | BPF_H | BPF_ABS, kIp + 40 + 2);
      break;
    case Encapsulation::bare:
      first = 0;
      reject_unless(BPF_H, 12, kBareType);
      reject_unless(BPF_B, kEthernetBytes + kFlowOffset + 1, 0);
      step(BPF_LD | BPF_B | BPF_ABS, kEthernetBytes + kFlowOffset);
      break;
  }
  step(BPF_JMP | BPF_JGE | BPF_K, first, 0, kToReject);
  step(BPF_JMP | BPF_JGT | BPF_K, first + f.flows - 1, kToReject, 0);
  step(BPF_ALU | BPF_SUB | BPF_K, first);
  step(BPF_ALU | BPF_MOD | BPF_K, f.queues);
  step(BPF_JMP | BPF_JEQ | BPF_K, f.queue, 0, kToReject);
  step(BPF_RET | BPF_K, ~0u);
  step(BPF_RET | BPF_K, 0);
  const std::size_t reject = p.size() - 1;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (p[i].jt == kToReject) p[i].jt = static_cast<u8>(reject - i - 1);
    if (p[i].jf == kToReject) p[i].jf = static_cast<u8>(reject - i - 1);
  }
  return p;
}

SilentPorts::SilentPorts(u16 first, u32 count) {
  sock_filter nothing[] = {{BPF_RET | BPF_K, 0, 0, 0}};
  const sock_fprog filter = {1, nothing};
  for (u32 i = 0; i < count; ++i) {
    Descriptor s(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_port = htons(static_cast<u16>(first + i));
    if (setsockopt(s.get(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0 &&
        bind(s.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) == 0)
      sockets_.push_back(std::move(s));
  }
}

}  // namespace doorbell::net::raw
