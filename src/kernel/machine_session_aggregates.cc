// SPDX-License-Identifier: Apache-2.0
#include "kernel/machine_session_aggregates.h"

#include <cstring>
#include <map>
#include <string_view>

#include "aggregate/d_value.h"

namespace clew::kernel {
namespace {

using abi::AggregateFunction;

uint64_t load(const uint64_t& word) {
  return __atomic_load_n(&word, __ATOMIC_SEQ_CST);
}

class AggregationReader {
 public:
  AggregationReader(const MachineMaps& maps, uint32_t aggregation, bool takes)
      : maps_(maps),
        table_(maps.aggregations.as<abi::MachineAggregationTable>()[aggregation]),
        takes_(takes) {}

  std::vector<MachineAggregate> read() {
    for (uint32_t cpu = 0; cpu < maps_.cpus; ++cpu) {
      uint8_t* entry =
          maps_.aggregates.memory.data() + cpu * maps_.aggregates_cpu_bytes + table_.begin;
      for (uint64_t i = 0; i < table_.entries; ++i, entry += table_.entry_bytes)
        read_entry(reinterpret_cast<uint64_t*>(entry));
    }
    return std::move(result_);
  }

 private:
  // An entry whose count of updates is not 0 keeps its key: only we make it 0.
  void read_entry(uint64_t* words) {
    const uint64_t key_words = table_.aggregation.key_bytes / 8;
    uint64_t* cells = words + 2 + key_words;
    const auto used = static_cast<uint64_t>(abi::MachineAggregateState::Used);
    if ((load(words[0]) & 3) != used) return;
    const uint64_t updates = load(cells[0]) & abi::kMachineUpdatesMask;
    if (updates == 0) return;
    MachineAggregate& sum = sum_of(reinterpret_cast<const uint8_t*>(words + 2));
    const uint64_t empty = abi::neutral_word(table_.aggregation.function);
    read_.clear();
    for (uint32_t i = 1; i < table_.aggregation.cell_words; ++i) {
      read_.push_back(takes_ ? __atomic_exchange_n(&cells[i], empty, __ATOMIC_SEQ_CST)
                             : load(cells[i]));
    }
    aggregate::merge_cells(table_.aggregation.function, read_, sum.cells);
    if (table_.aggregation.function == AggregateFunction::Count) {
      sum.cells[0] += updates;
    }
    if (takes_) (void)__atomic_fetch_sub(&cells[0], updates, __ATOMIC_SEQ_CST);
  }

  MachineAggregate& sum_of(const uint8_t* key) {
    const std::string_view text(reinterpret_cast<const char*>(key), table_.aggregation.key_bytes);
    const auto [found, is_new] = places_.emplace(std::string(text), result_.size());
    if (is_new) {
      MachineAggregate one;
      one.key.assign(text.begin(), text.end());
      one.cells.assign(table_.aggregation.cell_words - 1,
                       abi::neutral_word(table_.aggregation.function));
      result_.push_back(std::move(one));
    }
    return result_[found->second];
  }

  const MachineMaps& maps_;
  const abi::MachineAggregationTable& table_;
  bool takes_;
  std::vector<uint64_t> read_;  // The cells of one entry.
  std::vector<MachineAggregate> result_;
  std::map<std::string, size_t, std::less<>> places_;
};

}  // namespace

std::vector<MachineAggregate> read_aggregation(const MachineMaps& maps, uint32_t aggregation,
                                               bool takes) {
  return AggregationReader(maps, aggregation, takes).read();
}

}  // namespace clew::kernel
