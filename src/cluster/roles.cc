// SPDX-License-Identifier: Apache-2.0
#include "cluster/roles.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "base/settings_file.h"
#include "target/pattern.h"

namespace clew::cluster {
namespace {

constexpr size_t kRolesBytesMax = size_t{256} << 10;

class RolesReader {
 public:
  explicit RolesReader(const SettingsFile& file) : file_(file) {}

  Expected<std::map<std::string, Role>> roles(const toml::table& all) const {
    std::map<std::string, Role> roles;
    const toml::node* const node = all.get("roles");
    if (node == nullptr) return roles;
    if (!node->is_table()) return file_.fail_at(node->source(), "expected [roles.NAME], tables");
    for (const auto& [name, one] : *node->as_table()) {
      const toml::table& table = *CLEW_TRY(file_.table_of("roles.NAME", one));
      roles[std::string(name.str())] = CLEW_TRY(role(std::string(name.str()), table));
    }
    return roles;
  }

  template <typename Holder>
  Expected<std::map<PublicKey, Holder>> keys(const toml::table& all,
                                             const std::map<std::string, Role>& roles) const {
    std::map<PublicKey, Holder> keys;
    const toml::node* const node = all.get("keys");
    if (node == nullptr) return keys;
    if (!node->is_table()) return file_.fail_at(node->source(), "expected [keys.NAME], tables");
    for (const auto& [name, one] : *node->as_table()) {
      const toml::table& table = *CLEW_TRY(file_.table_of("keys.NAME", one));
      CLEW_TRY(file_.check_keys(table, {"key", "role"}));
      for (const char* needed : {"key", "role"}) {
        if (!table.contains(needed))
          return file_.fail_at(table.source(), fmt::format("'{}' is missing here", needed));
      }
      const toml::node& key_node = *table.get("key");
      const auto key = public_key_of(CLEW_TRY(file_.text_of("key", key_node)));
      if (!key) return file_.fail_at(key_node.source(), key.error().message);
      const toml::node& role_node = *table.get("role");
      const std::string role = CLEW_TRY(file_.text_of("role", role_node));
      if (!roles.contains(role))
        return file_.fail_at(role_node.source(), fmt::format("there is no [roles.{}]", role));
      const bool is_new = keys.emplace(*key, Holder{std::string(name.str()), role}).second;
      if (!is_new) return file_.fail_at(key_node.source(), "this key is here twice");
    }
    return keys;
  }

 private:
  Expected<Role> role(const std::string& name, const toml::table& table) const {
    CLEW_TRY(file_.check_keys(
        table, {"sources", "processes", "memory", "kernel", "cause", "queries", "interval_ms"}));
    Role role{.name = name};
    role.sources = CLEW_TRY(patterns(table, "sources"));
    role.processes = CLEW_TRY(patterns(table, "processes"));
    CLEW_TRY(file_.read(table, "memory", role.memory));
    CLEW_TRY(file_.read(table, "kernel", role.kernel));
    CLEW_TRY(file_.read(table, "cause", role.cause));
    constexpr int64_t kQueriesMost = 1000;
    constexpr int64_t kIntervalMost = 86'400'000;
    int64_t queries = 0;
    int64_t interval_ms = 0;
    CLEW_TRY(file_.read(table, "queries", kQueriesMost, queries));
    CLEW_TRY(file_.read(table, "interval_ms", kIntervalMost, interval_ms));
    role.queries = static_cast<uint64_t>(queries);
    role.interval_ns = interval_ms * 1'000'000;
    return role;
  }

  Expected<std::vector<std::string>> patterns(const toml::table& table,
                                              std::string_view key) const {
    std::vector<std::string> patterns;
    const toml::node* const node = table.get(key);
    if (node == nullptr) return patterns;
    const toml::array& all = *CLEW_TRY(file_.list_of(key, *node));
    for (const toml::node& one : all) {
      std::string text = CLEW_TRY(file_.element_of(key, one));
      const auto pattern = target::Pattern::compile(text);
      if (!pattern) return file_.fail_at(one.source(), pattern.error().message);
      patterns.push_back(std::move(text));
    }
    return patterns;
  }

  const SettingsFile& file_;
};

}  // namespace

Expected<Roles> Roles::parse(std::string_view text, const std::string& name) {
  const SettingsFile file = CLEW_TRY(SettingsFile::parse(text, name));
  CLEW_TRY(file.check_keys(file.all(), {"keys", "roles"}));
  const RolesReader reader(file);
  Roles roles;
  roles.roles_ = CLEW_TRY(reader.roles(file.all()));
  roles.keys_ = CLEW_TRY(reader.keys<Holder>(file.all(), roles.roles_));
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
  return parse(CLEW_TRY(read_settings(file.get(), path, kRolesBytesMax)), path);
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
