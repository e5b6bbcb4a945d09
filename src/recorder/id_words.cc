// SPDX-License-Identifier: Apache-2.0
#include "recorder/id_words.h"

#include <cstring>

#include "abi/recorder.h"
#include "code/decode.h"

namespace clew::recorder {

namespace {

// Of all operands of four bytes in probes: bits are smaller than any record, and words of Time
// records are extended.
bool is_id(const code::Decoded& decoded, std::span<const uint8_t> bytes, const IdRange& ids) {
  const bool goes_on = decoded.flow == code::Flow::Next || decoded.flow == code::Flow::Nop;
  if (!goes_on || decoded.immediate_size != sizeof(uint32_t)) return false;
  uint32_t word = 0;
  std::memcpy(&word, bytes.data() + decoded.immediate_offset, sizeof(word));
  return abi::is_dag_record(word) && abi::dag_id(word) - ids.first < ids.count;
}

bool add_words(std::span<const uint8_t> probes, const IdRange& ids, uint32_t begin,
               std::vector<uint32_t>& words) {
  for (uint32_t at = 0; at < probes.size();) {
    const std::span<const uint8_t> bytes = probes.subspan(at);
    const auto decoded = code::decode(bytes);
    if (!decoded) return false;
    if (is_id(*decoded, bytes, ids)) words.push_back(begin + at + decoded->immediate_offset);
    at += decoded->length;
  }
  return true;
}

}  // namespace

std::optional<std::vector<uint32_t>> id_words(std::span<const uint8_t> probes, const IdRange& ids) {
  std::vector<uint32_t> words;
  if (!add_words(probes, ids, 0, words)) return std::nullopt;
  return words;
}

std::optional<std::vector<uint32_t>> id_words(const copy::ModuleCopy& copy, const IdRange& ids) {
  std::vector<uint32_t> words;
  for (size_t i = 0; i < copy.pcs.size(); ++i) {
    const copy::CopiedPc& pc = copy.pcs[i];
    if (pc.kind != copy::PcKind::Inserted) continue;
    const uint32_t end = i + 1 < copy.pcs.size() ? copy.pcs[i + 1].offset : copy.code_size;
    const auto probes = std::span(copy.bytes).subspan(pc.offset, end - pc.offset);
    if (!add_words(probes, ids, pc.offset, words)) return std::nullopt;
  }
  return words;
}

}  // namespace clew::recorder
