// SPDX-License-Identifier: Apache-2.0
#include "ledger/site_rules.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <string>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "base/settings_file.h"
#include "ledger/who.h"

namespace clew::ledger {
namespace {

constexpr size_t kRulesBytesMax = size_t{256} << 10;

Expected<void> read_limits(const SettingsFile& file, const toml::table& table, SiteRules& rules) {
  CLEW_TRY(file.check_keys(table, {"allow_users", "deny_programs"}));
  if (const toml::node* const users = table.get("allow_users")) {
    rules.names_users = true;
    const toml::array& all = *CLEW_TRY(file.list_of("allow_users", *users));
    for (const toml::node& one : all)
      rules.allow_users.push_back(CLEW_TRY(file.element_of("allow_users", one)));
  }
  const toml::node* const programs = table.get("deny_programs");
  if (programs == nullptr) return {};
  const toml::array& all = *CLEW_TRY(file.list_of("deny_programs", *programs));
  for (const toml::node& one : all) {
    const std::string text = CLEW_TRY(file.element_of("deny_programs", one));
    auto pattern = target::Pattern::compile(text);
    if (!pattern) return file.fail_at(one.source(), pattern.error().message);
    // One that no path matches would forbid nothing, and seem to.
    if (text[0] != '/' && text[0] != '*') {
      return file.fail_at(one.source(),
                          fmt::format("'{}' is no path: it begins with / or *", text));
    }
    rules.deny_programs.push_back(std::move(*pattern));
  }
  return {};
}

Expected<void> check_is_roots(int descriptor, const std::string& path) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0)
    return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(errno)));
  if (status.st_uid == 0 && (status.st_mode & (S_IWGRP | S_IWOTH)) == 0) return {};
  return fail(
      ErrorCode::Refused,
      fmt::format("others than root may write {}, and so say what is forbidden here", path));
}

Expected<std::string> read_rules(int descriptor, const std::string& path) {
  struct stat status {};
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
    return fail(ErrorCode::Refused, fmt::format("{} is no file", path));
  return read_settings(descriptor, path, kRulesBytesMax);
}

// Where its file has another name by now, or none, the kernel says what it was.
Expected<std::string> executable_of(pid_t pid) {
  constexpr std::string_view kDeleted = " (deleted)";
  std::array<char, PATH_MAX> path{};
  const ssize_t count =
      readlink(fmt::format("/proc/{}/exe", pid).c_str(), path.data(), path.size());
  if (count < 0) {
    const bool has_ended = errno == ENOENT || errno == ESRCH;
    return fail(has_ended ? ErrorCode::NotFound : ErrorCode::Io, error_text(errno));
  }
  std::string_view text(path.data(), static_cast<size_t>(count));
  if (text.ends_with(kDeleted)) text.remove_suffix(kDeleted.size());
  return std::string(text);
}

}  // namespace

Expected<SiteRules> parse_site_rules(std::string_view text, const std::string& name) {
  const SettingsFile file = CLEW_TRY(SettingsFile::parse(text, name));
  SiteRules rules{.path = name};
  CLEW_TRY(file.check_keys(file.all(), {"log", "limits"}));
  if (const toml::node* const log = file.all().get("log")) {
    const toml::table& table = *CLEW_TRY(file.table_of("log", *log));
    CLEW_TRY(file.check_keys(table, {"require"}));
    CLEW_TRY(file.read(table, "require", rules.is_log_required));
  }
  if (const toml::node* const limits = file.all().get("limits")) {
    const toml::table& table = *CLEW_TRY(file.table_of("limits", *limits));
    CLEW_TRY(read_limits(file, table, rules));
  }
  return rules;
}

Expected<SiteRules> read_site_rules(const std::string& path) {
  const std::string above = path.substr(0, path.rfind('/'));
  const FileDescriptor folder(open(above.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid() && errno == ENOENT) return SiteRules{};
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid() && errno == ENOENT) return SiteRules{};
  if (!file.valid() || !folder.valid())
    return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(errno)));
  CLEW_TRY(check_is_roots(folder.get(), above));
  CLEW_TRY(check_is_roots(file.get(), path));
  return parse_site_rules(CLEW_TRY(read_rules(file.get(), path)), path);
}

Expected<void> check_user(const SiteRules& rules, const Who& who) {
  if (!rules.names_users) return {};
  const std::string& user = acting_user(who);
  const bool is_allowed =
      !user.empty() && std::find(rules.allow_users.begin(), rules.allow_users.end(), user) !=
                           rules.allow_users.end();
  if (is_allowed) return {};
  return fail(ErrorCode::Refused,
              fmt::format("{} does not let {} trace (allow_users)", rules.path,
                          user.empty() ? "a user without a name" : "the user " + user));
}

Expected<void> check_program(const SiteRules& rules, pid_t pid) {
  if (rules.deny_programs.empty()) return {};
  const auto path = executable_of(pid);
  if (!path && path.error().code == ErrorCode::NotFound) return {};  // It has ended.
  if (!path) {
    return fail(ErrorCode::Refused,
                fmt::format("process {}: {} has programs that nobody traces, and which one this is "
                            "cannot be read: {}",
                            pid, rules.path, path.error().message));
  }
  const bool is_denied =
      std::any_of(rules.deny_programs.begin(), rules.deny_programs.end(),
                  [&path](const target::Pattern& pattern) { return pattern.matches(*path); });
  if (!is_denied) return {};
  return fail(ErrorCode::Refused, fmt::format("process {} runs {}, which {} lets nobody trace "
                                              "(deny_programs)",
                                              pid, *path, rules.path));
}

Expected<void> check_program(pid_t pid) {
  return check_program(CLEW_TRY(read_site_rules()), pid);
}

}  // namespace clew::ledger
