// SPDX-License-Identifier: Apache-2.0
#include "kernel/providers/kernel_view.h"

#include <algorithm>
#include <utility>

#include "kernel/bpf_types.h"

namespace clew::kernel {

namespace {

// Lines "group:name"; system calls have their own provider.
std::vector<TraceEvent> parse_events(std::string_view text) {
  std::vector<TraceEvent> result;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const size_t colon = line.find(':');
    if (colon == std::string_view::npos || line.substr(0, colon) == "syscalls") continue;
    result.push_back({std::string(line.substr(0, colon)), std::string(line.substr(colon + 1))});
  }
  return result;
}

}  // namespace

Expected<const Tracefs*> KernelView::tracefs() {
  if (!tracefs_) tracefs_.emplace(Tracefs::open());
  if (!*tracefs_) return tl::unexpected(tracefs_->error());
  return &**tracefs_;
}

Expected<std::span<const TraceEvent>> KernelView::events() {
  if (!events_) {
    const auto read = [this]() -> Expected<std::vector<TraceEvent>> {
      const Tracefs* files = CLEW_TRY(tracefs());
      return parse_events(CLEW_TRY(files->read("available_events")));
    };
    events_.emplace(read());
  }
  if (!*events_) return tl::unexpected(events_->error());
  return std::span<const TraceEvent>(**events_);
}

const std::vector<std::string>& KernelView::module_names() {
  if (!module_names_) module_names_ = target::btf_modules();
  return *module_names_;
}

Expected<std::vector<KernelView::Module>> KernelView::modules(const Glob& name) {
  std::vector<Module> result;
  const target::Btf* kernel = CLEW_TRY(types());
  if (name.matches(kKernelModule)) {
    result.push_back({.name = std::string(kKernelModule), .types = kernel});
  }
  for (const std::string& module : module_names()) {
    if (!name.matches(module)) continue;
    // A module may go, or be built for other types: then the others are still there.
    const auto opened = types_.module(module);
    if (opened) result.push_back({.name = module, .types = *opened});
  }
  return result;
}

Expected<KernelView::Found> KernelView::find(target::BtfKind kind, std::string_view name,
                                             const Glob& module) {
  const target::Btf* kernel = CLEW_TRY(types());
  if (module.matches(kKernelModule)) {
    const target::BtfId type = kernel->find(kind, name);
    if (type != target::kBtfVoid) return Found{kernel, kKernelModule, type};
  }
  for (const std::string& each : module_names()) {
    if (!module.matches(each)) continue;
    const auto opened = types_.module(each);
    const target::BtfId type = opened ? (*opened)->find(kind, name) : target::kBtfVoid;
    if (type != target::kBtfVoid) return Found{*opened, each, type};
  }
  return Found{};
}

Expected<KernelView::Found> KernelView::find(target::BtfKind kind, std::string_view name) {
  return find(kind, name, Glob(""));
}

Expected<KernelView::Found> KernelView::find_tracepoint(std::string_view name, const Glob& module) {
  return find(target::BtfKind::Typedef, std::string(kTracepointPrefix) + std::string(name), module);
}

Expected<KernelView::Found> KernelView::find_tracepoint(std::string_view name) {
  return find_tracepoint(name, Glob(""));
}

std::vector<ProbeArgument> plain_arguments(const target::Btf& types,
                                           std::span<const target::BtfParameter> parameters) {
  std::vector<ProbeArgument> result;
  for (const target::BtfParameter& parameter : parameters) {
    const std::string text = target::c_type_text(types, parameter.type);
    result.push_back({.native_type = text,
                      .translated_type = text,
                      .mapping = static_cast<uint8_t>(result.size())});
  }
  return result;
}

}  // namespace clew::kernel
