// SPDX-License-Identifier: Apache-2.0
#include "engine/whose.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <pwd.h>

#include "base/nearest.h"

namespace clew::engine {
namespace {

constexpr std::string_view kService = ".service";
constexpr size_t kIdDigitsMin = 4;
constexpr size_t kToldMax = 8;

Expected<std::vector<target::Pattern>> patterns_of(const std::vector<std::string>& texts) {
  std::vector<target::Pattern> patterns;
  patterns.reserve(texts.size());
  for (const std::string& text : texts)
    patterns.push_back(CLEW_TRY(target::Pattern::compile(text)));
  return patterns;
}

Expected<uid_t> user_id(const std::string& name) {
  uid_t number = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
  if (parsed.ec == std::errc() && parsed.ptr == name.data() + name.size()) return number;
  std::array<char, 16384> room{};
  passwd entry{};
  passwd* found = nullptr;
  const int status = getpwnam_r(name.c_str(), &entry, room.data(), room.size(), &found);
  if (status == 0 && found != nullptr) return found->pw_uid;
  return fail(ErrorCode::NotFound, fmt::format("no user is called '{}'", name));
}

void note(std::vector<std::string>& met, const std::string& name) {
  const auto place = std::lower_bound(met.begin(), met.end(), name);
  if (place == met.end() || *place != name) met.insert(place, name);
}

// "; did you mean 'web'?", or what there is.
std::string instead_of(const std::string& wanted, const std::vector<std::string>& met) {
  const std::vector<std::string_view> names(met.begin(), met.end());
  const std::string nearest = nearest_name(wanted, names);
  if (!nearest.empty()) return did_you_mean(nearest);
  const size_t told = std::min(met.size(), kToldMax);
  const std::span<const std::string> first(met.data(), told);
  return fmt::format("; there {} {}{}", met.size() == 1 ? "is" : "are", fmt::join(first, ", "),
                     told < met.size() ? fmt::format(" and {} more", met.size() - told) : "");
}

// As in a shell: words with a blank between them.
std::string command_line_of(const target::Process& process) {
  return fmt::format("{}", fmt::join(process.arguments, " "));
}

// The group, or one below it.
bool is_within(std::string_view path, std::string_view group) {
  return path.starts_with(group) && (path.size() == group.size() || path[group.size()] == '/');
}

std::string_view path_within(std::string_view path) {
  // With version 1 beside it, each kind has a folder there.
  for (const std::string_view mounted :
       {"/sys/fs/cgroup/unified", "/sys/fs/cgroup/systemd", "/sys/fs/cgroup"}) {
    if (!is_within(path, mounted)) continue;
    path.remove_prefix(mounted.size());
    break;
  }
  while (path.ends_with('/'))
    path.remove_suffix(1);
  return path;
}

}  // namespace

Expected<WhoseFilter> WhoseFilter::make(const Whose& whose) {
  WhoseFilter filter;
  filter.whose_ = whose;
  // An empty one would be everybody's: a variable of a shell that has no value.
  const std::array<std::pair<const std::vector<std::string>*, const char*>, 5> all = {
      {{&whose.containers, "--container wants a name or an id"},
       {&whose.units, "--unit wants a name"},
       {&whose.cgroups, "--cgroup wants a path"},
       {&whose.users, "--user wants a name or a number"},
       {&whose.command_lines, "--command-line wants words"}}};
  for (const auto& [values, wants] : all) {
    if (std::find(values->begin(), values->end(), "") != values->end())
      return fail(ErrorCode::InvalidQuery, wants);
  }
  filter.containers_ = CLEW_TRY(patterns_of(whose.containers));
  filter.units_ = CLEW_TRY(patterns_of(whose.units));
  for (const std::string& name : whose.users)
    filter.users_.push_back(CLEW_TRY(user_id(name)));
  return filter;
}

bool WhoseFilter::holds_container(const target::Belonging& belonging) {
  if (belonging.container.empty()) return false;
  const std::vector<std::string>& names = names_.names_of(belonging);
  note(met_containers_, names_.shown(belonging));
  return std::any_of(containers_.begin(), containers_.end(), [&](const target::Pattern& pattern) {
    const bool is_id = !target::is_named(belonging) && pattern.text().size() >= kIdDigitsMin &&
                       belonging.container.starts_with(pattern.text());
    return is_id || std::any_of(names.begin(), names.end(), [&pattern](const std::string& name) {
             return pattern.matches(name);
           });
  });
}

bool WhoseFilter::holds_unit(const std::string& unit) {
  if (unit.empty()) return false;
  const std::string stem =
      unit.substr(0, unit.ends_with(kService) ? unit.size() - kService.size() : unit.size());
  note(met_units_, stem);
  return std::any_of(units_.begin(), units_.end(), [&](const target::Pattern& pattern) {
    return pattern.matches(unit) || pattern.matches(stem);
  });
}

bool WhoseFilter::holds_cgroup(const std::string& cgroup) const {
  return std::any_of(
      whose_.cgroups.begin(), whose_.cgroups.end(),
      [&cgroup](const std::string& path) { return is_within(cgroup, path_within(path)); });
}

bool WhoseFilter::holds(const target::Process& process) {
  if (!users_.empty() && std::find(users_.begin(), users_.end(), process.uid) == users_.end())
    return false;
  const std::string line = whose_.command_lines.empty() ? "" : command_line_of(process);
  const bool has_words = whose_.command_lines.empty() ||
                         std::any_of(whose_.command_lines.begin(), whose_.command_lines.end(),
                                     [&line](const std::string& words) {
                                       return line.find(words) != std::string::npos;
                                     });
  if (!has_words) return false;
  if (containers_.empty() && units_.empty() && whose_.cgroups.empty()) return true;
  const auto belonging = target::belonging_of(process.pid());
  if (!belonging) return false;
  return (containers_.empty() || holds_container(*belonging)) &&
         (units_.empty() || holds_unit(belonging->unit)) &&
         (whose_.cgroups.empty() || holds_cgroup(belonging->cgroup));
}

Error WhoseFilter::none() const {
  std::string what = "no process that is asked for";
  const auto add = [&what](const char* words, const std::vector<std::string>& names) {
    if (!names.empty()) what += fmt::format("{} '{}'", words, fmt::join(names, "' or '"));
  };
  add(" is in a container called", whose_.containers);
  add(" is of the unit", whose_.units);
  add(" is in the control group", whose_.cgroups);
  add(" is of the user", whose_.users);
  add(" has in its command line", whose_.command_lines);
  if (!whose_.containers.empty() && met_containers_.empty()) {
    what +=
        "; none is in a container that Clew knows (docker, podman, Kubernetes, LXC, "
        "systemd-nspawn)";
  } else if (!whose_.containers.empty()) {
    what += instead_of(whose_.containers.front(), met_containers_);
  } else if (!whose_.units.empty() && !met_units_.empty()) {
    what += instead_of(whose_.units.front(), met_units_);
  }
  return Error{.code = ErrorCode::NotFound, .message = std::move(what)};
}

}  // namespace clew::engine
