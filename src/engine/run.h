// SPDX-License-Identifier: Apache-2.0
// One query from its text to its last row: the whole life of a query, as ARCHITECTURE.md draws it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "code/windows.h"
#include "engine/chosen.h"
#include "engine/join_account.h"
#include "extension/extension.h"
#include "output/request_graph.h"
#include "output/row_sink.h"
#include "query/diagnostic.h"
#include "query/query.h"
#include "session/pane_taker.h"

namespace clew::engine {

// Where a site that can take no jump has a uprobe of the kernel (uprobe_sites.h).
enum class UprobePolicy : uint8_t { Never, WhereLate, WhereRefused };

// One request of a query with joins is drawn, and given away behind the answer.
struct GraphRequest {
  output::GraphChoice choice = output::GraphChoice::Slowest;
  std::function<void(output::RequestGraph)> take;
};

// What runs, and where.
struct Request {
  query::Text text;
  Chosen processes;
  std::vector<std::string> command;  // Started by Clew, traced from its first constructor on.
  std::vector<std::string> vocabulary_paths;
  std::vector<std::string> extensions;  // extension/extension.h, load().
  std::string extension_folder;         // Of those that come with Clew.
  bool branch_guards = true;            // native/code.h
  uint64_t extension_fuel = extension::kFuel;
  std::optional<uint64_t> for_ns;    // Before what the query says.
  std::optional<uint64_t> every_ns;  // The same.
  bool allow_missing = false;        // A source that matches nothing is a warning.
  bool is_sure = false;       // More than kSitesMax sites are wanted, and memory may run out.
  bool follow_forks = false;  // Children count, marked with their pids.
  // inline/windows.h: where others' uprobes would end the processes.
  code::LateUprobeDanger late_uprobe_danger = code::LateUprobeDanger::Refused;
  UprobePolicy uprobes = UprobePolicy::WhereLate;
  bool copies = false;  // Functions run on copies where many are asked for (copied_functions.h).
  // Events are written to this file first, and answered from there as fast as the rows are taken.
  std::string spill_path;
  std::string from_path;               // Only for replay().
  std::optional<double> max_overhead;  // What probes may take of a process's CPU time, 0 to 1.
  // Ends when nothing was answered for so long, or nobody has read it (session/idle.h).
  std::optional<uint64_t> idle_ns;
  std::function<bool()> is_unread;
  bool in_place = false;  // Joins are answered where their events happen (plan/in_place.h).
  std::optional<GraphRequest> graph;
  // Of a query with joins: what it has carried is counted, and given away behind the answer.
  std::function<void(JoinAccount, const collect::Losses&)> account;
  // What a query with groups counts is given away by panes; its own ends and intervals do nothing.
  session::PaneTaker* panes = nullptr;
  session::PaneClock pane_clock{};
  // Is asked once about the query as it was understood, and before anything is attached to; an
  // error ends the session there. May be empty.
  std::function<Expected<void>(const query::Query&)> check_query;
  // Processes that have none of these names (patterns) are left out, if there is a list.
  std::optional<std::vector<std::string>> allowed_names;
  // Is told once what is answered, as query/print.h writes it: with no types but its own. May be
  // empty.
  std::function<Expected<void>(const query::Query&)> accept_query;
  // Is asked once what the columns of the answer will be, before any process is touched; an error
  // ends the session there. May be empty.
  std::function<Expected<void>(output::Columns)> accept;
};

// Who watches: lines for people, never rows.
class Notices {
 public:
  Notices() = default;
  Notices(const Notices&) = delete;
  Notices& operator=(const Notices&) = delete;
  virtual ~Notices() = default;
  // What is being done now; replaces the last one. Empty: nothing any more.
  virtual void progress(std::string_view text) = 0;
  virtual void warning(std::string_view text) = 0;
  // All probes are armed.
  virtual void armed(std::string_view text) = 0;
  // Something was made that may be wanted at once.
  virtual void made(std::string_view text) = 0;
};

struct Outcome {
  std::optional<pid_t> command;       // Of the request; it may still run.
  std::optional<int> command_status;  // Its status of waitpid(2), when it has ended.
};

// Runs until the query's end, until the targets are gone, or until `stop_descriptor` is readable.
// Nothing is changed in any process when an error is returned before Notices::armed; afterwards
// all probes are removed in any case. `columns_only`: see explain.h.
Expected<Outcome> run(const Request& request, int stop_descriptor, output::RowSink& sink,
                      Notices& notices);

}  // namespace clew::engine
