// SPDX-License-Identifier: Apache-2.0
#include "live/tracer.h"

#include <algorithm>
#include <csignal>
#include <sstream>
#include <stdexcept>
#include <string_view>

#include <gtest/gtest.h>

#include "live/process_state.h"

namespace clew::live {
namespace {

// The line on standard error that says the sites are armed.
constexpr std::string_view kReady = "clew: tracing ";

Report report_of(const Child::End& end, const std::string& said_before) {
  Report report;
  report.status = end.status;
  report.error = said_before + end.error;
  std::istringstream lines(end.output);
  for (std::string line; std::getline(lines, line);) {
    nlohmann::json row = nlohmann::json::parse(line, nullptr, false);
    if (row.is_discarded()) {
      ADD_FAILURE() << "not a JSON line: " << line;
    } else if (row.contains("summary")) {
      report.summary = row["summary"];
    } else if (row.size() == 1 && row.begin().key() == "disarmed" && row.begin()->is_object()) {
      report.disarmed.push_back(row["disarmed"]);
    } else {
      report.rows.push_back(std::move(row));
    }
  }
  return report;
}

std::vector<std::string> command(const std::vector<std::string>& arguments) {
  std::vector<std::string> all = {CLEW_COMMAND};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return all;
}

uint64_t sum_of(const nlohmann::json& causes) {
  uint64_t sum = 0;
  for (const auto& [cause, count] : causes.items())
    sum += count.get<uint64_t>();
  return sum;
}

}  // namespace

bool Report::refused(const std::string& function, const std::string& kind) const {
  const auto list = summary.value("refused", nlohmann::json::array());
  return std::any_of(list.begin(), list.end(), [&](const nlohmann::json& site) {
    return site.value("function", "") == function && site.value("kind", "") == kind &&
           !site.value("reason", "").empty();
  });
}

uint64_t Report::unreadable() const {
  return summary.at("missed").value("unreadable", uint64_t{0});
}

uint64_t Report::lost() const {
  const auto none = nlohmann::json::object();
  const auto missed = summary.value("missed", none);
  return sum_of(missed) + sum_of(summary.value("dropped", none)) -
         missed.value("forks_muted", uint64_t{0});
}

Numbers Report::calls() const {
  Numbers numbers;
  for (const nlohmann::json& row : rows) {
    numbers[row.at("name").get<std::string>()] += row.at("calls").get<uint64_t>();
  }
  return numbers;
}

Child::End clew(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), CLEW_COMMAND);
  return Child({.arguments = std::move(arguments)}).wait_for_end();
}

Report run_clew(const std::vector<std::string>& arguments, bool as_nobody) {
  Child child(
      {.arguments = command(arguments), .folder = as_nobody ? "/" : "", .as_nobody = as_nobody});
  child.close_input();
  return report_of(child.wait_for_end(), "");
}

Tracer Tracer::attach(pid_t pid, const std::string& query, const std::vector<std::string>& more,
                      bool as_nobody) {
  std::vector<std::string> arguments = {"run", query, "-p", std::to_string(pid), "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return armed(Child(
      {.arguments = command(arguments), .folder = as_nobody ? "/" : "", .as_nobody = as_nobody}));
}

Tracer Tracer::start(const std::string& query, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"run", query, "--json"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return armed(Child({.arguments = command(arguments)}));
}

Tracer Tracer::explain(pid_t pid, const std::string& query, const std::vector<std::string>& more) {
  std::vector<std::string> arguments = {"explain", "--run", "--json",
                                        query,     "-p",    std::to_string(pid)};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return armed(Child({.arguments = command(arguments)}));
}

Tracer Tracer::armed(Child child) {
  Tracer tracer(std::move(child));
  for (;;) {
    const std::optional<std::string> line = tracer.child_.read_error_line();
    if (!line) throw std::runtime_error("clew ended before it was armed: " + tracer.said_);
    tracer.said_ += *line + "\n";
    if (line->starts_with(kReady)) return tracer;
  }
}

Report Tracer::finish() {
  child_.signal(SIGINT);
  return wait();
}

Report Tracer::wait() {
  return report_of(child_.wait_for_end(), said_);
}

std::string count_by_function(const std::string& sources) {
  return "from e in " + sources +
         " group by e.function select new { name = e.function, calls = count() }";
}

std::string entries_of(const std::string& pattern) {
  return count_by_function("entry(\"" + pattern + "\")");
}

std::string returns_of(const std::string& pattern) {
  return count_by_function("return(\"" + pattern + "\")");
}

std::string entries_and_returns_of(const std::string& pattern) {
  return count_by_function("entry(\"" + pattern + "\"), return(\"" + pattern + "\")");
}

Traced trace_rounds(Victim& victim, const std::string& name, const std::string& query,
                    uint64_t rounds, const std::vector<std::string>& more) {
  Traced traced = trace_lossy_rounds(victim, name, query, rounds, more);
  EXPECT_EQ(traced.report.lost(), 0U) << traced.report.summary;
  return traced;
}

Traced trace_lossy_rounds(Victim& victim, const std::string& name, const std::string& query,
                          uint64_t rounds, const std::vector<std::string>& more) {
  Traced traced;
  const uint64_t expected = untraced_result(name, rounds);
  EXPECT_EQ(victim.run(rounds), expected);
  const ProcessState before = ProcessState::of(victim.pid());
  Tracer tracer = Tracer::attach(victim.pid(), query, more);
  const Numbers counts_before = victim.counts();
  EXPECT_EQ(victim.run(rounds), expected) << "while traced";
  traced.truth = difference(counts_before, victim.counts());
  traced.report = tracer.finish();
  EXPECT_EQ(traced.report.status, 0) << traced.report.error;
  traced.counted = traced.report.calls();
  EXPECT_EQ(victim.run(rounds), expected) << "after detach";
  expect_text_equals_file(victim.pid());
  expect_no_residue(before, victim.pid());
  return traced;
}

void expect_exact(const Traced& traced, const std::string& kind,
                  const std::vector<std::string>& may_be_refused) {
  for (const auto& [function, calls] : traced.truth) {
    const auto counted = traced.counted.find(function);
    if (counted != traced.counted.end() || calls == 0) {
      EXPECT_EQ(counted == traced.counted.end() ? 0 : counted->second, calls) << function;
      continue;
    }
    EXPECT_TRUE(traced.report.refused(function, kind))
        << function << " was neither counted nor refused: " << traced.report.summary;
    EXPECT_TRUE(std::find(may_be_refused.begin(), may_be_refused.end(), function) !=
                may_be_refused.end())
        << function << " must be taken: " << traced.report.summary;
  }
}

}  // namespace clew::live
