// SPDX-License-Identifier: Apache-2.0
// fbt: entry and return of every kernel function that BTF describes. Whether the kernel lets one be
// traced shows when it is attached: BTF does not say.
#include "kernel/providers/providers.h"

namespace clew::kernel {

namespace {

class FunctionProvider final : public Provider {
 public:
  explicit FunctionProvider(KernelView& kernel) : kernel_(kernel) {}

  [[nodiscard]] bool may_match(const Glob& provider) const override {
    return provider.matches("fbt");
  }

  Expected<void> match(const ProbeGlobs& globs, std::vector<Probe>& found) override {
    if (!globs.name.matches("entry") && !globs.name.matches("return")) return {};
    if (globs.function.is_literal()) {
      const auto function =
          CLEW_TRY(kernel_.find(target::BtfKind::Function, globs.function.literal(), globs.module));
      if (function.types == nullptr) return {};
      add(function.module, globs.function.literal(), globs, found);
      return {};
    }
    for (const auto& module : CLEW_TRY(kernel_.modules(globs.module))) {
      add_all(module, globs, found);
    }
    return {};
  }

  Expected<std::vector<ProbeArgument>> arguments(const Probe& probe) override {
    const auto function =
        CLEW_TRY(kernel_.find(target::BtfKind::Function, probe.symbol, Glob(probe.module)));
    if (function.types == nullptr) return std::vector<ProbeArgument>();
    const target::Btf& btf = *function.types;
    const target::BtfId prototype = btf.at(function.type).target;
    if (probe.kind == AttachKind::FunctionEntry) {
      return plain_arguments(btf, btf.parameters(prototype));
    }
    std::vector<ProbeArgument> result = {{.native_type = "int", .translated_type = "int"}};
    const std::string type = target::c_type_text(btf, btf.at(prototype).target);
    if (type != "void") {
      result.push_back({.native_type = type, .translated_type = type, .mapping = 1});
    }
    return result;
  }

 private:
  static void add(std::string_view module, std::string_view function, const ProbeGlobs& globs,
                  std::vector<Probe>& found) {
    for (const bool is_entry : {true, false}) {
      Probe probe;
      probe.name = is_entry ? "entry" : "return";
      if (!globs.name.matches(probe.name)) continue;
      probe.provider = "fbt";
      probe.module = module;
      probe.function = function;
      probe.kind = is_entry ? AttachKind::FunctionEntry : AttachKind::FunctionReturn;
      probe.symbol = function;
      found.push_back(std::move(probe));
    }
  }

  static void add_all(const KernelView::Module& module, const ProbeGlobs& globs,
                      std::vector<Probe>& found) {
    for (target::BtfId id = module.types->first_id(); id < module.types->end_id(); ++id) {
      const target::BtfType type = module.types->at(id);
      if (type.kind != target::BtfKind::Function || !globs.function.matches(type.name)) continue;
      // A name that several static functions have can be attached only by that name: once.
      if (module.types->find(target::BtfKind::Function, type.name) != id) continue;
      add(module.name, type.name, globs, found);
    }
  }

  KernelView& kernel_;
};

}  // namespace

std::unique_ptr<Provider> make_function_provider(KernelView& kernel) {
  return std::make_unique<FunctionProvider>(kernel);
}

}  // namespace clew::kernel
