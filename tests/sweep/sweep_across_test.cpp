// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Cells that meet although something about them differs: an option, their length, the place in a pair of
// settings.
#include <doorbell/error.hpp>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>

#include "sweep/across.hpp"
#include "sweep/compare.hpp"
#include "sweep_result.hpp"

namespace doorbell::sweep {
namespace {

using Json = nlohmann::ordered_json;

TEST(SweepCompare, RunLengthsPair) {
  const auto lasting = [](double duration_s, int reads, int writes = 5) {
    return one_run({100, 100, 100, 100}, [=](Json& result) {
      Json& cell = result["cells"][0];
      cell["cell"]["read_io"] = reads;
      cell["cell"]["write_io"] = writes;
      cell["options"]["duration_s"] = duration_s;
    });
  };
  const auto pairs = [](Measured a, Measured b) {
    pair_lengths(&a, &b);
    return a.order == b.order;
  };
  EXPECT_TRUE(pairs(lasting(1, 10), lasting(5, 100000)));
  EXPECT_FALSE(pairs(lasting(1, 10), lasting(1, 0))) << "no reads are other work";
  EXPECT_FALSE(pairs(lasting(1, 10), one_run({1}, [](Json& r) { r["cells"][0]["cell"]["batch"] = 9; })));
  Measured a = lasting(1, 10), b = lasting(5, 1000);
  pair_lengths(&a, &b);
  const Comparison c = compare(a, b, {"ops_per_s"}, 0.05);
  std::set<std::string> named;
  for (const Difference& d : c.differences) named.insert(d.what);
  EXPECT_TRUE(named.contains("option duration_s")) << "the difference is named";
  EXPECT_TRUE(named.contains("parameter read_io"));
  // One side that has two lengths has two cells.
  Measured two = lasting(1, 10);
  Json other = result_of({1});
  other["cells"][0]["cell"]["read_io"] = 20;
  other["cells"][0]["cell"]["write_io"] = 5;
  add_result(other, "r", &two);
  EXPECT_FALSE(pairs(two, lasting(1, 10000)));
  EXPECT_EQ(two.order.size(), 2u);
}

TEST(SweepCompare, SettingsMeetByPlace) {
  const auto batch = [](int n) { return [n](Json& r) { r["cells"][0]["cell"]["batch"] = n; }; };
  Measured a = one_run({100, 100, 100, 100}, batch(1)), b = one_run({900, 900, 900, 900}, batch(8));
  pair_by_place(&a, &b);
  const Comparison c = compare(a, b, {"ops_per_s"}, 0.05);
  EXPECT_EQ(c.cells.size(), 1u);
  EXPECT_EQ(c.cells[0].ratios[0].change, Change::better);
  ASSERT_EQ(c.differences.size(), 1u);
  EXPECT_EQ(c.differences[0].what, "parameter batch");
  // The same cells in another order meet by what they are.
  Measured x = one_run({1}, batch(1)), y = one_run({1}, batch(2));
  add_result(
      [&] {
        Json r = result_of({1});
        batch(2)(r);
        return r;
      }(),
      "r", &x);
  add_result(
      [&] {
        Json r = result_of({1});
        batch(1)(r);
        return r;
      }(),
      "r", &y);
  pair_by_place(&x, &y);
  EXPECT_TRUE(compare(x, y, {"ops_per_s"}, 0.05).differences.empty());
}

TEST(SweepCompare, TheOptionThatDiffersAlone) {
  const auto with = [](const char* size, const char* depth, double duration_s) {
    return [=](Json& r) {
      r["argv"] = {"doorbell",    "nvme", "--file-size", size, "--queue-length=" + std::string(depth),
                   "--duration=1"};
      r["cells"][0]["options"] = {
          {"file_size_bytes", size}, {"queue_length", depth}, {"duration_s", duration_s}};
      r["cells"][0]["cell"] = {{"size", size}, {"depth", depth}};
    };
  };
  const Measured a = one_run({1}, with("1", "8", 1)), b = one_run({1}, with("2", "8", 5)),
                 c = one_run({1}, with("2", "9", 1));
  EXPECT_EQ(differing_options(a, b), std::vector<std::string>{"file-size"});
  EXPECT_EQ(differing_options(a, c).size(), 2u);
  EXPECT_TRUE(differing_options(a, a).empty());
  // A parameter that follows from an option is found only where no other one was given and differs.
  Measured x = a, y = c;
  pair_across({"file-size"}, &x, &y);
  EXPECT_THROW((void)compare(x, y, {"ops_per_s"}, 0.05), Error) << "queue_length differs, too";
}

/// A run of three cells, with an option of this value, and a parameter that follows from it.
Json run_with(const char* option, const char* value, const std::vector<int>& sizes, double ops) {
  Json r = result_of({ops});
  r["argv"] = {"doorbell", "nvme", fmt::format("--{}={}", option, value), "--size", "1,2,3"};
  const Json cell = cell_of(r);
  r["cells"] = Json::array();
  for (const int size : sizes) {
    Json c = cell;
    c["cell"] = {{"size_bytes", size}, {"in_flight", std::string(value).size()}};
    c["options"][option] = value;
    r["cells"].push_back(std::move(c));
  }
  return r;
}

Measured side_with(const char* option, const char* value, const std::vector<int>& sizes, double ops) {
  Measured m;
  m.name = value;
  for (int i = 0; i < 7; ++i) add_result(run_with(option, value, sizes, ops + i), "r", &m);
  return m;
}

TEST(SweepCompareAcross, CellsMeetAlthoughAnOptionDiffers) {
  Measured a = side_with("controller", "model", {1, 2, 3}, 100),
           b = side_with("controller", "kernel", {1, 2, 3}, 50);
  EXPECT_THROW((void)compare(a, b, {"ops_per_s"}, 0.05), Error) << "in_flight differs";
  pair_across({"controller"}, &a, &b);
  const Comparison c = compare(a, b, {"ops_per_s"}, 0.05);
  ASSERT_EQ(c.cells.size(), 3u);
  EXPECT_EQ(c.cells[0].label, "nvme size_bytes=1");
  EXPECT_EQ(c.figures(Change::regression), 3u);
  EXPECT_EQ(c.not_comparable(), 0u);
  std::set<std::string> named;
  for (const Difference& d : c.differences) named.insert(d.what + " " + d.before + " " + d.after);
  EXPECT_EQ(named, (std::set<std::string>{"option controller model kernel", "parameter in_flight 5 6"}));
}

TEST(SweepCompareAcross, ASweepsOptionsMeetToo) {
  Measured a, b;
  for (int i = 0; i < 7; ++i)
    for (const char* size : {"64", "128"}) {
      add_result(run_with("batch-size", "1", {7}, 100 + i), "a", &a, {{"batch-size", "1"}, {"size", size}});
      add_result(run_with("batch-size", "16", {7}, 200 + i), "b", &b, {{"batch-size", "16"}, {"size", size}});
    }
  b.without_result["batch-size=16 size=64"] = {.failures = {{"runs without a result (timeout)", 1}},
                                               .options = {{"batch-size", "16"}, {"size", "64"}}};
  pair_across({"batch_size"}, &a, &b);
  const Comparison c = compare(a, b, {"ops_per_s"}, 0.05);
  ASSERT_EQ(c.cells.size(), 2u);
  EXPECT_EQ(c.cells[0].label, "nvme size=64");
  EXPECT_EQ(c.cells[0].why_not_comparable.size(), 1u) << "its run without a result belongs to it";
  EXPECT_EQ(c.cells[1].ratios[0].change, Change::better);
}

TEST(SweepCompareAcross, OnlyWhatIsNamedIsPassedOver) {
  // Sizes differ too, and somebody gave them: they do not follow from the controller.
  Measured a = side_with("controller", "model", {1}, 100), b = side_with("controller", "model", {2}, 100);
  for (auto* side : {&a, &b})
    for (auto& [key, samples] : side->cells) samples.facts["option size"] = {side == &a ? "1" : "2"};
  pair_across({"controller"}, &a, &b);
  EXPECT_THROW((void)compare(a, b, {"ops_per_s"}, 0.05), Error);
  pair_across({"controller", "size"}, &a, &b);
  EXPECT_EQ(compare(a, b, {"ops_per_s"}, 0.05).cells.size(), 1u);
}

TEST(SweepCompareAcross, Refusals) {
  Measured a = side_with("controller", "model", {1, 2}, 100),
           b = side_with("controller", "kernel", {1, 2}, 50);
  const auto refused = [&](const std::string& name) -> std::string {
    try {
      Measured x = a, y = b;
      pair_across({name}, &x, &y);
    } catch (const Error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(refused("controler").find("did you mean 'controller'?"), std::string::npos);
  // Without its size, each side has the same cell twice.
  EXPECT_NE(refused("size_bytes").find("model has cells that differ in size_bytes alone"), std::string::npos)
      << refused("size_bytes");
}

}  // namespace
}  // namespace doorbell::sweep
