// SPDX-License-Identifier: Apache-2.0
// Random bytes as text, random functions, pointers and requests: never a crash, never a window that
// breaks an invariant.
#include <algorithm>
#include <cstdlib>
#include <vector>

#include "base/assert.h"
#include "code/relocate.h"
#include "code/window_checks.h"
#include "code/windows.h"

namespace {

using clew::code::AddressRange;
using clew::code::FunctionRange;
using clew::code::ModuleText;
using clew::code::Plan;
using clew::code::Request;
using clew::code::RequestKind;

constexpr uint64_t kTextAddress = 0x1000;
constexpr uint64_t kDataAddress = 0x8000;
constexpr size_t kHeaderSize = 32;

// The header's bytes say where functions begin and what they are; the rest is data, then text.
ModuleText make_text(std::span<const uint8_t> input) {
  const std::span<const uint8_t> header = input.first(kHeaderSize);
  const std::span<const uint8_t> rest = input.subspan(kHeaderSize);
  const size_t data_size = rest.size() / 4;
  ModuleText text;
  text.position_dependent = (header[0] & 1) != 0;
  text.sections.push_back({kTextAddress, rest.subspan(data_size), true});
  text.sections.push_back({kDataAddress, rest.first(data_size), false});
  uint64_t address = kTextAddress;
  for (size_t i = 1; i < 16; ++i) {
    FunctionRange range{.address = address, .size_bytes = header[i]};
    if ((header[i] & 7) == 5) range.owner = header[i] >> 4;
    range.unnamed = (header[16 + i] & 1) != 0;
    range.mid_frame = (header[16 + i] & 6) == 6;
    text.functions.push_back(range);
    address += header[i] - (header[16 + i] >> 5);  // Some overlap.
  }
  if ((header[0] & 2) != 0) text.landing_pads = {kTextAddress + header[17]};
  if ((header[0] & 4) != 0) text.code_pointers = {kTextAddress + header[18]};
  if ((header[0] & 8) != 0) text.rseq = {{kTextAddress + header[19], kTextAddress + header[20]}};
  if ((header[0] & 16) != 0) text.part_links = {{kTextAddress, kTextAddress + header[21]}};
  return text;
}

bool is_refused(const Plan& plan, uint32_t request) {
  return std::any_of(plan.refusals.begin(), plan.refusals.end(),
                     [request](const auto& refusal) { return refusal.request == request; });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* bytes, size_t size) {
  if (size < kHeaderSize + 16 || size > 8192) return 0;
  const ModuleText text = make_text({bytes, size});
  const clew::code::ModuleCode code = analyse(text);
  std::vector<Request> requests;
  for (const FunctionRange& range : text.functions) {
    requests.push_back({RequestKind::Entry, range.address});
    requests.push_back({RequestKind::Exits, range.address});
    requests.push_back({RequestKind::Offset, range.address + (bytes[0] >> 4)});
  }
  const Plan plan = plan_windows(code, requests);
  CLEW_ASSERT(broken_plan(code, plan).empty());
  for (uint32_t i = 0; i < plan.windows.size(); ++i) {
    const auto probe = [](std::span<const clew::code::Point> points, uint64_t,
                          std::vector<uint8_t>& out) -> clew::Expected<void> {
      out.insert(out.end(), points.size(), 0x90);
      return {};
    };
    (void)relocate(plan.windows[i], plan.points_of(i), {.destination = 0x100000}, probe);
  }
  // A second session on the same windows takes them as they are.
  const Plan again = plan_windows(code, requests, plan.windows);
  for (const clew::code::Refusal& refusal : again.refusals)
    CLEW_ASSERT(is_refused(plan, refusal.request));
  return 0;
}
