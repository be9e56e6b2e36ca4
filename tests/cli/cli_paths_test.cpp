// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// Every path appears in every place where a user sees paths, and the examples in its help run.
#include <gtest/gtest.h>

#include <fmt/format.h>

#include <doorbell/error.hpp>
#include <fstream>
#include <set>
#include <sstream>

#include "cli/commands.hpp"
#include "cli/parse.hpp"
#include "cli/path.hpp"
#include "cli/texts.hpp"
#include "nvme/linux/scratch.hpp"

namespace doorbell::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

/// A folder of this test's own, on the disk that holds the build: tmpfs has no direct I/O on many kernels.
struct Folder {
  Folder() {
    std::string name = (fs::current_path() / "doorbell-paths-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error(name);
    path = name;
  }
  ~Folder() { fs::remove_all(path); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  fs::path path;
};

struct Ran {
  int code = 0;
  std::string output;
};

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream in(line);
  return {std::istream_iterator<std::string>(in), {}};
}

/// Runs `run` as a program that was called with `words`.
template <class Run>
Ran as_program(const std::vector<std::string>& words, Run run) {
  static const std::vector<Command> commands = all_commands();
  measure::StopFlag stop;
  Context context{.program = "doorbell", .argv = words, .stop = stop, .commands = commands};
  ::testing::internal::CaptureStdout();
  Ran ran;
  try {
    ran.code = run(context);
  } catch (const Error& e) {
    ADD_FAILURE() << fmt::format("{}", fmt::join(words, " ")) << ": " << e.what();
    ran.code = static_cast<int>(e.code());
  }
  std::fflush(stdout);
  ran.output = ::testing::internal::GetCapturedStdout();
  return ran;
}

const Command& command_named(const std::vector<Command>& commands, std::string_view name) {
  for (const Command& c : commands)
    if (c.name == name) return c;
  throw std::logic_error(std::string(name));
}

/// The text that `doorbell NAME ARGUMENT...` prints.
std::string printed(const std::string& name, const std::vector<std::string>& arguments = {}) {
  static const std::vector<Command> commands = all_commands();
  const Command& command = command_named(commands, name);
  const Ran ran = as_program({"doorbell", name}, [&](Context& context) {
    return command.run(parse("doorbell " + name, command.options, arguments), context);
  });
  EXPECT_EQ(ran.code, 0) << name;
  return ran.output;
}

class EveryPath : public ::testing::TestWithParam<std::size_t> {
 protected:
  const PathDescription& path = paths().at(GetParam());
};

INSTANTIATE_TEST_SUITE_P(, EveryPath, ::testing::Range(std::size_t{0}, paths().size()),
                         [](const auto& p) { return paths().at(p.param).name(); });

TEST_P(EveryPath, IsACommandWithHelpManualAndCompletion) {
  const std::vector<Command> commands = all_commands();
  const Command& command = command_named(commands, path.name());
  EXPECT_TRUE(command.run && command.check);
  EXPECT_GE(command.examples.size(), 3u);
  // Its line may go on in the next one.
  EXPECT_NE(
      program_help(commands).find(fmt::format("\n  {:<15}{}", path.name(), command.summary.substr(0, 30))),
      std::string::npos);
  EXPECT_NE(command_help(command).find(command.examples.front().command), std::string::npos);
  EXPECT_NE(program_man(commands).find(fmt::format(".BR doorbell\\-{} (1)", path.name())), std::string::npos);
  EXPECT_NE(printed("man", {path.name()}).find(".SH EXAMPLES\n"), std::string::npos);
  EXPECT_NE(printed("completion", {"bash"}).find(fmt::format("    {})\n      options=(--", path.name())),
            std::string::npos);
  for (const Command& tool : path.tools) EXPECT_EQ(command_named(commands, tool.name).summary, tool.summary);
  for (const Program& program : path.programs) {
    EXPECT_EQ(command_named(all_programs(), program.texts.name).summary, program.texts.summary);
    EXPECT_TRUE(program.texts.standalone);
  }
}

TEST_P(EveryPath, IsListedWithItsDevicesAndModels) {
  const Json listed = Json::parse(printed("list", {"--json"}));
  ASSERT_TRUE(listed.contains(path.name()));
  EXPECT_EQ(listed[path.name()].size(), path.devices("/").size());
  EXPECT_NE(printed("list").find(path.devices_title + "\n"), std::string::npos);
  ASSERT_FALSE(path.models.empty());
  for (const PathModel& model : path.models) {
    const Json wanted = {{"name", model.name}, {"path", path.name()}, {"summary", model.summary}};
    EXPECT_NE(std::ranges::find(listed["models"], wanted), listed["models"].end()) << model.name;
  }
}

TEST_P(EveryPath, ShowsItsBackEnds) {
  const Json shown = Json::parse(printed("backends", {"--json"}))["backends"];
  std::size_t rows = 0, usable = 0;
  for (const Json& row : shown) {
    if (row["path"] != path.name()) continue;
    ++rows;
    if (row["usable"]) ++usable;
    EXPECT_FALSE(row["detail"].get<std::string>().empty()) << row;
  }
  EXPECT_EQ(rows, path.backends().size());
  EXPECT_GE(usable, 1u) << "the model runs everywhere";
}

TEST_P(EveryPath, HasItsChecksInTheDoctors) {
  const Folder root;
  Machine machine;
  machine.root = root.path;
  const std::vector<Check> all = all_checks(machine);
  for (const auto check : path.checks)
    EXPECT_EQ(std::ranges::count(all, check(machine).name, &Check::name), 1) << check(machine).name;
}

TEST_P(EveryPath, IsDemonstrated) {
  // Not the help's own text, whose lines may break within it.
  EXPECT_NE(fmt::format("{}", fmt::join(demo_command().description, " ")).find(path.work), std::string::npos);
  const std::size_t steps = path.demo_steps(false).size();
  EXPECT_GE(steps, 1u);
  EXPECT_GE(path.demo_steps(true).size(), steps);
  const FaultCheck corrupt = path.check_fault(model::Fault::corrupt, 1, {});
  EXPECT_GT(corrupt.injected, 0u);
  EXPECT_EQ(corrupt.found, corrupt.injected);
  EXPECT_EQ(corrupt.found_as, "corrupt");
}

TEST_P(EveryPath, CanBeSwept) {
  const Folder folder;
  const std::string plan = folder.path / "plan.yaml";
  std::ofstream(plan) << fmt::format("name: some\ncommand: {}\noptions:\n  repeats: 2\n", path.name());
  EXPECT_EQ(printed("sweep", {plan, "--list"}), fmt::format("   1  doorbell {} --repeats=2\n", path.name()));
}

/// The example's words behind the program's name, with a folder of the test's own instead of /tmp.
std::vector<std::string> arguments_of(const Example& example, const fs::path& folder) {
  std::vector<std::string> words = words_of(example.command);
  for (std::string& word : words)
    if (const std::size_t at = word.find("/tmp/"); at != std::string::npos)
      word.replace(at, 5, folder.string() + "/");
  return words;
}

TEST_P(EveryPath, KnowsTheOptionsOfItsExamples) {
  for (const Example& example : path.command.examples) {
    SCOPED_TRACE(example.command);
    const std::vector<std::string> words = arguments_of(example, "/tmp");
    ASSERT_GE(words.size(), 2u);
    EXPECT_EQ(words[0] + " " + words[1], "doorbell " + path.name());
    try {
      path.command.check(parse("", path.command.options, std::span(words).subspan(2)));
    } catch (const Error& e) {
      ADD_FAILURE() << e.what();
    }
  }
}

/// Whether an example can be run by a test on any machine.
bool runs_here(const Example& example) {
  return example.needs == Needs::nothing || (example.needs == Needs::file_system && test::has_uring());
}

TEST_P(EveryPath, RunsItsExamples) {
  const Folder folder;
  std::size_t ran = 0;
  for (const Example& example : path.command.examples) {
    if (!runs_here(example)) continue;
    SCOPED_TRACE(example.command);
    ++ran;
    const std::vector<std::string> words = arguments_of(example, folder.path);
    const Ran done = as_program(words, [&](Context& context) {
      Options options = parse("", path.command.options, std::span(words).subspan(2));
      // A busy machine is no error, and what is measured does not matter here. Where faults are expected, the
      // example's own counts make them happen.
      options.set("late-after", "50");
      if (!options.given("timeout")) options.set("timeout", "60");
      if (example.code == 0) {
        options.set("duration", "0.02");
        options.set("repeats", "1");
        options.set("warmup", "0");
      }
      return path.command.run(options, context);
    });
    EXPECT_EQ(done.code, example.code) << done.output;
    EXPECT_NE(done.output.find(path.name()), std::string::npos);
  }
  EXPECT_GE(ran, 3u);
}

TEST(Paths, RunTheExamplesOfTheirPrograms) {
  for (const PathDescription& path : paths()) {
    for (const Program& program : path.programs) {
      std::size_t ran = 0;
      for (const Example& example : program.texts.examples) {
        SCOPED_TRACE(example.command);
        // Another binary: its own tests run it. What its examples say is at least what it takes.
        if (program.run == nullptr) {
          const std::vector<std::string> words = words_of(example.command);
          if (words.front() != program.texts.name) continue;
          ++ran;
          const std::vector<std::string> rest(words.begin() + 1, words.end());
          EXPECT_NO_THROW((void)parse(program.texts.name, program.texts.options, rest));
          continue;
        }
        if (!runs_here(example)) continue;
        ++ran;
        const Ran done =
            as_program(words_of(example.command), [&](Context& context) { return program.run(context); });
        EXPECT_EQ(done.code, example.code) << done.output;
      }
      EXPECT_GE(ran, 1u) << program.texts.name;
    }
  }
}

TEST(Paths, HaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const PathDescription& path : paths()) {
    EXPECT_TRUE(names.insert(path.name()).second) << path.name();
    EXPECT_FALSE(path.title.empty() || path.work.empty() || path.devices_title.empty()) << path.name();
  }
}

}  // namespace
}  // namespace doorbell::cli
