// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/probes.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <set>

#include <fmt/format.h>

#include "base/nearest.h"
#include "kernel/glob.h"

namespace clew::engine {

using query::d::ProbeArguments;
using query::d::ProbeDescription;
using query::d::Tag;
using query::d::TypeId;
using query::d::TypeTable;

namespace {

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ')
    text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ')
    text.remove_suffix(1);
  return text;
}

bool take_word(std::string_view& text, std::string_view word) {
  if (!text.starts_with(word)) return false;
  text = trim(text.substr(word.size()));
  return true;
}

using Arguments = std::vector<kernel::Catalogue::Argument>;

bool agree(const Arguments& a, const Arguments& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.native_type == y.native_type && x.translated_type == y.translated_type &&
           x.mapping == y.mapping;
  });
}

void take_types(TypeTable& table, const Arguments& from, ProbeArguments& into) {
  for (const auto& argument : from) {
    into.types.push_back(type_by_text(table, argument.translated_type));
    into.native_types.push_back(type_by_text(table, argument.native_type));
    into.mapping.push_back(argument.mapping);
    into.is_userland = into.is_userland || argument.is_userland;
  }
}

}  // namespace

TypeId type_by_text(TypeTable& table, std::string_view text) {
  text = trim(text);
  size_t stars = 0;
  while (!text.empty() && text.back() == '*') {
    ++stars;
    text = trim(text.substr(0, text.size() - 1));
  }
  while (take_word(text, "const ") || take_word(text, "volatile ")) {
  }
  Tag tag = Tag::None;
  if (take_word(text, "struct ")) tag = Tag::Struct;
  if (take_word(text, "union ")) tag = Tag::Union;
  if (take_word(text, "enum ")) tag = Tag::Enum;
  TypeId type = tag == Tag::None ? table.find_base(text) : query::d::kNoType;
  if (type == query::d::kNoType) type = table.find("", tag, text);
  if (type == query::d::kNoType && tag != Tag::None) type = table.declare(tag, std::string(text));
  for (; stars != 0 && type != query::d::kNoType; --stars) {
    type = table.pointer_to(type);
  }
  return type;
}

query::d::ProviderStability stability_of(const kernel::Catalogue& catalogue,
                                         const kernel::Probe& probe) {
  query::d::ProviderStability stability = query::d::stability_of_provider(probe.provider);
  const auto told = catalogue.stability(probe.id);
  if (!told) return stability;
  stability.probes = query::d::parse_stability(told->probe).value_or(stability.probes);
  stability.arguments = query::d::parse_stability(told->arguments).value_or(stability.arguments);
  return stability;
}

Expected<std::vector<uint32_t>> CatalogueProbes::match(const ProbeDescription& description) {
  if (description.id) {
    const auto id = static_cast<uint32_t>(*description.id);
    if (*description.id != id || catalogue_.find(id) == nullptr) return std::vector<uint32_t>{};
    return std::vector<uint32_t>{id};
  }
  return catalogue_.match({.provider = description.provider,
                           .module = description.module,
                           .function = description.function,
                           .name = description.name});
}

Expected<ProbeArguments> CatalogueProbes::arguments(TypeTable& table,
                                                    const ProbeDescription& description) {
  // Beyond that many, nobody asks for arguments that all of them have.
  constexpr size_t kComparedMax = 64;
  const std::vector<uint32_t> ids = CLEW_TRY(match(description));
  ProbeArguments arguments;
  arguments.matched = ids.size();
  if (ids.empty()) return arguments;
  arguments.stability = stability_of(catalogue_, *catalogue_.find(ids.front()));
  const auto first = catalogue_.arguments(ids.front());
  if (!first) return arguments;
  for (size_t i = 1; i < ids.size() && !arguments.disagree; ++i) {
    const auto other = i < kComparedMax ? catalogue_.arguments(ids[i]) : first;
    arguments.disagree = !other || !agree(*first, *other);
  }
  if (!arguments.disagree) take_types(table, *first, arguments);
  return arguments;
}

namespace {

using Pattern = kernel::ProbePattern;

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_glob(const std::string& field) {
  return field.empty() || field.find_first_of("*?[\\") != std::string::npos;
}

std::optional<uint64_t> parse_offset(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  const bool is_whole = error == std::errc() && end == text.data() + text.size();
  return is_whole ? std::optional(value) : std::nullopt;
}

// The process that the provider's last digits name; 0 when they name none.
pid_t process_of(const std::string& provider) {
  const auto begin = std::find_if_not(provider.rbegin(), provider.rend(), is_digit).base();
  const std::string digits(begin, provider.end());
  pid_t pid = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), pid);
  return parsed.ec == std::errc() ? pid : 0;
}

// A field of a description, and the same field of a probe.
struct Field {
  std::string Pattern::*of_pattern;
  std::string kernel::Probe::*of_probe;
};
constexpr std::array kFields = {Field{&Pattern::function, &kernel::Probe::function},
                                Field{&Pattern::name, &kernel::Probe::name},
                                Field{&Pattern::module, &kernel::Probe::module},
                                Field{&Pattern::provider, &kernel::Probe::provider}};

// Of a function in a process each instruction is a probe by its offset: too many to look at.
bool means_all_offsets(const Pattern& pattern) {
  return pattern.name.empty() && pattern.function.empty() && pattern.provider.starts_with("pid");
}

}  // namespace

uint64_t CatalogueProbes::matched_without(
    ProbeDescription description, std::initializer_list<std::string ProbeDescription::*> fields) {
  for (std::string ProbeDescription::*const field : fields)
    (description.*field).clear();
  if (description.name.empty()) description.name = "entry";
  const auto ids = match(description);
  return ids ? ids->size() : 0;
}

std::optional<query::d::ProbeSource::Problem> CatalogueProbes::problem(
    const ProbeDescription& description) {
  const std::string& provider = description.provider;
  if (description.id || provider.empty() || !is_digit(provider.back())) return std::nullopt;
  const pid_t pid = process_of(provider);
  if (pid <= 0) {
    const bool is_target = description.text.find("$target") != std::string::npos;
    const std::string_view quote = provider == "pid0" ? "" : "'";
    return Problem{"D_PROC_BADPID",
                   fmt::format("{0}{1}{0} does not contain a valid pid{2}", quote, provider,
                               is_target ? "\n  $target is that of -p PID or -c COMMAND" : "")};
  }
  const bool is_of_functions = provider == fmt::format("pid{}", pid);
  const bool is_of_locks = provider == fmt::format("plockstat{}", pid);
  if (!is_of_functions && !is_of_locks) return std::nullopt;
  if (kill(pid, 0) != 0 && errno == ESRCH)
    return Problem{"D_PROC_GRAB", fmt::format("failed to grab process {}", pid)};
  return is_of_functions ? problem_of_pid(description) : std::nullopt;
}

// In the order in which DTrace looks at the fields: `-` stands for a place by its address.
std::optional<query::d::ProbeSource::Problem> CatalogueProbes::problem_of_pid(
    const ProbeDescription& description) {
  using D = ProbeDescription;
  const std::string& name = description.name;
  if (description.function == "-") {
    if (is_glob(name)) {
      return Problem{"D_PROC_NAME",
                     "only individual addresses may be specified with the '-' function"};
    }
    if (is_glob(description.module) || description.module == "a.out") return std::nullopt;
    return Problem{"D_PROC_LIB", "only the a.out module is valid with the '-' function"};
  }
  const bool is_offset = !is_glob(name) && parse_offset(name);
  if (!is_glob(name) && !is_offset && name != "entry" && name != "return")
    return Problem{"D_PROC_NAME", fmt::format("'{}' is an invalid probe name", name)};
  if (is_glob(description.function)) return std::nullopt;
  const bool is_function = matched_without(description, {&D::name}) != 0;
  const bool is_module = !is_glob(description.module);
  if (!is_function && is_module && matched_without(description, {&D::name, &D::function}) != 0) {
    return Problem{"D_PROC_FUNC", fmt::format("failed to lookup '{}' in module '{}'",
                                              description.function, description.module)};
  }
  if (!is_function || !is_offset) return std::nullopt;
  return problem_of_offset(description, *parse_offset(name));
}

// A place between the function's first and last instruction is none that begins there.
std::optional<query::d::ProbeSource::Problem> CatalogueProbes::problem_of_offset(
    ProbeDescription description, uint64_t offset) {
  description.name = "[0-9a-f]*";
  const auto ids = match(description);
  if (!ids) return std::nullopt;
  uint64_t last = 0;
  for (const uint32_t id : *ids)
    last = std::max(last, parse_offset(catalogue_.find(id)->name).value_or(0));
  if (offset < last) {
    return Problem{"D_PROC_ALIGN",
                   fmt::format("offset 0x{:x} is not aligned on an instruction", offset)};
  }
  return Problem{"D_PROC_OFF", fmt::format("offset 0x{:x} outside of function '{}'", offset,
                                           description.function)};
}

std::string CatalogueProbes::nearest(const ProbeDescription& description) {
  if (description.id) return "";
  const Pattern wanted = {.provider = description.provider,
                          .module = description.module,
                          .function = description.function,
                          .name = description.name};
  for (const Field& field : kFields) {
    const std::string& written = wanted.*field.of_pattern;
    if (written.empty() || !kernel::Glob(written).is_literal()) continue;
    Pattern wider = wanted;
    (wider.*field.of_pattern).clear();
    if (means_all_offsets(wider)) continue;
    const auto ids = catalogue_.match(wider);
    if (!ids) continue;
    std::set<std::string_view> names;
    for (const uint32_t id : *ids)
      names.insert(catalogue_.find(id)->*field.of_probe);
    const std::vector<std::string_view> candidates(names.begin(), names.end());
    wider.*field.of_pattern = nearest_name(written, candidates);
    if ((wider.*field.of_pattern).empty()) continue;
    constexpr std::string_view kTarget = "pid$target";  // A command has another pid each time.
    if (description.text.starts_with(kTarget)) wider.provider = kTarget;
    const std::string near =
        fmt::format("{}:{}:{}:{}", wider.provider, wider.module, wider.function, wider.name);
    return near.substr(near.find_first_not_of(':'));
  }
  return "";
}

}  // namespace clew::engine
