// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include "model/copy_allowance.hpp"
#include "options/spec.hpp"
#include "qdma/model/model_card.hpp"
#include "qdma/settings.hpp"

namespace doorbell::qdma {

namespace {

constexpr u64 kMaxRate = u64{1} << 50;

/// Published for the V80 (docs/qdma.md): one direction through both channels about 23 GB/s from DDR and to
/// both memories, from one half of HBM about 12.
constexpr u64 kV80Channel = 11'500'000'000, kV80Link = 26'000'000'000, kV80HbmRead = 12'000'000'000;

}  // namespace

bool is_model(std::string_view spec) {
  return spec == "model" || spec.starts_with("model:");
}

double CardConfig::lowest_rate() const {
  double lowest = 0;
  for (const double rate :
       {bytes_per_s, link_bytes_per_s, duplex_bytes_per_s, hbm_read_bytes_per_s, hbm_write_bytes_per_s})
    if (rate > 0 && (lowest == 0 || rate < lowest)) lowest = rate;
  return lowest;
}

double lowest_model_rate(const std::string& spec) {
  return is_model(spec) ? parse_card_spec(spec, setting::card).lowest_rate() : 0;
}

double expected_rate(const std::string& spec) {
  if (!is_model(spec)) return 0;
  const double own = lowest_model_rate(spec), host = model::first_copy_rate();
  return own > 0 ? std::min(own, host) : host;
}

options::OptionTable model_keys() {
  options::OptionTable t;
  t.add({.name = "preset",
         .default_text = "none",
         .choices = {"none", "v80"},
         .help = "rates for keys that are not given: none, or those of the published figures of a V80"});
  t.add(model::bandwidth_key("bytes a second of each channel, in each direction; 0: no limit"));
  t.add(model::rate_key("link", kMaxRate,
                        "bytes a second of both channels together, in each direction; 0: no limit"));
  t.add({.name = "duplex",
         .kind = options::Kind::real,
         .default_text = "1",
         .min = 0.5,
         .max = 1.0,
         .help = "what both directions together reach, of twice the link (or of what the channels allow); 1: "
                 "each all of its own, 0.5: half-duplex"});
  t.add(model::rate_key("hbm-read", kMaxRate, "bytes a second out of each half of HBM; 0: no limit"));
  t.add(model::rate_key("hbm-write", kMaxRate, "bytes a second into each half of HBM; 0: no limit"));
  t.add(
      model::latency_key("time added to every sub-transfer, and to every piece of one larger than its ring"));
  t.add(model::whole_key("threads", "0", 0, 64, "device threads; 0: one a core, at most 8",
                         &CardConfig::threads));
  t.add({.name = "clock",
         .default_text = "real",
         .choices = {"real", "counted"},
         .help = "counted: time passes only as bytes move and deadlines come, so that rates do not depend on "
                 "the machine; for tests",
         .into = {"counted", &CardConfig::counted_clock}});
  t.add(model::delay_key("a completion"));
  return t;
}

CardConfig parse_card_spec(const std::string& spec, const std::string& card) {
  const std::string title = card + " model";
  const options::Options o = options::parse_spec(title, model_keys(), spec);
  CardConfig c;
  o.read_into<model::Config>(c);
  o.read_into(c);
  const bool v80 = o.text("preset") == "v80";
  const auto rate = [&](const char* key, u64 preset) {
    return static_cast<double>(v80 && !o.given(key) ? preset : o.bytes(key));
  };
  c.bytes_per_s = rate("bandwidth", kV80Channel);
  c.link_bytes_per_s = rate("link", kV80Link);
  c.hbm_read_bytes_per_s = rate("hbm-read", kV80HbmRead);
  c.hbm_write_bytes_per_s = rate("hbm-write", 0);
  if (const double duplex = o.real("duplex"); duplex < 1) {
    double one = 2 * c.bytes_per_s;
    if (c.link_bytes_per_s > 0) one = one > 0 ? std::min(one, c.link_bytes_per_s) : c.link_bytes_per_s;
    if (one == 0)
      throw Error(title + ": duplex", "it is a part of a rate, and there is none",
                  "give link or bandwidth as well");
    c.duplex_bytes_per_s = duplex * 2 * one;
  }
  return c;
}

std::shared_ptr<ModelCard> make_model_card(const std::string& spec, const model::Use& use,
                                           const Setting& named_by) {
  CardConfig c = parse_card_spec(spec, named_by);
  // Its threads sleep while they wait, so they take no core from the initiators.
  if (c.threads == 0) c.threads = std::clamp(std::thread::hardware_concurrency(), 1u, 8u);
  c.fit(use);
  if (c.faults.of(model::Fault::duplicate) > 0)
    throw Error(setting::fault + " duplicate",
                "a call of a card's driver returns once, so nothing can come twice",
                "the card has drop, delay, error, corrupt, misplace, stale, reorder, removal");
  return std::make_shared<ModelCard>(c);
}

nlohmann::ordered_json counters_of(const ModelCard& card) {
  return card.counters();
}

}  // namespace doorbell::qdma
