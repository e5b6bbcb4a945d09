// SPDX-License-Identifier: Apache-2.0
// Patterns of probe descriptions: `*` any run, `?` any byte, `[a-z]` and `[!a-z]` one of a set, `\`
// takes the meaning from what follows. An empty pattern matches everything. A `[` without its `]`
// is an ordinary byte. Unlike target::Pattern, it has an escape and never fails.
#pragma once

#include <string>
#include <string_view>

#include "kernel/probe.h"

namespace clew::kernel {

class Glob {
 public:
  explicit Glob(std::string_view text);

  [[nodiscard]] bool matches(std::string_view name) const;
  [[nodiscard]] bool is_any() const { return text_.empty() || text_ == "*"; }
  // Without wildcards: `literal()` is the only name that it matches.
  [[nodiscard]] bool is_literal() const { return is_literal_; }
  [[nodiscard]] const std::string& literal() const { return literal_; }
  [[nodiscard]] const std::string& text() const { return text_; }

 private:
  std::string text_;
  std::string literal_;
  bool is_literal_ = false;
};

// The four fields of a description, each a glob, empty = any.
struct ProbePattern {
  std::string provider = {};
  std::string module = {};
  std::string function = {};
  std::string name = {};
};

// The same, ready to match.
struct ProbeGlobs {
  explicit ProbeGlobs(const ProbePattern& pattern)
      : provider(pattern.provider),
        module(pattern.module),
        function(pattern.function),
        name(pattern.name) {}

  Glob provider;
  Glob module;
  Glob function;
  Glob name;

  [[nodiscard]] bool matches(const Probe& probe) const {
    return provider.matches(probe.provider) && name.matches(probe.name) &&
           function.matches(probe.function) && module.matches(probe.module);
  }
};

}  // namespace clew::kernel
