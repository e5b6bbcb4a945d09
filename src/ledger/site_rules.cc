// SPDX-License-Identifier: Apache-2.0
#include "ledger/site_rules.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <climits>
#include <string>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

// See recorder/policy.cc.
#undef NDEBUG
#define TOML_ASSERT(condition) static_assert(true)
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "base/nearest.h"
#include "ledger/who.h"

namespace clew::ledger {
namespace {

constexpr size_t kRulesBytesMax = size_t{256} << 10;

// Of one file. Positions of toml++ count from 1.
class RulesReader {
 public:
  explicit RulesReader(const std::string& name) : name_(name) {}

  Expected<SiteRules> run(std::string_view text) {
    const toml::parse_result parsed = toml::parse(text, name_);
    if (!parsed) {
      std::string message(parsed.error().description());
      if (!message.empty())
        message[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(message[0])));
      return fail_at(parsed.error().source(), message);
    }
    const toml::table& all = parsed.table();
    CLEW_TRY(check_keys(all, {"log", "limits"}));
    rules_.path = name_;
    if (const toml::node* const log = all.get("log")) {
      const toml::table& table = *CLEW_TRY(table_of("log", *log));
      CLEW_TRY(check_keys(table, {"require"}));
      if (const toml::node* const require = table.get("require"))
        rules_.is_log_required = CLEW_TRY(truth_of("require", *require));
    }
    if (const toml::node* const limits = all.get("limits")) {
      const toml::table& table = *CLEW_TRY(table_of("limits", *limits));
      CLEW_TRY(read_limits(table));
    }
    return std::move(rules_);
  }

 private:
  Expected<void> read_limits(const toml::table& table) {
    CLEW_TRY(check_keys(table, {"allow_users", "deny_programs"}));
    if (const toml::node* const users = table.get("allow_users")) {
      rules_.names_users = true;
      const std::vector<const toml::node*> all = CLEW_TRY(list_of("allow_users", *users));
      for (const toml::node* const one : all)
        rules_.allow_users.push_back(CLEW_TRY(text_of("allow_users", *one)));
    }
    const toml::node* const programs = table.get("deny_programs");
    if (programs == nullptr) return {};
    const std::vector<const toml::node*> all = CLEW_TRY(list_of("deny_programs", *programs));
    for (const toml::node* const one : all) {
      const std::string text = CLEW_TRY(text_of("deny_programs", *one));
      auto pattern = target::Pattern::compile(text);
      if (!pattern) return fail_at(one->source(), pattern.error().message);
      // One that no path matches would forbid nothing, and seem to.
      if (text[0] != '/' && text[0] != '*')
        return fail_at(one->source(), fmt::format("'{}' is no path: it begins with / or *", text));
      rules_.deny_programs.push_back(std::move(*pattern));
    }
    return {};
  }

  Expected<void> check_keys(const toml::table& table,
                            const std::vector<std::string_view>& known) const {
    for (const auto& [key, node] : table) {
      if (std::find(known.begin(), known.end(), key.str()) != known.end()) continue;
      const std::string nearest = nearest_name(key.str(), known);
      return fail_at(
          key.source(),
          fmt::format("unknown key '{}'{}", key.str(),
                      nearest.empty() ? fmt::format("; there are {}", fmt::join(known, ", "))
                                      : fmt::format("; did you mean '{}'?", nearest)));
    }
    return {};
  }

  Expected<const toml::table*> table_of(std::string_view key, const toml::node& node) const {
    if (const toml::table* const table = node.as_table()) return table;
    return fail_at(node.source(), fmt::format("expected [{}], a table", key));
  }

  Expected<std::vector<const toml::node*>> list_of(std::string_view key,
                                                   const toml::node& node) const {
    const toml::array* const all = node.as_array();
    if (all == nullptr) return fail_at(node.source(), fmt::format("'{}' is a list", key));
    std::vector<const toml::node*> nodes;
    for (const toml::node& one : *all)
      nodes.push_back(&one);
    return nodes;
  }

  Expected<std::string> text_of(std::string_view key, const toml::node& node) const {
    const toml::value<std::string>* const value = node.as_string();
    const bool is_text =
        value != nullptr && !value->get().empty() && value->get().find('\0') == std::string::npos;
    if (is_text) return value->get();
    return fail_at(node.source(), fmt::format("'{}' has non-empty texts", key));
  }

  Expected<bool> truth_of(std::string_view key, const toml::node& node) const {
    if (const toml::value<bool>* const value = node.as_boolean()) return value->get();
    return fail_at(node.source(), fmt::format("'{}' is true or false", key));
  }

  [[nodiscard]] tl::unexpected<Error> fail_at(const toml::source_region& place,
                                              std::string_view message) const {
    return fail(ErrorCode::InvalidQuery, fmt::format("{}:{}:{}: error: {}", name_, place.begin.line,
                                                     place.begin.column, message));
  }

  const std::string& name_;
  SiteRules rules_;
};

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
  std::string text(kRulesBytesMax + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = read(descriptor, text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(errno)));
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  if (size > kRulesBytesMax)
    return fail(ErrorCode::Limit, fmt::format("{} has more than {} bytes", path, kRulesBytesMax));
  text.resize(size);
  return text;
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
  return RulesReader(name).run(text);
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
