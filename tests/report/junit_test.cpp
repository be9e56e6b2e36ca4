// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// JUnit XML: no verdict is lost on the way, and nothing of a text gets out of its place.
#include <gtest/gtest.h>

#include "report/junit.hpp"

namespace doorbell::report {
namespace {

using Json = nlohmann::ordered_json;
using End = TestCase::End;

Json result(int code = 0) {
  return {{"complete", true},
          {"exit_code", code},
          {"stop_reason", "done"},
          {"cells",
           {{{"path", "nvme"},
             {"cell", {{"batch", 1}}},
             {"metrics", {{"ops", 50}, {"elapsed_s", 0.5}}},
             {"repeats", {{{"ops_per_s", 100}}, {{"ops_per_s", 100}}}},
             {"verify", {{"checked", 50}, {"checked_bytes", 9000}, {"unverifiable", 7}, {"corrupt", 0}}},
             {"errors", {{"timeout", 0}}}}}}};
}

TEST(Junit, AGoodCellHasPassed) {
  const std::vector<TestCase> cases = cases_of(result());
  ASSERT_EQ(cases.size(), 1u);
  EXPECT_EQ(cases[0].end, End::passed) << "what could not be verified is no failure";
  EXPECT_EQ(cases[0].group, "doorbell.nvme");
  EXPECT_EQ(cases[0].name, "batch=1");
  EXPECT_DOUBLE_EQ(cases[0].time_s, 1);
}

TEST(Junit, EveryClassOfFailureIsNamed) {
  for (const char* kind : {"corrupt", "misplaced", "stale", "duplicated", "missing"}) {
    Json r = result(2);
    r["cells"][0]["verify"][kind] = 3;
    r["cells"][0]["errors"]["timeout"] = 2;
    const std::vector<TestCase> cases = cases_of(r);
    ASSERT_EQ(cases.size(), 1u) << "the cell says why";
    EXPECT_EQ(cases[0].end, End::failed);
    EXPECT_EQ(cases[0].type, "data");
    EXPECT_EQ(cases[0].message, std::string("3 ") + kind + ", 2 timeout");
  }
  Json empty = result(2);
  empty["cells"][0]["metrics"]["ops"] = 0;
  EXPECT_EQ(cases_of(empty)[0].message, "nothing was measured");
}

TEST(Junit, AnExitCodeOtherThan0IsNeverAPass) {
  for (const int code : {1, 2, 77, 130, 5}) {
    for (const bool complete : {true, false}) {
      Json r = result(code);
      r["complete"] = complete;
      const std::vector<TestCase> cases = cases_of(r);
      EXPECT_NE(cases.back().end, End::passed) << code;
      EXPECT_EQ(cases.back().end == End::skipped, code == 77) << code;
    }
  }
  Json partial = result();
  partial["complete"] = false;
  EXPECT_EQ(cases_of(partial).back().end, End::errored) << "a part is no whole";
  Json none = result(2);
  none["cells"] = Json::array();
  EXPECT_EQ(cases_of(none).back().end, End::failed);
  EXPECT_NE(cases_of(Json::object()).back().end, End::passed);
  EXPECT_NE(cases_of(nullptr).back().end, End::passed);
}

TEST(Junit, TextsStayInTheirPlaces) {
  TestCase c{.group = "a\"b",
             .name = "<&'>]]>",
             .end = End::failed,
             .type = "t",
             .message = "x\ny",
             .text = "\x1b[31m"};
  c.text += '\0';
  c.text += "\xff\xef\xbf\xbf\xc3\xa4";
  const std::string xml = to_junit("s", {c});
  EXPECT_NE(xml.find("classname=\"a&quot;b\" name=\"&lt;&amp;&apos;&gt;]]&gt;\""), std::string::npos) << xml;
  EXPECT_NE(xml.find("message=\"x&#10;y\""), std::string::npos) << xml;
  EXPECT_NE(xml.find(">?[31m???\xc3\xa4</failure>"), std::string::npos) << xml;
}

TEST(Junit, TheSuiteCountsItsCases) {
  const std::string xml = to_junit("s", {{.name = "a", .time_s = 1},
                                         {.name = "b", .time_s = 2, .end = End::failed},
                                         {.name = "c", .end = End::errored},
                                         {.name = "d", .end = End::skipped, .type = "t"},
                                         {.name = "e", .end = End::skipped}});
  EXPECT_NE(
      xml.find("<testsuite name=\"s\" tests=\"5\" failures=\"1\" errors=\"1\" skipped=\"2\" time=\"3.000\">"),
      std::string::npos)
      << xml;
  EXPECT_EQ(xml.find("<skipped type"), std::string::npos) << "only failures and errors have a type";
}

}  // namespace
}  // namespace doorbell::report
