// SPDX-License-Identifier: Apache-2.0
#include "output/d/listing.h"

#include <cstring>

#include <fmt/format.h>
#include <sys/wait.h>

#include "output/d/padding.h"

namespace clew::output::d {

using query::d::ProviderStability;
using query::d::Stability;

namespace {

std::string stability_text(std::string_view title, const Stability& stability) {
  return fmt::format(
      "\n\t{}\n\t\tIdentifier Names: {}\n\t\tData Semantics:   {}\n\t\tDependency Class: {}\n",
      title, name_of(stability.names), name_of(stability.data), name_of(stability.dependency));
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

std::string listing_details(const ProviderStability& stability,
                            std::span<const std::string> argument_types) {
  std::string text = stability_text("Probe Description Attributes", stability.probes) +
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

std::string program_stability(ProgramForm form, std::string_view name, const Stability& probes,
                              const Stability& statements) {
  return fmt::format("\nStability attributes for {} {}:\n", form_name(form), name) +
         stability_text("Minimum Probe Description Attributes", probes) +
         stability_text("Minimum Statement Attributes", statements) + '\n';
}

}  // namespace clew::output::d
