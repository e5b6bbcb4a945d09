// SPDX-License-Identifier: Apache-2.0
#include "engine/explain.h"

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "abi/arena.h"
#include "engine/bodies.h"
#include "engine/compile.h"
#include "engine/copied_functions.h"
#include "isa/print.h"
#include "native/print.h"
#include "output/json_value.h"
#include "query/print.h"

namespace clew::engine {
namespace {

constexpr std::string_view kInKernel = "in the kernel";

std::string_view form_name(plan::StateForm form) {
  switch (form) {
    case plan::StateForm::Dense:
      return "cells at fixed addresses (each key is constant at a site)";
    case plan::StateForm::Table:
      return "a table of cells by key, per thread";
    case plan::StateForm::Events:
      return "events through a ring, per thread";
  }
  return "";
}

std::string_view point_name(plan::ProgramPoint point) {
  switch (point) {
    case plan::ProgramPoint::Entry:
      return "entry";
    case plan::ProgramPoint::Exit:
      return "exits";
    case plan::ProgramPoint::Offset:
      return "offset";
    case plan::ProgramPoint::UnwindStart:
      return "starts of unwinding";
    case plan::ProgramPoint::Landing:
      return "landings of the unwinder";
    case plan::ProgramPoint::Jump:
      return "landings of longjmp";
  }
  return "";
}

code::PointKind inline_point(plan::ProgramPoint point) {
  switch (point) {
    case plan::ProgramPoint::Entry:
    case plan::ProgramPoint::UnwindStart:
      return code::PointKind::Entry;
    case plan::ProgramPoint::Exit:
      return code::PointKind::Exit;
    case plan::ProgramPoint::Offset:
    case plan::ProgramPoint::Landing:
    case plan::ProgramPoint::Jump:
      return code::PointKind::Offset;
  }
  return code::PointKind::Offset;
}

std::string counted(size_t count, std::string_view one, std::string_view many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

// inline/kept_instruction.h
std::string explain_first_instructions(Tracee& tracee) {
  size_t again = 0;
  size_t once = 0;
  size_t both = 0;
  for (const ModulePlan& module : tracee.sites().modules) {
    for (const code::Window& window : module.plan.windows) {
      again += window.kept_bytes != 0 ? 1 : 0;
      both += window.window_class == code::WindowClass::BothWays ? 1 : 0;
    }
    for (const code::Point& point : module.plan.points)
      once += code::is_behind_first(module.plan, point) ? 1 : 0;
  }
  std::string text;
  if (again + once != 0) {
    text =
        fmt::format("    first instructions stay: {} done again, {} once, in front of the probe\n",
                    again, once);
  }
  if (both == 0) return text;
  return text +
         fmt::format(
             "    first instructions have bytes over them that serve both ways: {}; a uprobe "
             "of others takes values there (unreadable)\n",
             both);
}

// Others are among the refused, or by uprobe.
std::string explain_static_probes(Tracee& tracee) {
  std::set<size_t> sites;
  for (const ModulePlan& module : tracee.sites().modules) {
    for (const code::Point& point : module.plan.points)
      sites.insert(module.requests[point.request].site);
  }
  const auto is_static = [&](size_t site) {
    return site < tracee.sites().sites.size() && tracee.sites().sites[site].static_probe != nullptr;
  };
  const auto count = std::count_if(sites.begin(), sites.end(), is_static);
  if (count == 0) return "";
  return fmt::format("    static probes: {} inline, at {}\n", count,
                     count == 1 ? "its nop" : "their nops");
}

// In one module: from here on the copies are soon worth the second that it takes to make them.
constexpr size_t kManyFunctions = 500;

std::string recommend_copies(Tracee& tracee) {
  const auto& modules = tracee.sites().modules;
  const bool has_many = std::any_of(modules.begin(), modules.end(), [](const ModulePlan& module) {
    return module.plan.points.size() >= kManyFunctions;
  });
  return has_many ? "    on copies: none; --copies makes hits of so many functions cheaper\n" : "";
}

std::string explain_copies(const Tracee& tracee) {
  std::string text;
  for (const CopiedReport& report : tracee.copied()) {
    text += fmt::format("    on copies: {} of {} functions of {}\n", report.copied, report.asked,
                        report.module);
    for (const auto& [reason, count] : report.others)
      text += fmt::format("    no copy: {:>5}  {}\n", count, reason);
  }
  return text;
}

std::string explain_uprobes(const KernelTracee& uprobes, pid_t pid) {
  std::map<std::string, size_t> reasons;
  for (const KernelSite& site : uprobes.sites()) {
    if (site.probe.pid == pid) ++reasons[site.refused->kind + " " + site.refused->reason];
  }
  std::string text;
  for (const auto& [reason, count] : reasons)
    text += fmt::format("    by uprobe: {:>3}  {}\n", count, reason);
  return text;
}

std::string explain_sites(Tracee& tracee) {
  size_t windows = 0;
  size_t points = 0;
  for (const ModulePlan& module : tracee.sites().modules) {
    windows += module.plan.windows.size();
    points += module.plan.points.size();
  }
  std::map<std::string, size_t> reasons;
  for (const collect::RefusedSite& refused : tracee.sites().refused) {
    ++reasons[refused.kind + " " + refused.reason];
  }
  std::string text =
      fmt::format("  process {}: {}, {} in {}, {} refused\n", tracee.pid(),
                  counted(tracee.sites().sites.size(), "function or place", "functions or places"),
                  counted(points, "point", "points"), counted(windows, "window", "windows"),
                  tracee.sites().refused.size());
  text += explain_first_instructions(tracee);
  text += explain_static_probes(tracee);
  text += explain_copies(tracee);
  for (const auto& [reason, count] : reasons) {
    text += fmt::format("    refused: {:>5}  {}\n", count, reason);
  }
  return text;
}

std::string event_size(size_t header_bytes, const collect::EventWords& words) {
  const size_t most = header_bytes + size_t{8} * words.most;
  if (!words.vary()) return std::to_string(most);
  return fmt::format("{} to {}", header_bytes + size_t{8} * words.least, most);
}

using SourceIsThere = std::function<bool(uint16_t)>;

std::string explain_state(const plan::Lowered& lowered, const SourceIsThere& is_there) {
  std::string text = fmt::format("state: {}\n", form_name(lowered.form));
  if (lowered.dense_words != 0) {
    text += fmt::format("  {} bytes of cells per thread\n", 8 * lowered.dense_words);
  }
  if (lowered.layout.table_count != 0) {
    const abi::TableLayout& table = lowered.layout.tables[0];
    text += fmt::format("  table of {} entries of {} bytes per thread\n", 1U << table.entries_log2,
                        table.entry_size_bytes());
  }
  if (lowered.layout.records.payload_words != 0) {
    text += fmt::format("  {} records of open calls of {} bytes per thread\n",
                        1U << lowered.layout.records.records_log2,
                        lowered.layout.records.record_size_bytes());
  }
  if (lowered.form == plan::StateForm::Events) {
    text +=
        fmt::format("  ring of {} KiB per thread\n", (1U << lowered.layout.ring.size_log2) >> 10);
    for (size_t i = 0; i < lowered.event_words.size(); ++i) {
      if (!is_there(static_cast<uint16_t>(i))) continue;
      text += fmt::format("  source {}: {} bytes per event\n", i,
                          event_size(abi::kEventHeaderBytes, lowered.event_words[i]));
    }
  }
  return text;
}

// An example geometry: the code depends on it only in its addresses.
constexpr inline_::Geometry kExampleGeometry{.session = 0,
                                             .slot_address = 0x10000,
                                             .window_address = 0x10000 + abi::kSlotControlSizeBytes,
                                             .generation_address = 0x11100,
                                             .spent_address = 0x7000'0000};

Expected<std::string> explain_program(const plan::ProbeProgram& probe, Tracee& tracee,
                                      const plan::Lowered& lowered, const ExplainOptions& options) {
  std::string text = fmt::format(
      "program of source {}, at {}{}: {} instructions\n", probe.source, point_name(probe.point),
      probe.is_recorder ? " (records open calls)" : "", probe.program.code.size());
  if (options.programs) text += isa::print(probe.program);
  if (!options.code) return text;
  for (const Site& site : tracee.sites().sites) {
    if (site.source != probe.source || !site.group) continue;
    const native::Code code =
        CLEW_TRY(translate_site(probe, site, lowered, inline_point(probe.point), kExampleGeometry));
    text += fmt::format("machine code, {} bytes{}, as at {}:\n{}", code.bytes.size(),
                        code.guarded ? ", guarded" : "", tracee.sites().names[site.names].function,
                        native::print(code));
    break;
  }
  return text;
}

// The plan in the query's own words: in the kernel's form, names are arguments.
std::string explain_kernel(std::string_view title, const query::Query& query,
                           const KernelTracee& tracee, const ExplainOptions& options) {
  plan::Plan plan = tracee.plan();
  if (query.joins.empty()) plan.query = query;
  const plan::KernelLowered& lowered = tracee.lowered();
  std::string text = fmt::format("\n{}\n{}  {}, of {}\n", title, plan::print(plan, "processor"),
                                 counted(tracee.sites().size(), "probe", "probes"),
                                 tracee.scope().pids.empty()
                                     ? std::string("all processes but clew itself")
                                     : counted(tracee.scope().pids.size(), "process", "processes"));
  if (tracee.has_events()) {
    text += "  state: events through a ring\n";
    for (const plan::KernelProgram& each : lowered.programs) {
      if (each.is_recorder) continue;
      text += fmt::format(
          "  source {}: {} bytes per event\n", each.source,
          event_size(sizeof(abi::MachineRecordHeader), lowered.root.event_words[each.source]));
    }
  } else {
    text += fmt::format("  state: {} of cells by key, per processor\n",
                        counted(lowered.aggregations.size(), "table", "tables"));
    text += fmt::format("  keys of {} bytes\n", 8 * lowered.root.state.tables[0].key_words);
  }
  for (const plan::KernelProgram& each : lowered.programs) {
    text += fmt::format("program of source {}{}: {} instructions\n", each.source,
                        each.is_recorder ? ", at entries (keeps open calls)" : "",
                        each.program.code.size());
    if (options.programs) text += isa::print(each.program) + "\n";
  }
  return text;
}

std::string explain_kernels(const Compiled& compiled, const ExplainOptions& options) {
  std::string text;
  if (compiled.kernel) text += explain_kernel(kInKernel, compiled.query, *compiled.kernel, options);
  if (compiled.uprobes) {
    const std::string_view reason = compiled.all_uprobes;
    const std::string title =
        fmt::format("in the kernel, at uprobes{}{}", reason.empty() ? "" : ": ", reason);
    text += explain_kernel(title, compiled.query, *compiled.uprobes, options);
  }
  return text;
}

// Of a query without joins all sources are there, whether any place has them or not.
class PlacesThere {
 public:
  explicit PlacesThere(const Compiled& compiled)
      : joined_(compiled.joined ? &*compiled.joined : nullptr) {
    for (const auto& tracee : compiled.tracees) {
      for (const Site& site : tracee->sites().sites)
        matched_.insert(site.source);
    }
  }
  bool operator()(uint16_t source) const {
    return joined_ == nullptr || matched_.contains(source) ||
           query::is_kernel_source(joined_->events.sources[source].kind);
  }

 private:
  const plan::Joined* joined_;
  std::set<uint16_t> matched_;
};

std::vector<plan::PlanLine> explain_plan(Compiled& compiled, const PlacesThere& is_there) {
  if (!compiled.joined) return plan::lines_of(plan::print(compiled.plan));
  if (compiled.in_place) return plan::explain_in_place(compiled.plan, *compiled.joined, is_there);
  std::vector<std::string> programs;
  if (plan::follows_messages(*compiled.joined)) {
    std::vector<int64_t> pids(compiled.tracees.size());
    std::transform(compiled.tracees.begin(), compiled.tracees.end(), pids.begin(),
                   [](const auto& tracee) { return tracee->pid(); });
    programs = compiled.programs->describe(pids);
  }
  return plan::explain(*compiled.joined, is_there, programs);
}

std::string json_of(const query::Query& query, const std::vector<plan::PlanLine>& lines) {
  std::string text = output::json_text({{"query", query::print(query)}}) + "\n";
  for (const plan::PlanLine& line : lines) {
    output::Json json{{"tier", line.tier}, {"what", line.what}};
    if (!line.condition.empty()) json["condition"] = line.condition;
    if (!line.why.empty()) json["why"] = line.why;
    if (!line.stream.empty()) json["join"] = line.stream;
    if (!line.stream.empty()) json["fields"] = line.fields;
    text += output::json_text(json) + "\n";
  }
  return text;
}

class Silent final : public Notices {
 public:
  void progress(std::string_view) override {}
  void warning(std::string_view) override {}
  void armed(std::string_view) override {}
  void made(std::string_view) override {}
};

}  // namespace

Expected<std::string> explain(const Request& request, const ExplainOptions& options) {
  Silent silent;
  Compiled compiled = CLEW_TRY(compile(request, silent));
  const PlacesThere is_there(compiled);
  if (options.json) return json_of(compiled.query, explain_plan(compiled, is_there));
  if (compiled.tracees.empty()) {
    const std::string plan =
        compiled.joined ? fmt::format("\nplan\n{}", plan::print(explain_plan(compiled, is_there)))
                        : "";
    return fmt::format("query\n{}\n{}{}", query::print(compiled.query), plan,
                       explain_kernels(compiled, options));
  }
  std::string text = fmt::format("query\n{}\n\nplan\n{}\nsites\n", query::print(compiled.query),
                                 plan::print(explain_plan(compiled, is_there)));
  for (const auto& tracee : compiled.tracees) {
    CLEW_TRY(tracee->plan_windows(compiled.plan, compiled.lowered));
    const std::string none = why_no_copies(compiled.lowered, request.follow_forks);
    if (none.empty()) CLEW_TRY(tracee->judge_copies(compiled.lowered, kExampleGeometry));
    text += explain_sites(*tracee);
    if (request.copies && !none.empty()) text += fmt::format("    on copies: none {}\n", none);
    if (!request.copies && none.empty()) text += recommend_copies(*tracee);
    if (compiled.uprobes) text += explain_uprobes(*compiled.uprobes, tracee->pid());
  }
  text += "\n" + explain_state(compiled.lowered, is_there) + "\n";
  for (const plan::ProbeProgram& probe : compiled.lowered.programs) {
    if (!is_there(probe.source)) continue;
    text += CLEW_TRY(explain_program(probe, *compiled.tracees[0], compiled.lowered, options));
  }
  return text + explain_kernels(compiled, options);
}

}  // namespace clew::engine
