// SPDX-License-Identifier: Apache-2.0
#include "engine/kernel/kernel_sources.h"

#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <unistd.h>

#include "kernel/glob.h"
#include "kernel/providers/syscall_table.h"
#include "query/diagnostic.h"
#include "query/fields.h"
#include "query/print.h"
#include "target/kernel_symbols.h"

namespace clew::engine {
namespace {

using query::Source;
using query::SourceKind;

// DTrace's limit: 5000 samples a second.
constexpr uint64_t kPeriodMinNs = 200'000;
constexpr size_t kTracepointsMax = 1000;  // Each takes an attachment of its own.

class SiteFinder {
 public:
  SiteFinder(kernel::Catalogue& catalogue, kernel::TraceEvents& events)
      : catalogue_(catalogue), events_(events) {}

  Expected<void> add(uint16_t index, const Source& source) {
    source_ = &source;
    index_ = index;
    if (source.is_raw()) return add_raw();
    if (source.moves_bytes()) return add_moved();
    if (source.kind == SourceKind::Tracepoint) return add_events();
    if (query::is_kernel_function(source.kind)) return add_functions();
    return source.kind == SourceKind::Profile ? add_clock() : add_calls();
  }

  std::vector<KernelSite> sites;

 private:
  Expected<void> add_calls() {
    const auto match = [&](const char* name) {
      return catalogue_.match({.provider = "syscall", .function = source_->function, .name = name});
    };
    const bool is_return = source_->kind == SourceKind::SyscallReturn;
    const std::vector<uint32_t> found = CLEW_TRY(match(is_return ? "return" : "entry"));
    if (found.empty()) return no_call();
    const std::vector<uint32_t> entries = CLEW_TRY(match("entry"));
    for (size_t i = 0; i < found.size(); ++i) {
      put(*catalogue_.find(found[i]), "kernel");
      sites.back().entry = *catalogue_.find(entries[i]);
    }
    return {};
  }

  [[nodiscard]] Expected<void> no_call() const {
    std::vector<std::string_view> names;
    for (const kernel::SystemCall& call : kernel::system_calls()) {
      names.push_back(call.name);
      names.push_back(call.abi_name);
    }
    return fail(ErrorCode::NotFound, fmt::format("no system call '{}'{}", source_->function,
                                                 query::did_you_mean(source_->function, names)));
  }

  // Entries and returns of the same functions come in the same order.
  Expected<void> add_functions() {
    const auto match = [&](const char* name) {
      return catalogue_.match({.provider = "fbt",
                               .module = source_->module,
                               .function = source_->function,
                               .name = name});
    };
    const bool is_return = source_->kind == SourceKind::KernelReturn;
    const std::vector<uint32_t> entries = CLEW_TRY(match("entry"));
    if (entries.empty()) return no_function();
    const std::vector<uint32_t> found = is_return ? CLEW_TRY(match("return")) : entries;
    for (size_t i = 0; i < found.size(); ++i) {
      const kernel::Probe& probe = *catalogue_.find(found[i]);
      put(probe, probe.module);
      sites.back().entry = *catalogue_.find(entries[i]);
    }
    return {};
  }

  [[nodiscard]] Expected<void> no_function() const {
    const std::string& module = source_->module;
    const std::string in_module = module.empty() ? "" : fmt::format("'s module '{}'", module);
    const bool is_literal = kernel::Glob(source_->function).is_literal();
    if (is_literal && target::find_kernel_symbol(module, source_->function)) {
      return fail(
          ErrorCode::NotFound,
          fmt::format("nobody can probe the kernel's '{}': its types (BTF) do not have it as "
                      "a function",
                      source_->function));
    }
    std::vector<std::string_view> names;
    for (const uint32_t id :
         CLEW_TRY(catalogue_.match({.provider = "fbt", .module = module, .name = "entry"}))) {
      names.push_back(catalogue_.find(id)->function);
    }
    return fail(ErrorCode::NotFound,
                fmt::format("no function '{}' in the kernel{}{}", source_->function, in_module,
                            query::did_you_mean(source_->function, names)));
  }

  Expected<void> add_events() {
    const std::vector<std::string> found = CLEW_TRY(events_.match(source_->function));
    if (found.empty()) return no_event();
    if (found.size() > kTracepointsMax) return too_many(found.size());
    for (const std::string& name : found) {
      const kernel::TraceFormat format = CLEW_TRY(events_.format(name));
      kernel::Probe probe;
      const size_t colon = name.find(':');
      probe.provider = "tracepoint";
      probe.function = name.substr(0, colon);
      probe.name = name.substr(colon + 1);
      probe.kind = kernel::AttachKind::TraceEvent;
      probe.number = format.id;
      put(probe, probe.function);
      sites.back().names.function = probe.name;
    }
    return {};
  }

  // "pipe:splice.2": at the tracepoint of the call's end, of argument 2.
  Expected<void> add_moved() {
    const std::string_view all = source_->function;
    const size_t colon = all.find(':');
    const size_t dot = all.find('.', colon);
    const bool has_number = dot != std::string_view::npos && dot + 2 == all.size() &&
                            all[dot + 1] >= '0' && all[dot + 1] <= '2';
    const std::string_view call = all.substr(colon + 1, dot - colon - 1);
    const auto format = events_.format(fmt::format("syscalls:sys_exit_{}", call));
    if (!has_number || !format) {
      return fail(ErrorCode::NotFound, fmt::format("no system call moves bytes as '{}' says: that "
                                                   "is 'pipe:read.0', 'socket:sendto.0'",
                                                   all));
    }
    kernel::Probe probe;
    probe.provider = "tracepoint";
    probe.function = "syscalls";
    probe.name = fmt::format("sys_exit_{}", call);
    probe.kind = kernel::AttachKind::CallMoves;
    probe.number = format->id;
    probe.moves = {.of_sockets = all.starts_with(query::kSocketGroup),
                   .descriptor = static_cast<uint8_t>(all[dot + 1] - '0')};
    put(probe, std::string(all.substr(0, colon)));
    sites.back().names.function = std::string(all.substr(colon + 1));
    return {};
  }

  Expected<void> add_raw() {
    const std::string name = source_->function.substr(query::kRawGroup.size());
    const std::vector<uint32_t> found =
        CLEW_TRY(catalogue_.match({.provider = "rawtp", .name = name}));
    if (found.empty()) return no_raw(name);
    if (found.size() > kTracepointsMax) return too_many(found.size());
    for (const uint32_t id : found) {
      const kernel::Probe& probe = *catalogue_.find(id);
      put(probe, "rawtp");
      sites.back().names.function = probe.name;
    }
    return {};
  }

  [[nodiscard]] Expected<void> no_raw(std::string_view name) {
    std::vector<std::string_view> names;
    for (const uint32_t id : CLEW_TRY(catalogue_.match({.provider = "rawtp", .name = "*"})))
      names.push_back(catalogue_.find(id)->name);
    return fail(ErrorCode::NotFound,
                fmt::format("the kernel's types (BTF) have no tracepoint '{}'{}", name,
                            query::did_you_mean(name, names)));
  }

  [[nodiscard]] static Expected<void> too_many(size_t count) {
    return fail(ErrorCode::Limit,
                fmt::format("{} tracepoints match, {} are possible", count, kTracepointsMax));
  }

  [[nodiscard]] Expected<void> no_event() {
    const std::vector<std::string>* all = CLEW_TRY(events_.names());
    std::vector<std::string_view> names(all->begin(), all->end());
    const std::string ending = ":" + source_->function;
    for (const std::string_view name : names) {
      if (!name.ends_with(ending)) continue;
      return fail(ErrorCode::NotFound,
                  fmt::format("a tracepoint is written with its group: did you mean '{}'?", name));
    }
    return fail(ErrorCode::NotFound, fmt::format("no tracepoint '{}'{}", source_->function,
                                                 query::did_you_mean(source_->function, names)));
  }

  Expected<void> add_clock() {
    if (source_->period_ns < kPeriodMinNs) {
      return fail(ErrorCode::Limit, "a profile takes at most 5000 samples a second");
    }
    kernel::Probe probe;
    probe.provider = "profile";
    probe.name = "profile";
    probe.kind = kernel::AttachKind::Profile;
    probe.period_ns = source_->period_ns;
    put(probe, "");
    return {};
  }

  void put(const kernel::Probe& probe, std::string module) {
    KernelSite site;
    site.source = index_;
    site.probe = probe;
    site.names.source = index_;
    site.names.function = probe.function;
    site.names.module = std::move(module);
    site.names.probe = source_->label.empty() ? query::print(*source_) : source_->label;
    sites.push_back(std::move(site));
  }

  kernel::Catalogue& catalogue_;
  kernel::TraceEvents& events_;
  const Source* source_ = nullptr;
  uint16_t index_ = 0;
};

}  // namespace

Error explain_rights(Error error) {
  if (geteuid() == 0) return error;
  error.message = fmt::format(
      "tracing the kernel needs more rights than you have; run as root, or with CAP_BPF and "
      "CAP_PERFMON ({})",
      error.message);
  return error;
}

tl::expected<std::vector<KernelSite>, KernelSourceError> find_kernel_sites(
    const query::Query& query, kernel::Catalogue& catalogue, kernel::TraceEvents& events,
    bool allow_missing) {
  SiteFinder finder(catalogue, events);
  for (size_t i = 0; i < query.sources.size(); ++i) {
    if (!query::is_kernel_source(query.sources[i].kind)) continue;
    const auto index = static_cast<uint16_t>(i);
    const Expected<void> added = finder.add(index, query.sources[i]);
    if (added) continue;
    Error error = added.error();
    if (allow_missing && error.code == ErrorCode::NotFound) continue;
    if (error.code == ErrorCode::Refused) error = explain_rights(std::move(error));
    return tl::unexpected(KernelSourceError{index, std::move(error)});
  }
  return std::move(finder.sites);
}

}  // namespace clew::engine
