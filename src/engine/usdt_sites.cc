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

#include "engine/chosen.h"
#include "kernel/glob.h"
#include "plan/uprobe_form.h"
#include "query/diagnostic.h"
#include "query/print.h"
#include "target/process.h"
#include "target/usdt.h"

namespace clew::engine {
namespace {

using kernel::Probe;
using query::Source;
using query::SourceKind;

// Without the number of the process.
std::string provider_of(const Probe& probe) {
  const std::string number = std::to_string(probe.pid);
  return probe.provider.substr(0, probe.provider.size() - number.size());
}

std::string file_name(const std::string& path) {
  return path.substr(path.rfind('/') + 1);
}

class UsdtFinder {
 public:
  UsdtFinder(kernel::Catalogue& catalogue, pid_t pid) : catalogue_(catalogue), pid_(pid) {}

  // In DTrace's spelling the provider ends with the process's number already.
  Expected<std::vector<Probe>> match(const std::string& provider, const std::string& name) {
    const std::string number = std::to_string(pid_);
    std::vector<Probe> found = CLEW_TRY(match_whole(provider + number, name));
    if (!found.empty() || !provider.ends_with(number)) return found;
    return match_whole(provider, name);
  }

  Expected<void> none(const Source& source) {
    std::set<std::string> known;
    for (const Probe& probe : CLEW_TRY(match("*", "*")))
      known.insert(fmt::format("{}:{}", provider_of(probe), probe.name));
    if (known.empty()) {
      return fail(ErrorCode::NotFound, fmt::format("process {} has no USDT probes", pid_));
    }
    const std::vector<std::string_view> names(known.begin(), known.end());
    return fail(ErrorCode::NotFound,
                fmt::format("process {} has no USDT probe '{}'{}", pid_, source.function,
                            query::did_you_mean(source.function, names)));
  }

 private:
  Expected<std::vector<Probe>> match_whole(const std::string& provider, const std::string& name) {
    std::vector<Probe> found;
    for (const uint32_t id :
         CLEW_TRY(catalogue_.match_process({.provider = provider, .name = name}, pid_))) {
      const Probe* const probe = catalogue_.find(id);
      if (probe->kind == kernel::AttachKind::Usdt) found.push_back(*probe);
    }
    return found;
  }

  kernel::Catalogue& catalogue_;
  pid_t pid_;
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
      files[request_.file] = file_name(request_.file);
      return files;
    }
    for (const pid_t pid :
         CLEW_TRY(find_chosen({.pids = request_.pids, .name_patterns = request_.name_patterns}))) {
      for (const target::ProcessModule& module : CLEW_TRY(target::read_modules(pid)))
        files[module.open_path] = file_name(module.path);
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

Expected<void> check_arguments(const query::Query& query, const Source& source,
                               const Probe& probe) {
  if (!plan::can_be_uprobe(query, source)) {
    return fail(ErrorCode::InvalidQuery,
                "a USDT probe has arg0 to arg5, no floating-point arguments, and no functions of "
                "extensions");
  }
  const size_t has = target::parse_static_arguments(probe.usdt_arguments).size();
  const unsigned asked = plan::arguments_asked(query, source);
  if (asked <= has) return {};
  return fail(ErrorCode::InvalidQuery,
              fmt::format("{}:{} of {} has {} argument{}, and no arg{}", provider_of(probe),
                          probe.name, probe.module, has, has == 1 ? "" : "s", asked - 1));
}

}  // namespace

bool has_usdt(const query::Query& query) {
  return std::any_of(query.sources.begin(), query.sources.end(),
                     [](const Source& source) { return source.kind == SourceKind::Usdt; });
}

Expected<std::vector<KernelSite>> find_usdt_sites(const query::Query& query, uint16_t source,
                                                  kernel::Catalogue& catalogue, pid_t pid) {
  const Source& from = query.sources[source];
  const std::string& text = from.function;
  const size_t colon = text.find(':');
  if (colon == std::string::npos) {
    return fail(ErrorCode::InvalidQuery, "a USDT probe is written as usdt(\"provider:name\")");
  }
  UsdtFinder finder(catalogue, pid);
  std::vector<KernelSite> sites;
  for (const Probe& probe : CLEW_TRY(finder.match(text.substr(0, colon), text.substr(colon + 1)))) {
    CLEW_TRY(check_arguments(query, from, probe));
    KernelSite site;
    site.source = source;
    site.probe = probe;
    site.entry = probe;
    site.names = {.source = source,
                  .function = probe.function,
                  .module = probe.module,
                  .probe = from.label.empty() ? query::print(from) : from.label};
    site.refused = collect::RefusedSite{.function = probe.name, .kind = "usdt", .reason = "usdt"};
    sites.push_back(std::move(site));
  }
  if (sites.empty()) CLEW_TRY(finder.none(from));
  return sites;
}

Expected<std::string> list_usdt(const ListRequest& request) {
  return UsdtLister(request).run();
}

}  // namespace clew::engine
