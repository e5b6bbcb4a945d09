// SPDX-License-Identifier: Apache-2.0
#include "engine/inventory.h"

#include <algorithm>
#include <set>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "base/nearest.h"
#include "causal/edge.h"
#include "engine/chosen.h"
#include "engine/left_text.h"
#include "engine/other_sessions.h"
#include "engine/sites.h"
#include "engine/takeable.h"
#include "inline/attachment.h"
#include "inline/is_recorded.h"
#include "ledger/session.h"
#include "query/cause.h"
#include "query/fields.h"
#include "query/print.h"
#include "query/recording_fields.h"
#include "query/vocabulary.h"
#include "target/catalog.h"
#include "target/pattern.h"
#include "target/process.h"

namespace clew::engine {
namespace {

Expected<target::Catalog> catalog_of(pid_t pid, const target::CatalogOptions& options) {
  CLEW_TRY(target::check_is_64_bit(pid));
  return target::Catalog::of_process(pid, options);
}

Expected<std::vector<target::Catalog>> catalogs_of(const ListRequest& request) {
  const target::CatalogOptions options = target::default_catalog_options();
  std::vector<target::Catalog> catalogs;
  if (!request.file.empty()) {
    catalogs.push_back(CLEW_TRY(target::Catalog::of_file(request.file, options)));
    return catalogs;
  }
  Chosen chosen = request.processes;
  const size_t end = request.pattern.find('!');
  const bool says_whose_alone = chosen.says_whose_alone();
  if (says_whose_alone && end != std::string::npos)
    chosen.modules.push_back(request.pattern.substr(0, end));
  const std::vector<pid_t> pids = CLEW_TRY(find_chosen(chosen));
  if (pids.empty()) {
    return fail(ErrorCode::NotFound,
                "nothing to list; name a process with -p PID or --name, or a file with --file");
  }
  std::optional<Error> first;
  for (const pid_t pid : pids) {
    auto catalog = catalog_of(pid, options);
    if (catalog) {
      catalogs.push_back(std::move(*catalog));
    } else {
      first = first.value_or(catalog.error());
    }
  }
  // Of all that belong somewhere, some are nobody's to look into.
  if (first && (!says_whose_alone || catalogs.empty())) return tl::unexpected(*first);
  return catalogs;
}

// Signatures are shown without being asked for up to so many functions.
constexpr size_t kTypesShownMax = 25;

std::string declared(const std::string& type, const std::string& name) {
  return type.ends_with('*') || name.empty() ? type + name : type + " " + name;
}

std::string type_name(target::DebugInfo& debug, target::TypeId type) {
  return type == target::kVoidType ? "void" : debug.describe(type).name;
}

// Which field has the argument; "" when none has.
std::string argument_field(const target::Parameter& parameter) {
  constexpr uint16_t kInRegisters = 6;
  switch (parameter.place) {
    case target::ArgumentPlace::IntegerRegister:
      return fmt::format("arg{}", parameter.index);
    case target::ArgumentPlace::Stack:
      return fmt::format("arg{}", kInRegisters + parameter.index);
    case target::ArgumentPlace::VectorRegister:
      return fmt::format("xmm{}", parameter.index);
    case target::ArgumentPlace::IntegerPair:
    case target::ArgumentPlace::Unavailable:
      break;
  }
  return "";
}

// Names and types of arguments and the type of the result, as text and as JSON.
struct SignatureText {
  std::string text;  // "(struct card *card, long cents) -> int"
  nlohmann::json arguments = nlohmann::json::array();
  std::string result;
};

std::optional<SignatureText> signature_of(target::Catalog& catalog,
                                          const target::FunctionMatch& match) {
  Expected<target::DebugInfo*> debug = catalog.debug_info(match.module);
  if (!debug) return std::nullopt;
  const target::Function& function = (*catalog.image(match.module))->functions()[match.function];
  const Expected<target::Signature> signature = (*debug)->signature(function.address);
  if (!signature) return std::nullopt;
  SignatureText result;
  for (const target::Parameter& parameter : signature->parameters) {
    const std::string type = type_name(**debug, parameter.type);
    result.text += (result.text.empty() ? "" : ", ") + declared(type, parameter.name);
    nlohmann::json argument = {{"name", parameter.name}, {"type", type}};
    const std::string field = argument_field(parameter);
    if (!field.empty()) argument["field"] = field;
    result.arguments.push_back(std::move(argument));
  }
  if (signature->is_variadic) result.text += result.text.empty() ? "..." : ", ...";
  result.result = type_name(**debug, signature->return_type);
  result.text = fmt::format("({}) -> {}", result.text, result.result);
  return result;
}

struct LineOptions {
  const Takeable* takeable = nullptr;
  bool types = false;
  bool json = false;
};

// " (uprobe)", " (uprobe with --uprobes)"
std::string uprobe_text(const std::string& uprobe) {
  if (uprobe.empty()) return "";
  return uprobe == Takeable::kYes ? " (uprobe)" : fmt::format(" (uprobe with {})", uprobe);
}

std::string text_of(const Takeable& takeable) {
  std::string text =
      fmt::format("  entry: {}{}", takeable.entry, uprobe_text(takeable.entry_uprobe));
  if (!takeable.entry_without.empty()) {
    text += fmt::format(" without {}", fmt::join(takeable.entry_without, " "));
  }
  text += fmt::format(", exits: {}{}", takeable.exits, uprobe_text(takeable.exits_uprobe));
  if (!takeable.owner.empty()) text += fmt::format(" ({})", takeable.owner);
  if (!takeable.is_taken()) return text;
  return text + fmt::format(", later uprobe: {}", code::name(takeable.later_uprobe));
}

std::string list_line(target::Catalog& catalog, const target::FunctionMatch& match,
                      const LineOptions& options) {
  const target::Function& function = (*catalog.image(match.module))->functions()[match.function];
  const std::string& module = catalog.modules()[match.module].display_name;
  const auto signature = options.types ? signature_of(catalog, match) : std::nullopt;
  const Takeable* takeable = options.takeable;
  if (!options.json) {
    const std::string sites = takeable == nullptr ? "" : text_of(*takeable);
    const std::string name = signature ? fmt::format("{}{}", function.name, signature->text)
                                       : std::string(function.demangled);
    return fmt::format("{}!{}{}\n", module, name, sites);
  }
  nlohmann::json line = {{"module", module},
                         {"function", function.name},
                         {"signature", function.demangled},
                         {"address", function.address},
                         {"size", function.size_bytes}};
  if (signature) {
    line["arguments"] = signature->arguments;
    line["result"] = signature->result;
  }
  if (takeable != nullptr) {
    line["entry"] = takeable->entry;
    if (!takeable->entry_without.empty()) line["entry_without"] = takeable->entry_without;
    line["exits"] = takeable->exits;
    if (!takeable->entry_uprobe.empty()) line["entry_uprobe"] = takeable->entry_uprobe;
    if (!takeable->exits_uprobe.empty()) line["exits_uprobe"] = takeable->exits_uprobe;
    if (!takeable->owner.empty()) line["owner"] = takeable->owner;
    if (takeable->is_taken()) line["later_uprobe"] = code::name(takeable->later_uprobe);
  }
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

bool has_made_up_name(const target::Function& function) {
  return function.origin == target::FunctionOrigin::UnwindEntry;
}

// Code without a name that is entered in mid-frame is a piece of another function and is never
// traced.
bool is_cold_part(const target::ModuleImage& image, const target::Function& function) {
  if (!has_made_up_name(function)) return false;
  const auto fde = std::lower_bound(
      image.fdes().begin(), image.fdes().end(), function.address,
      [](const target::Fde& entry, uint64_t address) { return entry.address < address; });
  return fde != image.fdes().end() && fde->address == function.address &&
         !fde->cfa_at_start_is_rsp_plus_8;
}

// The functions of one module, those with real names first, without pieces of functions.
void sort_for_list(const target::ModuleImage& image, std::vector<target::FunctionMatch>& matches) {
  std::erase_if(matches, [&image](const target::FunctionMatch& match) {
    return is_cold_part(image, image.functions()[match.function]);
  });
  std::stable_partition(matches.begin(), matches.end(),
                        [&image](const target::FunctionMatch& match) {
                          return !has_made_up_name(image.functions()[match.function]);
                        });
}

Expected<query::Vocabulary> load_vocabulary(const std::vector<std::string>& paths) {
  query::Vocabulary vocabulary;
  for (const std::string& path : paths) {
    CLEW_TRY(vocabulary.load(path));
  }
  return vocabulary;
}

std::string dump_line(const nlohmann::json& line) {
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

constexpr std::string_view kOfAllTracepoints =
    "each exports host, timestamp, procId, procName, tracepoint, and what its place has, too "
    "(clew list --fields)\n";

// As a query would name it without the vocabulary.
std::string place_text(const query::TracepointPlace& place) {
  query::Source source = place.source;
  source.label.clear();
  return query::print(source);
}

std::string tracepoint_text(const query::TracepointDefinition& tracepoint, bool json) {
  const bool has_exports = !tracepoint.places.empty();
  if (json) {
    nlohmann::json line = {{"tracepoint", tracepoint.name}, {"doc", tracepoint.doc}};
    line["exports"] = nlohmann::json::object();
    for (size_t i = 0; has_exports && i < tracepoint.places[0].exports.size(); ++i) {
      const query::TracepointExport& exported = tracepoint.places[0].exports[i];
      line["exports"][exported.name] = exported.text;
    }
    line["places"] = nlohmann::json::array();
    for (const query::TracepointPlace& place : tracepoint.places)
      line["places"].push_back(place_text(place));
    if (tracepoint.cause) {
      line["cause"] = query::text_of(*tracepoint.cause);
      line["how"] = causal::name_of(tracepoint.cause->how);
    }
    return dump_line(line);
  }
  std::string text = fmt::format("{:<28} {}\n", tracepoint.name, tracepoint.doc);
  for (const query::TracepointPlace& place : tracepoint.places)
    text += fmt::format("{:<28}   at {}\n", "", place_text(place));
  for (size_t i = 0; has_exports && i < tracepoint.places[0].exports.size(); ++i) {
    const query::TracepointExport& exported = tracepoint.places[0].exports[i];
    text += fmt::format("{:<28}   .{} = {}\n", "", exported.name, exported.text);
  }
  if (tracepoint.cause) {
    text += fmt::format("{:<28}   cause: {} ({}): {}\n", "", query::text_of(*tracepoint.cause),
                        causal::name_of(tracepoint.cause->how), query::describe(*tracepoint.cause));
  }
  return text;
}

std::string program_text(const query::Program& program, bool json) {
  if (json) {
    return dump_line({{"program", program.name},
                      {"messages", query::text_of(program.profile)},
                      {"how", causal::name_of(program.profile.how)}});
  }
  return fmt::format("{:<28} a program: {}\n", program.name, query::describe(program.profile));
}

std::string names_of(const std::vector<query::SyntaxSource>& sources) {
  std::string text;
  for (const query::SyntaxSource& source : sources)
    text += (text.empty() ? "" : ", ") + source.name;
  return text;
}

std::string outstanding_text(const query::OutstandingDefinition& defined, bool json) {
  const std::string opened = names_of(defined.what.opened);
  const std::string closed = names_of(defined.what.closed);
  if (json) {
    return dump_line({{"outstanding", defined.name},
                      {"doc", defined.doc},
                      {"opened", opened},
                      {"until", closed},
                      {"file", defined.file}});
  }
  return fmt::format("{:<28} {}\n{:<28}   outstanding: {} until {}\n", defined.name, defined.doc,
                     "", opened, closed);
}

std::string field_text(const query::FieldForm& field, bool json) {
  if (json) {
    return dump_line({{"field", field.name},
                      {"type", field.type},
                      {"where", field.sources},
                      {"doc", field.meaning}});
  }
  return fmt::format("{:<15} {:<10} {:<49} {}\n", field.name, field.type, field.sources,
                     field.meaning);
}

}  // namespace

namespace {

// The functions of one process or file, one line each.
Expected<std::vector<std::string>> lines_of(target::Catalog& catalog,
                                            const std::vector<target::FunctionMatch>& all,
                                            const ListRequest& request) {
  CodeCache codes;
  std::vector<std::string> lines;
  std::vector<ForeignPatch> patches;
  if (request.sites && catalog.pid() != 0) patches = foreign_patches(catalog.pid());
  for (auto from = all.begin(); from != all.end();) {
    const size_t module = from->module;
    const auto to = std::find_if(from, all.end(), [module](const target::FunctionMatch& match) {
      return match.module != module;
    });
    std::vector<target::FunctionMatch> matches(from, to);
    sort_for_list(*CLEW_TRY(catalog.image(module)), matches);
    std::vector<Takeable> takeable;
    if (request.sites) takeable = CLEW_TRY(find_takeable(catalog, codes, matches, module, patches));
    for (size_t i = 0; i < matches.size(); ++i) {
      lines.push_back(list_line(catalog, matches[i],
                                {.takeable = request.sites ? &takeable[i] : nullptr,
                                 .types = request.types || all.size() <= kTypesShownMax,
                                 .json = request.json}));
    }
    from = to;
  }
  return lines;
}

}  // namespace

Expected<std::string> list_functions(const ListRequest& request) {
  std::vector<target::Catalog> catalogs = CLEW_TRY(catalogs_of(request));
  const bool is_one = catalogs.size() == 1;
  std::string text;
  std::set<std::string> listed;
  bool any = false;
  for (target::Catalog& catalog : catalogs) {
    const std::vector<target::FunctionMatch> all = CLEW_TRY(catalog.find(request.pattern));
    any = any || !all.empty();
    for (const std::string& line : CLEW_TRY(lines_of(catalog, all, request))) {
      if (is_one || listed.insert(line).second) text += line;
    }
  }
  if (!any) return tl::unexpected(catalogs.front().explain_no_match(request.pattern));
  if (text.empty()) {
    return fail(ErrorCode::NotFound,
                fmt::format("'{}' matches only pieces of functions, which cannot be traced",
                            request.pattern));
  }
  return text;
}

Expected<std::string> list_fields(const NameRequest& request) {
  const target::Pattern pattern = CLEW_TRY(target::Pattern::compile(request.pattern));
  std::string text;
  std::vector<query::FieldForm> all;
  for (const query::FieldInfo& field : query::fields())
    all.push_back({field.name, query::name_of(field.type), field.where, field.doc});
  all.insert(all.end(), query::field_forms().begin(), query::field_forms().end());
  for (const query::RecordingFieldInfo& field : query::recording_fields()) {
    const bool is_everywhere = query::is_of_all_recorded(field);
    all.push_back({field.name, query::name_of(field.type),
                   is_everywhere ? "recording" : "some events of a recording", field.meaning});
  }
  for (const query::FieldForm& field : all) {
    if (pattern.matches(field.name)) text += field_text(field, request.json);
  }
  if (!text.empty()) return text;
  return fail(ErrorCode::NotFound, fmt::format("no field matches '{}'", request.pattern));
}

namespace {

// "nginx" of "nginx.request": what tracepoints of a program have in common.
std::string_view program_of(std::string_view tracepoint) {
  return tracepoint.substr(0, tracepoint.find('.'));
}

}  // namespace

Expected<std::string> list_tracepoints(const NameRequest& request,
                                       const std::vector<std::string>& vocabulary_paths) {
  const target::Pattern pattern = CLEW_TRY(target::Pattern::compile(request.pattern));
  const query::Vocabulary vocabulary = CLEW_TRY(load_vocabulary(vocabulary_paths));
  std::string text;
  std::vector<std::string_view> names;
  for (const query::TracepointDefinition& tracepoint : vocabulary.tracepoints()) {
    names.push_back(tracepoint.name);
    if (pattern.matches(tracepoint.name) || pattern.matches(program_of(tracepoint.name)))
      text += tracepoint_text(tracepoint, request.json);
  }
  if (!text.empty() && !request.json) text += kOfAllTracepoints;
  for (const query::OutstandingDefinition& defined : vocabulary.outstandings()) {
    names.push_back(defined.name);
    if (pattern.matches(defined.name) || pattern.matches(program_of(defined.name)))
      text += outstanding_text(defined, request.json);
  }
  for (const query::Program& program : vocabulary.programs()) {
    if (pattern.matches(program.name)) text += program_text(program, request.json);
  }
  if (!text.empty() || pattern.matches_everything()) return text;
  const std::string near = nearest_name(request.pattern, names);
  return fail(ErrorCode::NotFound,
              fmt::format("no tracepoint matches '{}'{}", request.pattern, did_you_mean(near)));
}

bool names_tracepoints(const std::string& pattern,
                       const std::vector<std::string>& vocabulary_paths) {
  const bool is_dotted = pattern.find('.') != std::string::npos;
  if (!is_dotted || pattern.find('!') != std::string::npos) return false;
  const Expected<target::Pattern> compiled = target::Pattern::compile(pattern);
  const Expected<query::Vocabulary> vocabulary = load_vocabulary(vocabulary_paths);
  if (!compiled) return false;
  if (!vocabulary) return true;  // So that the listing says what is wrong with the files.
  const auto matches = [&](const auto& defined) { return compiled->matches(defined.name); };
  const auto tracepoints = vocabulary->tracepoints();
  const auto outstandings = vocabulary->outstandings();
  return std::any_of(tracepoints.begin(), tracepoints.end(), matches) ||
         std::any_of(outstandings.begin(), outstandings.end(), matches);
}

namespace {

std::string program_name(pid_t pid) {
  const auto process = target::read_process(pid);
  return process ? target::program_name(*process) : "";
}

// "clew 12, clew 34"
std::string live_tracers(const inline_::ArenaInfo& arena) {
  std::string text;
  for (const inline_::SessionInfo& session : arena.sessions) {
    if (!session.tracer_alive) continue;
    text += fmt::format("{}clew {}", text.empty() ? "" : ", ", session.tracer);
  }
  return text;
}

bool has_dead_session(const inline_::ArenaInfo& arena) {
  return std::any_of(arena.sessions.begin(), arena.sessions.end(),
                     [](const inline_::SessionInfo& session) { return !session.tracer_alive; });
}

// What to do about what dead sessions left.
std::string advice_on(const inline_::ArenaInfo& arena) {
  if (!arena.residue) return "";
  if (inline_::is_recorded(arena.pid)) return "  has copies of a recorder until it ends";
  return fmt::format("  residue: clew detach {}", arena.pid);
}

}  // namespace

std::string list_traced(bool json) {
  std::string text;
  for (const inline_::ArenaInfo& arena : inline_::ps()) {
    nlohmann::json sessions = nlohmann::json::array();
    std::string tracers;
    for (const inline_::SessionInfo& session : arena.sessions) {
      sessions.push_back({{"session", session.session},
                          {"tracer", session.tracer},
                          {"alive", session.tracer_alive},
                          {"cluster", is_of_cluster(session.tracer)}});
      const std::string_view kind = is_of_cluster(session.tracer) ? " (of a cluster's node)" : "";
      tracers += fmt::format("{}clew {}{}", tracers.empty() ? "" : ", ", session.tracer,
                             session.tracer_alive ? kind : " (dead)");
    }
    if (json) {
      text += nlohmann::json{{"pid", arena.pid},
                             {"program", program_name(arena.pid)},
                             {"sites", arena.sites},
                             {"residue", arena.residue},
                             {"recorded", inline_::is_recorded(arena.pid)},
                             {"sessions", sessions}}
                  .dump() +
              "\n";
    } else {
      text += fmt::format("{:>8}  {:<20} {:>6}  {}{}\n", arena.pid, program_name(arena.pid),
                          arena.sites, tracers, advice_on(arena));
    }
  }
  if (json) return text;
  if (text.empty()) return "no process is traced\n";
  return fmt::format("{:>8}  {:<20} {:>6}  {}\n", "PID", "PROGRAM", "SITES", "TRACED BY") + text;
}

namespace {

// What is not the files' and not of ours.
std::string others_in(pid_t pid, std::span<const inline_::TextChange> strangers) {
  const auto line = [&](const char* what, const std::vector<inline_::TextChange>& places) {
    return places.empty() ? "" : fmt::format("{}: {}\n", what, places_of(pid, places));
  };
  std::vector<inline_::TextChange> traps(strangers.begin(), strangers.end());
  const auto code = std::stable_partition(traps.begin(), traps.end(), [](const auto& change) {
    return change.kind == inline_::ChangeKind::Trap;
  });
  const std::vector<inline_::TextChange> others(code, traps.end());
  traps.erase(code, traps.end());
  return line("uprobes or breakpoints of others", traps) + line("code that others changed", others);
}

// Calls come to the program's own functions again; there may be return addresses into copies.
Expected<std::string> leave_recorded(pid_t pid, const inline_::ArenaInfo& before) {
  if (!before.residue) {
    return fail(ErrorCode::Refused,
                fmt::format("process {} is recorded by {}; stop that", pid, live_tracers(before)));
  }
  inline_::DetachReport report = CLEW_TRY(inline_::clean_up(pid, false));
  report.residue = false;  // Which is what is told here.
  CLEW_TRY(check_left(pid, report));
  return fmt::format(
      "process {}: is recorded no more; copies of its functions stay until it "
      "ends, and do no harm\n",
      pid);
}

Expected<std::string> remove_told(pid_t pid, bool force) {
  const std::optional<inline_::ArenaInfo> before = inline_::look_at(pid);
  if (before && inline_::is_recorded(pid)) {
    return leave_recorded(pid, *before);
  }
  const std::string alive = before && !force && !before->residue ? live_tracers(*before) : "";
  if (!alive.empty() && !has_dead_session(*before)) {
    return fail(
        ErrorCode::Refused,
        fmt::format("process {}: a session of {} is alive; stop it, or use --force", pid, alive));
  }
  const inline_::DetachReport report = CLEW_TRY(inline_::clean_up(pid, force));
  CLEW_TRY(check_left(pid, report));
  std::string text =
      fmt::format("process {}: {}\n", pid, before ? "probes removed" : "nothing to remove");
  if (!alive.empty()) {
    text = fmt::format("process {}: probes of dead sessions removed; a session of {} is alive\n",
                       pid, alive);
  }
  if (!report.residue_reason.empty())
    text += fmt::format("process {}: {}\n", pid, report.residue_reason);
  if (report.foreign_patches != 0) {
    text += fmt::format("{} sites were changed by somebody else and left alone\n",
                        report.foreign_patches);
  }
  return text + others_in(pid, report.strangers);
}

}  // namespace

Expected<std::string> remove_probes(pid_t pid, bool force) {
  ledger::Session session =
      CLEW_TRY(ledger::Session::open({.text = force ? "--force" : "",
                                      .text_name = "",
                                      .is_removal = true,
                                      .warn = ledger::warn_on_standard_error}));
  CLEW_TRY(session.begin({.processes = {pid}}));
  Expected<std::string> removed = remove_told(pid, force);
  session.end(removed);
  return removed;
}

}  // namespace clew::engine
