// SPDX-License-Identifier: Apache-2.0
#include "kernel/d_session_aggregates.h"

#include <cstring>
#include <limits>
#include <map>
#include <string_view>

namespace clew::kernel {
namespace {

using abi::AggregateFunction;

constexpr uint64_t kLargest = std::numeric_limits<int64_t>::max();
constexpr uint64_t kSmallest = uint64_t{1} << 63;

uint64_t neutral(AggregateFunction function) {
  if (function == AggregateFunction::Min) return kLargest;
  return function == AggregateFunction::Max ? kSmallest : 0;
}

uint64_t load(const uint64_t& word) {
  return __atomic_load_n(&word, __ATOMIC_SEQ_CST);
}

class AggregationReader {
 public:
  AggregationReader(const DMaps& maps, uint32_t aggregation, bool takes)
      : maps_(maps),
        table_(maps.aggregations.as<abi::DAggregationTable>()[aggregation]),
        takes_(takes) {}

  std::vector<DAggregate> read() {
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
    const auto used = static_cast<uint64_t>(abi::DAggregateState::Used);
    if ((load(words[0]) & 3) != used) return;
    const uint64_t updates = load(cells[0]) & abi::kDUpdatesMask;
    if (updates == 0) return;
    DAggregate& sum = sum_of(reinterpret_cast<const uint8_t*>(words + 2));
    const uint64_t empty = neutral(table_.aggregation.function);
    for (uint32_t i = 1; i < table_.aggregation.cell_words; ++i) {
      const uint64_t value =
          takes_ ? __atomic_exchange_n(&cells[i], empty, __ATOMIC_SEQ_CST) : load(cells[i]);
      add(sum.cells, i - 1, value);
    }
    if (table_.aggregation.function == AggregateFunction::Count) {
      sum.cells[0] += updates;
    }
    if (takes_) (void)__atomic_fetch_sub(&cells[0], updates, __ATOMIC_SEQ_CST);
  }

  DAggregate& sum_of(const uint8_t* key) {
    const std::string_view text(reinterpret_cast<const char*>(key), table_.aggregation.key_bytes);
    const auto [found, is_new] = places_.emplace(std::string(text), result_.size());
    if (is_new) {
      DAggregate one;
      one.key.assign(text.begin(), text.end());
      one.cells.assign(table_.aggregation.cell_words - 1, neutral(table_.aggregation.function));
      result_.push_back(std::move(one));
    }
    return result_[found->second];
  }

  void add(std::vector<uint64_t>& cells, uint32_t index, uint64_t value) const {
    const auto is_less = [](uint64_t a, uint64_t b) {
      return static_cast<int64_t>(a) < static_cast<int64_t>(b);
    };
    uint64_t& cell = cells[index];
    switch (table_.aggregation.function) {
      case AggregateFunction::Min:
        if (is_less(value, cell)) cell = value;
        return;
      case AggregateFunction::Max:
        if (is_less(cell, value)) cell = value;
        return;
      case AggregateFunction::StandardDeviation:
      case AggregateFunction::Variance: {
        // Cells 2 and 3 are one number of 128 bits.
        cell += value;
        const bool carries = index == 2 && cell < value;
        if (carries) ++cells[3];
        return;
      }
      case AggregateFunction::Count:
      case AggregateFunction::Sum:
      case AggregateFunction::Average:
      case AggregateFunction::Quantize:
      case AggregateFunction::Lquantize:
      case AggregateFunction::Llquantize:
      case AggregateFunction::Distinct:
      case AggregateFunction::TopK:
      case AggregateFunction::Quantile:
        cell += value;
        return;
    }
  }

  const DMaps& maps_;
  const abi::DAggregationTable& table_;
  bool takes_;
  std::vector<DAggregate> result_;
  std::map<std::string, size_t, std::less<>> places_;
};

}  // namespace

std::vector<DAggregate> read_aggregation(const DMaps& maps, uint32_t aggregation, bool takes) {
  return AggregationReader(maps, aggregation, takes).read();
}

}  // namespace clew::kernel
