// SPDX-License-Identifier: Apache-2.0
// A D script from its command line to its last line of output.
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "abi/aggregate.h"
#include "base/error_text.h"
#include "base/file_descriptor.h"
#include "engine/dtrace/commands.h"
#include "engine/dtrace/consumer.h"
#include "engine/dtrace/extension_clauses.h"
#include "engine/dtrace/inline_probes.h"
#include "engine/dtrace/late_probes.h"
#include "engine/dtrace/left_out.h"
#include "engine/dtrace/listing.h"
#include "engine/dtrace/provider_files.h"
#include "engine/dtrace/request.h"
#include "engine/dtrace/script_compiler.h"
#include "engine/dtrace/script_types.h"
#include "engine/stop_signal.h"
#include "engine/uprobe_locks.h"
#include "engine/uprobe_places.h"
#include "isa/print.h"
#include "ledger/session.h"
#include "output/d/listing.h"
#include "output/d/options.h"
#include "output/d/script_tables.h"
#include "output/d/table.h"
#include "plan/d/limits.h"
#include "query/d/check_options.h"
#include "session/idle.h"
#include "session/loop.h"

namespace clew::engine {
namespace {

constexpr int kAnswered = 0;
constexpr int kFailed = 1;

kernel::MachinePrograms programs_of(const CompiledScript& compiled, pid_t target) {
  const plan::d::Generated& generated = compiled.generated;
  const auto bytes = [&](std::string_view name, uint64_t otherwise) {
    const auto found = compiled.script.options.values.find(name);
    if (found == compiled.script.options.values.end()) return otherwise;
    return query::d::option_bytes(found->second).value_or(otherwise);
  };
  kernel::MachinePrograms programs;
  for (size_t i = 0; i < generated.clauses.size(); ++i) {
    const isa::Program& program = generated.clauses[i];
    programs.clauses.push_back(compiled.extensions_in_kernel
                                   ? program
                                   : plan::d::without_calls(program, generated.calls[i]));
  }
  programs.extensions = kernel_extensions(compiled);
  programs.error_clauses = compiled.error_clauses;
  programs.scratch_begin = generated.scratch_begin;
  programs.globals = generated.globals;
  programs.literals = generated.literals;
  programs.variables = generated.variables;
  programs.aggregations = generated.aggregations;
  programs.local_begin = generated.local_begin;
  programs.local_bytes = generated.local_bytes;
  programs.string_bytes = plan::d::string_bytes_of(compiled.script);
  programs.principal_bytes = bytes("bufsize", programs.principal_bytes);
  programs.aggregation_bytes = bytes("aggsize", programs.aggregation_bytes);
  programs.dynamic_bytes = bytes("dynvarsize", programs.dynamic_bytes);
  programs.speculation_bytes = bytes("specsize", programs.speculation_bytes);
  programs.speculations = bytes("nspec", programs.speculations);
  programs.target_pid = static_cast<uint64_t>(target);
  if (compiled.script.options.values.contains("cpu")) programs.only_cpu = bytes("cpu", 0);
  if (LateProbes::may_come(compiled)) programs.later_enablings = LateProbes::kProbesMax;
  return programs;
}

// One run. The functions are called in the order of their declaration.
class DtraceRun {
 public:
  DtraceRun(const DtraceRequest& request, int stop_descriptor, ledger::Session& told)
      : request_(request), stop_descriptor_(stop_descriptor), told_(told) {}

  Expected<int> run();

 private:
  Expected<int> answer();
  Expected<void> close_sink(const Error* error);
  [[nodiscard]] Expected<void> check_options() const;
  Expected<void> check_output();
  Expected<void> compile();
  void tell_programs();
  void tell_ended(const std::vector<Commands::Ended>& ended);
  [[nodiscard]] Expected<void> check_sizes() const;
  [[nodiscard]] Expected<void> check_processor() const;
  void take_format_of_file();
  Expected<void> open_output();
  Expected<void> begin_tables();
  [[nodiscard]] output::About about() const;
  [[nodiscard]] Expected<void> check_format() const;
  Expected<void> enable();
  Expected<void> arm_inline(const UprobeLocks& locks);
  [[nodiscard]] Expected<void> check_governed() const;
  [[nodiscard]] inline_::LockWait lock_wait();
  Expected<void> end(DtraceConsumer& consumer);
  Expected<void> trace(DtraceConsumer& consumer);
  [[nodiscard]] bool is_over(const DtraceConsumer& consumer) const;
  [[nodiscard]] bool is_idle(DtraceConsumer& consumer);
  Expected<void> begin_session();

  // With --idle alone.
  [[nodiscard]] bool is_unread() const {
    return request_.idle_ns && console_.failure() == ETIMEDOUT;
  }

  const DtraceRequest& request_;
  std::optional<session::Idle> idle_;    // From trace() on.
  std::optional<std::string> why_idle_;  // It is over for that.
  uint64_t activity_ = 0;                // As it was seen last.
  int stop_descriptor_;
  ledger::Session& told_;
  std::shared_ptr<inline_::LeaveTime> leave_time_ =  // Of all processes together.
      std::make_shared<inline_::LeaveTime>(inline_::LeaveTime::kUsual);
  DtraceConsole console_;
  ConsoleBytes bytes_{console_};
  std::unique_ptr<output::RowSink> sink_;          // Of a format with several tables,
  std::optional<output::d::ScriptTables> tables_;  // and these.
  kernel::Catalogue catalogue_;
  ScriptTypes types_;
  Commands commands_;
  std::optional<CompiledScript> compiled_;
  bool is_format_of_file_ = false;
  target::AddressSpaces spaces_;  // Of processes whose addresses may be printed.
  std::optional<kernel::MachineSession> session_;
  InlineProbes inline_probes_{[this](std::string_view line) { console_.message(line); }};
  std::optional<LateProbes> late_;
};

Expected<void> DtraceRun::compile() {
  CLEW_TRY(commands_.start(request_));
  CLEW_TRY(commands_.watch(request_.pids));
  for (const pid_t pid : commands_.pids()) {
    types_.add_process(pid);
    catalogue_.add_target(pid);
  }
  compiled_ = CLEW_TRY(compile_script(request_, catalogue_, &types_, commands_.first_pid()));
  take_format_of_file();
  return check_format();
}

// Before it is known whether all of it can be enabled.
void DtraceRun::tell_programs() {
  const query::d::Options& options = compiled_->script.options;
  const bool is_quiet = options.is_set("quiet");
  const bool tells_matches = !is_quiet && !request_.compile_only;
  // With -q, -v is for what the machinery says; the output is the program's alone.
  const bool tells_stability = request_.is_verbose && (!is_quiet || request_.compile_only);
  for (const CompiledProgram& program : compiled_->programs) {
    const auto form =
        program.is_script ? output::d::ProgramForm::Script : output::d::ProgramForm::Description;
    // Of a description, only what stands before its predicate or body.
    const size_t end = program.is_script ? std::string::npos : program.name.find_first_of("{/;");
    const std::string name = program.name.substr(0, end);
    if (tells_matches) console_.lines(output::d::matched_text(form, name, program.matched));
    if (tells_stability) {
      const std::string text =
          output::d::program_stability(form, name, program.probes, program.statements);
      const bool is_apart = output::d::PrintOptions::from(options).keeps_text_apart();
      is_apart ? console_.lines(text) : console_.write(text);
    }
  }
  if (tells_matches && options.is_set("destructive")) console_.lines(output::d::destructive_text());
}

void DtraceRun::tell_ended(const std::vector<Commands::Ended>& ended) {
  if (compiled_->script.options.is_set("quiet")) return;
  for (const Commands::Ended& one : ended) {
    console_.lines(output::d::exited_text(static_cast<uint64_t>(one.pid), one.status));
  }
}

// What cannot hold one record, or one element, would lose all of them.
Expected<void> DtraceRun::check_sizes() const {
  const plan::d::Generated& generated = compiled_->generated;
  uint64_t record = 1;
  uint64_t aggregate = 1;
  uint64_t variable = 2 * sizeof(uint64_t);  // The smallest key and value.
  for (const query::d::RecordLayout& each : generated.records)
    record = std::max<uint64_t>(record, each.size_bytes);
  for (const abi::MachineAggregation& each : generated.aggregations)
    aggregate = std::max(aggregate, uint64_t{each.key_bytes} + 8 * uint64_t{each.cell_words});
  for (const abi::MachineVariable& each : generated.variables)
    variable = std::max(variable, uint64_t{each.key_bytes} + each.value_bytes);
  const auto& values = compiled_->script.options.values;
  const auto holds = [&](std::string_view name, uint64_t needed) {
    const auto found = values.find(name);
    return found == values.end() ||
           query::d::option_bytes(found->second).value_or(needed) >= needed;
  };
  if (holds("bufsize", record) && holds("aggsize", aggregate) && holds("dynvarsize", variable) &&
      holds("strsize", 1)) {
    return {};
  }
  return fail(ErrorCode::InvalidQuery, "could not enable tracing: Enabling exceeds size of buffer");
}

Expected<void> DtraceRun::check_processor() const {
  const auto& values = compiled_->script.options.values;
  const auto found = values.find("cpu");
  const auto count = static_cast<uint64_t>(std::max(1L, sysconf(_SC_NPROCESSORS_CONF)));
  if (found == values.end() || query::d::option_bytes(found->second).value_or(count) < count) {
    return {};
  }
  return fail(ErrorCode::NotFound,
              fmt::format("could not enable tracing: there is no processor {}", found->second));
}

Expected<void> check_format_name(std::string_view name) {
  if (output::format_named(name) != nullptr) return {};
  return fail(ErrorCode::InvalidQuery,
              fmt::format("'{}' is no format: there are {}", name, output::format_names()));
}

// Where no option says it, the name of the file does, if it is that of a picture or a database:
// what a script prints by itself, as csv for instance, is nobody else's to change.
void DtraceRun::take_format_of_file() {
  auto& values = compiled_->script.options.values;
  if (values.contains("format") || values.contains("json")) return;
  const output::FormatRow* const named = output::format_of_file(request_.output_path);
  if (named == nullptr || (!named->needs_stacks && named->open == nullptr)) return;
  values["format"] = named->name;
  values["quiet"] = "";
  is_format_of_file_ = true;
}

// Whether the output of this script can have the form that is wanted.
Expected<void> DtraceRun::check_format() const {
  const query::d::Script& script = compiled_->script;
  const auto named = script.options.values.find("format");
  if (named != script.options.values.end()) CLEW_TRY(check_format_name(named->second));
  const output::FormatRow& format =
      output::row_of(output::d::PrintOptions::from(script.options).format);
  if (format.open != nullptr && request_.output_path.empty()) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("{} needs a file: -o FILE.{}", format.name, format.extension));
  }
  if (!format.needs_stacks) return {};
  std::vector<std::string> names;
  std::vector<std::string> others;  // By stacks, too.
  for (uint32_t i = 0; i < script.aggregations.size(); ++i) {
    const query::d::Aggregation& each = script.aggregations[i];
    if (!each.is_used) continue;
    const auto columns = output::d::columns_of(script, compiled_->generated.keys, {&i, 1});
    const bool has_stack = std::any_of(columns.begin(), columns.end(), [](const auto& column) {
      return column.type == aggregate::ColumnType::Stack;
    });
    if (output::check_columns(format, columns)) {
      names.push_back("@" + each.name);
    } else if (has_stack) {
      others.push_back(fmt::format("@{} ({})", each.name, abi::name_of(each.function)));
    }
  }
  if (names.size() == 1) return {};
  std::string found = names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
  if (names.empty() && !others.empty())
    found += fmt::format(", as the values of {} do not add up", fmt::join(others, ", "));
  return fail(ErrorCode::InvalidQuery,
              fmt::format("{} draws one aggregation by stacks that counts or sums up, such as "
                          "@[ustack()] = count(); the script has {}{}",
                          format.name, found,
                          is_format_of_file_ ? fmt::format("; --format text writes text to {}",
                                                           request_.output_path)
                                             : ""));
}

Expected<void> DtraceRun::open_output() {
  const output::FormatRow& format =
      output::row_of(output::d::PrintOptions::from(compiled_->script.options).format);
  const output::SinkOptions options{.format = format.format, .about = about()};
  if (format.open != nullptr) {
    sink_ = CLEW_TRY(format.open(options, request_.output_path));
    return {};
  }
  if (!request_.output_path.empty())
    CLEW_TRY(console_.open(request_.output_path, request_.truncates));
  if (format.has_several_tables) sink_ = format.make(options, bytes_, bytes_);
  return {};
}

// Before anything is armed: a database that cannot be begun is told in time.
Expected<void> DtraceRun::begin_tables() {
  if (sink_ == nullptr) return {};
  tables_.emplace(compiled_->script, compiled_->generated.records, compiled_->generated.keys,
                  *sink_);
  return sink_->failed() ? close_sink(nullptr) : Expected<void>();
}

output::About DtraceRun::about() const {
  std::vector<std::string> programs;
  for (const CompiledProgram& program : compiled_->programs)
    programs.push_back((program.is_script ? "-s " : "") + program.name);
  output::About about = output::about_here(fmt::format("{}", fmt::join(programs, "\n")));
  for (const pid_t pid : request_.pids)
    about.targets.emplace_back("pid", std::to_string(pid));
  for (const std::string& command : request_.commands)
    about.targets.emplace_back("command", command);
  return about;
}

Expected<void> DtraceRun::enable() {
  const query::d::Script& script = compiled_->script;
  if (script.clauses.empty()) return fail(ErrorCode::NotFound, "no probes matched");
  CLEW_TRY(check_sizes());
  CLEW_TRY(check_processor());
  const bool may_destroy = script.options.is_set("destructive") && !request_.forbids_destructive;
  if (script.is_destructive && !may_destroy) {
    return fail(ErrorCode::Refused, "could not enable tracing: Destructive actions not allowed");
  }
  const auto refused = [](const Error& error) {
    return fail(error.code, fmt::format("could not enable tracing: {}", error.message));
  };
  compiled_->extensions_in_kernel = extensions_belong_to_kernel(*compiled_);
  std::string log;
  // Their names will be wanted when they may have ended.
  for (const pid_t pid : commands_.pids())
    (void)spaces_.look_at(pid);
  kernel::MachinePrograms programs = programs_of(*compiled_, commands_.first_pid());
  programs.target_pids = commands_.pids();
  programs.spaces = &spaces_;
  auto session = kernel::MachineSession::load(std::move(programs), compiled_->enablings, &log);
  if (!session) {
    if (request_.is_verbose) console_.lines(log);  // The kernel's own words.
    return refused(session.error());
  }
  session_.emplace(std::move(*session));
  compiled_->enablings.assign(session_->enablings().begin(), session_->enablings().end());
  UprobeLocks locks(lock_wait());
  auto armed = arm_inline(locks);
  if (armed) armed = check_governed();
  if (!armed) return refused(armed.error());
  // What is loaded now needs time, in which others may come and go: the places are looked at when
  // nobody can any more.
  auto attached = session_->load_others(inline_probes_.enablings(), &log);
  if (attached) attached = locks.hold(compiled_->enablings);
  if (attached) {
    attached = check_uprobe_places(compiled_->enablings, inline_probes_.enablings());
  }
  if (attached) attached = session_->attach();
  locks.let_go();
  if (!attached) {
    if (request_.is_verbose) console_.lines(log);
    return refused(attached.error());
  }
  const auto warning = left_out_text(*compiled_, catalogue_, session_->left_out());
  if (!warning) return refused(warning.error());
  console_.lines(*warning);
  if (LateProbes::may_come(*compiled_)) {
    late_.emplace(*compiled_, catalogue_, *session_, inline_probes_, console_);
    late_->set_wait(lock_wait());
    late_->start();
  }
  inline_probes_.begin_measuring();
  return session_->begin();
}

// What --max-overhead cannot measure. Libraries that a process opens later may get uprobes, which
// it does not see (docs/limits.md).
Expected<void> DtraceRun::check_governed() const {
  if (!request_.max_overhead) return {};
  std::vector<std::string> names;
  for (uint32_t i = 0; i < compiled_->enablings.size(); ++i) {
    const kernel::MachineEnabling& enabling = compiled_->enablings[i];
    const kernel::AttachKind kind = enabling.probe.kind;
    const bool is_cheap = kind == kernel::AttachKind::Host || kind == kernel::AttachKind::Tick;
    if (enabling.clauses.empty() || is_cheap || inline_probes_.enablings().contains(i)) continue;
    names.push_back(fmt::format("{}:{}:{}:{}", enabling.probe.provider, enabling.probe.module,
                                enabling.probe.function, enabling.probe.name));
  }
  if (names.empty()) return {};
  return fail(
      ErrorCode::Refused,
      fmt::format("--max-overhead governs probes inside processes, and {}{} in the kernel, "
                  "whose time it cannot tell from the process's own",
                  names[0],
                  names.size() == 1 ? " is" : fmt::format(" and {} more are", names.size() - 1)));
}

// Before anything else is attached: a uprobe where a jump of ours is to stand keeps it away.
Expected<void> DtraceRun::arm_inline(const UprobeLocks& locks) {
  if (const std::string_view reason = compiled_->kernels_alone(); !reason.empty()) {
    if (request_.is_verbose) console_.message(fmt::format("all probes by uprobes: {}", reason));
    return {};
  }
  CLEW_TRY(inline_probes_.measure(request_.max_overhead));
  inline_probes_.arm(*compiled_, session_->state(), locks);
  for (const std::string& note : inline_probes_.notes()) {
    if (request_.is_verbose) console_.message(note);
  }
  return check_extension_clauses(*compiled_, inline_probes_);
}

inline_::LockWait DtraceRun::lock_wait() {
  return {.stop_descriptor = stop_descriptor_,
          .tell = [this](const std::string& text) { console_.message(text); },
          .leave_time = leave_time_};
}

Expected<void> DtraceRun::trace(DtraceConsumer& consumer) {
  consumer.read();
  if (consumer.is_over()) return {};
  commands_.resume();
  std::vector<session::Driven*> driven = {&commands_, &inline_probes_, &consumer};
  if (late_) driven.insert(driven.begin(), &*late_);
  session::Loop loop(std::move(driven));
  bool is_stopped = false;
  if (request_.idle_ns) {
    idle_.emplace(session::IdleLimit{.time = std::chrono::nanoseconds(*request_.idle_ns),
                                     .is_unread = [this] { return is_unread(); }},
                  std::chrono::steady_clock::now());
  }
  while (!is_stopped && !is_over(consumer) && !is_idle(consumer)) {
    is_stopped = !loop.wait(stop_descriptor_);
    CLEW_TRY(loop.give_turns());
    for (const collect::DisarmedProbe& disarmed : loop.disarm_spinning())
      consumer.tell_disarmed(disarmed);
    loop.keep_house();
    tell_ended(commands_.take_ended());
    consumer.report_drops();
  }
  return {};
}

bool DtraceRun::is_idle(DtraceConsumer& consumer) {
  if (!idle_) return false;
  const auto now = std::chrono::steady_clock::now();
  if (idle_->wants_look(now) || idle_->is_quiet(now)) {
    const uint64_t activity = consumer.activity();
    if (std::exchange(activity_, activity) != activity) idle_->note(now);
  }
  why_idle_ = idle_->why_over(now);
  return why_idle_.has_value();
}

bool DtraceRun::is_over(const DtraceConsumer& consumer) const {
  const bool has_failed = console_.failure() != 0 && !is_unread();
  return consumer.is_over() || commands_.all_ended() || has_failed ||
         (sink_ != nullptr && sink_->failed() && !is_unread());
}

// END fires when all other probes are quiet: those in processes are taken out before it.
Expected<void> DtraceRun::end(DtraceConsumer& consumer) {
  session_->stop();
  for (const std::string& problem : inline_probes_.detach())
    console_.message(problem);
  consumer.read(true);
  CLEW_TRY(session_->end());
  consumer.read(true);
  return {};
}

Expected<void> DtraceRun::begin_session() {
  std::vector<std::string> names;
  std::vector<std::string> texts;
  for (const CompiledProgram& program : compiled_->programs) {
    if (program.is_script) names.push_back(program.name);
    texts.push_back(program.text);
  }
  told_.set_text(fmt::format("{}", fmt::join(texts, "\n")),
                 fmt::format("{}", fmt::join(names, ", ")));
  std::set<pid_t> pids(commands_.pids().begin(), commands_.pids().end());
  ledger::Scope scope{.is_new = !request_.commands.empty() || LateProbes::may_come(*compiled_)};
  for (const kernel::MachineEnabling& enabling : compiled_->enablings) {
    const kernel::Probe& probe = enabling.probe;
    if (probe.pid != 0) pids.insert(static_cast<pid_t>(probe.pid));
    if (probe.is_everywhere) scope.is_new = true;
    if (probe.pid == 0 && probe.kind != kernel::AttachKind::Host) scope.is_kernel = true;
  }
  scope.processes.assign(pids.begin(), pids.end());
  return told_.begin(scope);
}

Expected<void> DtraceRun::check_options() const {
  for (const auto& [name, value] : request_.options) {
    if (name == "format") CLEW_TRY(check_format_name(value));
    const auto checked = query::d::check_option(
        name, value.empty() ? std::nullopt : std::optional<std::string_view>(value));
    if (!checked) {
      return fail(ErrorCode::InvalidQuery,
                  fmt::format("failed to set -x {}: {}", name, checked.error().message));
    }
  }
  return {};
}

// The end of an answer of several tables says what ended it.
Expected<void> DtraceRun::close_sink(const Error* error) {
  if (sink_ == nullptr) return {};
  return std::exchange(sink_, nullptr)->close(error);
}

// A reader that has seen enough is no error.
Expected<void> DtraceRun::check_output() {
  console_.flush();
  const bool is_told = is_unread() && why_idle_;
  if (console_.failure() == 0 || console_.failure() == EPIPE || is_told) return {};
  return fail(ErrorCode::Io,
              fmt::format("failed to write output: {}", error_text(console_.failure())));
}

Expected<int> DtraceRun::run() {
  Expected<int> status = answer();
  const Expected<void> closed = close_sink(status ? nullptr : &status.error());
  if (!status) {
    if (!closed) console_.message(closed.error().message);
    return status;
  }
  CLEW_TRY(closed);
  CLEW_TRY(check_output());
  return status;
}

Expected<int> DtraceRun::answer() {
  CLEW_TRY(check_options());
  if (request_.idle_ns) console_.set_patience(std::chrono::nanoseconds(*request_.idle_ns));
  if (request_.is_list) {
    if (!request_.output_path.empty()) CLEW_TRY(console_.open(request_.output_path));
    return list_probes(request_, catalogue_, types_, console_);
  }
  CLEW_TRY(compile());
  CLEW_TRY(open_output());
  if (request_.disassemble || compiled_->script.options.values.contains("disasm")) {
    for (const isa::Program& program : compiled_->generated.clauses) {
      console_.lines(fmt::format("{}:\n{}\n", program.name, isa::print(program)));
    }
  }
  tell_programs();
  if (request_.compile_only) return kAnswered;
  CLEW_TRY(begin_tables());
  CLEW_TRY(begin_session());
  CLEW_TRY(enable());
  DtraceConsumer consumer(*compiled_, catalogue_,
                          {*session_, inline_probes_, spaces_, commands_.first_pid()}, console_,
                          {.sink = sink_.get(), .tables = tables_ ? &*tables_ : nullptr});
  const Expected<void> traced = trace(consumer);
  told_.count({.is_stopped = has_stop_signal(stop_descriptor_)});
  CLEW_TRY(end(consumer));
  if (why_idle_) console_.message(*why_idle_);  // No sooner: who does not read, may not read this.
  int status =
      consumer.is_over() ? static_cast<int>(session_->shared().exit_code & 0xFF) : kAnswered;
  if (inline_probes_.leaves_anything() && status == kAnswered) status = kFailed;
  consumer.finish(status);
  if (request_.max_overhead || request_.is_verbose) {
    const std::string cost = collect::describe(inline_probes_.cost());
    if (!cost.empty()) console_.message("cost: " + cost);
  }
  if (!traced) return tl::unexpected(traced.error());
  commands_.leave();
  commands_.pass_on_signal(stop_descriptor_);
  return status;
}

Expected<int> trace(const DtraceRequest& request, int stop_descriptor) {
  std::vector<std::string> words;
  words.reserve(request.programs.size());
  for (const DtraceProgram& program : request.programs)
    words.push_back((program.is_file ? "-s " : "") + program.text);
  ledger::Session told = CLEW_TRY(ledger::Session::open(
      {.text = fmt::format("{}", fmt::join(words, "\n")),
       .text_name = "",
       .processes = request.pids,
       .warn = [](std::string_view text) { fmt::print(stderr, "dtrace: {}\n", text); }}));
  Expected<int> status = DtraceRun(request, stop_descriptor, told).run();
  // Listing or compiling alone, it has touched nothing, and a mistake in it is nobody's business.
  if (!request.is_list && !request.compile_only) told.end(status);
  return status;
}

}  // namespace

int run_dtrace(const DtraceRequest& request, int stop_descriptor) {
  const bool is_trace = request.product == DtraceRequest::Product::Trace;
  const Expected<int> status =
      is_trace ? trace(request, stop_descriptor) : write_provider_files(request);
  if (status) return *status;
  fmt::print(stderr, "dtrace: {}\n", status.error().message);
  return kFailed;
}

}  // namespace clew::engine
