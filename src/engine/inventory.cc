// SPDX-License-Identifier: Apache-2.0
#include "engine/inventory.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "engine/sites.h"
#include "inline/attachment.h"
#include "inline/refusal.h"
#include "query/fields.h"
#include "query/vocabulary.h"
#include "target/catalog.h"
#include "target/process.h"

namespace clew::engine {
namespace {

Expected<pid_t> one_process(const std::string& pattern) {
  const std::vector<target::Process> found = CLEW_TRY(target::find_processes(pattern));
  if (found.empty()) {
    return fail(ErrorCode::NotFound, fmt::format("no process is called '{}'", pattern));
  }
  if (found.size() > 1) {
    return fail(ErrorCode::NotFound,
                fmt::format("{} processes are called '{}'; choose one with -p: {} …", found.size(),
                            pattern, found[0].pid()));
  }
  return found[0].pid();
}

Expected<target::Catalog> catalog_of(const ListRequest& request) {
  const target::CatalogOptions options = target::default_catalog_options();
  if (!request.file.empty()) return target::Catalog::of_file(request.file, options);
  if (request.pid) return target::Catalog::of_process(*request.pid, options);
  if (!request.name.empty()) {
    return target::Catalog::of_process(CLEW_TRY(one_process(request.name)), options);
  }
  return fail(ErrorCode::NotFound,
              "nothing to list; name a process with -p PID or --name, or a file with --file");
}

// "yes", or why not, for entry and exits of each function.
struct Takeable {
  std::string entry = "yes";
  std::string exits = "yes";
};

Expected<std::vector<Takeable>> find_takeable(target::Catalog& catalog, CodeCache& codes,
                                              const std::vector<target::FunctionMatch>& matches,
                                              size_t module) {
  const target::ModuleImage* image = CLEW_TRY(catalog.image(module));
  const inline_::ModuleCode* code = CLEW_TRY(codes.code(catalog, module));
  std::vector<inline_::Request> requests;
  for (const target::FunctionMatch& match : matches) {
    const uint64_t address = image->functions()[match.function].address;
    requests.push_back({.kind = inline_::RequestKind::Entry, .address = address});
    requests.push_back({.kind = inline_::RequestKind::Exits, .address = address});
  }
  std::vector<Takeable> result(matches.size());
  for (const inline_::Refusal& refusal : inline_::plan_windows(*code, requests).refusals) {
    Takeable& takeable = result[refusal.request / 2];
    (refusal.request % 2 == 0 ? takeable.entry : takeable.exits) = inline_::name(refusal.reason);
  }
  return result;
}

std::string list_line(target::Catalog& catalog, const target::FunctionMatch& match,
                      const Takeable* takeable, bool json) {
  const target::Function& function = (*catalog.image(match.module))->functions()[match.function];
  const std::string& module = catalog.modules()[match.module].display_name;
  if (!json) {
    const std::string sites = takeable == nullptr ? ""
                                                  : fmt::format("  entry: {}, exits: {}",
                                                                takeable->entry, takeable->exits);
    return fmt::format("{}!{}{}\n", module, function.demangled, sites);
  }
  nlohmann::json line = {{"module", module},
                         {"function", function.name},
                         {"signature", function.demangled},
                         {"address", function.address},
                         {"size", function.size_bytes}};
  if (takeable != nullptr) {
    line["entry"] = takeable->entry;
    line["exits"] = takeable->exits;
  }
  return line.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace

Expected<std::string> list_functions(const ListRequest& request) {
  target::Catalog catalog = CLEW_TRY(catalog_of(request));
  const std::vector<target::FunctionMatch> all = CLEW_TRY(catalog.find(request.pattern));
  if (all.empty()) return tl::unexpected(catalog.explain_no_match(request.pattern));
  CodeCache codes;
  std::string text;
  for (auto from = all.begin(); from != all.end();) {
    const size_t module = from->module;
    const auto to = std::find_if(from, all.end(), [module](const target::FunctionMatch& match) {
      return match.module != module;
    });
    const std::vector<target::FunctionMatch> matches(from, to);
    std::vector<Takeable> takeable;
    if (request.sites) takeable = CLEW_TRY(find_takeable(catalog, codes, matches, module));
    for (size_t i = 0; i < matches.size(); ++i) {
      text += list_line(catalog, matches[i], request.sites ? &takeable[i] : nullptr, request.json);
    }
    from = to;
  }
  return text;
}

std::string list_fields() {
  std::string text;
  for (const query::FieldInfo& field : query::fields()) {
    text += fmt::format("{:<12} {:<10} {:<24} {}\n", field.name, query::name_of(field.type),
                        field.where, field.doc);
  }
  return text;
}

Expected<std::string> list_tracepoints(const std::vector<std::string>& vocabulary_paths) {
  query::Vocabulary vocabulary;
  for (const std::string& path : vocabulary_paths) {
    CLEW_TRY(vocabulary.load(path));
  }
  std::string text;
  for (const query::TracepointDefinition& tracepoint : vocabulary.tracepoints()) {
    text += fmt::format("{:<28} {}\n", tracepoint.name, tracepoint.doc);
    if (tracepoint.places.empty()) continue;
    for (const query::TracepointExport& exported : tracepoint.places[0].exports) {
      text += fmt::format("{:<28}   .{} = {}\n", "", exported.name, exported.text);
    }
  }
  return text;
}

std::string list_traced(bool json) {
  std::string text;
  for (const inline_::ArenaInfo& arena : inline_::ps()) {
    nlohmann::json sessions = nlohmann::json::array();
    std::string tracers;
    for (const inline_::SessionInfo& session : arena.sessions) {
      sessions.push_back({{"session", session.session},
                          {"tracer", session.tracer},
                          {"alive", session.tracer_alive}});
      tracers += fmt::format("{}clew {}{}", tracers.empty() ? "" : ", ", session.tracer,
                             session.tracer_alive ? "" : " (dead)");
    }
    if (json) {
      text += nlohmann::json{{"pid", arena.pid},
                             {"sites", arena.sites},
                             {"residue", arena.residue},
                             {"sessions", sessions}}
                  .dump() +
              "\n";
    } else {
      text += fmt::format("{:>8}  {:>6} sites  {}{}\n", arena.pid, arena.sites, tracers,
                          arena.residue ? fmt::format("  residue: clew detach {}", arena.pid) : "");
    }
  }
  if (text.empty() && !json) text = "no process is traced\n";
  return text;
}

Expected<std::string> remove_probes(pid_t pid, bool force) {
  const inline_::DetachReport report = CLEW_TRY(inline_::clean_up(pid, force));
  if (report.residue) {
    return fail(ErrorCode::Refused,
                fmt::format("process {} keeps a residue: {}", pid, report.residue_reason));
  }
  std::string text = fmt::format("process {}: probes removed\n", pid);
  if (report.foreign_patches != 0) {
    text += fmt::format("{} sites were changed by somebody else and left alone\n",
                        report.foreign_patches);
  }
  return text;
}

}  // namespace clew::engine
