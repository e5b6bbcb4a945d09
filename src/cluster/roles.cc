// SPDX-License-Identifier: Apache-2.0
#include "cluster/roles.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

// See recorder/policy.cc.
#undef NDEBUG
#define TOML_ASSERT(condition) static_assert(true)
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "base/nearest.h"
#include "target/pattern.h"

namespace clew::cluster {
namespace {

constexpr size_t kRolesBytesMax = size_t{256} << 10;

class RolesReader {
 public:
  explicit RolesReader(const std::string& name) : name_(name) {}

  Expected<std::map<std::string, Role>> roles(const toml::table& all) const {
    std::map<std::string, Role> roles;
    const toml::node* const node = all.get("roles");
    if (node == nullptr) return roles;
    if (!node->is_table()) return fail_at(node->source(), "expected [roles.NAME], tables");
    for (const auto& [name, one] : *node->as_table()) {
      if (!one.is_table()) return fail_at(one.source(), "expected [roles.NAME], a table");
      roles[std::string(name.str())] = CLEW_TRY(role(std::string(name.str()), *one.as_table()));
    }
    return roles;
  }

  template <typename Holder>
  Expected<std::map<PublicKey, Holder>> keys(const toml::table& all,
                                             const std::map<std::string, Role>& roles) const {
    std::map<PublicKey, Holder> keys;
    const toml::node* const node = all.get("keys");
    if (node == nullptr) return keys;
    if (!node->is_table()) return fail_at(node->source(), "expected [keys.NAME], tables");
    for (const auto& [name, one] : *node->as_table()) {
      if (!one.is_table()) return fail_at(one.source(), "expected [keys.NAME], a table");
      const toml::table& table = *one.as_table();
      CLEW_TRY(check_keys(table, {"key", "role"}));
      for (const char* needed : {"key", "role"}) {
        if (!table.contains(needed))
          return fail_at(table.source(), fmt::format("'{}' is missing here", needed));
      }
      const toml::node& key_node = *table.get("key");
      const auto key = public_key_of(CLEW_TRY(text_of("key", key_node)));
      if (!key) return fail_at(key_node.source(), key.error().message);
      const toml::node& role_node = *table.get("role");
      const std::string role = CLEW_TRY(text_of("role", role_node));
      if (!roles.contains(role))
        return fail_at(role_node.source(), fmt::format("there is no [roles.{}]", role));
      const bool is_new = keys.emplace(*key, Holder{std::string(name.str()), role}).second;
      if (!is_new) return fail_at(key_node.source(), "this key is here twice");
    }
    return keys;
  }

  Expected<void> check_keys(const toml::table& table, std::vector<std::string_view> known) const {
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

  [[nodiscard]] tl::unexpected<Error> fail_at(const toml::source_region& place,
                                              std::string_view message) const {
    return fail(ErrorCode::InvalidQuery, fmt::format("{}:{}:{}: error: {}", name_, place.begin.line,
                                                     place.begin.column, message));
  }

 private:
  Expected<Role> role(const std::string& name, const toml::table& table) const {
    CLEW_TRY(check_keys(
        table, {"sources", "processes", "memory", "kernel", "cause", "queries", "interval_ms"}));
    Role role{.name = name};
    role.sources = CLEW_TRY(patterns(table, "sources"));
    role.processes = CLEW_TRY(patterns(table, "processes"));
    role.memory = CLEW_TRY(truth(table, "memory"));
    role.kernel = CLEW_TRY(truth(table, "kernel"));
    role.cause = CLEW_TRY(truth(table, "cause"));
    constexpr int64_t kQueriesMost = 1000;
    constexpr int64_t kIntervalMost = 86'400'000;
    role.queries = static_cast<uint64_t>(CLEW_TRY(number(table, "queries", kQueriesMost)));
    role.interval_ns = CLEW_TRY(number(table, "interval_ms", kIntervalMost)) * 1'000'000;
    return role;
  }

  Expected<std::vector<std::string>> patterns(const toml::table& table,
                                              std::string_view key) const {
    std::vector<std::string> patterns;
    const toml::node* const node = table.get(key);
    if (node == nullptr) return patterns;
    if (!node->is_array()) return fail_at(node->source(), fmt::format("'{}' is a list", key));
    for (const toml::node& one : *node->as_array()) {
      std::string text = CLEW_TRY(text_of(key, one));
      const auto pattern = target::Pattern::compile(text);
      if (!pattern) return fail_at(one.source(), pattern.error().message);
      patterns.push_back(std::move(text));
    }
    return patterns;
  }

  Expected<bool> truth(const toml::table& table, std::string_view key) const {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return false;
    if (const toml::value<bool>* const value = node->as_boolean()) return value->get();
    return fail_at(node->source(), fmt::format("'{}' is true or false", key));
  }

  // 0: it is not there.
  Expected<int64_t> number(const toml::table& table, std::string_view key, int64_t most) const {
    const toml::node* const node = table.get(key);
    if (node == nullptr) return 0;
    const toml::value<int64_t>* const value = node->as_integer();
    if (value != nullptr && value->get() >= 1 && value->get() <= most) return value->get();
    return fail_at(node->source(), fmt::format("'{}' is a whole number from 1 to {}", key, most));
  }

  Expected<std::string> text_of(std::string_view key, const toml::node& node) const {
    const toml::value<std::string>* const value = node.as_string();
    const bool is_text =
        value != nullptr && !value->get().empty() && value->get().find('\0') == std::string::npos;
    if (is_text) return value->get();
    return fail_at(node.source(), fmt::format("'{}' has non-empty texts", key));
  }

  const std::string& name_;
};

}  // namespace

Expected<Roles> Roles::parse(std::string_view text, const std::string& name) {
  const RolesReader reader(name);
  const toml::parse_result parsed = toml::parse(text, name);
  if (!parsed) return reader.fail_at(parsed.error().source(), parsed.error().description());
  CLEW_TRY(reader.check_keys(parsed.table(), {"keys", "roles"}));
  Roles roles;
  roles.roles_ = CLEW_TRY(reader.roles(parsed.table()));
  roles.keys_ = CLEW_TRY(reader.keys<Holder>(parsed.table(), roles.roles_));
  return roles;
}

Expected<Roles> Roles::read(const std::string& path) {
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(errno)));
  struct stat status {};
  if (fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode))
    return fail(ErrorCode::Refused, fmt::format("{} is no file", path));
  const bool is_ours = status.st_uid == 0 || status.st_uid == geteuid();
  if (!is_ours || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return fail(ErrorCode::Refused,
                fmt::format("others may write {}, and so say who may ask what", path));
  }
  std::string text(kRolesBytesMax + 1, '\0');
  size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::read(file.get(), text.data() + size, text.size() - size);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return fail(ErrorCode::Io, fmt::format("{}: {}", path, error_text(errno)));
    if (count == 0) break;
    size += static_cast<size_t>(count);
  }
  if (size > kRolesBytesMax)
    return fail(ErrorCode::Limit, fmt::format("{} has more than {} bytes", path, kRolesBytesMax));
  text.resize(size);
  return parse(text, path);
}

Expected<const Role*> Roles::role_of(const PublicKey& key) const {
  const auto found = keys_.find(key);
  if (found != keys_.end()) return &roles_.at(found->second.role);
  return fail(ErrorCode::Refused, fmt::format("the key {} has no role here", text_of(key)));
}

std::string Roles::shown(const PublicKey& key) const {
  const auto found = keys_.find(key);
  if (found == keys_.end()) return fmt::format("the key {}", text_of(key));
  return fmt::format("{} (role {})", found->second.name, found->second.role);
}

RolesFile::Stamp RolesFile::stamp() const {
  struct stat status {};
  if (stat(path_.c_str(), &status) != 0) return {};
  return {.inode = status.st_ino,
          .size = status.st_size,
          .changed_ns = status.st_ctim.tv_sec * int64_t{1'000'000'000} + status.st_ctim.tv_nsec};
}

Expected<RolesFile> RolesFile::open(const std::string& path) {
  RolesFile file(path);
  // Before it is read: what changes meanwhile is seen the next time.
  file.read_ = file.stamp();
  *file.roles_ = CLEW_TRY(Roles::read(path));
  return file;
}

std::optional<std::string> RolesFile::refresh() {
  const Stamp now = stamp();
  if (now == read_) return std::nullopt;
  read_ = now;
  auto roles = Roles::read(path_);
  if (!roles) return fmt::format("roles stay as they were: {}", roles.error().message);
  *roles_ = std::move(*roles);
  return fmt::format("{} has changed: {} may ask", path_, roles_->keys());
}

}  // namespace clew::cluster
