// SPDX-License-Identifier: Apache-2.0
// The provider of the three probes that the tracer fires itself. Their ids are fixed: the catalogue
// asks for them first of all.
#include "kernel/providers/providers.h"

namespace clew::kernel {

namespace {

class DtraceProvider final : public Provider {
 public:
  [[nodiscard]] bool may_match(const Glob& provider) const override {
    return provider.matches("dtrace");
  }

  Expected<void> match(const ProbeGlobs& globs, std::vector<Probe>& found) override {
    for (const char* name : {"BEGIN", "END", "ERROR"}) {
      Probe probe;
      probe.provider = "dtrace";
      probe.name = name;
      probe.kind = AttachKind::Host;
      if (globs.matches(probe)) found.push_back(std::move(probe));
    }
    return {};
  }

  Expected<std::vector<ProbeArgument>> arguments(const Probe& /*probe*/) override {
    return std::vector<ProbeArgument>();
  }
};

}  // namespace

std::unique_ptr<Provider> make_dtrace_provider() {
  return std::make_unique<DtraceProvider>();
}

}  // namespace clew::kernel
