// SPDX-License-Identifier: Apache-2.0
// The providers of the kernel's tracepoints, both attached as raw tracepoints and typed by BTF:
// rawtp:<module>::<name> has all of them; sdt:<module>:<group>:<name> those that are trace events,
// and takes a group in the place of the module too (sdt:sched::sched_switch).
#include <algorithm>

#include "kernel/bpf_types.h"
#include "kernel/providers/providers.h"

namespace clew::kernel {

namespace {

// A tracepoint's name is a name of C: others need no search.
bool may_be_c_name(const Glob& name) {
  const std::string& literal = name.literal();
  return std::all_of(literal.begin(), literal.end(), [](char byte) {
    return byte == '_' || (byte >= '0' && byte <= '9') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= 'a' && byte <= 'z');
  });
}

Probe make_probe(std::string_view provider, std::string_view module, std::string_view group,
                 std::string_view name) {
  Probe probe;
  probe.provider = provider;
  probe.module = module;
  probe.function = group;
  probe.name = name;
  probe.kind = AttachKind::RawTracepoint;
  probe.symbol = name;
  return probe;
}

Expected<std::vector<ProbeArgument>> tracepoint_arguments(KernelView& kernel, const Probe& probe) {
  const auto found = CLEW_TRY(kernel.find_tracepoint(probe.symbol));
  if (found.types == nullptr) return std::vector<ProbeArgument>();
  return plain_arguments(*found.types, tracepoint_parameters(*found.types, found.type));
}

class RawTracepointProvider final : public Provider {
 public:
  explicit RawTracepointProvider(KernelView& kernel) : kernel_(kernel) {}

  [[nodiscard]] bool may_match(const Glob& provider) const override {
    return provider.matches("rawtp");
  }

  Expected<void> match(const ProbeGlobs& globs, std::vector<Probe>& found) override {
    if (!globs.function.matches("") || !may_be_c_name(globs.name)) return {};
    if (globs.name.is_literal()) {
      const auto type = CLEW_TRY(kernel_.find_tracepoint(globs.name.literal(), globs.module));
      if (type.types != nullptr) {
        found.push_back(make_probe("rawtp", type.module, "", globs.name.literal()));
      }
      return {};
    }
    for (const auto& module : CLEW_TRY(kernel_.modules(globs.module))) {
      add_all(module, globs, found);
    }
    return {};
  }

  Expected<std::vector<ProbeArgument>> arguments(const Probe& probe) override {
    return tracepoint_arguments(kernel_, probe);
  }

 private:
  static void add_all(const KernelView::Module& module, const ProbeGlobs& globs,
                      std::vector<Probe>& found) {
    for (target::BtfId id = module.types->first_id(); id < module.types->end_id(); ++id) {
      const target::BtfType type = module.types->at(id);
      if (type.kind != target::BtfKind::Typedef || !type.name.starts_with(kTracepointPrefix)) {
        continue;
      }
      const std::string_view name = type.name.substr(kTracepointPrefix.size());
      if (globs.name.matches(name)) found.push_back(make_probe("rawtp", module.name, "", name));
    }
  }

  KernelView& kernel_;
};

class SdtProvider final : public Provider {
 public:
  explicit SdtProvider(KernelView& kernel) : kernel_(kernel) {}

  [[nodiscard]] bool may_match(const Glob& provider) const override {
    return provider.matches("sdt");
  }

  Expected<void> match(const ProbeGlobs& globs, std::vector<Probe>& found) override {
    if (!may_be_c_name(globs.name)) return {};
    for (const TraceEvent& event : CLEW_TRY(kernel_.events())) {
      if (!globs.name.matches(event.name)) continue;
      // `sdt:sched::` means the group.
      const bool is_group = globs.module.is_literal() && globs.module.literal() == event.group &&
                            globs.function.matches("");
      if (!is_group && !globs.function.matches(event.group)) continue;
      const auto type = CLEW_TRY(kernel_.find_tracepoint(event.name));
      // Events that no tracepoint is behind (of ftrace itself, of kprobes) are left out.
      if (type.types == nullptr) continue;
      if (!is_group && !globs.module.matches(type.module)) continue;
      found.push_back(make_probe("sdt", type.module, event.group, event.name));
    }
    return {};
  }

  Expected<std::vector<ProbeArgument>> arguments(const Probe& probe) override {
    return tracepoint_arguments(kernel_, probe);
  }

 private:
  KernelView& kernel_;
};

}  // namespace

std::unique_ptr<Provider> make_rawtp_provider(KernelView& kernel) {
  return std::make_unique<RawTracepointProvider>(kernel);
}

std::unique_ptr<Provider> make_sdt_provider(KernelView& kernel) {
  return std::make_unique<SdtProvider>(kernel);
}

}  // namespace clew::kernel
