// SPDX-License-Identifier: Apache-2.0
// The provider of system calls: entry and return of each that the kernel has. Probes are called as
// the kernel calls its functions (newfstat, sendfile64), as in DTrace for Linux; a description that
// spells out the program's name (fstat, sendfile) finds them too.
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "kernel/providers/providers.h"
#include "kernel/providers/syscall_table.h"

namespace clew::kernel {

namespace {

constexpr std::array<std::string_view, 2> kNames = {"entry", "return"};

// "field:const char * filename;" -> "char *", without what only the kernel's own code needs.
std::string field_type(std::string_view field) {
  const size_t name = field.find_last_of(" *");
  std::string_view rest = field.substr(0, name == std::string_view::npos ? 0 : name + 1);
  std::string result;
  while (!rest.empty()) {
    const size_t end = std::min(rest.find(' '), rest.size());
    std::string_view word = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (word.ends_with("*const")) word.remove_suffix(5);
    if (word.empty() || word == "const" || word == "volatile" || word == "__user") continue;
    const bool is_star = word[0] == '*' && result.ends_with('*');
    if (!result.empty() && !is_star) result += ' ';
    result += word;
  }
  return result;
}

// The fields of a format file behind the number of the call, one line each.
std::vector<std::string> argument_types(std::string_view format) {
  std::vector<std::string> result;
  bool is_argument = false;
  while (!format.empty()) {
    const size_t end = std::min(format.find('\n'), format.size());
    std::string_view line = format.substr(0, end);
    format.remove_prefix(std::min(end + 1, format.size()));
    const size_t field = line.find("field:");
    if (field == std::string_view::npos) continue;
    line = line.substr(field + 6);
    line = line.substr(0, line.find(';'));
    if (is_argument) result.push_back(field_type(line));
    if (line.ends_with("__syscall_nr")) is_argument = true;
  }
  return result;
}

// The kernel's own code in a process with uprobes makes these; they have to be named.
bool is_of_probes(const SystemCall& call) {
  return call.name == "uretprobe" || call.name == "uprobe";
}

class SyscallProvider final : public Provider {
 public:
  explicit SyscallProvider(KernelView& kernel) : kernel_(kernel) {}

  [[nodiscard]] bool may_match(const Glob& provider) const override {
    return provider.matches("syscall");
  }

  Expected<void> match(const ProbeGlobs& globs, std::vector<Probe>& found) override {
    if (!globs.name.matches("entry") && !globs.name.matches("return")) return {};
    if (!globs.module.matches(kKernelModule)) return {};
    for (const SystemCall& call : system_calls()) {
      if (!globs.function.is_literal() && is_of_probes(call)) continue;
      const bool is_alias =
          globs.function.is_literal() && call.abi_name == globs.function.literal();
      if (!is_alias && !globs.function.matches(call.name)) continue;
      if (is_there(call)) add(call, globs.name, found);
    }
    return {};
  }

  Expected<std::vector<ProbeArgument>> arguments(const Probe& probe) override {
    if (probe.kind == AttachKind::SyscallReturn) {
      return std::vector<ProbeArgument>{{.native_type = "long", .translated_type = "long"},
                                        {.native_type = "long", .translated_type = "long"}};
    }
    const Tracefs* files = CLEW_TRY(kernel_.tracefs());
    const std::string path = fmt::format("events/syscalls/sys_enter_{}/format", probe.function);
    std::vector<ProbeArgument> result;
    for (const std::string& type : argument_types(CLEW_TRY(files->read(path)))) {
      result.push_back({.native_type = type,
                        .translated_type = type,
                        .mapping = static_cast<uint8_t>(result.size()),
                        .is_userland = type.ends_with('*')});
    }
    return result;
  }

 private:
  // Without tracefs all of the table count as there: those that are not will not fire.
  bool is_there(const SystemCall& call) {
    const auto files = kernel_.tracefs();
    if (!files || !(*files)->exists("events/syscalls")) return true;
    return (*files)->exists(fmt::format("events/syscalls/sys_enter_{}", call.name));
  }

  static void add(const SystemCall& call, const Glob& name, std::vector<Probe>& found) {
    for (const std::string_view each : kNames) {
      if (!name.matches(each)) continue;
      Probe probe;
      probe.provider = "syscall";
      probe.module = kKernelModule;
      probe.function = call.name;
      probe.name = each;
      probe.kind = each == "entry" ? AttachKind::SyscallEntry : AttachKind::SyscallReturn;
      probe.number = call.number;
      found.push_back(std::move(probe));
    }
  }

  KernelView& kernel_;
};

}  // namespace

std::unique_ptr<Provider> make_syscall_provider(KernelView& kernel) {
  return std::make_unique<SyscallProvider>(kernel);
}

}  // namespace clew::kernel
