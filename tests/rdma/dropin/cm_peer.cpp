// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// One end of connections made by librdmacm, as a program of others would make them: every byte of its
// messages and of the private data is checked. cm_programs_test.py starts two of them.
//   cm_peer server ADDRESS PORT COUNT       answers COUNT connections; says "listening PORT",
//                                           and "established" for a peer that holds
//   cm_peer reopen ADDRESS PORT COUNT       the same, but ends its listener, says "closed", awaits a line
//   cm_peer reopen-twice ADDRESS PORT COUNT does so twice
//   cm_peer client ADDRESS PORT COUNT       makes COUNT connections at a time
//   cm_peer call ADDRESS PORT [DATA]        one attempt; says which event ends it, its status and its data
//   cm_peer hold ADDRESS PORT               one connection, which the peer has to end; says "established"
// Exit code: 0, or 1 with a sentence on standard error.
#include <arpa/inet.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "rdma/dropin/cm/cm_abi.hpp"

extern "C" {
rdma_event_channel* rdma_create_event_channel();
void rdma_destroy_event_channel(rdma_event_channel* channel);
int rdma_create_id(rdma_event_channel* channel, rdma_cm_id** into, void* context, rdma_port_space space);
int rdma_destroy_id(rdma_cm_id* id);
int rdma_bind_addr(rdma_cm_id* id, sockaddr* address);
int rdma_listen(rdma_cm_id* id, int backlog);
int rdma_resolve_addr(rdma_cm_id* id, sockaddr* from, sockaddr* to, int timeout);
int rdma_resolve_route(rdma_cm_id* id, int timeout);
int rdma_create_qp(rdma_cm_id* id, ibv_pd* pd, ibv_qp_init_attr* made);
void rdma_destroy_qp(rdma_cm_id* id);
int rdma_connect(rdma_cm_id* id, rdma_conn_param* param);
int rdma_accept(rdma_cm_id* id, rdma_conn_param* param);
int rdma_reject(rdma_cm_id* id, const void* data, uint8_t bytes);
int rdma_disconnect(rdma_cm_id* id);
int rdma_get_cm_event(rdma_event_channel* channel, rdma_cm_event** event);
int rdma_ack_cm_event(rdma_cm_event* event);
const char* rdma_event_str(rdma_cm_event_type event);
__be16 rdma_get_src_port(rdma_cm_id* id);
}

namespace {

constexpr int kMessages = 12;
constexpr uint32_t kLargest = 100'000;
constexpr int kWaitMs = 60'000;

[[noreturn]] void fail(const std::string& sentence) {
  std::fprintf(stderr, "cm_peer: %s (errno %d)\n", sentence.c_str(), errno);
  std::_Exit(1);
}
void need(bool holds, const char* sentence) {
  if (!holds) fail(sentence);
}
void say(const std::string& line) {
  std::printf("%s\n", line.c_str());
  std::fflush(stdout);
}

uint8_t pattern(uint32_t connection, int message, uint32_t at, bool answer) {
  return static_cast<uint8_t>(connection * 131 + static_cast<uint32_t>(message) * 31 + at * 7 + (at >> 8) +
                              (answer ? 85 : 0));
}
uint32_t size_of(int message) {
  constexpr std::array<uint32_t, 6> kSizes = {1, 64, 4096, 4097, 33333, kLargest};
  return kSizes[static_cast<std::size_t>(message) % kSizes.size()];
}

sockaddr_in address_of(const char* ip, const char* port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(std::atoi(port)));
  need(::inet_pton(AF_INET, ip, &address.sin_addr) == 1, "no IPv4 address");
  return address;
}

/// A queue pair of an id, with a receive buffer and a send buffer.
struct Line {
  rdma_cm_id* id = nullptr;
  uint32_t number = 0;  ///< the client's count of its connections, which its private data tell
  std::vector<uint8_t> bytes = std::vector<uint8_t>(2 * kLargest);
  ibv_mr* region = nullptr;
  ibv_cq* queue = nullptr;
  int received = 0;
  bool over = false;

  void open(rdma_cm_id* with) {
    id = with;
    queue = ::ibv_create_cq(id->verbs, 16, nullptr, nullptr, 0);
    need(queue != nullptr, "ibv_create_cq");
    ibv_qp_init_attr made{};
    made.send_cq = made.recv_cq = queue;
    made.qp_type = IBV_QPT_RC;
    made.cap = {
        .max_send_wr = 4, .max_recv_wr = 4, .max_send_sge = 1, .max_recv_sge = 1, .max_inline_data = 0};
    need(rdma_create_qp(id, nullptr, &made) == 0, "rdma_create_qp");
    region = ::ibv_reg_mr(id->pd, bytes.data(), bytes.size(), IBV_ACCESS_LOCAL_WRITE);
    need(region != nullptr, "ibv_reg_mr");
    receive();
  }
  void close() {
    rdma_destroy_qp(id);
    ::ibv_dereg_mr(region);
    ::ibv_destroy_cq(queue);
    need(rdma_destroy_id(id) == 0, "rdma_destroy_id");
  }
  void receive() {
    ibv_sge sge{.addr = reinterpret_cast<uint64_t>(bytes.data()), .length = kLargest, .lkey = region->lkey};
    ibv_recv_wr wr{.wr_id = 1, .next = nullptr, .sg_list = &sge, .num_sge = 1};
    ibv_recv_wr* bad = nullptr;
    need(::ibv_post_recv(id->qp, &wr, &bad) == 0, "ibv_post_recv");
  }
  void send(int message, bool answer) {
    const uint32_t size = size_of(message);
    for (uint32_t i = 0; i < size; ++i) bytes[kLargest + i] = pattern(number, message, i, answer);
    ibv_sge sge{
        .addr = reinterpret_cast<uint64_t>(bytes.data() + kLargest), .length = size, .lkey = region->lkey};
    ibv_send_wr wr{};
    wr.wr_id = 2;
    wr.sg_list = &sge;
    wr.num_sge = 1;
    wr.opcode = IBV_WR_SEND;
    wr.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* bad = nullptr;
    need(::ibv_post_send(id->qp, &wr, &bad) == 0, "ibv_post_send");
  }
  /// True when a message has come; it has been checked.
  bool poll(bool answers) {
    ibv_wc done{};
    const int count = ::ibv_poll_cq(queue, 1, &done);
    need(count >= 0, "ibv_poll_cq");
    if (count == 0) return false;
    if (done.status == IBV_WC_WR_FLUSH_ERR) return false;
    if (done.status != IBV_WC_SUCCESS) fail("completion with status " + std::to_string(done.status));
    if (done.opcode != IBV_WC_RECV) return false;
    need(done.byte_len == size_of(received), "a message of another length");
    for (uint32_t i = 0; i < done.byte_len; ++i)
      need(bytes[i] == pattern(number, received, i, answers), "wrong data");
    ++received;
    receive();
    return true;
  }
};

/// nullptr when none comes within the time; a program that waits without end is a test that hangs.
rdma_cm_event* next_event(rdma_event_channel* channel, int wait_ms) {
  pollfd one{.fd = channel->fd, .events = POLLIN, .revents = 0};
  if (::poll(&one, 1, wait_ms) != 1) return nullptr;
  rdma_cm_event* event = nullptr;
  need(rdma_get_cm_event(channel, &event) == 0, "rdma_get_cm_event");
  return event;
}

void expect(rdma_event_channel* channel, rdma_cm_event_type type) {
  rdma_cm_event* event = next_event(channel, kWaitMs);
  if (event == nullptr) fail(std::string("no event, not even ") + rdma_event_str(type));
  if (event->event != type || event->status != 0)
    fail(std::string(rdma_event_str(event->event)) + ", status " + std::to_string(event->status) +
         ", instead of " + rdma_event_str(type));
  rdma_ack_cm_event(event);
}

/// The private data of an event are `wanted`, and zeros behind.
void check_data(const rdma_cm_event& event, const std::string& wanted) {
  const auto& conn = event.param.conn;
  need(conn.private_data != nullptr && conn.private_data_len >= wanted.size(), "private data are missing");
  need(std::memcmp(conn.private_data, wanted.data(), wanted.size()) == 0, "wrong private data");
  for (std::size_t i = wanted.size(); i < conn.private_data_len; ++i)
    need(static_cast<const uint8_t*>(conn.private_data)[i] == 0, "bytes behind the private data");
}

std::string hello(uint32_t number) {
  return "hello " + std::to_string(number) + ".";
}
std::string welcome(uint32_t number) {
  return "welcome " + std::to_string(number) + ".";
}

rdma_conn_param with_data(const std::string& data) {
  rdma_conn_param param{};
  param.private_data = data.data();
  param.private_data_len = static_cast<uint8_t>(data.size());
  param.responder_resources = param.initiator_depth = 1;
  param.retry_count = param.rnr_retry_count = 7;
  return param;
}

void request(rdma_cm_event& event, std::map<rdma_cm_id*, std::unique_ptr<Line>>& lines) {
  const std::string data(static_cast<const char*>(event.param.conn.private_data));
  if (data == "reject") {
    need(rdma_reject(event.id, "no, thank you", 13) == 0, "rdma_reject");
    need(rdma_destroy_id(event.id) == 0, "rdma_destroy_id");
    return;
  }
  if (data == "ignore") return;
  const auto number = static_cast<uint32_t>(std::atoi(data.c_str() + std::strlen("hello ")));
  if (data != "hold") check_data(event, hello(number));
  auto line = std::make_unique<Line>();
  line->number = number;
  line->open(event.id);
  const std::string answer = welcome(number);
  rdma_conn_param param = with_data(answer);
  need(rdma_accept(event.id, &param) == 0, "rdma_accept");
  lines[event.id] = std::move(line);
}

rdma_cm_id* listener_at(rdma_event_channel* channel, const sockaddr_in& address) {
  rdma_cm_id* listener = nullptr;
  need(rdma_create_id(channel, &listener, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
  sockaddr_in at = address;
  need(rdma_bind_addr(listener, reinterpret_cast<sockaddr*>(&at)) == 0, "rdma_bind_addr");
  need(rdma_listen(listener, 0) == 0, "rdma_listen");
  return listener;
}

int serve(const char* ip, const char* port, int count, int closings) {
  rdma_event_channel* channel = rdma_create_event_channel();
  need(channel != nullptr, "rdma_create_event_channel");
  sockaddr_in at = address_of(ip, port);
  rdma_cm_id* listener = listener_at(channel, at);
  at.sin_port = rdma_get_src_port(listener);
  say("listening " + std::to_string(ntohs(at.sin_port)));
  for (int i = 0; i < closings; ++i) {
    need(rdma_destroy_id(listener) == 0, "rdma_destroy_id");
    say("closed");
    need(std::getchar() == '\n', "no line");
    listener = listener_at(channel, at);
  }
  std::map<rdma_cm_id*, std::unique_ptr<Line>> lines;
  for (int over = 0; over < count;) {
    bool busy = false;
    for (auto& [id, line] : lines) {
      if (!line->poll(false)) continue;
      line->send(line->received - 1, true);
      busy = true;
    }
    rdma_cm_event* event = next_event(channel, busy ? 0 : 1);
    if (event == nullptr) continue;
    rdma_cm_id* id = event->id;
    const rdma_cm_event_type type = event->event;
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) {
      need(event->listen_id == listener, "another listener");
      request(*event, lines);
    }
    rdma_ack_cm_event(event);
    if (type == RDMA_CM_EVENT_CONNECT_REQUEST) continue;
    if (type == RDMA_CM_EVENT_ESTABLISHED) {
      if (lines.at(id)->number == 0) say("established");
      continue;
    }
    if (type != RDMA_CM_EVENT_DISCONNECTED) fail(std::string(rdma_event_str(type)) + " at the server");
    need(rdma_disconnect(id) == 0, "rdma_disconnect");
    lines.at(id)->close();
    lines.erase(id);
    ++over;
  }
  need(rdma_destroy_id(listener) == 0, "rdma_destroy_id");
  rdma_destroy_event_channel(channel);
  return 0;
}

rdma_cm_id* resolved(rdma_event_channel* channel, const char* ip, const char* port) {
  rdma_cm_id* id = nullptr;
  need(rdma_create_id(channel, &id, nullptr, RDMA_PS_TCP) == 0, "rdma_create_id");
  sockaddr_in to = address_of(ip, port);
  need(rdma_resolve_addr(id, nullptr, reinterpret_cast<sockaddr*>(&to), 2000) == 0, "rdma_resolve_addr");
  expect(channel, RDMA_CM_EVENT_ADDR_RESOLVED);
  need(rdma_resolve_route(id, 2000) == 0, "rdma_resolve_route");
  expect(channel, RDMA_CM_EVENT_ROUTE_RESOLVED);
  need(id->route.num_paths == 1 && id->route.path_rec != nullptr, "no path");
  return id;
}

int call_many(const char* ip, const char* port, int count) {
  rdma_event_channel* channel = rdma_create_event_channel();
  need(channel != nullptr, "rdma_create_event_channel");
  std::vector<std::unique_ptr<Line>> lines;
  for (int i = 0; i < count; ++i) {
    lines.push_back(std::make_unique<Line>());
    Line& line = *lines.back();
    line.number = static_cast<uint32_t>(i + 1);
    line.open(resolved(channel, ip, port));
  }
  for (auto& line : lines) {
    const std::string data = hello(line->number);
    rdma_conn_param param = with_data(data);
    need(rdma_connect(line->id, &param) == 0, "rdma_connect");
  }
  for (int established = 0; established < count; ++established) {
    rdma_cm_event* event = next_event(channel, kWaitMs);
    need(event != nullptr, "no event instead of ESTABLISHED");
    if (event->event != RDMA_CM_EVENT_ESTABLISHED)
      fail(std::string(rdma_event_str(event->event)) + " instead of ESTABLISHED, status " +
           std::to_string(event->status));
    for (auto& line : lines)
      if (line->id == event->id) check_data(*event, welcome(line->number));
    rdma_ack_cm_event(event);
  }
  for (int message = 0; message < kMessages; ++message) {
    for (auto& line : lines) line->send(message, false);
    for (auto& line : lines)
      while (line->received <= message) (void)line->poll(true);
  }
  for (auto& line : lines) need(rdma_disconnect(line->id) == 0, "rdma_disconnect");
  for (int over = 0; over < count; ++over) expect(channel, RDMA_CM_EVENT_DISCONNECTED);
  for (auto& line : lines) line->close();
  rdma_destroy_event_channel(channel);
  return 0;
}

int call(const char* ip, const char* port, const std::string& data) {
  rdma_event_channel* channel = rdma_create_event_channel();
  need(channel != nullptr, "rdma_create_event_channel");
  Line line;
  line.open(resolved(channel, ip, port));
  rdma_conn_param param = with_data(data);
  need(rdma_connect(line.id, &param) == 0, "rdma_connect");
  say("calling");
  rdma_cm_event* event = next_event(channel, kWaitMs);
  need(event != nullptr, "no event");
  std::string text;
  if (event->param.conn.private_data != nullptr)
    text = static_cast<const char*>(event->param.conn.private_data);
  say(std::string(rdma_event_str(event->event)) + " " + std::to_string(event->status) + " " + text);
  const bool established = event->event == RDMA_CM_EVENT_ESTABLISHED;
  rdma_ack_cm_event(event);
  if (established) {
    say("established");
    expect(channel, RDMA_CM_EVENT_DISCONNECTED);
    say("disconnected");
  }
  line.close();
  rdma_destroy_event_channel(channel);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc >= 4) {
    const std::string mode = argv[1];
    const int closings = mode == "reopen-twice" ? 2 : mode == "reopen" ? 1 : 0;
    if ((mode == "server" || closings != 0) && argc == 5)
      return serve(argv[2], argv[3], std::atoi(argv[4]), closings);
    if (mode == "client" && argc == 5) return call_many(argv[2], argv[3], std::atoi(argv[4]));
    if (mode == "call") return call(argv[2], argv[3], argc > 4 ? argv[4] : "");
    if (mode == "hold") return call(argv[2], argv[3], "hold");
  }
  std::fprintf(stderr,
               "usage: cm_peer server|reopen|reopen-twice|client|call|hold ADDRESS PORT [COUNT|DATA]\n");
  return 1;
}
