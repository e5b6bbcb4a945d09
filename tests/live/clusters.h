// SPDX-License-Identifier: Apache-2.0
// Test support: a server of NATS, nodes, roots and askers on this machine. Each node traces all of
// it, so what they count together is known from the victim's own counts.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file_descriptor.h"
#include "cluster/nats_server.h"
#include "live/child.h"
#include "live/process_state.h"
#include "live/tracer.h"
#include "live/victim.h"

namespace clew::live {

class Clusters : public testing::Test {
 protected:
  // A victim under a name that no other test's have.
  Clusters() : name_("clusters_" + std::to_string(getpid())) {
    std::filesystem::copy_file(victim_path("sites"), victim_path(name_));
  }
  ~Clusters() override { std::filesystem::remove(victim_path(name_)); }

  void SetUp() override {
    if (!cluster::NatsServer::is_installed()) GTEST_SKIP() << "nats-server is not installed";
    server_ = std::make_unique<cluster::NatsServer>("jetstream { store_dir: FOLDER/js }\n");
    server_->start();
    victim_ = std::make_unique<Victim>(name_);
  }

  [[nodiscard]] std::string url() const { return "nats://" + server_->place(); }
  [[nodiscard]] Child begin(std::vector<std::string> arguments, const std::string& ready) const {
    arguments.insert(arguments.begin(), CLEW_COMMAND);
    arguments.insert(arguments.end(), {"--cluster", url()});
    Child child({.arguments = std::move(arguments)});
    const std::optional<std::string> line = child.read_error_line();
    EXPECT_THAT(line.value_or(""), testing::HasSubstr(ready));
    return child;
  }
  [[nodiscard]] Child node(const std::string& name, const std::string& zone) const {
    return begin({"node", "--name", name, "--label", "zone=" + zone}, "node " + name + " is there");
  }
  [[nodiscard]] Child root(const std::string& store) const {
    return begin({"root", "--store", store}, "a root is there");
  }
  [[nodiscard]] std::string query() const {
    return "from e in cluster.Function(\"" + name_ +
           "!*\") group by e.function "
           "select new { name = e.function, calls = count() }";
  }
  [[nodiscard]] Tracer trace(std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--cluster", url(), "--wait", "30s"});
    return Tracer::start(query(), more);
  }
  [[nodiscard]] Report ask(const std::string& text, std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments = {"run", text, "--json", "--cluster", url()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_clew(arguments);
  }
  // The session of a node's only query.
  static FileDescriptor session_of(const Child& node) {
    const pid_t session = only_child_of(node.pid());
    return FileDescriptor(static_cast<int>(syscall(SYS_pidfd_open, session, 0)));
  }
  static bool ends(const FileDescriptor& process) {
    pollfd one{.fd = process.get(), .events = POLLIN, .revents = 0};
    return poll(&one, 1, 30'000) == 1;
  }
  // Of the query that was asked.
  static std::string name_in(const Report& report) {
    const size_t begin = report.error.find("(query ") + 7;
    return report.error.substr(begin, report.error.find(')', begin) - begin);
  }
  static Report results_of(const Report& report, const std::string& store) {
    return run_clew({"results", name_in(report), "--store", store, "--json"});
  }
  static void keep_last_versions(Report& report) {
    const auto key_of = [](const nlohmann::json& row) {
      return row.at("name").get<std::string>() + row.at("w").dump();
    };
    std::map<std::string, nlohmann::json> last;
    for (const nlohmann::json& row : report.rows)
      last[key_of(row)] = row.at("version");
    std::erase_if(report.rows, [&](const nlohmann::json& row) {
      return row.at("version") != last.at(key_of(row));
    });
  }
  static void expect_times(const Report& report, const Numbers& truth, uint64_t nodes) {
    EXPECT_EQ(report.status, 0) << report.error;
    const Numbers calls = report.calls();
    size_t compared = 0;
    for (const auto& [name, count] : truth) {
      if (!calls.contains(name)) continue;
      ++compared;
      EXPECT_EQ(calls.at(name), nodes * count) << name;
    }
    EXPECT_GT(compared, 10U);
  }

  std::string name_;
  std::unique_ptr<cluster::NatsServer> server_;
  std::unique_ptr<Victim> victim_;
};

}  // namespace clew::live
