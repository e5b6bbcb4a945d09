// SPDX-License-Identifier: Apache-2.0
#include "engine/kernel/kernel_list.h"

#include <string_view>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/kernel/kernel_sources.h"
#include "kernel/glob.h"
#include "kernel/trace_events.h"
#include "query/diagnostic.h"

namespace clew::engine {
namespace {

constexpr std::string_view kCalls = "syscalls:sys_enter_";
constexpr std::string_view kReturns = "syscalls:sys_exit_";
constexpr std::string_view kNumber = "__syscall_nr";

std::string show(const kernel::TraceFormat& format) {
  std::string text;
  for (const kernel::TraceField& field : format.fields) {
    if (field.name == kNumber) continue;
    const bool is_array = field.count != 0 || field.is_elsewhere;
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", field.type, field.name,
                        is_array ? "[]" : "");
  }
  return text;
}

nlohmann::json as_json(const kernel::TraceFormat& format) {
  nlohmann::json fields = nlohmann::json::array();
  for (const kernel::TraceField& field : format.fields) {
    if (field.name != kNumber) fields.push_back({{"name", field.name}, {"type", field.type}});
  }
  return fields;
}

}  // namespace

Expected<std::string> list_kernel_events(const NameRequest& request) {
  kernel::TraceEvents events;
  const Expected<const std::vector<std::string>*> all = events.names();
  if (!all) return tl::unexpected(explain_rights(all.error()));
  const kernel::Glob glob(request.pattern);
  std::vector<std::string_view> known;
  std::string text;
  for (const std::string& name : **all) {
    const bool is_call = name.starts_with(kCalls);
    if (name.starts_with(kReturns)) continue;
    const std::string_view shown =
        is_call ? std::string_view(name).substr(kCalls.size()) : std::string_view(name);
    known.push_back(shown);
    if (!glob.matches(shown)) continue;
    const std::string_view source = is_call ? "syscall" : "tracepoint";
    const Expected<kernel::TraceFormat> format = events.format(name);
    if (!format) continue;  // It went away.
    if (request.json) {
      const nlohmann::json line = {
          {"source", source}, {"name", shown}, {"fields", as_json(*format)}};
      text += line.dump() + "\n";
    } else {
      text += fmt::format("{}(\"{}\")  {}\n", source, shown, show(*format));
    }
  }
  if (!text.empty()) return text;
  return fail(ErrorCode::NotFound,
              fmt::format("no system call or tracepoint '{}'{}", request.pattern,
                          query::did_you_mean(request.pattern, known)));
}

}  // namespace clew::engine
