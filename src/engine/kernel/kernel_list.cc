// SPDX-License-Identifier: Apache-2.0
#include "engine/kernel/kernel_list.h"

#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/kernel/event_types.h"
#include "engine/kernel/kernel_sources.h"
#include "kernel/glob.h"
#include "kernel/providers/catalogue.h"
#include "kernel/trace_events.h"
#include "query/diagnostic.h"
#include "query/query.h"
#include "query/resolve_source.h"

namespace clew::engine {
namespace {

constexpr std::string_view kCalls = "syscalls:sys_enter_";
constexpr std::string_view kReturns = "syscalls:sys_exit_";
constexpr std::string_view kNumber = "__syscall_nr";
constexpr std::string_view kKernel = "vmlinux";

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

class KernelLister {
 public:
  explicit KernelLister(const NameRequest& request) : request_(request), glob_(request.pattern) {}

  Expected<std::string> run() {
    CLEW_TRY(list_events());
    const bool names_some = !glob_.is_any();  // All would be tens of thousands.
    if (names_some) CLEW_TRY(list_functions());
    if (!text_.empty()) return text_;
    for (const uint32_t id : CLEW_TRY(catalogue_.match({.provider = "fbt", .name = "entry"})))
      known_.push_back(catalogue_.find(id)->function);
    return fail(ErrorCode::NotFound,
                fmt::format("no system call, tracepoint or function of the kernel '{}'{}",
                            request_.pattern, query::did_you_mean(request_.pattern, known_)));
  }

 private:
  Expected<void> list_events() {
    for (const std::string& name : *CLEW_TRY(events_.names())) {
      const bool is_call = name.starts_with(kCalls);
      if (name.starts_with(kReturns)) continue;
      const std::string_view shown =
          is_call ? std::string_view(name).substr(kCalls.size()) : std::string_view(name);
      known_.push_back(shown);
      if (!glob_.matches(shown)) continue;
      const std::string_view source = is_call ? "syscall" : "tracepoint";
      const Expected<kernel::TraceFormat> format = events_.format(name);
      if (!format) continue;  // It went away.
      if (request_.json) {
        put({{"source", source}, {"name", shown}, {"fields", as_json(*format)}});
      } else {
        text_ += fmt::format("{}(\"{}\")  {}\n", source, shown, show(*format));
      }
    }
    return {};
  }

  Expected<void> list_functions() {
    query::Source wanted;
    wanted.kind = query::SourceKind::Kernel;
    if (!query::split_function(request_.pattern, wanted)) return {};
    const std::vector<uint32_t> found = CLEW_TRY(catalogue_.match({.provider = "fbt",
                                                                   .module = wanted.module,
                                                                   .function = wanted.function,
                                                                   .name = "entry"}));
    EventTypes types(catalogue_, events_, nullptr, true);
    for (const uint32_t id : found) {
      query::Source source = wanted;
      source.module = catalogue_.find(id)->module;
      source.function = catalogue_.find(id)->function;
      CLEW_TRY(list_function(source, types));
    }
    return {};
  }

  Expected<void> list_function(const query::Source& source, EventTypes& types) {
    const std::string result = type_name(types, CLEW_TRY(types.return_type(source)));
    nlohmann::json fields = nlohmann::json::array();
    std::string shown;
    for (const query::Parameter& one : CLEW_TRY(types.parameters(source))) {
      const std::string type = type_name(types, one.type);
      fields.push_back({{"name", one.name}, {"type", type}});
      shown += fmt::format("{}{} {}", shown.empty() ? "" : ", ", type, one.name);
    }
    if (request_.json) {
      put({{"source", "kernel"},
           {"name", source.function},
           {"module", source.module},
           {"fields", std::move(fields)},
           {"result", result}});
      return {};
    }
    const std::string module = source.module == kKernel ? "" : source.module + "!";
    text_ += fmt::format("kernel(\"{}{}\")  ({}) -> {}\n", module, source.function, shown, result);
    return {};
  }

  static std::string type_name(EventTypes& types, query::TypeHandle type) {
    return type == 0 ? "void" : types.describe(type).name;
  }

  void put(const nlohmann::json& line) { text_ += line.dump() + "\n"; }

  const NameRequest& request_;
  kernel::Glob glob_;
  kernel::Catalogue catalogue_;
  kernel::TraceEvents events_;
  std::vector<std::string_view> known_;
  std::string text_;
};

}  // namespace

Expected<std::string> list_kernel_events(const NameRequest& request) {
  Expected<std::string> text = KernelLister(request).run();
  if (!text && text.error().code == ErrorCode::Refused) {
    return tl::unexpected(explain_rights(text.error()));
  }
  return text;
}

}  // namespace clew::engine
