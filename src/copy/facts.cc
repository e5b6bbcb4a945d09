// SPDX-License-Identifier: Apache-2.0
#include "copy/facts.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "code/image_text.h"

namespace clew::copy {

namespace {

std::vector<uint64_t> sorted(std::vector<uint64_t> values) {
  std::sort(values.begin(), values.end());
  return values;
}

std::vector<uint64_t> resolvers_of(const target::ModuleImage& image) {
  std::vector<uint64_t> resolvers;
  for (const target::IfuncSlot& slot : image.ifunc_slots())
    resolvers.push_back(slot.resolver_address);
  for (const target::Function& function : image.functions()) {
    if (function.is_ifunc) resolvers.push_back(function.address);
  }
  return sorted(std::move(resolvers));
}

}  // namespace

Expected<std::unique_ptr<Facts>> Facts::of(const target::ModuleImage& image) {
  const code::ModuleText text = CLEW_TRY(code::text_of(image));
  std::vector<uint64_t> never = CLEW_TRY(code::noreturn_slots(image));
  return std::make_unique<Facts>(Key(), image, text, std::move(never));
}

Facts::Facts(Key, const target::ModuleImage& image, const code::ModuleText& text,
             std::vector<uint64_t> noreturn_slots)
    : code(code::analyse(text)),
      noreturn(code, std::move(noreturn_slots)),
      flags(code),
      slots(image.code_pointer_slots()),
      landing_pads(sorted(text.landing_pads)),
      resolvers(resolvers_of(image)),
      is_position_independent(image.is_position_independent()) {}

}  // namespace clew::copy
