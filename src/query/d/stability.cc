// SPDX-License-Identifier: Apache-2.0
#include "query/d/stability.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace clew::query::d {
namespace {

constexpr std::array<std::string_view, 8> kLevels = {
    "Internal", "Private", "Obsolete", "External", "Unstable", "Evolving", "Stable", "Standard"};
constexpr std::array<std::string_view, 6> kClasses = {"Unknown", "CPU", "Platform",
                                                      "Group",   "ISA", "Common"};

constexpr Stability kStable = {};
constexpr Stability kEvolving = {StabilityLevel::Evolving, StabilityLevel::Evolving,
                                 DependencyClass::Common};
constexpr Stability kEvolvingIsa = {StabilityLevel::Evolving, StabilityLevel::Evolving,
                                    DependencyClass::Isa};
constexpr Stability kPrivate = kStabilityOfSymbols;
constexpr Stability kPrivateIsa = {StabilityLevel::Private, StabilityLevel::Private,
                                   DependencyClass::Isa};

struct Provider {
  std::string_view name;
  ProviderStability stability;
};
constexpr std::array<Provider, 15> kProviders = {{
    {"dtrace", {kStable, kStable}},
    {"profile", {kEvolving, kEvolving}},
    {"syscall", {kPrivate, kPrivateIsa}},
    {"fbt", {kPrivate, kPrivateIsa}},
    {"rawfbt", {kPrivate, kPrivateIsa}},
    {"sdt", {kPrivate, kPrivateIsa}},
    {"rawtp", {kPrivate, kPrivateIsa}},
    {"proc", {kPrivate, kEvolvingIsa}},
    {"sched", {kPrivate, kEvolvingIsa}},
    {"io", {kPrivate, kEvolvingIsa}},
    {"ip", {kPrivate, kEvolvingIsa}},
    {"tcp", {kPrivate, kEvolvingIsa}},
    {"udp", {kPrivate, kEvolvingIsa}},
    {"lockstat", {kPrivate, kEvolvingIsa}},
    {"pid", {kPrivate, kPrivate}},
}};

template <typename Kind, size_t kCount>
std::optional<Kind> find_word(const std::array<std::string_view, kCount>& names,
                              std::string_view name) {
  const auto found = std::find(names.begin(), names.end(), name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Kind>(found - names.begin());
}

}  // namespace

Stability least_stable(const Stability& a, const Stability& b) {
  return {std::min(a.names, b.names), std::min(a.data, b.data),
          std::min(a.dependency, b.dependency)};
}

bool is_less_stable(const Stability& one, const Stability& minimum) {
  return !(least_stable(one, minimum) == minimum);
}

std::string_view name_of(StabilityLevel level) {
  return kLevels[static_cast<size_t>(level)];
}

std::string_view name_of(DependencyClass dependency) {
  return kClasses[static_cast<size_t>(dependency)];
}

std::string text_of(const Stability& stability) {
  return fmt::format("{}/{}/{}", name_of(stability.names), name_of(stability.data),
                     name_of(stability.dependency));
}

std::optional<Stability> parse_stability(std::string_view text) {
  const size_t first = text.find('/');
  const size_t second = first == std::string_view::npos ? first : text.find('/', first + 1);
  if (second == std::string_view::npos) return std::nullopt;
  const auto names = find_word<StabilityLevel>(kLevels, text.substr(0, first));
  const auto data = find_word<StabilityLevel>(kLevels, text.substr(first + 1, second - first - 1));
  const auto dependency = find_word<DependencyClass>(kClasses, text.substr(second + 1));
  if (!names || !data || !dependency) return std::nullopt;
  return Stability{*names, *data, *dependency};
}

ProviderStability stability_of_provider(std::string_view provider) {
  while (!provider.empty() && provider.back() >= '0' && provider.back() <= '9')
    provider.remove_suffix(1);
  const auto found = std::find_if(kProviders.begin(), kProviders.end(),
                                  [&](const Provider& entry) { return entry.name == provider; });
  return found == kProviders.end() ? ProviderStability{kPrivate, kPrivate} : found->stability;
}

std::optional<ProviderStability> stability_by(std::span<const ProviderPragma> pragmas,
                                              std::string_view provider) {
  constexpr std::array<std::string_view, 5> kParts = {"provider", "module", "function", "name",
                                                      "args"};
  std::array<Stability, kParts.size()> parts{};
  parts.fill(kPrivate);
  bool is_named = false;
  for (const ProviderPragma& pragma : pragmas) {
    const auto part = std::find(kParts.begin(), kParts.end(), pragma.part);
    if (pragma.provider != provider || part == kParts.end()) continue;
    parts[static_cast<size_t>(part - kParts.begin())] = pragma.stability;
    is_named = true;
  }
  if (!is_named) return std::nullopt;
  ProviderStability result{parts[0], parts.back()};
  for (size_t i = 1; i + 1 < parts.size(); ++i)
    result.probes = least_stable(result.probes, parts[i]);
  return result;
}

// Where it leads to is a structure of the kernel.
Stability stability_of(Builtin builtin) {
  if (builtin != Builtin::Curthread) return kStable;
  return {StabilityLevel::Stable, StabilityLevel::Private, DependencyClass::Common};
}

// Those that know how the system numbers devices, orders bytes and locks.
Stability stability_of(Subroutine subroutine) {
  constexpr std::array kEvolvingOnes = {
      Subroutine::DdiPathname, Subroutine::Getmajor,      Subroutine::Getminor,
      Subroutine::Htonl,       Subroutine::Htonll,        Subroutine::Htons,
      Subroutine::MutexOwned,  Subroutine::MutexOwner,    Subroutine::MutexTypeAdaptive,
      Subroutine::Ntohl,       Subroutine::MutexTypeSpin, Subroutine::Ntohll,
      Subroutine::Ntohs,       Subroutine::RwIswriter,    Subroutine::RwReadHeld,
      Subroutine::RwWriteHeld,
  };
  const bool is_evolving =
      std::find(kEvolvingOnes.begin(), kEvolvingOnes.end(), subroutine) != kEvolvingOnes.end();
  return is_evolving ? kEvolving : kStable;
}

}  // namespace clew::query::d
