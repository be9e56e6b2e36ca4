// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

#include "rdma/model/spec.hpp"

#include <doorbell/error.hpp>
#include <fmt/format.h>

#include "options/spec.hpp"

namespace doorbell::rdma {

options::OptionTable model_keys() {
  options::OptionTable t;
  t.add(model::threads_key("queue pair"));
  t.add(model::copy_threads_key());
  t.add(model::engine_key("queue pairs"));
  t.add(model::whole_key("mtu", "4096", 256, 4096, "payload bytes of a packet: 256, 512, 1024, 2048 or 4096",
                         &ModelConfig::mtu));
  t.add(model::bandwidth_key(
      "bytes a second on the wire, RoCEv2 headers included, that all queue pairs share; 0: no limit"));
  t.add(model::latency_key("time added to every message"));
  t.add({.name = "loss",
         .default_text = "0",
         .min = 0,
         .max = 1,
         .help = "probability that a packet is lost",
         .into = &ModelConfig::loss});
  t.add(model::whole_key(
      "rnr", "0", 0, 1000,
      "answer 'receiver not ready' to the first N tries of each message that takes a receive",
      &ModelConfig::rnr_tries));
  t.add(model::bytes_key("max-inline", "0", 0, 1024,
                         "largest inlined payload granted; 0: what the queue format can carry",
                         &ModelConfig::max_inline));
  t.add(
      model::whole_key("sq", "32768", 1, 32768, "largest send queue, in requests", &ModelConfig::max_sends));
  t.add(model::whole_key("rq", "32768", 1, 32768, "largest receive queue, in entries",
                         &ModelConfig::max_receives));
  t.add(model::delay_key("a completion"));
  return t;
}

ModelConfig parse_model_spec(const std::string& spec, const std::string& device) {
  const std::string title = device + " model";
  const options::Options o = options::parse_spec(title, model_keys(), spec);
  ModelConfig c;
  o.read_into<model::Config>(c);
  o.read_into(c);
  if ((c.mtu & (c.mtu - 1)) != 0)
    throw Error(title + ": mtu", fmt::format("{} is not one of 256, 512, 1024, 2048, 4096", c.mtu));
  return c;
}

}  // namespace doorbell::rdma
