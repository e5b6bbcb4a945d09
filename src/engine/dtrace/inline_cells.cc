// SPDX-License-Identifier: Apache-2.0
#include "engine/dtrace/inline_cells.h"

#include <algorithm>
#include <cstring>

#include "abi/machine/accessor.h"
#include "base/assert.h"

namespace clew::engine {

using plan::d::CellUpdate;
using plan::d::KeyPart;

namespace {

constexpr uint32_t kCellBytesMax = 0x4000;
constexpr uint32_t kAllocaBytesMin = 0x2000;  // That clauses keep beside cells.

uint64_t bytes_of(const plan::d::Generated& generated, uint32_t clause) {
  uint64_t words = 0;
  for (const CellUpdate& update : generated.cell_clauses[clause].updates)
    words += generated.aggregations[update.aggregation].cell_words;
  return 8 * words;
}

uint64_t name_of(uint64_t builtin, const abi::MachineEnabled& names) {
  const auto which = static_cast<abi::MachineBuiltin>(builtin);
  if (which == abi::MachineBuiltin::Probemod) return names.names[1];
  if (which == abi::MachineBuiltin::Probefunc) return names.names[2];
  CLEW_ASSERT(which == abi::MachineBuiltin::Probename);
  return names.names[3];
}

kernel::MachineAggregate& entry_of(std::vector<kernel::MachineAggregate>& entries,
                                   const std::vector<uint8_t>& key, size_t cells) {
  const auto found =
      std::find_if(entries.begin(), entries.end(),
                   [&](const kernel::MachineAggregate& entry) { return entry.key == key; });
  if (found != entries.end()) return *found;
  return entries.emplace_back(kernel::MachineAggregate{key, std::vector<uint64_t>(cells)});
}

}  // namespace

CellRoom cell_room(const plan::d::Generated& generated,
                   std::span<const kernel::MachineEnabling> enablings) {
  uint64_t wanted = 0;
  for (const kernel::MachineEnabling& enabling : enablings) {
    if (!kernel::needs_uprobe(enabling.probe.kind)) continue;
    for (const uint32_t clause : enabling.clauses)
      wanted += bytes_of(generated, clause);
  }
  const auto& scratch = generated.scratch_begin;
  const uint32_t begin =
      scratch.empty() ? 0 : (*std::max_element(scratch.begin(), scratch.end()) + 7) & ~7U;
  constexpr uint32_t kEnd = abi::kMachineWindowBytes - kAllocaBytesMin;
  const uint32_t own = fuel_bytes(generated);
  if (begin >= kEnd) return {begin, begin + own};
  wanted += own;
  const uint64_t size = std::min<uint64_t>({wanted, kCellBytesMax, kEnd - begin});
  return {begin, begin + static_cast<uint32_t>(size)};
}

// As the table's entries have it.
InlineCells::Key InlineCells::key_of(const CellUpdate& update,
                                     const abi::MachineEnabled& names) const {
  std::vector<uint64_t> words;
  for (const KeyPart& part : update.key) {
    switch (part.kind) {
      case KeyPart::Kind::Number:
        words.push_back(part.value);
        break;
      case KeyPart::Kind::Pid:
        words.push_back(static_cast<uint64_t>(pid_));
        break;
      case KeyPart::Kind::ProbeName:
        words.push_back(name_of(part.value, names));
        break;
    }
  }
  Key key(8 * words.size());
  if (!words.empty()) std::memcpy(key.data(), words.data(), key.size());
  CLEW_ASSERT(key.size() == generated_.aggregations[update.aggregation].key_bytes);
  return key;
}

std::optional<uint32_t> InlineCells::place(const CellUpdate& update,
                                           const abi::MachineEnabled& names) {
  const auto pointer = [this](uint32_t word) { return room_.begin + 8 * word; };
  const std::pair wanted{update.aggregation, key_of(update, names)};
  const auto found = places_.find(wanted);
  if (found != places_.end()) return pointer(found->second);
  const uint32_t size = generated_.aggregations[update.aggregation].cell_words;
  if (size > room_.size_bytes() / 8 - words_) return std::nullopt;
  const uint32_t first = words_;
  words_ += size;
  places_.emplace(wanted, first);
  return pointer(first);
}

uint32_t fuel_bytes(const plan::d::Generated& generated) {
  return generated.extensions.has_loops() ? 8 * (1 + kFuelWords) : 0;
}

std::optional<uint32_t> InlineCells::fuel_place(uint32_t enabling) const {
  if (!generated_.extensions.has_loops()) return std::nullopt;
  return room_.begin + 8 * (1 + fuel_word(enabling));
}

std::span<const uint64_t> InlineCells::out_of_fuel(std::span<const uint64_t> sums) const {
  if (!generated_.extensions.has_loops() || sums.size() <= kFuelWords) return {};
  return sums.subspan(1, kFuelWords);
}

uint64_t InlineCells::left_alone(std::span<const uint64_t> sums) const {
  return out_of_fuel(sums).empty() ? 0 : sums[0];
}

// Updates count themselves last: what belongs to those that are counted is in the other words.
void InlineCells::add(uint32_t aggregation, std::span<const uint64_t> sums, bool takes,
                      std::vector<kernel::MachineAggregate>& entries) {
  taken_.resize(words_);
  const abi::MachineAggregation& described = generated_.aggregations[aggregation];
  for (const auto& [which, first] : places_) {
    if (which.first != aggregation || first + described.cell_words > sums.size()) continue;
    const uint64_t updates = sums[first] - taken_[first];
    if (updates == 0) continue;
    const bool is_count = described.function == abi::AggregateFunction::Count;
    auto& cells = entry_of(entries, which.second, described.cell_words - 1).cells;
    if (is_count) cells[0] += updates;
    for (uint32_t i = 1; i < described.cell_words && !is_count; ++i)
      cells[i - 1] += sums[first + i] - taken_[first + i];
    if (!takes) continue;
    std::copy_n(sums.begin() + first, described.cell_words, taken_.begin() + first);
  }
}

}  // namespace clew::engine
