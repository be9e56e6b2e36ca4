// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "service/control_socket.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <thread>
#include <vector>

#include "service/local_socket.hpp"
#include "service/socket_loop.hpp"
#include "system/sysfs.hpp"
#include "system/thread.hpp"

namespace doorbell::service {

namespace {

constexpr std::size_t kLongestAnswer = std::size_t{64} << 10;
constexpr u64 kMostClients = 16;

}  // namespace

class ControlSocket::Loop final : public Protocol {
 public:
  Loop(const std::string& path, Answer answer)
      : answer_(std::move(answer)),
        loop_({.clients = {.longest = SocketLoop::kLongest}, .pairs = {}, .workers = 1, .one_user = true}),
        file_() {
    loop_.serve(*this);
    loop_.listen(listen_at(path, fmt::format("listen at {}", path), {.mode = 0600}));
    file_ = SocketFile(path);
    thread_ = make_thread("control socket", [this] {
      pthread_setname_np(pthread_self(), "control");
      loop_.run();
    });
  }
  ~Loop() override {
    loop_.stop();
    thread_.join();
  }

 private:
  SocketId next_socket() override { return next_id_++; }
  int connect(SocketId, Peer) override {
    if (clients_ >= kMostClients) return EBUSY;
    ++clients_;
    return 0;
  }
  std::vector<u8> refusal(int) override { return {}; }
  void closed(SocketId) override { --clients_; }
  void refused(std::string_view) override {}
  void message(SocketId id, Message m) override {
    auto text = std::make_shared<std::string>(reinterpret_cast<const char*>(m.bytes.data()), m.bytes.size());
    if (m.truncated) text->clear();
    auto said = std::make_shared<std::string>(R"({"error":"no memory"})");
    loop_.pause(id);  // one question at a time
    loop_.run([this, text, said] { *said = answer(*text); },
              [this, id, said] {
                loop_.send(id, {said->begin(), said->end()}, {});
                loop_.resume(id);
              });
  }
  [[nodiscard]] std::string answer(const std::string& text) const {
    nlohmann::ordered_json said;
    try {
      const auto question = nlohmann::ordered_json::parse(text, nullptr, false);
      if (question.is_object()) said = answer_(question);
      else said = {{"error", "the question is no JSON object"}};
    } catch (const Error& e) {
      said = {{"error", e.what()}, {"hint", e.hint()}};
    } catch (const nlohmann::ordered_json::exception& e) {
      said = {{"error", fmt::format("the question: {}", e.what())}};
    }
    std::string out = said.dump();
    return out.size() <= kLongestAnswer ? out : R"({"error":"the answer is too long"})";
  }

  Answer answer_;
  SocketId next_id_ = 1;
  u64 clients_ = 0;
  SocketLoop loop_;
  SocketFile file_;
  std::thread thread_;
};

ControlSocket::ControlSocket(const std::string& path, Answer answer)
    : loop_(std::make_unique<Loop>(path, std::move(answer))) {}
ControlSocket::~ControlSocket() = default;

nlohmann::ordered_json ask_control(const std::string& path, const nlohmann::ordered_json& question,
                                   const Patience& patience) {
  const std::string subject = fmt::format("the server at {}", path);
  int error = 0;
  const Descriptor fd = connect_local(local_address(path, subject), patience, error);
  if (fd.get() < 0)
    throw Error(subject,
                error == ENOENT || error == ECONNREFUSED ? "no server listens there" : reason(error));
  const std::string text = question.dump();
  error = send_message(fd.get(), {reinterpret_cast<const u8*>(text.data()), text.size()}, -1);
  if (error != 0) throw Error(subject, reason(error));
  std::vector<char> space(kLongestAnswer);
  Waiting waiting(patience, patience.limit_s);
  for (;;) {
    pollfd p{fd.get(), POLLIN, 0};
    if (::poll(&p, 1, 20) == 1) break;
    if (const int over = waiting.over(); over != 0)
      throw Error(subject, why_over(over, "it", patience.limit_s));
  }
  const ssize_t n = ::recv(fd.get(), space.data(), space.size(), 0);
  if (n <= 0) throw Error(subject, "it has closed the connection");
  auto answer = nlohmann::ordered_json::parse(space.data(), space.data() + n, nullptr, false);
  if (!answer.is_object()) throw Error(subject, "its answer is no JSON object");
  if (const auto refused = answer.find("error"); refused != answer.end() && refused->is_string())
    throw Error(subject, refused->get<std::string>(), answer.value("hint", std::string()));
  return answer;
}

}  // namespace doorbell::service
