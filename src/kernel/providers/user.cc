// SPDX-License-Identifier: Apache-2.0
// The providers of processes. pid<N>: functions and instructions of process N. plockstat<N>: its
// locks. <name><N>: its USDT probes of the provider <name>. A glob that no number ends (python*)
// looks for USDT probes in every process; pid and plockstat have to be named with theirs, but for
// p*d123 and, of the processes that are traced, pid*.
#include <algorithm>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <map>
#include <optional>
#include <set>
#include <tuple>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error_text.h"
#include "base/file_name.h"
#include "kernel/providers/lock_functions.h"
#include "kernel/providers/process_functions.h"
#include "kernel/providers/providers.h"
#include "kernel/providers/static_probes.h"
#include "target/process.h"

namespace clew::kernel {

namespace {

// "python123" -> ("python", 123). A provider's own name may end in a digit: `digits` says how many
// of them are the process's.
struct ProviderName {
  std::string_view name;
  pid_t pid = 0;
};

std::optional<ProviderName> split_name(std::string_view provider, size_t digits) {
  if (digits == 0) return std::nullopt;
  const std::string_view number = provider.substr(provider.size() - digits);
  ProviderName result{.name = provider.substr(0, provider.size() - digits)};
  const auto [end, error] =
      std::from_chars(number.data(), number.data() + number.size(), result.pid);
  const bool is_pid = error == std::errc() && end == number.data() + number.size() &&
                      number[0] != '0' && result.pid > 0;
  if (!is_pid || result.name.empty()) return std::nullopt;
  return result;
}

size_t trailing_digits(std::string_view text) {
  const auto is_digit = [](char byte) { return byte >= '0' && byte <= '9'; };
  const auto end = std::find_if_not(text.rbegin(), text.rend(), is_digit);
  return static_cast<size_t>(end - text.rbegin());
}

bool matches_file(const Glob& glob, const target::ProcessModule& module) {
  return matches_file_name(glob, file_name_of(module.path)) ||
         (module.is_executable && glob.matches("a.out"));
}

// Nothing when the file cannot be reached by its name: in our root, where it stays when the process
// ends, else in that of the process.
std::optional<target::ProcessModule> module_of(const MappedFile& file) {
  for (const std::string& path : {file.path, fmt::format("/proc/{}/root{}", file.pid, file.path)}) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0 || status.st_ino != file.inode) continue;
    target::ProcessModule module;
    module.path = file.path;
    module.open_path = path;
    module.device_major = file.device_major;
    module.device_minor = file.device_minor;
    module.inode = file.inode;
    return module;
  }
  return std::nullopt;
}

// Whether the pattern takes the provider with whatever process's number.
bool means_any_process(const Glob& glob, std::string_view provider) {
  return !glob.is_literal() && glob.text().ends_with('*') && !glob.text().ends_with("\\*") &&
         glob.matches(provider);
}

class UserProvider final : public Provider {
 public:
  [[nodiscard]] bool may_match(const Glob& provider) const override {
    if (provider.is_literal()) return trailing_digits(provider.literal()) != 0;
    return !provider.is_any();
  }

  Expected<void> match(const ProbeGlobs& globs, std::vector<Probe>& found) override {
    if (globs.provider.is_literal()) return match_literal(globs, std::nullopt, found);
    for (const pid_t pid : processes_of(globs.provider))
      match_pattern(globs, pid, found);
    const auto processes = CLEW_TRY(target::list_processes());
    for (const target::Process& process : processes) {
      if (process.pid() != getpid()) match_static(globs, process.pid(), found);
    }
    return {};
  }

  Expected<void> match_process(const ProbeGlobs& globs, pid_t pid,
                               std::vector<Probe>& found) override {
    if (globs.provider.is_literal()) return match_literal(globs, pid, found);
    if (processes_of(globs.provider).contains(pid)) match_pattern(globs, pid, found);
    if (pid != getpid()) match_static(globs, pid, found);
    return {};
  }

  Expected<void> match_file(const ProbeGlobs& globs, const MappedFile& file,
                            std::vector<Probe>& found) override {
    if (globs.provider.is_literal() || file.pid == getpid()) return {};
    const auto module = module_of(file);
    if (module && matches_file(globs.module, *module)) {
      match_notes(globs, file.pid, *module, found);
    }
    return {};
  }

  void add_target(pid_t pid) override { targets_.insert(pid); }

  Expected<std::vector<ProbeArgument>> arguments(const Probe& probe) override {
    std::vector<ProbeArgument> result;
    const auto types = types_.find(key_of(probe));
    for (const auto& argument : target::parse_static_arguments(probe.usdt_arguments)) {
      const std::string type = type_of(argument);
      const bool is_typed = types != types_.end() && result.size() < types->second.size();
      const auto [native, translated] =
          is_typed ? types->second[result.size()] : target::StaticProbe::Typed{type, type};
      result.push_back({.native_type = native,
                        .translated_type = translated,
                        .mapping = static_cast<uint8_t>(result.size()),
                        .is_userland = true});
    }
    return result;
  }

  std::optional<Catalogue::Stability> stability(const Probe& probe) override {
    const auto told = stability_.find(key_of(probe));
    if (told == stability_.end()) return std::nullopt;
    return Catalogue::Stability{told->second.probes, told->second.arguments};
  }

 private:
  // A probe of a file: by file, place and name.
  using Key = std::tuple<std::string, uint64_t, std::string>;
  static Key key_of(const Probe& probe) { return {probe.path, probe.offset_bytes, probe.name}; }

  static std::string type_of(const target::StaticArgument& argument) {
    if (argument.is_float) return argument.size_bytes == 4 ? "float" : "double";
    const std::string bits = std::to_string(8 * argument.size_bytes);
    return (argument.is_signed ? "int" : "uint") + bits + "_t";
  }

  // `only`: in this process alone.
  Expected<void> match_literal(const ProbeGlobs& globs, std::optional<pid_t> only,
                               std::vector<Probe>& found) {
    const std::string& provider = globs.provider.literal();
    const size_t digits = trailing_digits(provider);
    const auto whole = split_name(provider, digits);
    if (whole && (whole->name == "pid" || whole->name == "plockstat")) {
      if (only && *only != whole->pid) return {};
      return whole->name == "pid" ? match_pid(globs, whole->pid, found)
                                  : match_locks(globs, whole->pid, found);
    }
    for (size_t count = digits; count > 0; --count) {
      const auto split = split_name(provider, count);
      if (split && (!only || *only == split->pid)) match_static(globs, split->pid, found);
    }
    return {};
  }

  // Those whose pid provider a pattern may mean: the one that its last digits name, and the
  // targets of one that says `pid`.
  [[nodiscard]] std::set<pid_t> processes_of(const Glob& provider) const {
    std::set<pid_t> pids;
    if (provider.text().starts_with("pid")) pids = targets_;
    const auto named = split_name(provider.text(), trailing_digits(provider.text()));
    if (named) pids.insert(named->pid);
    return pids;
  }

  // Who asks by a pattern is content with what can be used.
  void match_pattern(const ProbeGlobs& globs, pid_t pid, std::vector<Probe>& found) {
    const std::string provider = fmt::format("pid{}", pid);
    if (!globs.provider.matches(provider)) return;
    const auto catalog = catalog_of(pid);
    if (catalog) (void)match_functions(**catalog, globs, provider, found);
  }

  Expected<target::Catalog*> catalog_of(pid_t pid) {
    const auto known = catalogs_.find(pid);
    if (known != catalogs_.end()) {
      // A process that exec'd, or another one with its pid, is read anew.
      const auto refreshed = known->second.refresh();
      if (refreshed) return &known->second;
      catalogs_.erase(known);
    }
    if (kill(pid, 0) != 0 && errno == ESRCH) {
      return fail(ErrorCode::NotFound,
                  fmt::format("failed to grab pid {}: {}", pid, error_text(ESRCH)));
    }
    CLEW_TRY(target::check_is_64_bit(pid));
    auto catalog = CLEW_TRY(target::Catalog::of_process(pid, target::default_catalog_options()));
    return &catalogs_.insert_or_assign(pid, std::move(catalog)).first->second;
  }

  Expected<void> match_pid(const ProbeGlobs& globs, pid_t pid, std::vector<Probe>& found) {
    target::Catalog* catalog = CLEW_TRY(catalog_of(pid));
    return match_functions(*catalog, globs, globs.provider.literal(), found);
  }

  Expected<void> match_locks(const ProbeGlobs& globs, pid_t pid, std::vector<Probe>& found) {
    target::Catalog* catalog = CLEW_TRY(catalog_of(pid));
    return match_lock_functions(*catalog, globs, globs.provider.literal(), found);
  }

  // A process that is gone, or that may not be read, has none.
  void match_static(const ProbeGlobs& globs, pid_t pid, std::vector<Probe>& found) {
    const auto modules = target::read_modules(pid);
    if (!modules) return;
    for (const target::ProcessModule& module : *modules) {
      if (matches_file(globs.module, module)) match_notes(globs, pid, module, found);
    }
  }

  void match_notes(const ProbeGlobs& globs, pid_t pid, const target::ProcessModule& module,
                   std::vector<Probe>& found) {
    const auto& notes = files_.of(module);
    for (size_t i = 0; i < notes.size(); ++i) {
      const target::StaticProbe& note = notes[i];
      const std::string provider = note.provider + std::to_string(pid);
      const std::string name = target::d_name_of(note.name);
      if (!globs.provider.matches(provider)) continue;
      if (!globs.name.matches(name) && !globs.name.matches(note.name)) continue;
      const std::string& function = files_.function_of(module, i);
      if (!globs.function.matches(function)) continue;
      Probe probe;
      probe.provider = provider;
      probe.module = file_name_of(module.path);
      probe.function = function;
      probe.name = name;
      probe.kind = AttachKind::Usdt;
      probe.path = module.open_path;
      probe.offset_bytes = note.file_offset;
      probe.semaphore_offset_bytes = note.semaphore_offset;
      probe.usdt_arguments = note.arguments;
      if (!note.types.empty()) types_[key_of(probe)] = note.types;
      if (!note.stability.probes.empty()) stability_[key_of(probe)] = note.stability;
      probe.pid = pid;
      probe.is_everywhere = means_any_process(globs.provider, note.provider);
      found.push_back(std::move(probe));
    }
  }

  std::set<pid_t> targets_;
  std::map<pid_t, target::Catalog> catalogs_;
  StaticProbeFiles files_;
  // Of the probes that were met and whose file has them: of args[], and of the provider.
  std::map<Key, std::vector<target::StaticProbe::Typed>> types_;
  std::map<Key, target::StaticProbe::Stability> stability_;
};

}  // namespace

std::unique_ptr<Provider> make_user_provider() {
  return std::make_unique<UserProvider>();
}

}  // namespace clew::kernel
