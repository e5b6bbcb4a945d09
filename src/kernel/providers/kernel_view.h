// SPDX-License-Identifier: Apache-2.0
// KernelView: what the providers of kernel probes share: types of vmlinux and of modules, tracefs,
// and the list of trace events. Each is opened when it is first asked for, and its error is kept.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "kernel/providers/provider.h"
#include "kernel/tracefs.h"
#include "target/btf_files.h"
#include "target/kernel_symbols.h"

namespace clew::kernel {

struct TraceEvent {
  std::string group;
  std::string name;
};

class KernelView {
 public:
  Expected<const target::Btf*> types() { return types_.kernel(); }
  Expected<const Tracefs*> tracefs();
  // All of available_events but system calls; of dynamic events too.
  Expected<std::span<const TraceEvent>> events();

  // A type of vmlinux, or else of a module whose name matches.
  struct Found {
    const target::Btf* types = nullptr;  // Null: there is none.
    std::string_view module;
    target::BtfId type = target::kBtfVoid;
  };
  Expected<Found> find(target::BtfKind kind, std::string_view name, const Glob& module);
  Expected<Found> find(target::BtfKind kind, std::string_view name);

  // vmlinux and the modules that match, those of them that can be read.
  struct Module {
    std::string name;
    const target::Btf* types = nullptr;
  };
  Expected<std::vector<Module>> modules(const Glob& name);

  // `tracepoint` as its BPF type says: the typedef btf_trace_<name>.
  Expected<Found> find_tracepoint(std::string_view name, const Glob& module);
  Expected<Found> find_tracepoint(std::string_view name);

 private:
  const std::vector<std::string>& module_names();

  target::BtfFiles types_;
  std::optional<std::vector<std::string>> module_names_;
  std::optional<Expected<Tracefs>> tracefs_;
  std::optional<Expected<std::vector<TraceEvent>>> events_;
};

using target::kKernelModule;

// Arguments as they are: arg i of type parameters[i].
std::vector<ProbeArgument> plain_arguments(const target::Btf& types,
                                           std::span<const target::BtfParameter> parameters);

}  // namespace clew::kernel
