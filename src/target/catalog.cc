// SPDX-License-Identifier: Apache-2.0
#include "target/catalog.h"

#include <algorithm>
#include <cstdlib>
#include <map>

#include <fmt/format.h>
#include <unistd.h>

#include "base/assert.h"
#include "base/log.h"
#include "base/nearest.h"
#include "target/debug_file.h"
#include "target/ifunc.h"
#include "target/module_names.h"
#include "target/pattern.h"
#include "target/proc_file.h"

namespace clew::target {

namespace {

std::string environment(const char* name) {
  const char* value = getenv(name);  // NOLINT(concurrency-mt-unsafe): nothing sets it.
  return value == nullptr ? "" : value;
}

// The two halves of "module!function"; without '!' the module is empty: any.
struct SplitPattern {
  std::string_view module;
  std::string_view function;
};

SplitPattern split(std::string_view pattern) {
  const size_t bang = pattern.find('!');
  // `operator!` and `operator!=` are names, not separators.
  const bool is_operator =
      bang != std::string_view::npos && bang >= 8 && pattern.substr(bang - 8, 8) == "operator";
  if (bang == std::string_view::npos || is_operator) return {.module = {}, .function = pattern};
  return {.module = pattern.substr(0, bang), .function = pattern.substr(bang + 1)};
}

// A pattern of a function, against the kind of name that it is written for.
class FunctionPattern {
 public:
  static Expected<FunctionPattern> compile(std::string_view text) {
    if (text.empty()) {
      return fail(ErrorCode::InvalidQuery, "the pattern names no function; `*` means all");
    }
    FunctionPattern result;
    result.full_ = text.find_first_of("( ") != std::string_view::npos;
    result.pattern_ = CLEW_TRY(Pattern::compile(text));
    return result;
  }

  [[nodiscard]] bool matches(const Function& function) const {
    return std::any_of(function.names.begin(), function.names.end(), [this](const auto& name) {
      return full_ ? pattern_.matches(name.demangled)
                   : pattern_.matches(name.plain) || pattern_.matches(name.linkage);
    });
  }

 private:
  Pattern pattern_;
  bool full_ = false;
};

bool is_same_place(const ProcessModule& a, const ProcessModule& b) {
  return a.inode == b.inode && a.device_major == b.device_major &&
         a.device_minor == b.device_minor && a.load_bias == b.load_bias && a.path == b.path;
}

struct ModuleState {
  std::unique_ptr<ModuleImage> image;
  std::optional<Error> image_error;
  std::unique_ptr<DebugInfo> debug;
  std::optional<Error> debug_error;
};

using StaticProbes = std::shared_ptr<const std::vector<StaticProbe>>;  // Of all who have the file.

StaticProbes read_probes(const std::string& path) {
  auto probes = read_static_probes(path);
  return std::make_shared<const std::vector<StaticProbe>>(probes ? std::move(*probes)
                                                                 : std::vector<StaticProbe>());
}

}  // namespace

// Held by every catalog that uses it, and holding what any of them has read.
class SharedFiles {
 public:
  // Which file a path leads to is said before it is opened; what is kept is known by what was
  // opened.
  [[nodiscard]] std::shared_ptr<ModuleState> find(const std::string& path,
                                                  const std::string& name) const {
    const auto identity = identity_at(path);
    if (!identity) return nullptr;
    const auto known = states_.find({*identity, name});
    return known == states_.end() ? nullptr : known->second;
  }
  void keep(const std::string& name, const std::shared_ptr<ModuleState>& state) {
    states_.emplace(Key{state->image->identity(), name}, state);
  }

  StaticProbes static_probes(const std::string& path) {
    const auto identity = identity_at(path);
    if (!identity) return read_probes(path);
    StaticProbes& probes = probes_[*identity];
    if (!probes) probes = read_probes(path);
    return probes;
  }

 private:
  using Key = std::pair<FileIdentity, std::string>;
  std::map<Key, std::shared_ptr<ModuleState>> states_;
  std::map<FileIdentity, StaticProbes> probes_;
};

std::shared_ptr<SharedFiles> make_shared_files() {
  return std::make_shared<SharedFiles>();
}

CatalogOptions default_catalog_options() {
  CatalogOptions options;
  const std::string cache_home = environment("XDG_CACHE_HOME");
  const std::string home = environment("HOME");
  if (cache_home.starts_with('/')) {
    options.read.cache_directory = cache_home + "/clew";
  } else if (home.starts_with('/')) {
    options.read.cache_directory = home + "/.cache/clew";
  }
  const std::string path = environment("PATH");
  if (!path.empty()) options.search_path = path;
  return options;
}

struct Catalog::Data {
  pid_t pid = 0;
  Process process;
  CatalogOptions options;
  std::vector<CatalogModule> modules;
  std::vector<std::shared_ptr<ModuleState>> states;  // One for each module; shared with others.
  std::map<size_t, StaticProbes> probes;             // By module.

  [[nodiscard]] std::string root() const {
    return pid == 0 ? "" : proc_path(memory_holder(pid), "root");
  }

  [[nodiscard]] std::string place() const {
    return pid == 0 ? modules[0].display_name : fmt::format("process {}", pid);
  }

  // The main program is shown under the name that it was started by, if that leads to its file.
  [[nodiscard]] std::string display_name(const ProcessModule& module) const {
    std::string name(file_name(module.path));
    if (!module.is_executable || pid == 0) return name;
    const LinkFinder links(root(), module);
    for (const std::string_view claimed : {called_name(process), std::string_view(process.comm)}) {
      if (claimed == name) return name;
      if (links.has_link(claimed, options.search_path)) return std::string(claimed);
    }
    return name;
  }

  void add(ProcessModule module) {
    std::string name = display_name(module);
    modules.push_back({.file = std::move(module), .display_name = std::move(name)});
    states.push_back(std::make_shared<ModuleState>());
  }

  // What came back may have been written over meanwhile: then it is another one.
  [[nodiscard]] bool is_at(size_t index, const ProcessModule& module) const {
    const CatalogModule& known = modules[index];
    if (!is_same_place(known.file, module)) return false;
    const ModuleImage* const image = states[index]->image.get();
    return known.is_loaded || image == nullptr ||
           identity_at(module.open_path) == image->identity();
  }

  Expected<const ModuleImage*> image(size_t index) {
    CLEW_ASSERT(index < modules.size());
    if (states[index]->image) return states[index]->image.get();
    if (!states[index]->image_error) states[index]->image_error = find_image(index);
    if (states[index]->image_error) return tl::unexpected(*states[index]->image_error);
    return states[index]->image.get();
  }

  std::optional<Error> find_image(size_t index) {
    const CatalogModule& module = modules[index];
    const bool is_shared = options.files != nullptr && module.file.problem.empty();
    if (is_shared) {
      if (auto known = options.files->find(module.file.open_path, module.display_name)) {
        states[index] = std::move(known);
        return std::nullopt;
      }
    }
    auto error = read_image(index);
    if (is_shared && !error) options.files->keep(module.display_name, states[index]);
    return error;
  }

  std::optional<Error> read_image(size_t index) {
    const CatalogModule& module = modules[index];
    if (!module.file.problem.empty()) {
      return Error{ErrorCode::Io,
                   fmt::format("cannot read {}: {}", module.file.path, module.file.problem)};
    }
    ReadOptions read = options.read;
    read.name = module.display_name;
    auto image = ModuleImage::read(module.file.open_path, read);
    if (!image) return image.error();
    states[index]->image = std::make_unique<ModuleImage>(std::move(*image));
    return std::nullopt;
  }

  std::span<const StaticProbe> static_probes(size_t index) {
    StaticProbes& known = probes[index];
    const ProcessModule& file = modules[index].file;
    if (!known && options.files) known = options.files->static_probes(file.open_path);
    if (!known) known = read_probes(file.open_path);
    return *known;
  }

  // By cheap names first: the soname needs the image, and links need a look at directories.
  bool module_matches(size_t index, const Pattern& pattern) {
    const CatalogModule& module = modules[index];
    if (pattern.matches(module.display_name)) return true;
    if (matches_file(pattern, module.file.path, {})) return true;
    if (!module.file.is_executable) return soname_matches(index, pattern);
    const bool claimed =
        pid != 0 && (pattern.matches(called_name(process)) || pattern.matches(process.comm));
    return claimed || LinkFinder(root(), module.file).has_link(pattern, options.search_path);
  }

  bool soname_matches(size_t index, const Pattern& pattern) {
    // A soname mostly is how the file name begins, or the other way round; only then is the image
    // worth reading for it.
    const std::string_view name = file_name(modules[index].file.path);
    const std::string_view stem = name.substr(0, name.find_first_of(".-"));
    const bool possible = states[index]->image != nullptr ||
                          (pattern.is_literal() && pattern.text().starts_with(stem));
    if (!possible) return false;
    auto read = image(index);
    return read && matches_file(pattern, modules[index].file.path, (*read)->soname());
  }

  Expected<std::vector<size_t>> find_modules(std::string_view text) {
    const Pattern pattern = CLEW_TRY(Pattern::compile(text.empty() ? "*" : text));
    std::vector<size_t> found;
    for (size_t i = 0; i < modules.size(); ++i) {
      const bool matches =
          modules[i].is_loaded && (pattern.matches_everything() || module_matches(i, pattern));
      if (matches) found.push_back(i);
    }
    return found;
  }

  // The plain names of all functions in the modules that the left half of the pattern means.
  std::vector<std::string_view> names_in_scope(std::string_view module_pattern) {
    std::vector<std::string_view> names;
    const auto scope = find_modules(module_pattern);
    if (!scope) return names;
    for (const size_t index : *scope) {
      auto read = image(index);
      if (!read) continue;
      for (const Function& function : (*read)->functions()) {
        for (const FunctionName& name : function.names)
          names.push_back(name.plain);
      }
    }
    return names;
  }

  std::string unreadable_modules() {
    std::string text;
    for (size_t i = 0; i < modules.size(); ++i) {
      if (modules[i].is_loaded && states[i]->image_error) {
        text += fmt::format("; {} could not be read", modules[i].display_name);
      }
    }
    return text;
  }
};

Catalog::Catalog(std::unique_ptr<Data> data) : data_(std::move(data)) {}
Catalog::Catalog(Catalog&&) noexcept = default;
Catalog& Catalog::operator=(Catalog&&) noexcept = default;
Catalog::~Catalog() = default;

Expected<Catalog> Catalog::of_process(pid_t pid, const CatalogOptions& options) {
  auto data = std::make_unique<Data>();
  data->pid = pid;
  CLEW_TRY(check_has_program(pid));
  data->process = CLEW_TRY(read_process(pid));
  data->options = options;
  for (ProcessModule& module : CLEW_TRY(read_modules(pid))) {
    data->add(std::move(module));
  }
  log_step(pid, "is {}, with {} modules", data->process.comm, data->modules.size());
  for (const CatalogModule& module : data->modules)
    log_detail(pid, "has {} with bias {:#x}", module.file.path, module.file.load_bias);
  return Catalog(std::move(data));
}

Expected<Catalog> Catalog::of_file(const std::string& path, const CatalogOptions& options) {
  auto data = std::make_unique<Data>();
  data->options = options;
  ProcessModule module;
  module.path = path;
  module.open_path = path;
  module.is_executable = true;
  data->add(std::move(module));
  const ModuleImage* image = CLEW_TRY(data->image(0));
  data->modules[0].file.build_id = image->build_id();
  return Catalog(std::move(data));
}

pid_t Catalog::pid() const {
  return data_->pid;
}
const Incarnation& Catalog::incarnation() const {
  return data_->process.incarnation;
}
std::span<const CatalogModule> Catalog::modules() const {
  return data_->modules;
}
Expected<const ModuleImage*> Catalog::image(size_t module) {
  return data_->image(module);
}

std::span<const StaticProbe> Catalog::static_probes(size_t module) {
  return data_->static_probes(module);
}

Expected<std::vector<size_t>> Catalog::refresh() {
  std::vector<size_t> added;
  if (data_->pid == 0) return added;
  Process process = CLEW_TRY(read_process(data_->pid));
  if (process.incarnation != data_->process.incarnation) {
    return fail(ErrorCode::NotFound,
                fmt::format("process {} is gone; another one has its pid now", data_->pid));
  }
  data_->process = std::move(process);
  std::vector<bool> seen(data_->modules.size(), false);
  for (ProcessModule& module : CLEW_TRY(read_modules(data_->pid))) {
    size_t index = 0;
    while (index < seen.size() && !data_->is_at(index, module)) {
      ++index;
    }
    if (index == seen.size()) {
      added.push_back(data_->modules.size());
      data_->add(std::move(module));
      continue;
    }
    seen[index] = true;
    if (!data_->modules[index].is_loaded) added.push_back(index);  // It came back.
    data_->modules[index].file.executable_ranges = std::move(module.executable_ranges);
  }
  for (size_t i = 0; i < seen.size(); ++i) {
    data_->modules[i].is_loaded = seen[i];
  }
  std::sort(added.begin(), added.end());
  return added;
}

void Catalog::note_gone(uint64_t load_bias) {
  for (CatalogModule& module : data_->modules) {
    if (module.file.load_bias == load_bias) module.is_loaded = false;
  }
}

Expected<std::vector<size_t>> Catalog::find_modules(std::string_view pattern) {
  return data_->find_modules(pattern);
}

Expected<std::vector<FunctionMatch>> Catalog::find(std::string_view text) {
  const SplitPattern halves = split(text);
  const FunctionPattern pattern = CLEW_TRY(FunctionPattern::compile(halves.function));
  std::vector<FunctionMatch> found;
  for (const size_t module : CLEW_TRY(data_->find_modules(halves.module))) {
    auto read = data_->image(module);
    if (!read) continue;
    const auto functions = (*read)->functions();
    for (size_t i = 0; i < functions.size(); ++i) {
      if (pattern.matches(functions[i])) found.push_back({.module = module, .function = i});
    }
  }
  return found;
}

std::string Catalog::nearest(std::string_view pattern) {
  const SplitPattern halves = split(pattern);
  const std::vector<std::string_view> names = data_->names_in_scope(halves.module);
  return nearest_name(halves.function, names);
}

Error Catalog::explain_no_match(std::string_view text) {
  const SplitPattern halves = split(text);
  auto scope = data_->find_modules(halves.module);
  if (!scope) return scope.error();
  if (scope->empty()) {
    std::vector<std::string_view> names;
    for (const CatalogModule& module : data_->modules) {
      names.push_back(module.display_name);
      names.push_back(file_name(module.file.path));
    }
    const std::string near = nearest_name(halves.module, names);
    return {ErrorCode::NotFound, fmt::format("no module '{}' in {}{}", halves.module,
                                             data_->place(), did_you_mean(near))};
  }
  const std::string where =
      scope->size() == 1 ? data_->modules[scope->front()].display_name : data_->place();
  const std::string near = nearest(text);
  const bool literal = halves.function.find_first_of("*?[") == std::string_view::npos;
  return {ErrorCode::NotFound,
          fmt::format("no function {}'{}' in {}{}{}", literal ? "" : "that matches ",
                      halves.function, where, did_you_mean(near), data_->unreadable_modules())};
}

Expected<Catalog::IfuncTargets> Catalog::ifunc_targets(FunctionMatch match) {
  const ModuleImage* image = CLEW_TRY(data_->image(match.module));
  CLEW_ASSERT(match.function < image->functions().size());
  const Function& ifunc = image->functions()[match.function];
  const ProcessModule& home = data_->modules[match.module].file;
  IfuncTargets targets;
  if (data_->pid != 0) {
    std::vector<const ProcessModule*> modules;
    for (const CatalogModule& module : data_->modules) {
      if (module.is_loaded && module.file.problem.empty()) modules.push_back(&module.file);
    }
    for (const uint64_t value : read_ifunc_values(data_->pid, *image, ifunc, home, modules)) {
      const Function* target = image->function_at(value - home.load_bias);
      if (target == nullptr || target == &ifunc) continue;
      const auto index = static_cast<size_t>(target - image->functions().data());
      targets.functions.push_back({.module = match.module, .function = index});
    }
  }
  if (!targets.functions.empty()) return targets;
  targets.is_guess = true;
  for (const size_t index : guess_ifunc_targets(*image, ifunc)) {
    targets.functions.push_back({.module = match.module, .function = index});
  }
  return targets;
}

std::optional<size_t> Catalog::module_at(uint64_t address) const {
  if (data_->pid == 0) {
    const ModuleState& state = *data_->states[0];
    const Section* section = state.image ? state.image->section_at(address) : nullptr;
    return section != nullptr && section->executable ? std::optional<size_t>(0) : std::nullopt;
  }
  for (size_t i = 0; i < data_->modules.size(); ++i) {
    const CatalogModule& module = data_->modules[i];
    if (module.is_loaded && module.file.contains(address)) return i;
  }
  return std::nullopt;
}

std::optional<SymbolisedAddress> Catalog::symbolise(uint64_t address) {
  const auto module = module_at(address);
  if (!module) return std::nullopt;
  const CatalogModule& found = data_->modules[*module];
  const uint64_t at = address - found.file.load_bias;
  SymbolisedAddress result{.module = *module, .function = {}, .offset = at, .text = {}};
  const auto image = data_->image(*module);
  const Function* function = image ? (*image)->function_covering(at) : nullptr;
  if (function == nullptr) {
    result.text = fmt::format("{}+{:#x}", found.display_name, at);
    return result;
  }
  result.function = static_cast<size_t>(function - (*image)->functions().data());
  result.offset = at - function->address;
  std::string part;
  if (!function->range().contains(at)) {
    result.is_cold = true;
    part = ".cold";
    for (const AddressRange& range : function->cold) {
      if (range.contains(at)) result.offset = at - range.address;
    }
  }
  // Its name is where it begins: one offset is enough.
  if (function->origin == FunctionOrigin::UnwindEntry) {
    result.offset = at;
    result.text = fmt::format("{}+{:#x}", found.display_name, at);
    return result;
  }
  result.text = fmt::format("{}!{}{}", found.display_name, function->name, part);
  if (result.offset != 0) result.text += fmt::format("+{:#x}", result.offset);
  return result;
}

std::optional<SourceLine> Catalog::source_line(uint64_t address) {
  const auto module = module_at(address);
  if (!module) return std::nullopt;
  auto debug = debug_info(*module);
  if (!debug) return std::nullopt;
  return (*debug)->line_of(address - data_->modules[*module].file.load_bias);
}

uint64_t Catalog::runtime_address(size_t module, uint64_t file_address) const {
  CLEW_ASSERT(module < data_->modules.size());
  return data_->modules[module].file.load_bias + file_address;
}

std::string Catalog::display(FunctionMatch match) {
  auto image = data_->image(match.module);
  CLEW_ASSERT(image && match.function < (*image)->functions().size());
  return fmt::format("{}!{}", data_->modules[match.module].display_name,
                     (*image)->functions()[match.function].name);
}

Expected<DebugInfo*> Catalog::debug_info(size_t module) {
  const ModuleImage* image = CLEW_TRY(data_->image(module));
  ModuleState& state = *data_->states[module];
  if (!state.debug && !state.debug_error) {
    auto opened = DebugInfo::open(*image, data_->options.read);
    if (opened) {
      state.debug = std::make_unique<DebugInfo>(std::move(*opened));
    } else {
      state.debug_error = opened.error();
    }
  }
  if (state.debug_error) return tl::unexpected(*state.debug_error);
  return state.debug.get();
}

}  // namespace clew::target
