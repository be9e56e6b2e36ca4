// SPDX-FileCopyrightText: 2026 The doorbell authors
// SPDX-License-Identifier: Apache-2.0

// doorbell::run() for Python. The run has a thread of its own, so that the interpreter's thread sees Ctrl-C
// at any time, also before a first phase and in a device that does not answer.
#include <doorbell/run.hpp>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <chrono>
#include <condition_variable>
#include <csignal>
#include <exception>
#include <mutex>
#include <thread>

#include "module.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace doorbell::python {
namespace {

constexpr std::chrono::milliseconds kLook{50};

/// Of the run's thread, which leaves what there is to see, and of the interpreter's, which looks.
struct Seen {
  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  bool fresh = false;
  double share = 0;
  std::string phase;
  u64 operations = 0;
};

/// No signal is this thread's or those of the threads that it starts: Python's own take them.
void leave_signals_to_others() {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, nullptr);
}

/// Calls `progress` with what is new. Returns the exception that it, or a signal's handler, has raised.
std::exception_ptr look(Seen& seen, const nb::object& progress) {
  bool fresh = false;
  double share = 0;
  std::string phase;
  u64 operations = 0;
  {
    const std::scoped_lock lock(seen.mutex);
    fresh = std::exchange(seen.fresh, false);
    share = seen.share;
    phase = seen.phase;
    operations = seen.operations;
  }
  try {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    if (fresh && !progress.is_none()) progress(share, phase, operations);
  } catch (const nb::python_error&) {
    return std::current_exception();
  }
  return nullptr;
}

/// The result, and the exception that a signal or `progress` raised meanwhile; the run has ended then, and
/// the result is as far as it came.
nb::tuple run_to_the_end(const std::string& path, const OptionValues& options, const nb::object& progress) {
  Seen seen;
  std::stop_source stop;
  RunResult result;
  std::exception_ptr error, raised;
  std::thread runs([&] {
    leave_signals_to_others();
    try {
      const RunHooks hooks = {.progress =
                                  [&](double share, const std::string& phase, u64 operations) {
                                    const std::scoped_lock lock(seen.mutex);
                                    seen.fresh = true;
                                    seen.share = share;
                                    seen.phase = phase;
                                    seen.operations = operations;
                                  },
                              .stop = stop.get_token()};
      result = doorbell::run(path, options, hooks);
    } catch (...) {
      error = std::current_exception();
    }
    const std::scoped_lock lock(seen.mutex);
    seen.ended = true;
    seen.changed.notify_one();
  });
  for (bool ended = false; !ended;) {
    {
      const nb::gil_scoped_release others_run;
      std::unique_lock lock(seen.mutex);
      ended = seen.changed.wait_for(lock, kLook, [&] { return seen.ended; });
    }
    if (const std::exception_ptr now = look(seen, progress); now != nullptr && raised == nullptr) {
      raised = now;
      stop.request_stop();
    }
  }
  runs.join();
  if (error != nullptr && raised == nullptr) std::rethrow_exception(error);
  nb::object exception = nb::none();
  if (raised != nullptr) {
    try {
      std::rethrow_exception(raised);
    } catch (nb::python_error& e) {
      exception = nb::borrow(e.value());
    }
  }
  return nb::make_tuple(error == nullptr ? nb::cast(std::move(result)) : nb::none(), exception);
}

std::string shown(const RunResult& r) {
  std::string text = "<doorbell.Result: " + r.verdict;
  if (!r.complete) text += " (" + r.stop_reason + ")";
  return text + ", " + std::to_string(r.cells.size()) + (r.cells.size() == 1 ? " cell>" : " cells>");
}

}  // namespace

void bind_run(nb::module_& m) {
  nb::class_<RunFigures>(
      m, "Figures",
      "Of one population of operations. Latencies are in ns; None where they were not measured.")
      .def_ro("operations", &RunFigures::operations)
      .def_ro("bytes", &RunFigures::bytes)
      .def_ro("elapsed_s", &RunFigures::elapsed_s)
      .def_ro("operations_per_s", &RunFigures::operations_per_s)
      .def_ro("bytes_per_s", &RunFigures::bytes_per_s)
      .def_ro("min_ns", &RunFigures::min_ns)
      .def_ro("mean_ns", &RunFigures::mean_ns)
      .def_ro("p50_ns", &RunFigures::p50_ns)
      .def_ro("p90_ns", &RunFigures::p90_ns)
      .def_ro("p99_ns", &RunFigures::p99_ns)
      .def_ro("p99_9_ns", &RunFigures::p99_9_ns)
      .def_ro("max_ns", &RunFigures::max_ns);
  nb::class_<RunChecks>(m, "Checks", "Verification, in operations.")
      .def_ro("mode", &RunChecks::mode, "'full', 'sample=P' or 'none'.")
      .def_ro("checked", &RunChecks::checked)
      .def_ro("checked_bytes", &RunChecks::checked_bytes)
      .def_ro("unverifiable", &RunChecks::unverifiable,
              "Of data that is not known to have been written: no failure.")
      .def_ro("corrupt", &RunChecks::corrupt)
      .def_ro("misplaced", &RunChecks::misplaced)
      .def_ro("stale", &RunChecks::stale)
      .def_ro("duplicated", &RunChecks::duplicated)
      .def_ro("missing", &RunChecks::missing)
      .def_prop_ro("failed", &RunChecks::failed, "All operations with wrong data.");
  nb::class_<RunCell>(m, "Cell", "One combination of parameters, measured.")
      .def_ro("path", &RunCell::path)
      .def_ro("operation", &RunCell::operation,
              "One of those that the figures count: 'operation', or 'packet'.")
      .def_ro("parameters", &RunCell::parameters, "Those that make the cell: {'in_flight': '32'}.")
      .def_ro("initiator", &RunCell::initiator, "'cpu' or 'gpu'.")
      .def_ro("device_kind", &RunCell::device_kind, "'model', 'emulated', 'hardware' or 'kernel'.")
      .def_ro("device", &RunCell::device)
      .def_ro("figures", &RunCell::figures, "Of the median repeat, by rate.")
      .def_prop_ro(
          "parts",
          [](const RunCell& c) {
            nb::typed<nb::dict, std::string, RunFigures> parts;
            for (const auto& [name, figures] : c.parts) parts[name.c_str()] = nb::cast(figures);
            return parts;
          },
          "Figures inside it, by name: 'write', 'read'.")
      .def_ro("repeats_operations_per_s", &RunCell::repeats_operations_per_s, "Of each repeat, in order.")
      .def_ro("checks", &RunCell::checks)
      .def_ro("errors", &RunCell::errors, "By class; all classes of the path, most of them 0.");
  nb::class_<RunResult>(m, "Result", "The outcome of a run.")
      .def_ro("exit_code", &RunResult::exit_code,
              "0; 2 for lost, late or wrong data; 130 where it was stopped.")
      .def_ro("verdict", &RunResult::verdict,
              "The sentence at the end of the table: 'OK', 'FAILED: 3 corrupt', ...")
      .def_ro("complete", &RunResult::complete, "False: ended before its work was done.")
      .def_ro("stop_reason", &RunResult::stop_reason,
              "'done', 'signal', 'error', 'timeout', 'reset' or 'removed'.")
      .def_ro("warnings", &RunResult::warnings)
      .def_ro("cells", &RunResult::cells)
      .def_ro("json", &RunResult::json, "The whole record as text, schema/results-1.schema.json.")
      .def_prop_ro(
          "ok", [](const RunResult& r) { return r.exit_code == 0; }, "Nothing was lost, late or wrong.")
      .def_prop_ro(
          "record",
          [](const RunResult& r) { return nb::object(nb::module_::import_("json").attr("loads")(r.json)); },
          nb::for_getter(nb::sig("def record(self, /) -> dict[str, typing.Any]")),
          "The whole record as a dictionary.")
      .def(
          "frame",
          [](const nb::handle self) {
            return nb::object(nb::module_::import_("doorbell_report").attr("frame_of")(self.attr("record")));
          },
          nb::sig("def frame(self) -> 'pandas.DataFrame'"),
          "A row a cell, with the columns of doorbell_report.load(). Needs pandas.")
      .def("__repr__", shown);
  m.def("run", run_to_the_end, "path"_a, "options"_a, "progress"_a.none());
}

}  // namespace doorbell::python
