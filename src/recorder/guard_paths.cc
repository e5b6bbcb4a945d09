// SPDX-License-Identifier: Apache-2.0
#include "recorder/guard_paths.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "code/import_slot.h"

namespace clew::recorder {

namespace {

constexpr std::array<std::string_view, 8> kTwice = {"setjmp",      "_setjmp",    "sigsetjmp",
                                                    "__sigsetjmp", "vfork",      "__vfork",
                                                    "getcontext",  "swapcontext"};

Expected<std::vector<uint64_t>> find_twice(const target::ModuleImage& image) {
  std::vector<uint64_t> found;
  for (const std::string_view name : kTwice) {
    for (const target::ImportSlot& slot : CLEW_TRY(image.import_slots(name)))
      found.push_back(slot.slot_address);
  }
  for (const target::Function& function : image.functions()) {
    const bool is_one = std::any_of(
        function.names.begin(), function.names.end(), [](const target::FunctionName& name) {
          return std::find(kTwice.begin(), kTwice.end(), name.linkage) != kTwice.end();
        });
    if (is_one) found.push_back(function.address);
  }
  std::sort(found.begin(), found.end());
  return found;
}

}  // namespace

Expected<std::unique_ptr<GuardPaths>> GuardPaths::of(const RecordedModule& module,
                                                     const ModulePaths& paths,
                                                     const target::ModuleImage& image) {
  return std::make_unique<GuardPaths>(module, paths, CLEW_TRY(find_twice(image)));
}

GuardPaths::GuardPaths(const RecordedModule& module, const ModulePaths& paths,
                       std::vector<uint64_t> twice_slots)
    : module_(module), paths_(paths), twice_(std::move(twice_slots)) {
  const auto count = static_cast<uint32_t>(module.proof().proved.size());
  functions_.reserve(count);
  for (uint32_t i = 0; i < count; ++i)
    functions_.push_back(look_at(i));
  std::sort(sites_.begin(), sites_.end(),
            [](const GuardSite& a, const GuardSite& b) { return a.behind < b.behind; });
}

GuardPaths::Function GuardPaths::look_at(uint32_t function) {
  Function found;
  const Flow& flow = this->flow(function);
  const code::ModuleCode& code = module_.facts().code;
  const auto& proved = module_.proof().proved;
  const auto count = static_cast<uint32_t>(flow.nodes().size());
  found.kinds.resize(count, Kind::Plain);
  found.in_front.resize(count);
  for (uint32_t i = 0; i < count; ++i) {
    const Node& node = flow.nodes()[i];
    for (const Way& way : flow.ways_of(i))
      found.may_tail |= way.kind == WayKind::Tail || way.kind == WayKind::TailOut;
    if (node.call == CallKind::None) continue;
    const code::Block& at = block(function, i);
    const auto last = code.at(at.last);
    if (node.call == CallKind::Copied) {
      const uint64_t callee = code.functions()[proved[node.callee].function].address;
      if (module_.guards()->calls(callee)) {
        found.kinds[i] = Kind::Site;
        sites_.push_back({at.end, function, i});
      }
    }
    if (last && node.behind != kNone && may_return_twice(code, node, *last))
      found.resumes.push_back(node.behind);
  }
  look_from_entry(flow, found);
  return found;
}

bool GuardPaths::may_return_twice(const code::ModuleCode& code, const Node& node,
                                  const code::Instruction& call) const {
  const auto slot = code::import_slot(code, call);
  if (!slot && node.call == CallKind::Indirect) return false;
  const uint64_t target = slot ? *slot : code::branch_target(code, call);
  return std::binary_search(twice_.begin(), twice_.end(), target);
}

void GuardPaths::look_from_entry(const Flow& flow, Function& into) const {
  std::vector<uint32_t> pending = {flow.entry()};
  into.tells_entry = true;
  bool has_site = false;
  while (!pending.empty()) {
    const uint32_t at = pending.back();
    pending.pop_back();
    if (into.in_front[at]) continue;
    into.in_front[at] = true;
    if (into.kinds[at] != Kind::Plain) {
      into.kinds[at] = Kind::First;
      has_site = true;
      continue;
    }
    const Node& node = flow.nodes()[at];
    into.tells_entry &= node.call == CallKind::None;
    for (const Way& way : flow.ways_of(at)) {
      into.tells_entry &= way.kind == WayKind::Block;
      if (way.kind == WayKind::Block) pending.push_back(way.block);
    }
  }
  into.tells_entry &= has_site;
}

std::optional<GuardSite> GuardPaths::site_of(uint32_t offset) const {
  const uint64_t behind = module_.guards()->text().address + offset;
  const auto found =
      std::lower_bound(sites_.begin(), sites_.end(), behind,
                       [](const GuardSite& one, uint64_t value) { return one.behind < value; });
  if (found == sites_.end() || found->behind != behind) return std::nullopt;
  return *found;
}

bool GuardPaths::is_in_front(uint32_t function, uint32_t block) const {
  return of(function).in_front[block];
}

bool GuardPaths::repeats(uint32_t function, uint32_t block) const {
  const Flow& flow = this->flow(function);
  std::vector<bool> seen(flow.nodes().size());
  std::vector<uint32_t> pending = {flow.nodes()[block].behind};
  while (!pending.empty()) {
    const uint32_t at = pending.back();
    pending.pop_back();
    if (at == kNone || seen[at]) continue;
    seen[at] = true;
    const Node& node = flow.nodes()[at];
    pending.insert(pending.end(), {node.behind, node.landing});
    if (node.may_land_anywhere)
      pending.insert(pending.end(), flow.landing_pads().begin(), flow.landing_pads().end());
    for (const Way& way : flow.ways_of(at)) {
      if (way.kind == WayKind::Block) pending.push_back(way.block);
    }
  }
  return seen[block];
}

bool GuardPaths::only_returns(uint32_t function, uint32_t block) const {
  const auto ways = flow(function).ways_of(block);
  return flow(function).nodes()[block].call == CallKind::None && !ways.empty() &&
         std::all_of(ways.begin(), ways.end(),
                     [](const Way& way) { return way.kind == WayKind::Return; });
}

std::optional<int64_t> GuardPaths::callee_frame(uint32_t function, uint32_t block,
                                                std::optional<int64_t> frame) const {
  constexpr int64_t kReturnAddressBytes = 8;
  const auto depth = depth_in(function, block);
  if (!depth || !frame) return std::nullopt;
  return *frame - *depth - kReturnAddressBytes;
}

bool GuardPaths::is_told(uint32_t function, uint32_t block) const {
  const Node& node = flow(function).nodes()[block];
  return node.call == CallKind::Copied && tells_entry(node.callee);
}

std::vector<uint32_t> GuardPaths::behind_call(uint32_t function, uint32_t block) const {
  const Flow& flow = this->flow(function);
  const Node& node = flow.nodes()[block];
  std::vector<uint32_t> all(resumes(function).begin(), resumes(function).end());
  if (node.behind != kNone) all.push_back(node.behind);
  if (node.may_land_anywhere) {
    all.insert(all.end(), flow.landing_pads().begin(), flow.landing_pads().end());
  } else if (node.landing != kNone) {
    all.push_back(node.landing);
  }
  return all;
}

std::optional<int64_t> GuardPaths::depth_at(uint32_t function, uint64_t address) const {
  const auto [found, is_new] = depths_.try_emplace(function, module_.facts().code,
                                                   module_.proof().proved[function].function);
  return found->second.at(address);
}

std::optional<GuardSite> GuardPaths::block_at(uint64_t address) const {
  const code::ModuleCode& code = module_.facts().code;
  const auto range = code.range_at(address);
  if (!range) return std::nullopt;
  const uint32_t owner = code.owner_of(*range);
  const auto& proved = module_.proof().proved;
  const auto found = std::lower_bound(
      proved.begin(), proved.end(), owner,
      [](const copy::Proved& one, uint32_t value) { return one.function < value; });
  if (found == proved.end() || found->function != owner) return std::nullopt;
  const auto block = found->blocks.block_at(address);
  if (!block) return std::nullopt;
  return GuardSite{address, static_cast<uint32_t>(found - proved.begin()), *block};
}

}  // namespace clew::recorder
