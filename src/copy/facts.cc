// SPDX-License-Identifier: Apache-2.0
#include "copy/facts.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <memory>
#include <string_view>
#include <utility>

#include "code/image_text.h"

namespace clew::copy {

namespace {

std::vector<uint64_t> sorted(std::vector<uint64_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<target::CodePointerSlot> by_address(std::vector<target::CodePointerSlot> slots) {
  std::sort(slots.begin(), slots.end(),
            [](const auto& a, const auto& b) { return a.slot_address < b.slot_address; });
  return slots;
}

std::vector<uint64_t> resolvers_of(const target::ModuleImage& image) {
  std::vector<uint64_t> resolvers;
  for (const target::IfuncSlot& slot : image.ifunc_slots())
    resolvers.push_back(slot.resolver_address);
  for (const target::Function& function : image.functions()) {
    if (function.is_ifunc) resolvers.push_back(function.address);
  }
  return resolvers;
}

// The C library's that ask in which module their caller is (dlopen(3): its RUNPATH; dlsym(3):
// RTLD_NEXT), and what profilers take the caller's address from.
constexpr auto kAskCaller = std::to_array<std::string_view>(
    {"__fentry__", "_mcount", "dlmopen", "dlopen", "dlsym", "dlvsym", "mcount"});

Expected<std::vector<uint64_t>> caller_slots_of(const target::ModuleImage& image) {
  std::vector<uint64_t> slots;
  for (const target::ImportSlot& slot : CLEW_TRY(image.import_slots())) {
    if (std::find(kAskCaller.begin(), kAskCaller.end(), slot.symbol) != kAskCaller.end())
      slots.push_back(slot.slot_address);
  }
  return slots;
}

// Most files have none, and the tables need not be read.
Expected<std::optional<std::vector<target::CallSite>>> call_sites_of(
    const target::ModuleImage& image) {
  std::vector<target::CallSite> sites;
  const auto fdes = image.fdes();
  const auto has_table = [](const target::Fde& fde) { return fde.has_lsda; };
  if (std::none_of(fdes.begin(), fdes.end(), has_table)) return std::optional(sites);
  const auto tables = CLEW_TRY(target::read_frame_tables(image.path()));
  for (const target::ExceptionTable& table : tables.exceptions) {
    if (!table.is_understood) return std::optional<std::vector<target::CallSite>>();
    std::copy_if(table.sites.begin(), table.sites.end(), std::back_inserter(sites),
                 [](const target::CallSite& site) { return site.landing_pad != 0; });
  }
  std::sort(sites.begin(), sites.end(),
            [](const auto& a, const auto& b) { return a.begin < b.begin; });
  return std::optional(std::move(sites));
}

}  // namespace

Expected<FactsInput> facts_input(const target::ModuleImage& image) {
  FactsInput input;
  input.text = CLEW_TRY(code::text_of(image));
  input.noreturn_slots = CLEW_TRY(code::noreturn_slots(image));
  input.slots = image.code_pointer_slots();
  input.resolvers = resolvers_of(image);
  input.caller_slots = CLEW_TRY(caller_slots_of(image));
  input.call_sites = CLEW_TRY(call_sites_of(image));
  return input;
}

Expected<std::unique_ptr<Facts>> Facts::of(const target::ModuleImage& image) {
  return of(CLEW_TRY(facts_input(image)));
}

std::unique_ptr<Facts> Facts::of(FactsInput input) {
  return std::make_unique<Facts>(Key(), std::move(input));
}

Facts::Facts(Key, FactsInput input)
    : code(code::analyse(input.text)),
      noreturn(code, std::move(input.noreturn_slots)),
      flags(code),
      slots(by_address(std::move(input.slots))),
      landing_pads(sorted(std::move(input.text.landing_pads))),
      resolvers(sorted(std::move(input.resolvers))),
      caller_slots(sorted(std::move(input.caller_slots))),
      call_sites(std::move(input.call_sites)),
      is_position_independent(!input.text.position_dependent) {}

}  // namespace clew::copy
