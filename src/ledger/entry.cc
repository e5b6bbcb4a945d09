// SPDX-License-Identifier: Apache-2.0
#include "ledger/entry.h"

#include <algorithm>
#include <array>
#include <ctime>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace clew::ledger {
namespace {

using Json = nlohmann::ordered_json;

constexpr int64_t kSecond = 1'000'000'000;
constexpr std::array<std::string_view, 5> kStatusNames = {"ended", "stopped", "failed", "refused",
                                                          "killed"};

std::string cut(std::string_view text, size_t bytes_max) {
  return std::string(text.substr(0, bytes_max));
}

Json processes_of(const Beginning& beginning) {
  Json all = Json::array();
  for (const TouchedProcess& process : beginning.processes) {
    if (all.size() == kProcessesMax) break;
    Json one = {{"pid", process.pid}, {"name", cut(process.name, kNameBytesMax)}};
    if (process.started_ns != 0) one["started"] = time_text(process.started_ns);
    all.push_back(std::move(one));
  }
  return all;
}

void add(const Beginning& beginning, Json& line) {
  line["verb"] = cut(beginning.verb, kNameBytesMax);
  line["clew_pid"] = beginning.clew_pid;
  const Who& who = beginning.who;
  line["uid"] = who.uid;
  if (!who.user.empty()) line["user"] = cut(who.user, kNameBytesMax);
  if (who.login_uid) line["login_uid"] = *who.login_uid;
  if (!who.login_user.empty()) line["login_user"] = cut(who.login_user, kNameBytesMax);
  if (!who.sudo_user.empty()) line["sudo_user"] = cut(who.sudo_user, kNameBytesMax);
  line["processes"] = processes_of(beginning);
  line["process_count"] = beginning.process_count;
  line["kernel"] = beginning.is_kernel;
  line["new_processes"] = beginning.is_new;
  line["text"] = cut(beginning.text, kTextBytesMax);
  line["text_bytes"] = beginning.text_bytes;
  line["text_name"] = cut(beginning.text_name, kReasonBytesMax);
}

void add(const Ending& ending, Json& line) {
  line["status"] = name_of(ending.status);
  if (!ending.reason.empty()) line["reason"] = cut(ending.reason, kReasonBytesMax);
  if (ending.lasted_ns) line["lasted_ns"] = *ending.lasted_ns;
  if (ending.rows) line["rows"] = *ending.rows;
  line["missed"] = ending.missed;
  line["dropped"] = ending.dropped;
}

Json line_begun(std::string_view event, const std::string& session, int64_t time_ns) {
  return {{"event", event}, {"session", session}, {"time", time_text(time_ns)}};
}

// Characters beyond ASCII are escaped, too: so is what drives terminals by them (CSI as U+009B).
std::string text_of(const Json& line) {
  return line.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace) + "\n";
}

// --- reading: what is not as it should be is as if it were not there.

std::string text_at(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_string() ? found->get<std::string>() : std::string();
}

template <typename Number>
std::optional<Number> number_at(const Json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<Number>();
}

bool truth_at(const Json& line, const char* key) {
  const auto found = line.find(key);
  return found != line.end() && found->is_boolean() && found->get<bool>();
}

std::vector<TouchedProcess> processes_at(const Json& line) {
  std::vector<TouchedProcess> processes;
  const auto found = line.find("processes");
  if (found == line.end() || !found->is_array()) return processes;
  for (const Json& one : *found) {
    if (!one.is_object() || processes.size() == kProcessesMax) continue;
    processes.push_back({.pid = number_at<pid_t>(one, "pid").value_or(0),
                         .name = text_at(one, "name"),
                         .started_ns = time_of(text_at(one, "started"))});
  }
  return processes;
}

Beginning beginning_of(const Json& line) {
  return {.session = text_at(line, "session"),
          .time_ns = time_of(text_at(line, "time")),
          .verb = text_at(line, "verb"),
          .clew_pid = number_at<pid_t>(line, "clew_pid").value_or(0),
          .who = {.uid = number_at<uid_t>(line, "uid").value_or(0),
                  .user = text_at(line, "user"),
                  .login_uid = number_at<uid_t>(line, "login_uid"),
                  .login_user = text_at(line, "login_user"),
                  .sudo_user = text_at(line, "sudo_user")},
          .processes = processes_at(line),
          .process_count = number_at<uint64_t>(line, "process_count").value_or(0),
          .is_kernel = truth_at(line, "kernel"),
          .is_new = truth_at(line, "new_processes"),
          .text = text_at(line, "text"),
          .text_bytes = number_at<uint64_t>(line, "text_bytes").value_or(0),
          .text_name = text_at(line, "text_name")};
}

std::optional<Ending> ending_of(const Json& line) {
  const std::string status = text_at(line, "status");
  const auto* const found = std::find(kStatusNames.begin(), kStatusNames.end(), status);
  if (found == kStatusNames.end()) return std::nullopt;
  return Ending{.session = text_at(line, "session"),
                .time_ns = time_of(text_at(line, "time")),
                .status = static_cast<Status>(found - kStatusNames.begin()),
                .reason = text_at(line, "reason"),
                .lasted_ns = number_at<int64_t>(line, "lasted_ns"),
                .rows = number_at<uint64_t>(line, "rows"),
                .missed = number_at<uint64_t>(line, "missed").value_or(0),
                .dropped = number_at<uint64_t>(line, "dropped").value_or(0)};
}

}  // namespace

std::string_view name_of(Status status) {
  return kStatusNames[static_cast<size_t>(status)];
}

std::string line_of(const Beginning& beginning) {
  Json line = line_begun("begin", beginning.session, beginning.time_ns);
  add(beginning, line);
  return text_of(line);
}

std::string line_of(const Ending& ending) {
  Json line = line_begun("end", ending.session, ending.time_ns);
  add(ending, line);
  return text_of(line);
}

std::string line_of_refused(const Beginning& beginning, const Ending& ending) {
  Json line = line_begun("refused", beginning.session, beginning.time_ns);
  add(beginning, line);
  add(ending, line);
  return text_of(line);
}

std::string line_of(const Beginning& beginning, const Ending* ending, std::string_view status) {
  Json line = {{"session", beginning.session}, {"time", time_text(beginning.time_ns)}};
  add(beginning, line);
  if (ending != nullptr) line["ended"] = time_text(ending->time_ns);
  if (ending != nullptr) add(*ending, line);
  line["status"] = status;
  return text_of(line);
}

std::optional<Line> parse_line(std::string_view text) {
  const Json line = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!line.is_object() || text_at(line, "session").empty()) return std::nullopt;
  const std::string event = text_at(line, "event");
  if (event == "begin") return Line{beginning_of(line), std::nullopt};
  const std::optional<Ending> ending = ending_of(line);
  if (!ending) return std::nullopt;
  if (event == "end") return Line{std::nullopt, ending};
  if (event == "refused") return Line{beginning_of(line), ending};
  return std::nullopt;
}

std::string time_text(int64_t time_ns) {
  const std::time_t seconds = time_ns / kSecond;
  std::tm parts{};
  if (gmtime_r(&seconds, &parts) == nullptr) return "";
  std::array<char, 32> text{};
  const size_t size = std::strftime(text.data(), text.size(), "%Y-%m-%dT%H:%M:%S", &parts);
  return fmt::format("{}.{:06}Z", std::string_view(text.data(), size), time_ns % kSecond / 1000);
}

int64_t time_of(const std::string& text) {
  std::tm parts{};
  const char* const rest = strptime(text.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) return 0;
  int64_t fraction = 0;
  int64_t unit = kSecond;
  for (const char* at = *rest == '.' ? rest + 1 : rest; *at >= '0' && *at <= '9' && unit > 1;
       ++at) {
    unit /= 10;
    fraction += (*at - '0') * unit;
  }
  constexpr std::time_t kLast = INT64_MAX / kSecond - 1;
  return std::clamp<std::time_t>(timegm(&parts), 0, kLast) * kSecond + fraction;
}

}  // namespace clew::ledger
