// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// The end of `doorbell rdma --listen` when its client says nothing more, with a model as its device.

#include "rdma/serve.hpp"

#include <doorbell/error.hpp>
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <future>
#include <thread>

#include "errors.hpp"
#include "exchange/alive.hpp"
#include "rdma/remote_server.hpp"
#include "rdma/swap.hpp"
#include "rma/cell_setup.hpp"

namespace doorbell::rdma {
namespace {

using Json = nlohmann::ordered_json;
using exchange::Exchange;

constexpr double kTimeoutS = 0.5;
const exchange::SocketName kAnyPort{"127.0.0.1", 0};

/// A server in a thread, and what it threw.
class Server {
 public:
  Server() {
    ServeOptions o;
    o.device = "model";
    o.provider = Provider::mlx5;
    o.at = kAnyPort;
    o.timeout_s = kTimeoutS;
    thread_ = std::thread([this, o] {
      error_ = test::error_of([&] {
        (void)serve(o, {.progress = [&](double, const std::string& what) {
                      const auto colon = what.rfind(':');
                      if (what.starts_with("listening"))
                        port_.set_value(static_cast<u16>(std::stoi(what.substr(colon + 1))));
                    }});
      });
    });
  }
  ~Server() { (void)error(); }
  [[nodiscard]] Exchange connect() {
    return Exchange::connect(kRunKind, {"127.0.0.1", port_.get_future().get()}, 60);
  }
  std::string error() {
    if (thread_.joinable()) thread_.join();
    return error_;
  }

 private:
  std::promise<u16> port_;
  std::string error_;
  std::thread thread_;
};

/// A client that has come so far with the server.
Exchange with_a_cell(Server& server, Op op) {
  Exchange x = server.connect();
  BenchOptions o;
  o.ends = Ends::remote;
  o.op = op;
  o.sizes = {64};
  o.queues = 1;
  o.in_flight = 4;
  o.timeout_s = kTimeoutS;
  x.send("cell", cell_message(o, o.connection, set_up_cell(o, Part::rate, 64)));
  (void)swap(x, std::vector<QueuePairAddress>{{.qpn = 0x123, .psn = 0, .lid = 0, .mtu = 1024, .gid = {}}});
  (void)swap(x, std::vector<MemoryKey>{{0x10000, 1, u64{1} << 20}});
  x.barrier("connected");
  return x;
}

/// The connection stays open for as long as the server lives.
void expect_given_up(Server& server, const std::string& awaited) {
  test::expect_says(server.error(), "it does not send '" + awaited + "' or 'alive' in time");
}

TEST(RdmaServe, AClientThatIsSilentBetweenPhasesIsGivenUp) {
  Server server;
  const Exchange x = with_a_cell(server, Op::write);
  expect_given_up(server, "cell' or 'phase' or 'end");
}

TEST(RdmaServe, AClientThatIsSilentInAPhaseIsGivenUp) {
  for (const Op op : {Op::write, Op::send}) {
    Server server;
    Exchange x = with_a_cell(server, op);
    x.send("phase", phase_message({1, ~u64{0}}));
    (void)x.receive("ready");
    exchange::SignsOfLife alive(x);
    alive.send();
    if (op == Op::write) expect_given_up(server, "done");
    else test::expect_says(server.error(), "'done' or 'alive' in time");
  }
}

TEST(SignsOfLife, AreNoMessagesOfTheirOwn) {
  Server server;
  Exchange x = with_a_cell(server, Op::write);
  exchange::SignsOfLife(x).send();
  exchange::SignsOfLife(x).send();
  x.send("end", Json::object());
  EXPECT_EQ(server.error(), "no error");
}

}  // namespace
}  // namespace doorbell::rdma
