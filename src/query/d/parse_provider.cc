// SPDX-License-Identifier: Apache-2.0
// provider NAME { probe NAME(...) : (...); ... }: a trace needs nothing of it but to be told of a
// mistake; `dtrace -h` and `-G` do.
#include <algorithm>

#include <fmt/format.h>

#include "query/d/parser.h"

namespace clew::query::d {
namespace {

using Probe = ProviderDefinition::Probe;

constexpr size_t kNameMax = 63;  // As DTrace has room for.
constexpr size_t kParametersMax = 255;

// Names of probes are shown as a description has them: "p:::go".
std::string shown(const std::string& provider, const Probe& probe) {
  return fmt::format("{}:::{}", provider, probe.name);
}

tl::unexpected<CompileError> fail_at(const Token& place, std::string tag, std::string message) {
  return compile_error(std::move(tag), std::move(message), place.line, place.span);
}

Compiled<void> check_name(const Token& place, std::string_view kind, const std::string& name) {
  if (!place.module.empty()) {
    return fail_at(place, "D_PROV_BADNAME",
                   fmt::format("{} name may not contain scoping operator: {}", kind, name));
  }
  if (place.name.size() <= kNameMax) return {};
  return fail_at(place, "D_PROV_BADNAME",
                 fmt::format("{} name may not exceed {} characters: {}", kind, kNameMax, name));
}

Compiled<void> check_count(const Token& place, std::string_view kind, const Probe& probe,
                           size_t count) {
  if (count <= kParametersMax) return {};
  return fail_at(place, "D_PROV_PRARGLEN",
                 fmt::format("probe ::{} {} prototype exceeds {} parameters: {} params used",
                             probe.name, kind, kParametersMax, count));
}

const Probe* find_probe(const ProviderDefinition& provider, const std::string& name) {
  const auto found = std::find_if(provider.probes.begin(), provider.probes.end(),
                                  [&](const Probe& probe) { return probe.name == name; });
  return found == provider.probes.end() ? nullptr : &*found;
}

std::string counted(size_t count) {
  return fmt::format("{} arg{}", count, count == 1 ? "" : "s");
}

const std::vector<TypeParameter>& output_of(const Probe& probe) {
  return probe.is_translated ? probe.translated : probe.native;
}

}  // namespace

// A provider that is there already has to have the same probes.
Compiled<void> Parser::check_known_provider(const ProviderDefinition& known, const Probe& probe,
                                            const Token& place) const {
  const std::string name = shown(known.name, probe);
  const Probe* const before = find_probe(known, probe.name);
  if (before == nullptr) {
    return fail_at(place, "D_PROV_INCOMPAT",
                   fmt::format("provider interface mismatch: {0}\n\t current: probe {1} defined\n"
                               "\tprevious: probe {1} not defined",
                               known.name, name));
  }
  const std::vector<TypeParameter>& current = output_of(probe);
  const std::vector<TypeParameter>& previous = output_of(*before);
  if (current.size() != previous.size()) {
    return fail_at(place, "D_PROV_INCOMPAT",
                   fmt::format("probe {} output prototype mismatch:\n\t current: {}\n"
                               "\tprevious: {}",
                               name, counted(current.size()), counted(previous.size())));
  }
  for (size_t i = 0; i < current.size(); ++i) {
    if (current[i].type == previous[i].type) continue;
    return fail_at(place, "D_PROV_INCOMPAT",
                   fmt::format("probe {} output prototype argument #{} mismatch:\n\t current: {}\n"
                               "\tprevious: {}",
                               name, i + 1, types_.name_of(current[i].type),
                               types_.name_of(previous[i].type)));
  }
  return {};
}

std::vector<ProviderDefinition> Parser::take_providers() {
  const std::vector<ProviderPragma> pragmas = lexer_.take_provider_pragmas();
  for (ProviderDefinition& provider : providers_)
    provider.stability = stability_by(pragmas, provider.name);
  return std::move(providers_);
}

Compiled<void> Parser::provider() {
  ProviderDefinition result;
  CLEW_TRY(advance());
  const Token place = here_;
  if (place.kind == TokenKind::Identifier) CLEW_TRY(check_name(place, "provider", place.text));
  result.name = CLEW_TRY(identifier());
  if (result.name.back() >= '0' && result.name.back() <= '9') {
    return fail_at(place, "D_PROV_BADNAME",
                   fmt::format("provider name may not end with a digit: {}", result.name));
  }
  const auto known =
      std::find_if(providers_.begin(), providers_.end(),
                   [&](const ProviderDefinition& each) { return each.name == result.name; });
  CLEW_TRY(expect("{"));
  while (at("probe")) {
    const Token begin = here_;
    Probe next = CLEW_TRY(provider_probe());
    if (known != providers_.end()) CLEW_TRY(check_known_provider(*known, next, begin));
    if (find_probe(result, next.name) != nullptr) {
      return fail_at(begin, "D_PROV_PRDUP",
                     fmt::format("probe redeclared: {}", shown(result.name, next)));
    }
    result.probes.push_back(std::move(next));
  }
  CLEW_TRY(expect("}"));
  CLEW_TRY(expect_last(";"));
  if (known == providers_.end()) providers_.push_back(std::move(result));
  return {};
}

Compiled<Probe> Parser::provider_probe() {
  CLEW_TRY(advance());
  Probe result;
  const Token place = here_;
  if (place.kind == TokenKind::Identifier) CLEW_TRY(check_name(place, "probe", "::" + place.text));
  result.name = CLEW_TRY(member_name());
  CLEW_TRY(expect("("));
  result.native = CLEW_TRY(parameter_layer(")")).parameters;
  CLEW_TRY(check_count(place, "input", result, result.native.size()));
  result.is_translated = CLEW_TRY(accept(":"));
  if (result.is_translated) {
    CLEW_TRY(expect("("));
    result.translated = CLEW_TRY(parameter_layer(")")).parameters;
    CLEW_TRY(check_count(place, "output", result, result.translated.size()));
  }
  CLEW_TRY(expect(";"));
  return result;
}

}  // namespace clew::query::d
