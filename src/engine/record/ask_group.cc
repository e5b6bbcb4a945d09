// SPDX-License-Identifier: Apache-2.0
#include "engine/record/ask_group.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "base/nearest.h"
#include "engine/record/snap_connection.h"
#include "engine/record/snap_requests.h"
#include "ledger/session.h"
#include "recorder/save_snap.h"
#include "recorder/snap.h"

namespace clew::engine {

namespace {

// Root may take those of all users; others take no stranger's word.
bool is_ours(const RecorderSocket& socket) {
  struct stat status {};
  const std::string path = fmt::format("/proc/{}", socket.recorder);
  return stat(path.c_str(), &status) == 0 && (geteuid() == 0 || status.st_uid == geteuid());
}

std::vector<RecorderSocket> our_groups() {
  return recorder_sockets(
      [](const RecorderSocket& one) { return !one.group.empty() && is_ours(one); });
}

tl::unexpected<Error> no_group(const std::string& group, const std::vector<RecorderSocket>& all) {
  std::set<std::string_view> names;
  for (const RecorderSocket& one : all)
    names.insert(one.group);
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string nearest = nearest_name(group, known);
  std::string hint = "start them with clew record --group";
  if (!known.empty()) hint = fmt::format("there are {}", fmt::join(known, ", "));
  if (!nearest.empty()) hint = fmt::format("did you mean '{}'?", nearest);
  return fail(ErrorCode::NotFound,
              fmt::format("no recorder of the group '{}' runs; {}", group, hint));
}

// One recorder has one socket.
std::vector<SnapConnection> connect_to(const std::string& group,
                                       const std::vector<RecorderSocket>& all) {
  std::vector<SnapConnection> connections;
  std::set<pid_t> seen;
  const auto deadline = SnapConnection::new_deadline();
  for (const RecorderSocket& socket : all) {
    if (socket.group != group || seen.contains(socket.recorder)) continue;
    auto connection = SnapConnection::open(socket, deadline);
    if (!connection) continue;
    seen.insert(socket.recorder);
    connections.push_back(std::move(*connection));
  }
  return connections;
}

Expected<void> take(SnapConnection& from, const std::string& folder, GroupSnaps& taken) {
  const std::vector<recorder::Snap> snaps = CLEW_TRY(from.answer());
  log_step(from.recorder(), "gave {} snaps", snaps.size());
  if (snaps.empty()) return fail(ErrorCode::NotFound, "it records no process any more");
  for (const recorder::Snap& snap : snaps)
    taken.snaps.push_back({snap.pid, CLEW_TRY(recorder::save_snap(folder, snap))});
  return {};
}

Expected<GroupSnaps> ask_told(const std::string& group, const std::string& folder,
                              ledger::Session& session) {
  CLEW_TRY(recorder::check_snap_folder(folder));
  const std::vector<RecorderSocket> sockets = our_groups();
  std::vector<SnapConnection> connections = connect_to(group, sockets);
  if (connections.empty()) return no_group(group, sockets);
  // Whom these record is in what they have told themselves.
  std::vector<pid_t> recorders(connections.size());
  std::transform(connections.begin(), connections.end(), recorders.begin(),
                 [](const SnapConnection& one) { return one.recorder(); });
  CLEW_TRY(session.begin({.processes = std::move(recorders)}));
  GroupSnaps taken;
  const auto add_problem = [&taken](const SnapConnection& of, const Error& error) {
    taken.problems.push_back(fmt::format("recorder {}: {}", of.recorder(), error.message));
  };
  std::vector<SnapConnection*> asked;
  for (SnapConnection& one : connections) {
    const Expected<void> said = one.ask(kAllProcesses);
    said ? asked.push_back(&one) : add_problem(one, said.error());
  }
  for (SnapConnection* const one : asked) {
    const Expected<void> got = take(*one, folder, taken);
    if (!got) add_problem(*one, got.error());
  }
  return taken;
}

}  // namespace

Expected<GroupSnaps> ask_group(const std::string& group, const std::string& folder) {
  ledger::Session session = CLEW_TRY(
      ledger::Session::open({.text = fmt::format("snaps of the group {} to {}", group, folder),
                             .text_name = "",
                             .warn = ledger::warn_on_standard_error}));
  Expected<GroupSnaps> taken = ask_told(group, folder, session);
  session.end(taken);
  return taken;
}

}  // namespace clew::engine
