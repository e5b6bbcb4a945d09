// SPDX-License-Identifier: Apache-2.0
#include "engine/usdt_sites.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/file_name.h"
#include "engine/chosen.h"
#include "kernel/glob.h"
#include "plan/uprobe_form.h"
#include "query/diagnostic.h"
#include "query/print.h"
#include "target/process.h"
#include "target/usdt.h"

namespace clew::engine {
namespace {

using query::Source;
using query::SourceKind;
using target::StaticProbe;

std::string full_name(const StaticProbe& probe) {
  return fmt::format("{}:{}", probe.provider, target::d_name_of(probe.name));
}

class StaticSearch {
 public:
  StaticSearch(target::Catalog& catalog, const std::vector<size_t>& modules)
      : catalog_(catalog), modules_(modules) {}

  // In DTrace's spelling the provider ends with the process's number.
  std::vector<StaticSite> run(std::string provider, const std::string& name) {
    std::vector<StaticSite> found = match(provider, name);
    const std::string number = std::to_string(catalog_.pid());
    if (!found.empty() || !provider.ends_with(number)) return found;
    provider.resize(provider.size() - number.size());
    return match(provider, name);
  }

  [[nodiscard]] Error none(const std::string& asked) {
    std::set<std::string> known;
    for (const StaticSite& site : match("*", "*"))
      known.insert(full_name(*site.probe));
    if (known.empty()) {
      return {ErrorCode::NotFound,
              fmt::format("process {} has no USDT probes; --allow-missing waits for "
                          "those of libraries that are loaded later",
                          catalog_.pid())};
    }
    const std::vector<std::string_view> names(known.begin(), known.end());
    return {ErrorCode::NotFound, fmt::format("process {} has no USDT probe '{}'{}", catalog_.pid(),
                                             asked, query::did_you_mean(asked, names))};
  }

 private:
  std::vector<StaticSite> match(const std::string& provider, const std::string& name) {
    const kernel::Glob providers(provider);
    const kernel::Glob names(name);
    std::vector<StaticSite> found;
    for (size_t module = 0; module < catalog_.modules().size(); ++module) {
      const bool is_wanted =
          modules_.empty() || std::find(modules_.begin(), modules_.end(), module) != modules_.end();
      if (!is_wanted || !catalog_.modules()[module].is_loaded) continue;
      for (const StaticProbe& probe : catalog_.static_probes(module)) {
        const bool is_named =
            names.matches(probe.name) || names.matches(target::d_name_of(probe.name));
        if (is_named && providers.matches(probe.provider)) found.push_back({module, &probe});
      }
    }
    return found;
  }

  target::Catalog& catalog_;
  const std::vector<size_t>& modules_;
};

class UsdtLister {
 public:
  explicit UsdtLister(const ListRequest& request) : request_(request), glob_(request.pattern) {}

  Expected<std::string> run() {
    for (const auto& [path, name] : CLEW_TRY(files()))
      CLEW_TRY(add(path, name));
    std::string text;
    for (const auto& [key, probe] : found_)
      text += shown(key.first, key.second, probe);
    if (!text.empty()) return text;
    if (known_.empty()) return fail(ErrorCode::NotFound, "no USDT probes there");
    const std::vector<std::string_view> names(known_.begin(), known_.end());
    return fail(ErrorCode::NotFound, fmt::format("no USDT probe '{}'{}", request_.pattern,
                                                 query::did_you_mean(request_.pattern, names)));
  }

 private:
  struct Found {
    size_t places = 0;
    std::set<std::string> arguments;  // A text for each form.
  };

  // What opens each, and its name.
  Expected<std::map<std::string, std::string>> files() {
    std::map<std::string, std::string> files;
    if (!request_.file.empty()) {
      files[request_.file] = file_name_of(request_.file);
      return files;
    }
    for (const pid_t pid : CLEW_TRY(find_chosen(request_.processes))) {
      for (const target::ProcessModule& module : CLEW_TRY(target::read_modules(pid)))
        files[module.open_path] = file_name_of(module.path);
    }
    if (!files.empty()) return files;
    return fail(ErrorCode::NotFound, "no process; use -p PID, --name PATTERN or --file FILE");
  }

  // What is no ELF file has none.
  Expected<void> add(const std::string& path, const std::string& module) {
    auto probes = target::read_static_probes(path);
    if (!probes && !request_.file.empty()) return tl::unexpected(std::move(probes).error());
    if (!probes) return {};
    for (const target::StaticProbe& probe : *probes) {
      std::string name = fmt::format("{}:{}", probe.provider, probe.name);
      if (glob_.matches(name)) {
        Found& found = found_[{name, module}];
        ++found.places;
        found.arguments.insert(probe.arguments);
      }
      known_.insert(std::move(name));
    }
    return {};
  }

  [[nodiscard]] std::string shown(const std::string& name, const std::string& module,
                                  const Found& found) const {
    if (request_.json) {
      const nlohmann::json line = {{"source", "usdt"},
                                   {"name", name},
                                   {"module", module},
                                   {"places", found.places},
                                   {"arguments", found.arguments}};
      return line.dump() + "\n";
    }
    size_t most = 0;
    for (const std::string& text : found.arguments)
      most = std::max(most, target::parse_static_arguments(text).size());
    return fmt::format("usdt(\"{}\")  {}, {} place{}, {} argument{}\n", name, module, found.places,
                       found.places == 1 ? "" : "s", most, most == 1 ? "" : "s");
  }

  const ListRequest& request_;
  kernel::Glob glob_;
  std::map<std::pair<std::string, std::string>, Found> found_;  // By name and module.
  std::set<std::string> known_;
};

}  // namespace

bool reads_usdt_arguments(const query::Query& query) {
  return std::any_of(query.sources.begin(), query.sources.end(), [&](const Source& source) {
    return source.kind == SourceKind::Usdt && plan::arguments_asked(query, source) != 0;
  });
}

Expected<std::vector<StaticSite>> find_static_sites(const Source& source, target::Catalog& catalog,
                                                    const std::vector<size_t>& modules) {
  const std::string& text = source.function;
  const size_t colon = text.find(':');
  if (colon == std::string::npos) {
    return fail(ErrorCode::InvalidQuery, "a USDT probe is written as usdt(\"provider:name\")");
  }
  StaticSearch search(catalog, modules);
  std::vector<StaticSite> sites = search.run(text.substr(0, colon), text.substr(colon + 1));
  if (sites.empty()) return tl::unexpected(search.none(text));
  return sites;
}

Expected<void> check_usdt_uprobe(const query::Query& query, const SiteSet& set, const Site& site) {
  const Source& source = query.sources[site.source];
  if (!plan::can_be_uprobe(query, source)) {
    return fail(ErrorCode::InvalidQuery,
                "a USDT probe has arg0 to arg5, no floating-point arguments, and no functions of "
                "extensions");
  }
  const StaticProbe& probe = *site.static_probe;
  const size_t has = target::parse_static_arguments(probe.arguments).size();
  const unsigned asked = plan::arguments_asked(query, source);
  if (asked <= has) return {};
  return fail(ErrorCode::InvalidQuery,
              fmt::format("{} of {} has {} argument{}, and no arg{}", full_name(probe),
                          set.names[site.names].module, has, has == 1 ? "" : "s", asked - 1));
}

KernelSite static_site(target::Catalog& catalog, const SiteSet& set, const Site& site) {
  const StaticProbe& note = *site.static_probe;
  KernelSite result;
  kernel::Probe& probe = result.probe;
  probe.provider = note.provider + std::to_string(catalog.pid());
  probe.module = set.names[site.names].module;
  probe.function = set.names[site.names].function;
  probe.name = target::d_name_of(note.name);
  probe.kind = kernel::AttachKind::Usdt;
  probe.path = catalog.modules()[site.module].file.open_path;
  probe.offset_bytes = note.file_offset;
  probe.semaphore_offset_bytes = note.semaphore_offset;
  probe.usdt_arguments = note.arguments;
  probe.pid = catalog.pid();
  result.source = site.source;
  result.entry = probe;
  result.names = set.names[site.names];
  return result;
}

Expected<std::string> list_usdt(const ListRequest& request) {
  return UsdtLister(request).run();
}

}  // namespace clew::engine
