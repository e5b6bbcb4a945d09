// SPDX-License-Identifier: Apache-2.0
#include "query/resolve_source.h"

#include <array>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "base/assert.h"
#include "query/recording_fields.h"
#include "query/token.h"
#include "query/vocabulary.h"

namespace clew::query {
namespace {

constexpr uint64_t kPeriodMinNs = 1'000'000;  // Of tick: it runs in the tracer, not in a probe.
constexpr size_t kPatternMaxBytes = 1024;

struct Provider {
  std::string_view name;
  SourceKind kind;
};

constexpr std::array<Provider, 19> kProviders = {{{"entry", SourceKind::Entry},
                                                  {"function", SourceKind::Entry},
                                                  {"return", SourceKind::Return},
                                                  {"exception", SourceKind::Exception},
                                                  {"offset", SourceKind::Offset},
                                                  {"line", SourceKind::Line},
                                                  {"tick", SourceKind::Tick},
                                                  {"begin", SourceKind::Begin},
                                                  {"end", SourceKind::End},
                                                  {"usdt", SourceKind::Usdt},
                                                  {"syscall", SourceKind::Syscall},
                                                  {"syscall_return", SourceKind::SyscallReturn},
                                                  {"kernel", SourceKind::Kernel},
                                                  {"kernel_return", SourceKind::KernelReturn},
                                                  {"tracepoint", SourceKind::Tracepoint},
                                                  {"profile", SourceKind::Profile},
                                                  {"recording", SourceKind::Recording},
                                                  {"probe", SourceKind::Entry},
                                                  {"functions", SourceKind::Entry}}};

const Provider* find_provider(std::string_view name) {
  for (const Provider& candidate : kProviders) {
    if (same_word(candidate.name, name)) return &candidate;
  }
  return nullptr;
}

bool is_all(std::string_view text, std::string_view allowed) {
  return !text.empty() && text.find_first_not_of(allowed) == std::string_view::npos;
}

class SourceResolver {
 public:
  SourceResolver(const SyntaxSource& syntax, const Reporter& report)
      : syntax_(syntax), report_(report) {}

  Expected<Source> call() {
    const Provider* provider = find_provider(syntax_.name);
    if (provider == nullptr) return fail_provider();
    const bool is_scoped = syntax_.scope != Scope::Session;
    const bool is_of_functions =
        provider->kind == SourceKind::Entry || provider->kind == SourceKind::Return ||
        provider->kind == SourceKind::Exception || provider->kind == SourceKind::Offset ||
        provider->kind == SourceKind::Line;
    if (is_scoped && (!is_of_functions || provider->name == "probe")) {
      return report_.fail(syntax_.name_span,
                          fmt::format("'{}' has no scope; Function, Return, Exception, Offset and "
                                      "Line have",
                                      syntax_.name));
    }
    Source source;
    source.kind = provider->kind;
    source.span = syntax_.span;
    source.label = syntax_.label;
    CLEW_TRY(scope(source));
    if (provider->name == "probe") return four_fields(std::move(source));
    return arguments(std::move(source));
  }

 private:
  [[nodiscard]] tl::unexpected<Error> fail_provider() const {
    std::array<std::string_view, kProviders.size()> names;
    for (size_t i = 0; i < kProviders.size(); ++i) {
      names[i] = kProviders[i].name;
    }
    std::string hint = did_you_mean(syntax_.name, names);
    if (const Provider* const begun = hint.empty() ? begun_provider() : nullptr; begun != nullptr)
      hint = fmt::format("; did you mean '{}'?", begun->name);
    return report_.fail(syntax_.name_span, fmt::format("no provider '{}'{}", syntax_.name, hint));
  }

  // Of one whose name goes on behind it: record(…).
  [[nodiscard]] const Provider* begun_provider() const {
    constexpr size_t kShortest = 3;
    const std::string_view name = syntax_.name;
    for (const Provider& one : kProviders) {
      if (name.size() >= kShortest && same_word(one.name.substr(0, name.size()), name)) return &one;
    }
    return nullptr;
  }

  Expected<void> scope(Source& source) const {
    source.scope = syntax_.scope;
    if (syntax_.scope_arguments.empty()) {
      if (source.scope == Scope::Process) source.scope = Scope::Session;
      return {};
    }
    const SyntaxExpression& which = syntax_.scope_arguments[0];
    const bool is_name = which.kind == SyntaxKind::String && !which.text.empty();
    const bool is_pid =
        which.kind == SyntaxKind::Integer && which.integer > 0 && which.integer <= INT32_MAX;
    if (syntax_.scope != Scope::Process || syntax_.scope_arguments.size() > 1 ||
        (!is_name && !is_pid)) {
      return report_.fail(which.span,
                          "only a process is chosen here, by process(\"name\") or "
                          "process(pid)");
    }
    source.process = is_name ? which.text : std::to_string(which.integer);
    return {};
  }

  Expected<void> expect_count(size_t count, std::string_view example) const {
    if (syntax_.arguments.size() == count) return {};
    if (count == 0) {
      return report_.fail(syntax_.span, fmt::format("'{}' takes no argument", syntax_.name));
    }
    return report_.fail(syntax_.span,
                        fmt::format("'{}' takes {} argument{}, as in {}", syntax_.name, count,
                                    count == 1 ? "" : "s", example));
  }

  Expected<std::string> text_argument(size_t index, std::string_view example) const {
    const SyntaxExpression& argument = syntax_.arguments[index];
    if (argument.kind != SyntaxKind::String || argument.text.empty()) {
      return report_.fail(argument.span, fmt::format("expected a string, as in {}", example));
    }
    if (argument.text.size() > kPatternMaxBytes) {
      return report_.fail(argument.span,
                          fmt::format("a pattern has at most {} bytes", kPatternMaxBytes));
    }
    return argument.text;
  }

  Expected<Source> arguments(Source source) const {
    switch (source.kind) {
      case SourceKind::Entry:
        if (is_kernel_form()) return kernel_function(std::move(source));
        return function(std::move(source), "entry(\"module!function\")");
      case SourceKind::Return:
        if (is_kernel_form()) return kernel_function(std::move(source));
        return function(std::move(source), "return(\"module!function\")");
      case SourceKind::Exception:
        return function(std::move(source), "exception(\"module!function\")");
      case SourceKind::Offset:
        return offset(std::move(source));
      case SourceKind::Line:
        return line(std::move(source));
      case SourceKind::Tick:
        return period(std::move(source), "tick(1s)");
      case SourceKind::Profile:
        return period(std::move(source), "profile(99hz)");
      case SourceKind::Begin:
      case SourceKind::End:
        CLEW_TRY(expect_count(0, "begin()"));
        return source;
      case SourceKind::Usdt:
        return name_only(std::move(source), "usdt(\"postgres:query__start\")");
      case SourceKind::Syscall:
      case SourceKind::SyscallReturn:
        return name_only(std::move(source), "syscall(\"read\")");
      case SourceKind::Kernel:
      case SourceKind::KernelReturn:
        return function(std::move(source), "kernel(\"tcp_sendmsg\")");
      case SourceKind::Tracepoint:
        return name_only(std::move(source), "tracepoint(\"sched:sched_switch\")");
      case SourceKind::Recording:
        return recording(std::move(source));
    }
    return source;
  }

  // cluster.Function(kernel, "ExAllocate*")
  [[nodiscard]] bool is_kernel_form() const {
    return syntax_.arguments.size() == 2 && syntax_.arguments[0].kind == SyntaxKind::Name &&
           same_word(syntax_.arguments[0].text, "kernel");
  }

  Expected<Source> kernel_function(Source source) const {
    constexpr std::string_view kExample = "Function(kernel, \"tcp_sendmsg\")";
    source.kind = source.kind == SourceKind::Return ? SourceKind::KernelReturn : SourceKind::Kernel;
    if (source.scope == Scope::Process) {
      return report_.fail(syntax_.span,
                          "functions of the kernel belong to no process; choose among those that "
                          "call them by a condition, as in where e.procName == \"redis-server\"");
    }
    return split(1, CLEW_TRY(text_argument(1, kExample)), std::move(source));
  }

  Expected<Source> function(Source source, std::string_view example) const {
    CLEW_TRY(expect_count(1, example));
    return split(0, CLEW_TRY(text_argument(0, example)), std::move(source));
  }

  // "module!function", of that argument.
  [[nodiscard]] Expected<Source> split(size_t argument, const std::string& text,
                                       Source source) const {
    if (split_function(text, source)) return source;
    return report_.fail(syntax_.arguments[argument].span,
                        "'!' stands between a module and a function; all functions of a module "
                        "are \"module!*\"");
  }

  Expected<Source> name_only(Source source, std::string_view example) const {
    CLEW_TRY(expect_count(1, example));
    source.function = CLEW_TRY(text_argument(0, example));
    return source;
  }

  Expected<Source> offset(Source source) const {
    constexpr std::string_view kExample = "offset(\"module!function\", 0x12)";
    CLEW_TRY(expect_count(2, kExample));
    const std::string text = CLEW_TRY(text_argument(0, kExample));
    const SyntaxExpression& where = syntax_.arguments[1];
    if (where.kind != SyntaxKind::Integer || where.integer > INT32_MAX) {
      return report_.fail(where.span,
                          fmt::format("expected an offset in bytes, as in {}", kExample));
    }
    if (!split_function(text, source)) {
      return report_.fail(syntax_.arguments[0].span, "'!' stands between a module and a function");
    }
    source.offset_bytes = where.integer;
    return source;
  }

  Expected<Source> line(Source source) const {
    constexpr std::string_view kExample = "line(\"server.c:120\")";
    CLEW_TRY(expect_count(1, kExample));
    const std::string text = CLEW_TRY(text_argument(0, kExample));
    const size_t colon = text.rfind(':');
    const std::string_view digits =
        colon == std::string::npos ? "" : std::string_view(text).substr(colon + 1);
    const auto [end, code] =
        std::from_chars(digits.data(), digits.data() + digits.size(), source.line);
    const bool is_number = code == std::errc() && end == digits.data() + digits.size();
    if (!is_number || source.line == 0 || colon == 0) {
      return report_.fail(syntax_.arguments[0].span,
                          fmt::format("expected a file and a line, as in {}", kExample));
    }
    source.file = text.substr(0, colon);
    return source;
  }

  Expected<Source> recording(Source source) const {
    constexpr std::string_view kExample = "recording(\"app.snap\").line";
    CLEW_TRY(expect_count(1, kExample));
    source.file = CLEW_TRY(text_argument(0, kExample));
    if (syntax_.event.empty()) return source;
    std::vector<std::string_view> names;
    for (const RecordedKindInfo& candidate : recorded_kinds()) {
      names.push_back(candidate.name);
      if (!same_word(candidate.name, syntax_.event)) continue;
      source.recorded = candidate.kind;
      return source;
    }
    const std::string hint = did_you_mean(syntax_.event, names);
    return report_.fail(
        syntax_.event_span,
        fmt::format("a recording has no events '{}'{}", syntax_.event,
                    hint.empty() ? fmt::format(", only {}", fmt::join(names, ", ")) : hint));
  }

  Expected<Source> period(Source source, std::string_view example) const {
    CLEW_TRY(expect_count(1, example));
    const SyntaxExpression& given = syntax_.arguments[0];
    const bool is_period =
        given.kind == SyntaxKind::Duration || given.kind == SyntaxKind::Frequency;
    if (!is_period) {
      return report_.fail(given.span,
                          fmt::format("expected a duration or a frequency, as in {}", example));
    }
    return with_period(std::move(source), given.integer, given.span);
  }

  [[nodiscard]] Expected<Source> with_period(Source source, uint64_t period_ns, Span span) const {
    if (source.kind == SourceKind::Tick && period_ns < kPeriodMinNs) {
      return report_.fail(span, "a tick is at most every 1ms");
    }
    source.period_ns = period_ns;
    return source;
  }

  // --- probe("provider:module:function:name") --------------------------------------------------

  Expected<Source> four_fields(Source source) const {
    constexpr std::string_view kExample = "probe(\"pid123:libc.so.6:malloc:entry\")";
    CLEW_TRY(expect_count(1, kExample));
    const std::string text = CLEW_TRY(text_argument(0, kExample));
    std::array<std::string, 4> fields;  // Filled from the right, as DTrace does.
    size_t count = 1;
    for (const char c : text) {
      count += c == ':' ? 1 : 0;
    }
    if (count > 4) return fail_fields("a probe has four fields, provider:module:function:name");
    if (text.find('!') != std::string::npos) {
      return fail_fields("a probe's fields are separated by ':', not by '!'");
    }
    size_t field = 4 - count;
    for (const char c : text) {
      if (c == ':') {
        ++field;
      } else {
        fields[field] += c;
      }
    }
    return from_fields(std::move(source), fields);
  }

  [[nodiscard]] tl::unexpected<Error> fail_fields(std::string_view message) const {
    return report_.fail(syntax_.arguments[0].span, message);
  }

  Expected<Source> from_fields(Source source, const std::array<std::string, 4>& fields) const {
    const std::string& provider = fields[0];
    const std::string& name = fields[3];
    const bool is_pid = provider.starts_with("pid") &&
                        (provider.size() == 3 || is_all(provider.substr(3), "0123456789"));
    if (is_pid) return pid_probe(std::move(source), fields);
    if (provider == "dtrace" || (provider.empty() && fields[2].empty())) {
      source.kind = name == "BEGIN" ? SourceKind::Begin : SourceKind::End;
      if (name == "BEGIN" || name == "END") return source;
    }
    if (provider == "profile" || name.starts_with("tick-") || name.starts_with("profile-")) {
      return profile_probe(std::move(source), name);
    }
    source.function = fields[2].empty() ? "*" : fields[2];
    const bool is_return = name == "return";
    if (provider == "syscall") {
      source.kind = is_return ? SourceKind::SyscallReturn : SourceKind::Syscall;
      return source;
    }
    if (provider == "fbt") {
      if (!is_return && name != "entry") {
        return fail_fields("a function of the kernel has two probes, entry and return");
      }
      source.kind = is_return ? SourceKind::KernelReturn : SourceKind::Kernel;
      source.module = fields[1];
      return source;
    }
    constexpr std::array<std::string_view, 11> kKernelProviders = {
        "sdt", "rawtp", "proc", "sched", "io", "ip", "tcp", "udp", "lockstat", "vminfo", "sysinfo"};
    for (const std::string_view candidate : kKernelProviders) {
      if (provider != candidate) continue;
      source.kind = SourceKind::Tracepoint;
      source.function = fmt::format("{}:{}", provider, name);
      return source;
    }
    const bool is_usdt =
        provider.size() > 1 && std::isdigit(static_cast<unsigned char>(provider.back())) != 0;
    if (is_usdt) {
      source.kind = SourceKind::Usdt;
      source.function = fmt::format("{}:{}", provider, name);
      return source;
    }
    constexpr std::array<std::string_view, 5> kKnown = {"pid", "dtrace", "profile", "syscall",
                                                        "fbt"};
    return fail_fields(
        fmt::format("no provider '{}' among DTrace's{}; functions of a process are "
                    "probe(\"pid123:module:function:entry\")",
                    provider, did_you_mean(provider, kKnown)));
  }

  Expected<Source> pid_probe(Source source, const std::array<std::string, 4>& fields) const {
    const std::string& name = fields[3];
    if (fields[0].size() > 3) {
      source.scope = Scope::Process;
      source.process = fields[0].substr(3);
    }
    // DTrace's a.out is the program itself.
    source.module = fields[1] == "a.out" ? "" : fields[1];
    source.function = fields[2].empty() ? "*" : fields[2];
    if (name == "entry" || name == "return") {
      source.kind = name == "entry" ? SourceKind::Entry : SourceKind::Return;
      return source;
    }
    if (name.empty() || name == "-") {
      return fail_fields(
          "every instruction of a function is not part of this version yet; name "
          "entry, return, or an offset such as 1c");
    }
    const auto [end, code] =
        std::from_chars(name.data(), name.data() + name.size(), source.offset_bytes, 16);
    if (code != std::errc() || end != name.data() + name.size() ||
        source.offset_bytes > INT32_MAX) {
      return fail_fields(
          fmt::format("'{}' is not entry, return, or an offset in hexadecimal", name));
    }
    source.kind = SourceKind::Offset;
    return source;
  }

  // tick-1s, tick-10 (per second), profile-99
  Expected<Source> profile_probe(Source source, std::string_view name) const {
    const bool is_tick = name.starts_with("tick-");
    if (!is_tick && !name.starts_with("profile-")) {
      return fail_fields(fmt::format("'{}' is not tick-N or profile-N", name));
    }
    source.kind = is_tick ? SourceKind::Tick : SourceKind::Profile;
    std::string amount(name.substr(is_tick ? 5 : 8));
    if (is_all(amount, "0123456789")) amount += "hz";
    const Text text{.name = "", .text = amount};
    const Reporter quiet(text);
    const auto tokens = lex(quiet, {0, static_cast<uint32_t>(amount.size())});
    const bool is_period =
        tokens && tokens->size() == 2 &&
        ((*tokens)[0].kind == TokenKind::Duration || (*tokens)[0].kind == TokenKind::Frequency) &&
        (*tokens)[0].integer > 0;
    if (!is_period) return fail_fields(fmt::format("'{}' has no rate, as tick-1s has", name));
    return with_period(std::move(source), (*tokens)[0].integer, syntax_.arguments[0].span);
  }

  const SyntaxSource& syntax_;
  const Reporter& report_;
};

std::vector<ResolvedSource> from_tracepoint(const TracepointDefinition& tracepoint, Span span) {
  std::vector<ResolvedSource> result;
  for (const TracepointPlace& place : tracepoint.places) {
    ResolvedSource resolved;
    resolved.source = place.source;
    resolved.source.span = span;
    resolved.source.label = tracepoint.name;
    resolved.is_from_vocabulary = true;
    resolved.tracepoint = tracepoint.name;
    for (const TracepointExport& exported : place.exports) {
      resolved.exports.push_back({.name = exported.name, .expression = exported.expression});
    }
    result.push_back(std::move(resolved));
  }
  return result;
}

Expected<std::vector<ResolvedSource>> named_source(const SyntaxSource& syntax, Build& build,
                                                   std::span<const std::string_view> query_names) {
  const Vocabulary* vocabulary = build.environment.vocabulary;
  const TracepointDefinition* found =
      vocabulary == nullptr ? nullptr : vocabulary->find(syntax.name);
  const bool is_begin = same_word(syntax.name, "begin") || same_word(syntax.name, "end");
  if (found == nullptr && is_begin) {
    ResolvedSource resolved;
    resolved.source.kind = same_word(syntax.name, "begin") ? SourceKind::Begin : SourceKind::End;
    resolved.source.label = syntax.label;
    resolved.source.span = syntax.span;
    return std::vector<ResolvedSource>{std::move(resolved)};
  }
  if (found != nullptr) return from_tracepoint(*found, syntax.span);
  return unknown_source(syntax, build.report, vocabulary, query_names);
}

}  // namespace

Expected<SourceKind> kind_of(const SyntaxSource& syntax, const Reporter& report) {
  CLEW_ASSERT(syntax.is_call);
  const Source source = CLEW_TRY(SourceResolver(syntax, report).call());
  return source.kind;
}

tl::unexpected<Error> unknown_source(const SyntaxSource& syntax, const Reporter& report,
                                     const Vocabulary* vocabulary,
                                     std::span<const std::string_view> query_names) {
  std::vector<std::string_view> names(query_names.begin(), query_names.end());
  if (vocabulary != nullptr) {
    for (const TracepointDefinition& candidate : vocabulary->tracepoints()) {
      names.push_back(candidate.name);
    }
    for (const OutstandingDefinition& candidate : vocabulary->outstandings())
      names.push_back(candidate.name);
  }
  const std::string hint = did_you_mean(syntax.name, names);
  const std::string_view help =
      hint.empty() ? "; a function is traced with entry(\"module!function\")" : "";
  return report.fail(syntax.name_span,
                     fmt::format("no tracepoint or query '{}'{}{}", syntax.name, hint, help));
}

bool split_function(std::string_view text, Source& source) {
  const size_t mark = text.find('!');
  const bool is_operator =
      mark != std::string_view::npos && text.substr(0, mark).ends_with("operator");
  if (mark == std::string_view::npos || is_operator) {
    source.function = text;
    return true;
  }
  source.module = text.substr(0, mark);
  source.function = text.substr(mark + 1);
  return !source.module.empty() && !source.function.empty();
}

Expected<std::vector<ResolvedSource>> resolve_source(
    const SyntaxSource& syntax, Build& build, std::span<const std::string_view> query_names) {
  if (!syntax.is_call) {
    std::vector<ResolvedSource> named = CLEW_TRY(named_source(syntax, build, query_names));
    if (named.size() == 1 && !syntax.label.empty()) named[0].source.label = syntax.label;
    if (!syntax.exports.empty()) {
      return build.report.fail(syntax.exports[0].name_span,
                               "a tracepoint has its own exports; braces go behind a provider");
    }
    return named;
  }
  ResolvedSource resolved;
  resolved.source = CLEW_TRY(SourceResolver(syntax, build.report).call());
  for (const SyntaxItem& item : syntax.exports) {
    for (const Export& other : resolved.exports) {
      if (!same_word(other.name, item.name)) continue;
      return build.report.fail(item.name_span,
                               fmt::format("two exports are named '{}'", item.name));
    }
    resolved.exports.push_back({.name = item.name, .expression = item.expression});
  }
  return std::vector<ResolvedSource>{std::move(resolved)};
}

}  // namespace clew::query
