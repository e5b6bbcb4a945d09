// SPDX-License-Identifier: Apache-2.0
#include "kernel/providers/catalogue.h"

#include <deque>
#include <unordered_map>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/assert.h"
#include "kernel/glob.h"
#include "kernel/providers/kernel_view.h"
#include "kernel/providers/providers.h"

namespace clew::kernel {

namespace {

// What makes two probes the same. A USDT probe may have several places with the same names, and
// proc:::exit is a probe for each reason.
std::string identity_of(const Probe& probe) {
  return fmt::format("{}:{}:{}:{}:{:x}:{}:{}:{}", probe.provider, probe.module, probe.function,
                     probe.name, probe.offset_bytes, probe.path, probe.is_everywhere,
                     fmt::join(probe.argument_map, ","));
}

// The probes of the tracer itself are met by these names in every program; nobody else's have them.
bool is_of_dtrace(const ProbeGlobs& globs) {
  const std::string& name = globs.name.literal();
  return globs.provider.is_any() && (name == "BEGIN" || name == "END" || name == "ERROR");
}

}  // namespace

struct Catalogue::Data {
  KernelView kernel;
  std::vector<std::unique_ptr<Provider>> providers;
  struct Entry {
    Probe probe;
    Provider* provider = nullptr;
  };
  std::deque<Entry> entries;  // By id - 1.
  std::unordered_map<std::string, uint32_t> ids;

  Data();
  uint32_t add(Probe probe, Provider* provider);
  // Asks each provider that may have what the pattern means.
  using Match = std::function<Expected<void>(Provider&, const ProbeGlobs&, std::vector<Probe>&)>;
  Expected<std::vector<uint32_t>> match(const ProbePattern& pattern, const Match& match_one);
};

Catalogue::Data::Data() {
  providers.push_back(make_dtrace_provider());
  providers.push_back(make_profile_provider());
  providers.push_back(make_syscall_provider(kernel));
  providers.push_back(make_derived_provider(kernel));
  providers.push_back(make_rawtp_provider(kernel));
  providers.push_back(make_sdt_provider(kernel));
  providers.push_back(make_function_provider(kernel));
  providers.push_back(make_user_provider());
}

uint32_t Catalogue::Data::add(Probe probe, Provider* provider) {
  const auto next = static_cast<uint32_t>(entries.size() + 1);
  const auto [place, is_new] = ids.try_emplace(identity_of(probe), next);
  if (is_new) {
    probe.id = next;
    entries.push_back({std::move(probe), provider});
  }
  return place->second;
}

Expected<std::vector<uint32_t>> Catalogue::Data::match(const ProbePattern& pattern,
                                                       const Match& match_one) {
  const ProbeGlobs globs(pattern);
  std::vector<uint32_t> result;
  for (const auto& provider : providers) {
    if (!provider->may_match(globs.provider)) continue;
    std::vector<Probe> found;
    CLEW_TRY(match_one(*provider, globs, found));
    for (Probe& probe : found)
      result.push_back(add(std::move(probe), provider.get()));
  }
  return result;
}

Catalogue::Catalogue() : data_(std::make_unique<Data>()) {
  const auto fixed = match({.provider = "dtrace", .module = {}, .function = {}, .name = {}});
  CLEW_ASSERT(fixed && fixed->size() == kErrorProbe && fixed->back() == kErrorProbe);
}
Catalogue::~Catalogue() = default;
Catalogue::Catalogue(Catalogue&&) noexcept = default;
Catalogue& Catalogue::operator=(Catalogue&&) noexcept = default;

Expected<std::vector<uint32_t>> Catalogue::match(const ProbePattern& pattern) {
  const ProbeGlobs globs(pattern);
  std::vector<uint32_t> result;
  for (const auto& provider : data_->providers) {
    if (!provider->may_match(globs.provider)) continue;
    std::vector<Probe> found;
    const auto matched = provider->match(globs, found);
    // Who asks for any provider is content with those that can be used.
    if (!matched && globs.provider.is_literal()) return tl::unexpected(matched.error());
    for (Probe& probe : found)
      result.push_back(data_->add(std::move(probe), provider.get()));
    if (is_of_dtrace(globs)) break;
  }
  return result;
}

Expected<std::vector<uint32_t>> Catalogue::match_process(const ProbePattern& pattern, pid_t pid) {
  return data_->match(pattern, [pid](Provider& provider, const ProbeGlobs& globs, auto& found) {
    return provider.match_process(globs, pid, found);
  });
}

Expected<std::vector<uint32_t>> Catalogue::match_file(const ProbePattern& pattern,
                                                      const MappedFile& file) {
  return data_->match(pattern, [&file](Provider& provider, const ProbeGlobs& globs, auto& found) {
    return provider.match_file(globs, file, found);
  });
}

void Catalogue::add_target(pid_t pid) {
  for (const auto& provider : data_->providers)
    provider->add_target(pid);
}

const Probe* Catalogue::find(uint32_t id) const {
  if (id == 0 || id > data_->entries.size()) return nullptr;
  return &data_->entries[id - 1].probe;
}

Expected<void> Catalogue::for_each(const std::function<void(const Probe&)>& take) {
  (void)CLEW_TRY(match({}));
  for (const Data::Entry& entry : data_->entries)
    take(entry.probe);
  return {};
}

Expected<std::vector<Catalogue::Argument>> Catalogue::arguments(uint32_t id) const {
  if (find(id) == nullptr) {
    return fail(ErrorCode::NotFound, fmt::format("there is no probe with id {}", id));
  }
  const Data::Entry& entry = data_->entries[id - 1];
  return entry.provider->arguments(entry.probe);
}

std::optional<Catalogue::Stability> Catalogue::stability(uint32_t id) const {
  if (find(id) == nullptr) return std::nullopt;
  const Data::Entry& entry = data_->entries[id - 1];
  return entry.provider->stability(entry.probe);
}

}  // namespace clew::kernel
