// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// A libcxi.so.1 that needs no device. It logs every call with its arguments. Its objects have their fields
// where libcxi's public structures have them (by byte offset, independent of the declarations under test). It
// counts the objects that exist. No data moves.
//
// Environment variables, which are read at every call, control it:
//   FAKE_CXI_FAIL=CALL=ERRNO      that call fails; with CALL#2=ERRNO, only its second use
//   FAKE_CXI_WRONG=FIELD=VALUE    that field of an object has another value; +N: it is N too large
//   FAKE_CXI_SERVICES=1=any,5=70  services: any VNI, or restricted to this one
//
// It is also built without the functions of newer versions: FAKE_CXI_WITHOUT_1_2, FAKE_CXI_WITHOUT_1_9 (and
// 1.11).
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

constexpr size_t kPage = 4096;

struct Free {
  void operator()(void* p) const { std::free(p); }
};
using Pages = std::unique_ptr<std::uint8_t, Free>;

Pages pages(size_t bytes, int fill) {
  auto* const p = static_cast<std::uint8_t*>(std::aligned_alloc(kPage, bytes));
  std::memset(p, fill, bytes);
  return Pages(p);
}

struct Object {
  std::string name;  ///< "cq2"
  Pages body = pages(kPage, 0);
  std::vector<Pages> memory;
};

struct State {
  std::string log;
  std::map<std::string, int> calls;
  std::map<std::string, int> made;
  std::map<const void*, Object> alive;
};
State& state() {
  static State s;
  return s;
}

/// The part of variable NAME=KEY=... behind KEY=, or "".
std::string setting(const char* variable, const std::string& key) {
  const char* const value = std::getenv(variable);
  const std::string text = value != nullptr ? value : "";
  return text.starts_with(key + "=") ? text.substr(key.size() + 1) : "";
}

/// The errno that the environment wants this call to fail with, or 0.
int wanted(const std::string& call) {
  const int number = ++state().calls[call];
  std::string code = setting("FAKE_CXI_FAIL", call);
  if (code.empty()) code = setting("FAKE_CXI_FAIL", call + "#" + std::to_string(number));
  return code.empty() ? 0 : std::atoi(code.c_str());
}

std::string name_of(const void* object) {
  if (object == nullptr) return "none";
  const auto found = state().alive.find(object);
  return found != state().alive.end() ? found->second.name : "?";
}

std::string text(std::uint64_t n) {
  return std::to_string(n);
}

void write_down(const std::string& line) {
  state().log += line + "\n";
}

/// Sets a field, or what the environment wants there.
template <class T>
void put(const Object& o, const std::string& field, size_t offset, T value) {
  const std::string other = setting("FAKE_CXI_WRONG", field);
  if (!other.empty()) {
    const auto n = static_cast<T>(std::strtoull(other.c_str(), nullptr, 0));
    value = other.front() == '+' ? static_cast<T>(value + n) : n;
  }
  std::memcpy(o.body.get() + offset, &value, sizeof value);
}
void put_address(const Object& o, const std::string& field, size_t offset, const void* p) {
  put(o, field, offset, reinterpret_cast<std::uint64_t>(p));
}

Object begin(const char* kind) {
  Object o;
  o.name = kind + text(static_cast<std::uint64_t>(++state().made[kind]));
  return o;
}

/// Hands an object out, and writes the call down.
template <class T>
int hand_out(Object o, const std::string& call, T** out) {
  write_down(call + " = " + o.name);
  void* const handle = o.body.get();
  state().alive.emplace(handle, std::move(o));
  *out = static_cast<T*>(handle);
  return 0;
}

int destroy(const char* call, void* object) {
  write_down(std::string(call) + "(" + name_of(object) + ")");
  return state().alive.erase(object) == 1 ? -wanted(call) : -EINVAL;
}

template <class T>
T field(const void* base, size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const std::uint8_t*>(base) + offset, sizeof value);
  return value;
}

std::string hints_text(const void* hints) {
  if (hints == nullptr) return "none";
  const int fd = field<int>(hints, 16);
  const bool open = ::fcntl(fd, F_GETFD) >= 0;
  return std::string(field<std::uint8_t>(hints, 32) != 0 ? "dma-buf" : "nothing") +
         (open ? " open" : " closed") + " +" + text(field<std::uint64_t>(hints, 24));
}

}  // namespace

extern "C" {

const char* fake_cxi_log() {
  return state().log.c_str();
}
int fake_cxi_alive() {
  return static_cast<int>(state().alive.size());
}
void fake_cxi_forget() {
  state().log.clear();
  state().calls.clear();
  state().made.clear();
}

int cxil_open_device(std::uint32_t id, void** out) {
  if (const int error = wanted("open_device"); error != 0) return -error;
  if (id == 7) return -ENOENT;
  Object o = begin("dev");
  put(o, "dev.id", 0, id);
  put<std::uint32_t>(o, "dev.nid", 4, 0x12345);
  put<std::uint32_t>(o, "dev.pid_bits", 8, 9);
  return hand_out(std::move(o), "open_device(" + text(id) + ")", out);
}
void cxil_close_device(void* dev) {
  destroy("close_device", dev);
}

#if !defined(FAKE_CXI_WITHOUT_1_2)
int cxil_get_svc(void* dev, unsigned id, void* desc) {
  write_down("get_svc(" + name_of(dev) + ", " + text(id) + ")");
  if (const int error = wanted("get_svc"); error != 0) return -error;
  const char* const value = std::getenv("FAKE_CXI_SERVICES");
  const std::string services = std::string(",") + (value != nullptr ? value : "1=any");
  const std::string key = "," + text(id) + "=";
  const auto found = services.find(key);
  if (found == std::string::npos) return -EINVAL;
  std::memset(desc, 0, 68);
  if (services.compare(found + key.size(), 3, "any") == 0) return 0;
  auto* const bytes = static_cast<std::uint8_t*>(desc);
  const auto vni = static_cast<std::uint16_t>(std::atoi(services.c_str() + found + key.size()));
  bytes[0] = 2;
  bytes[1] = 1;
  std::memcpy(bytes + 2, &vni, sizeof vni);
  return 0;
}
#endif

int cxil_alloc_lni(void* dev, void** out, unsigned svc) {
  if (const int error = wanted("alloc_lni"); error != 0) return -error;
  return hand_out(begin("lni"), "alloc_lni(" + name_of(dev) + ", " + text(svc) + ")", out);
}
int cxil_destroy_lni(void* lni) {
  return destroy("destroy_lni", lni);
}

int cxil_alloc_domain(void* lni, unsigned vni, unsigned pid, void** out) {
  if (const int error = wanted("alloc_domain"); error != 0) return -error;
  Object o = begin("domain");
  put(o, "domain.vni", 0, vni);
  put(o, "domain.pid", 4, pid == 511 ? 321U : pid);
  return hand_out(std::move(o),
                  "alloc_domain(" + name_of(lni) + ", vni " + text(vni) + ", pid " + text(pid) + ")", out);
}
int cxil_destroy_domain(void* domain) {
  return destroy("destroy_domain", domain);
}

int cxil_alloc_cp(void* lni, unsigned vni, unsigned tc, unsigned type, void** out) {
  if (const int error = wanted("alloc_cp"); error != 0) return -error;
  Object o = begin("cp");
  put(o, "cp.vni", 0, vni);
  put<std::uint32_t>(o, "cp.tc", 4, tc);
  put<std::uint32_t>(o, "cp.type", 8, type);
  put<std::uint32_t>(o, "cp.lcid", 12, 5);
  return hand_out(
      std::move(o),
      "alloc_cp(" + name_of(lni) + ", vni " + text(vni) + ", tc " + text(tc) + "." + text(type) + ")", out);
}
#if !defined(FAKE_CXI_WITHOUT_1_9)
int cxil_alloc_trig_cp(void* lni, unsigned vni, unsigned tc, unsigned type, unsigned cp_type, void** out) {
  if (const int error = wanted("alloc_trig_cp"); error != 0) return -error;
  write_down("alloc_trig_cp of type " + text(cp_type) + ":");
  return cxil_alloc_cp(lni, vni, tc, type, out);
}
#endif
int cxil_destroy_cp(void* cp) {
  return destroy("destroy_cp", cp);
}

int cxil_map(void* lni, void* va, size_t bytes, std::uint32_t flags, const void* hints, void** out) {
  if (const int error = wanted("map"); error != 0) return -error;
  Object o = begin("md");
  // The device sees memory at other addresses, and a descriptor may begin before what was asked for.
  const auto begins = reinterpret_cast<std::uint64_t>(va) - kPage;
  put<std::uint64_t>(o, "md.iova", 0, 0x7000'0000'0000 + begins);
  put(o, "md.va", 8, begins);
  put<std::uint64_t>(o, "md.len", 16, bytes + kPage);
  put<std::uint8_t>(o, "md.lac", 24, 3);
  return hand_out(std::move(o),
                  "map(" + name_of(lni) + ", " + text(bytes) + " bytes, flags " + text(flags) + ", hints " +
                      hints_text(hints) + ")",
                  out);
}
int cxil_unmap(void* md) {
  return destroy("unmap", md);
}

int cxil_alloc_evtq(void* lni, const void* md, const void* attributes, const void* event_wait,
                    const void* status_wait, void** out) {
  if (const int error = wanted("alloc_evtq"); error != 0) return -error;
  void* const queue = field<void*>(attributes, 0);
  const auto bytes = field<std::uint64_t>(attributes, 8);
  const bool aligned = reinterpret_cast<std::uint64_t>(queue) % kPage == 0 && bytes % kPage == 0;
  Object o = begin("eq");
  o.memory.push_back(pages(kPage, 0));
  std::memset(queue, 0, bytes);
  put(o, "eq.byte_size", 0, static_cast<std::uint32_t>(bytes));
  put_address(o, "eq.csr", 16, o.memory[0].get());
  put<std::uint32_t>(o, "eq.rd_offset", 40, 64);
  put<std::uint32_t>(o, "eq.prev_rd_offset", 44, 64);
  put<std::uint32_t>(o, "eq.eqn", 48, 10 + static_cast<std::uint32_t>(state().made["eq"]));
  put_address(o, "eq.events", 64, queue);
  return hand_out(std::move(o),
                  "alloc_evtq(" + name_of(lni) + ", " + name_of(md) + ", " + text(bytes) +
                      (aligned ? " aligned" : " crooked") + " bytes, flags " +
                      text(field<std::uint64_t>(attributes, 16)) + ", waits " + name_of(event_wait) + " " +
                      name_of(status_wait) + ")",
                  out);
}
int cxil_destroy_evtq(void* eq) {
  return destroy("destroy_evtq", eq);
}

int cxil_alloc_cmdq(void* lni, const void* eq, const void* options, void** out) {
  if (const int error = wanted("alloc_cmdq"); error != 0) return -error;
  std::uint32_t slots = 64;
  while (slots < field<std::uint32_t>(options, 0)) slots *= 2;
  const auto flags = field<std::uint32_t>(options, 12);
  Object o = begin("cq");
  o.memory.push_back(pages(size_t{slots} * 64, 0));
  o.memory.push_back(pages(kPage, 0));
  std::uint8_t* const ring = o.memory[0].get();
  std::uint8_t* const launch = o.memory[1].get();
  ring[0] = 4;
  ring[6] = 1;
  if (setting("FAKE_CXI_WRONG", "status.rd_ptr") == "0") ring[0] = 0;
  if (setting("FAKE_CXI_WRONG", "status.return_code") == "0") ring[6] = 0;
  put(o, "cq.size", 0, slots);
  put_address(o, "cq.wp_addr", 8, launch);
  put_address(o, "cq.ll_64", 16, launch + 1024);
  put_address(o, "cq.ll_128a", 24, launch + 2048);
  put_address(o, "cq.ll_128u", 32, launch + 3072);
  put_address(o, "cq.ring", 40, ring);
  put<std::uint64_t>(o, "cq.rp32", 48, 8);
  put<std::uint32_t>(o, "cq.idx", 56, (flags & 2) != 0 ? 20U : 1044U);
  put<std::uint32_t>(o, "cq.size32", 60, 2 * slots);
  put<std::uint64_t>(o, "cq.wp32", 64, 8);
  put<std::uint64_t>(o, "cq.hw_wp32", 72, 8);
  return hand_out(std::move(o),
                  "alloc_cmdq(" + name_of(lni) + ", " + name_of(eq) + ", " +
                      text(field<std::uint32_t>(options, 0)) + " slots, policy " +
                      text(field<std::uint32_t>(options, 4)) + ", pool " +
                      text(field<std::uint32_t>(options, 8)) + ", flags " + text(flags) + ", lcid " +
                      text(field<std::uint32_t>(options, 16)) + ", threshold " +
                      text(field<std::uint32_t>(options, 20)) + ")",
                  out);
}
#if !defined(FAKE_CXI_WITHOUT_1_9)
/// In memory of the caller, which the library hands to the driver and does not look at.
int cxil_alloc_buf_cmdq(void* lni, const void* eq, const void* options, void** out) {
  if (const int error = wanted("alloc_buf_cmdq"); error != 0) return -error;
  const auto slots = field<std::uint32_t>(options, 0);
  const int fd = field<int>(options, 36);
  Object o = begin("cq");
  o.memory.push_back(pages(kPage, 0));
  std::uint8_t* const launch = o.memory[0].get();
  put(o, "cq.size", 0, slots);
  put_address(o, "cq.wp_addr", 8, launch);
  put_address(o, "cq.ll_64", 16, launch + 1024);
  put_address(o, "cq.ll_128a", 24, launch + 2048);
  put_address(o, "cq.ll_128u", 32, launch + 3072);
  put_address(o, "cq.ring", 40, nullptr);
  put<std::uint64_t>(o, "cq.rp32", 48, 8);
  put<std::uint32_t>(o, "cq.idx", 56, 20);
  put<std::uint32_t>(o, "cq.size32", 60, 2 * slots);
  put<std::uint64_t>(o, "cq.wp32", 64, 8);
  put<std::uint64_t>(o, "cq.hw_wp32", 72, 8);
  const auto* const buffer = field<const std::uint8_t*>(options, 24);
  return hand_out(std::move(o),
                  "alloc_buf_cmdq(" + name_of(lni) + ", " + name_of(eq) + ", " + text(slots) + " slots, " +
                      (field<std::uint8_t>(options, 32) != 0 ? "host" : "device") + " memory " +
                      (reinterpret_cast<std::uint64_t>(buffer) % kPage == 0 ? "at a page" : "inside a page") +
                      ", dma-buf " + (::fcntl(fd, F_GETFD) >= 0 ? "open" : "closed") + " +" +
                      text(field<std::uint64_t>(options, 40)) + ")",
                  out);
}
#endif
int cxil_destroy_cmdq(void* cq) {
  return destroy("destroy_cmdq", cq);
}

int cxil_alloc_ct(void* lni, void* writeback, void** out) {
  if (const int error = wanted("alloc_ct"); error != 0) return -error;
  Object o = begin("ct");
  o.memory.push_back(pages(kPage, 0xff));
  put_address(o, "ct.doorbell", 0, o.memory[0].get());
  put<std::uint32_t>(o, "ct.ctn", 8, 30);
  put_address(o, "ct.wb", 16, writeback);
  return hand_out(
      std::move(o),
      "alloc_ct(" + name_of(lni) + ", write-back " + (writeback != nullptr ? "given" : "none") + ")", out);
}
int cxil_destroy_ct(void* ct) {
  return destroy("destroy_ct", ct);
}

int cxil_alloc_pte(void* lni, const void* eq, const std::uint64_t* options, void** out) {
  if (const int error = wanted("alloc_pte"); error != 0) return -error;
  Object o = begin("pte");
  put<std::uint32_t>(o, "pte.ptn", 0, 40);
  return hand_out(std::move(o),
                  "alloc_pte(" + name_of(lni) + ", " + name_of(eq) + ", options " + text(*options) + ")",
                  out);
}
int cxil_destroy_pte(void* pte) {
  return destroy("destroy_pte", pte);
}

int cxil_map_pte(const void* pte, const void* domain, unsigned pid_offset, bool multicast, void** out) {
  if (const int error = wanted("map_pte"); error != 0) return -error;
  return hand_out(begin("ptemap"),
                  "map_pte(" + name_of(pte) + ", " + name_of(domain) + ", offset " + text(pid_offset) +
                      (multicast ? ", multicast)" : ", unicast)"),
                  out);
}
int cxil_unmap_pte(void* map) {
  return destroy("unmap_pte", map);
}

}  // extern "C"
