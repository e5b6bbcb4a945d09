// SPDX-License-Identifier: Apache-2.0
// Stabilities are those that the DTrace guide gives for each provider ("Stability" in its chapter);
// that of a probe is the least stable of its four names.
#include "output/d/listing.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>
#include <sys/wait.h>

#include "output/d/padding.h"

namespace clew::output::d {
namespace {

struct Stability {
  std::string_view names;
  std::string_view data;
  std::string_view dependency;
};
constexpr Stability kStable = {"Stable", "Stable", "Common"};
constexpr Stability kEvolving = {"Evolving", "Evolving", "Common"};
constexpr Stability kEvolvingIsa = {"Evolving", "Evolving", "ISA"};
constexpr Stability kPrivate = {"Private", "Private", "Unknown"};
constexpr Stability kPrivateIsa = {"Private", "Private", "ISA"};

struct ProviderStability {
  std::string_view provider;
  Stability probe;
  Stability arguments;
};
constexpr std::array<ProviderStability, 15> kProviders = {{
    {"dtrace", kStable, kStable},
    {"profile", kEvolving, kEvolving},
    {"syscall", kPrivate, kPrivateIsa},
    {"fbt", kPrivate, kPrivateIsa},
    {"rawfbt", kPrivate, kPrivateIsa},
    {"sdt", kPrivate, kPrivateIsa},
    {"rawtp", kPrivate, kPrivateIsa},
    {"proc", kPrivate, kEvolvingIsa},
    {"sched", kPrivate, kEvolvingIsa},
    {"io", kPrivate, kEvolvingIsa},
    {"ip", kPrivate, kEvolvingIsa},
    {"tcp", kPrivate, kEvolvingIsa},
    {"udp", kPrivate, kEvolvingIsa},
    {"lockstat", kPrivate, kEvolvingIsa},
    {"pid", kPrivate, kPrivate},
}};
constexpr ProviderStability kOther = {"", kPrivate, kPrivate};

// "pid123" is provider pid, "tick-1s" is a probe of profile.
const ProviderStability& stability_of(std::string_view provider) {
  while (!provider.empty() && provider.back() >= '0' && provider.back() <= '9')
    provider.remove_suffix(1);
  const auto found = std::find_if(kProviders.begin(), kProviders.end(),
                                  [&](const auto& entry) { return entry.provider == provider; });
  return found == kProviders.end() ? kOther : *found;
}

std::string stability_text(std::string_view title, const Stability& stability) {
  return fmt::format(
      "\n\t{}\n\t\tIdentifier Names: {}\n\t\tData Semantics:   {}\n\t\tDependency Class: {}\n",
      title, stability.names, stability.data, stability.dependency);
}

// From the least stable on.
int rank_of(const Stability& stability) {
  if (stability.names == kStable.names) return 2;
  return stability.names == kEvolving.names ? 1 : 0;
}

std::string_view form_name(ProgramForm form) {
  return form == ProgramForm::Script ? "script" : "description";
}

std::string row(std::string_view id, const ProbeNames& probe) {
  std::string text;
  append_right(text, id, 5);
  text += ' ';
  append_right(text, probe.provider, 10);
  text += ' ';
  append_right(text, probe.module, 17);
  text += ' ';
  append_right(text, probe.function, 33);
  text += ' ';
  text += probe.name;
  return text + '\n';
}

}  // namespace

std::string listing_heading() {
  return row("ID", {0, "PROVIDER", "MODULE", "FUNCTION", "NAME"});
}

std::string listing_row(const ProbeNames& probe) {
  return row(fmt::format("{}", probe.id), probe);
}

std::string listing_details(const ProbeNames& probe, std::span<const std::string> argument_types) {
  const ProviderStability& stability = stability_of(probe.provider);
  std::string text = stability_text("Probe Description Attributes", stability.probe) +
                     stability_text("Argument Attributes", stability.arguments) +
                     "\n\tArgument Types\n";
  for (size_t i = 0; i < argument_types.size(); ++i)
    text += fmt::format("\t\targs[{}]: {}\n", i, argument_types[i]);
  if (argument_types.empty()) text += "\t\tNone\n";
  return text + '\n';
}

std::string matched_text(ProgramForm form, std::string_view name, uint64_t probes) {
  return fmt::format("dtrace: {} '{}' matched {} probe{}\n", form_name(form), name, probes,
                     probes == 1 ? "" : "s");
}

std::string_view destructive_text() {
  return "dtrace: allowing destructive actions\n";
}

std::string exited_text(uint64_t pid, std::optional<int> status) {
  if (status && WIFSIGNALED(*status)) {
    const char* const name = sigabbrev_np(WTERMSIG(*status));
    return name != nullptr
               ? fmt::format("dtrace: pid {} terminated by SIG{}\n", pid, name)
               : fmt::format("dtrace: pid {} terminated by signal {}\n", pid, WTERMSIG(*status));
  }
  if (status && WEXITSTATUS(*status) != 0) {
    return fmt::format("dtrace: pid {} exited with status {}\n", pid, WEXITSTATUS(*status));
  }
  return fmt::format("dtrace: pid {} has exited\n", pid);
}

std::string program_stability(ProgramForm form, std::string_view name,
                              std::span<const std::string> providers) {
  Stability least = kStable;
  for (const std::string& provider : providers) {
    const Stability& stability = stability_of(provider).probe;
    if (rank_of(stability) < rank_of(least)) least = stability;
  }
  return fmt::format("\nStability attributes for {} {}:\n", form_name(form), name) +
         stability_text("Minimum Probe Description Attributes", least) +
         stability_text("Minimum Statement Attributes", kStable) + '\n';
}

}  // namespace clew::output::d
