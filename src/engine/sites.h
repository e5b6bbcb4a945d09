// SPDX-License-Identifier: Apache-2.0
// Query sources -> sites of one process: which functions they match, and the windows that take
// them, module by module. Nothing in the process changes here.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/error.h"
#include "code/flag_use.h"
#include "code/kept_analysis.h"
#include "code/module_code.h"
#include "code/refusal.h"
#include "code/windows.h"
#include "collect/losses.h"
#include "engine/unwinder.h"
#include "plan/lower.h"
#include "plan/sites.h"
#include "target/catalog.h"

namespace clew::engine {

// One matched place of one source: a function's entry, all its exits, or one instruction.
struct Site {
  uint16_t source = 0;
  size_t module = 0;
  uint64_t address = 0;          // Link time: of the function, or of the instruction.
  uint64_t function_number = 0;  // Small and distinct per function and source: record tags.
  size_t names = 0;              // Index in SiteSet::names.
  std::optional<uint32_t> group;
  const target::StaticProbe* static_probe = nullptr;  // Of the catalog; null at other places.
};

// One request to the window planner: a program at a site, or at a function of the unwinder.
struct PlannedRequest {
  size_t site = 0;  // Index in SiteSet::sites; in unwinders for programs that belong there.
  size_t program = 0;
};

struct ModulePlan {
  size_t module = 0;
  std::vector<PlannedRequest> requests;  // Parallel to the planner's requests.
  code::Plan plan;
};

// Why a site has no windows, by each of its programs, and its place in SiteSet::refused.
struct SiteRefusal {
  size_t place = 0;
  std::set<code::RefusalReason> reasons;
};

// Grows when modules are loaded later; indices stay.
struct SiteSet {
  std::vector<Site> sites;
  std::vector<plan::SiteNames> names;  // Of each site.
  // By source, module and address: an exit of one source does not take the record of another.
  std::map<std::tuple<uint16_t, size_t, uint64_t>, uint64_t> function_numbers;
  std::vector<UnwinderFunction> unwinders;  // Only when there are exception sources.
  bool needs_landing = false;               // Nothing is asked for that may be loaded later.
  bool has_landing = false;                 // An unwinder's landing has a probe.
  std::vector<ModulePlan> modules;          // Of the last plan_windows().
  std::vector<collect::RefusedSite> refused;
  std::map<size_t, SiteRefusal> refused_sites;  // Those of them that are sites.
  uint16_t source_at_fault = 0;                 // Of the last error of find_sites().
};

inline constexpr size_t kSitesMax = 10'000;  // More ask for --yes.

// Adds the sites in these modules; all modules when the list is empty. Errors: NotFound with the
// nearest name when a source matches nothing (unless `allow_missing`); Refused when there is an
// exception source and no unwinder in any module.
Expected<void> find_sites(const query::Query& query, target::Catalog& catalog, bool allow_missing,
                          const std::vector<size_t>& modules, SiteSet& set);

// A sentence for each source of the query, of those in processes or in the kernel, that none of the
// sites is of.
std::vector<std::string> unmatched_sources(const query::Query& query, bool in_kernel,
                                           const std::set<uint16_t>& matched);

// Decoded code of modules, kept for the session; of processes whose catalogs share their files.
class CodeCache {
 public:
  // Analyses are kept in this folder, too, if there is one.
  explicit CodeCache(const std::string& folder = "") : kept_(folder) {}
  Expected<const code::ModuleCode*> code(target::Catalog& catalog, size_t module);
  // code::plan_windows in code of this cache. What is the same in all processes is looked for once.
  code::Plan plan(const code::ModuleCode& code, std::span<const code::Request> requests,
                  std::span<const code::Window> installed, code::LateUprobeDanger danger);

 private:
  code::KeptAnalyses kept_;
  std::map<const target::ModuleImage*, std::unique_ptr<code::ModuleCode>> codes_;
  std::map<const code::ModuleCode*, code::FlagValues> flags_;
};

// What a site of the source is called where it is refused: "entry", "exit", …
std::string kind_name(query::SourceKind kind);
// And by which name: the function's, or the static probe's.
std::string shown_name(const SiteSet& set, const Site& site);

// Which windows other sessions have in a module already.
using InstalledWindows = std::vector<code::Window>;

// Plans the windows for all programs at the sites from `first` on, and at the unwinder's functions
// that are not armed yet. A site whose recorder or exits are refused is dropped whole and listed.
// Errors: Refused when an exception source has no landing of the unwinder.
struct WindowRequest {  // Borrows what it names.
  const query::Query& query;
  const std::vector<plan::ProbeProgram>& programs;
  code::LateUprobeDanger danger = code::LateUprobeDanger::Refused;
  size_t first = 0;
  std::map<size_t, InstalledWindows> installed = {};  // By module.
};
Expected<void> plan_windows(SiteSet& set, target::Catalog& catalog, CodeCache& codes,
                            const WindowRequest& request);

}  // namespace clew::engine
