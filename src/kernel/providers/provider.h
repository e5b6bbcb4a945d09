// SPDX-License-Identifier: Apache-2.0
// Provider: what the catalogue asks each provider for.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "base/error.h"
#include "kernel/glob.h"
#include "kernel/providers/catalogue.h"

namespace clew::kernel {

using ProbeArgument = Catalogue::Argument;

class Provider {
 public:
  virtual ~Provider() = default;

  // Whether a probe of this provider may have a name that the pattern of providers matches. No
  // reading: the catalogue asks everyone.
  [[nodiscard]] virtual bool may_match(const Glob& provider) const = 0;
  // Adds the probes that match all four patterns; their ids are the catalogue's to give. An error
  // says why the provider is of no use here.
  virtual Expected<void> match(const ProbeGlobs& globs, std::vector<Probe>& found) = 0;
  // The same, of what one process has now that it may not have had before: of use for patterns
  // that look into processes.
  virtual Expected<void> match_process(const ProbeGlobs& /*globs*/, pid_t /*pid*/,
                                       std::vector<Probe>& /*found*/) {
    return {};
  }
  // The same of one file, of which the process need not be there any more.
  virtual Expected<void> match_file(const ProbeGlobs& /*globs*/, const MappedFile& /*file*/,
                                    std::vector<Probe>& /*found*/) {
    return {};
  }
  // A process that patterns of pid providers (`pid*`) stand for.
  virtual void add_target(pid_t /*pid*/) {}
  // Of a probe that match() gave.
  virtual Expected<std::vector<ProbeArgument>> arguments(const Probe& probe) = 0;
  virtual std::optional<Catalogue::Stability> stability(const Probe& /*probe*/) {
    return std::nullopt;
  }
};

}  // namespace clew::kernel
