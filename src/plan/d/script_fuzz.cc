// SPDX-License-Identifier: Apache-2.0
// Hostile text must give an error or programs, never a crash, and neither may be without bounds.
// There are no types but D's own, and a probe matches whatever describes it.
#include <cstdint>
#include <string_view>

#include "plan/d/generate.h"
#include "query/d/check.h"
#include "query/d/parse.h"

namespace {

using clew::Expected;
using clew::query::d::ProbeArguments;
using clew::query::d::ProbeDescription;
using clew::query::d::TypeTable;

class AnyProbe final : public clew::query::d::ProbeSource {
 public:
  Expected<ProbeArguments> arguments(TypeTable& types, const ProbeDescription& probe) override {
    ProbeArguments found;
    found.matched = 1;
    if (probe.function.empty()) return found;
    found.types = {types.find_base("int"), types.pointer_to(types.find_base("char"))};
    found.is_userland = true;
    return found;
  }
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  clew::query::d::CompileOptions options;
  options.arguments = {"fuzz", "1", "word", "\"text\""};
  options.allow_unused_arguments = true;
  TypeTable types;
  const auto program = clew::query::d::parse(text, options, types);
  if (!program) return 0;
  AnyProbe probes;
  const auto script = clew::query::d::check(*program, std::move(types), probes, options);
  if (script) (void)clew::plan::d::generate(*script);
  return 0;
}
