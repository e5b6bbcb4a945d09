// SPDX-License-Identifier: Apache-2.0
// How long a program may rely on a name: "Stability" in the DTrace guide. Each name that D knows
// has three attributes; what uses several is as stable as the least stable of them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "query/d/functions.h"

namespace clew::query::d {

// Both from the least stable on.
enum class StabilityLevel : uint8_t {
  Internal,
  Private,
  Obsolete,
  External,
  Unstable,
  Evolving,
  Stable,
  Standard,
};
enum class DependencyClass : uint8_t { Unknown, Cpu, Platform, Group, Isa, Common };

struct Stability {
  StabilityLevel names = StabilityLevel::Stable;
  StabilityLevel data = StabilityLevel::Stable;
  DependencyClass dependency = DependencyClass::Common;
  bool operator==(const Stability&) const = default;
};

// Each attribute by itself.
[[nodiscard]] Stability least_stable(const Stability& a, const Stability& b);
// In any attribute.
[[nodiscard]] bool is_less_stable(const Stability& one, const Stability& minimum);

std::string_view name_of(StabilityLevel level);
std::string_view name_of(DependencyClass dependency);
// "Stable/Private/Common"
std::string text_of(const Stability& stability);
std::optional<Stability> parse_stability(std::string_view text);

struct ProviderStability {
  Stability probes;
  Stability arguments;
  bool operator==(const ProviderStability&) const = default;
};
// As the guide gives it in the provider's chapter. "pid123" is provider pid.
ProviderStability stability_of_provider(std::string_view provider);

// #pragma D attributes WORDS provider NAME PART, in a provider's file.
struct ProviderPragma {
  Stability stability;
  std::string provider;
  std::string part;  // "provider", "module", "function", "name": of its probes; "args"
};
// What these say of a provider: its probes are as stable as the least stable part of their names,
// and a part of which nothing is said is as a symbol. Nothing when they do not name it.
std::optional<ProviderStability> stability_by(std::span<const ProviderPragma> pragmas,
                                              std::string_view provider);

[[nodiscard]] Stability stability_of(Builtin builtin);
[[nodiscard]] Stability stability_of(Subroutine subroutine);
// A variable, function or type of the kernel.
constexpr Stability kStabilityOfSymbols = {StabilityLevel::Private, StabilityLevel::Private,
                                           DependencyClass::Unknown};

// #pragma D attributes WORDS NAME; or binding, whose version means nothing here.
struct AttributesPragma {
  Stability stability;
  std::string name;
  std::string pragma;  // "attributes", "binding"
  uint32_t line = 0;   // 0: the library's.
};

}  // namespace clew::query::d
