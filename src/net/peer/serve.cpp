// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "net/peer/serve.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>

#include "exchange/alive.hpp"
#include "exchange/fields.hpp"
#include "net/peer/peer_link.hpp"
#include "net/settings.hpp"
#include "report/layout.hpp"
#include "system/clock.hpp"

namespace doorbell::net {

namespace {

using Json = nlohmann::ordered_json;

/// One cell of a client's run.
class ServedCell {
 public:
  ServedCell(const ServeOptions& serve, exchange::Exchange& exchange, const Json& message)
      : exchange_(exchange) {
    options_.role = Role::receiver;
    options_.place = serve.place;
    options_.split = serve.split;
    options_.polling = serve.polling;
    options_.cores = serve.cores;
    options_.windows.on_gpu = serve.windows_on_gpu;
    options_.windows.to_gpu = serve.to_gpu;
    options_.gpu = serve.gpu;
    read_cell_message(message, &options_, &setup_);
    const StreamKind& kind = kind_of(options_);
    check_abilities(kind, options_.split, options_.steering);
    link_ = std::make_unique<PeerLink>(End::rx, serve.link, "", serve.at.host);
    link_->meet(exchange);
    stream_ = open_stream(options_, setup_, *link_);
    end_ = std::make_unique<LocalReceivingEnd>(receiving_options(options_, setup_, *stream_), stream_->rx);
    drops_ = link_->interface_drops(End::rx);
    exchange.send("ready", Json::object());
  }

  void begin() {
    end_->begin();
    exchange_.send("began", Json::object());
  }
  void end(const Json& message) { exchange_.send("phase", phase_message(end_->end(sent_in(message)))); }
  void finish(const Json& message, ServeResult* result) {
    ReceiveTotals t = end_->finish(sent_in(message));
    add_interface_drops(*stream_, link_->interface_drops(End::rx) - drops_, &t.drops);
    exchange_.send("totals", totals_message(t));
    result->received += t.counts.received;
    result->checked += t.counts.checked;
    result->errors += t.counts.corrupt + t.counts.duplicate + t.counts.misplaced + t.counts.short_ +
                      t.counts.late + t.beyond + t.wrong_results;
  }
  [[nodiscard]] double timeout_s() const { return options_.timeout_s; }
  [[nodiscard]] std::string title() const {
    return fmt::format("{} {} bytes, {} flows", kind_of(options_).name, setup_.cell.payload, setup_.flows());
  }

 private:
  /// The packets that the client has sent. Windows are delivered up to there, so it must be possible.
  [[nodiscard]] std::vector<u64> sent_in(const Json& message) const {
    std::vector<u64> sent = read_sent_message(message, setup_.flows());
    if (const u64 most = wall_ns() - opened_ns_; std::ranges::any_of(sent, [&](u64 n) { return n > most; }))
      throw Error(exchange::kOtherEnd, "'sent' is more than a packet a nanosecond");
    return sent;
  }

  exchange::Exchange& exchange_;
  BenchOptions options_;
  CellSetup setup_;
  std::unique_ptr<PeerLink> link_;
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<LocalReceivingEnd> end_;
  u64 drops_ = 0;
  u64 opened_ns_ = wall_ns();
};

}  // namespace

ServeResult serve(const ServeOptions& o, const measure::RunWatch& watch) {
  auto [exchange, next] = exchange::wait_for_client(kRunKind, o.at, setting::listen, {"cell", "bye"},
                                                    o.wait_s, o.timeout_s, watch);
  ServeResult result;
  try {
    std::unique_ptr<ServedCell> cell;
    bool receiving = false;
    const auto silent_s = [&] { return exchange::silent_limit_s(o.timeout_s, cell ? cell->timeout_s() : 0); };
    for (;;
         next = exchange::next_of_client(exchange, {"cell", "begin", "end", "finish", "bye"}, silent_s())) {
      const auto& [type, message] = next;
      if (type == "bye") {
        result.code = static_cast<int>(exchange::small(message, "code", 0, 255));
        result.verdict = report::printable(exchange::text(message, "verdict", kLongestVerdict));
        return result;
      }
      if (type == "cell") {
        cell.reset();  // its ports are free again before the next cell takes them
        cell = std::make_unique<ServedCell>(o, exchange, message);
        receiving = false;
        ++result.cells;
        if (watch.progress) watch.progress(0, cell->title());
        continue;
      }
      if (!cell || (type == "end") != receiving)
        throw Error("the client", fmt::format("its message '{}' is out of turn", type));
      if (type == "begin") cell->begin();
      else if (type == "end") cell->end(message);
      else cell->finish(message, &result);
      receiving = type == "begin";
    }
  } catch (const Error& e) {
    exchange.fail(e.what());
    throw;
  }
}

}  // namespace doorbell::net
