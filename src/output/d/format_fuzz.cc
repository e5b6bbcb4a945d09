// SPDX-License-Identifier: Apache-2.0
// Any format over any bytes: whatever a record holds, printing it neither crashes nor fills memory.
// The first byte is the length of the format; the rest are fields of every kind.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "output/d/default_text.h"
#include "output/d/fake_host.h"
#include "output/d/printf.h"
#include "query/d/parse_format.h"

using clew::output::d::Datum;
using clew::query::d::FieldKind;

namespace {

constexpr size_t kFieldBytes = 24;

Datum datum_from(std::span<const uint8_t> bytes) {
  constexpr std::array<FieldKind, 7> kKinds = {
      FieldKind::Integer,   FieldKind::String,        FieldKind::Bytes,      FieldKind::KernelStack,
      FieldKind::UserStack, FieldKind::KernelAddress, FieldKind::UserAddress};
  constexpr std::array<uint32_t, 5> kSizes = {1, 2, 4, 8, 16};
  return {.kind = kKinds[bytes[0] % kKinds.size()],
          .action = clew::query::d::Action::None,
          .size_bytes = kSizes[(bytes[0] >> 4) % kSizes.size()],
          .is_signed = (bytes[0] & 8) != 0,
          .bytes = bytes.subspan(1)};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::span<const uint8_t> input(data, size);
  if (input.empty()) return 0;
  const size_t length = std::min<size_t>(input[0], input.size() - 1);
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, length);
  const auto format = clew::query::d::parse_format(text, 1, {});
  input = input.subspan(1 + length);
  std::vector<Datum> values;
  for (; !input.empty(); input = input.subspan(std::min(kFieldBytes, input.size())))
    values.push_back(datum_from(input.first(std::min(kFieldBytes, input.size()))));
  const clew::output::d::FakeSymbols symbols;
  std::string out;
  if (format) {
    clew::output::d::append_formatted(
        *format, {.values = values, .aggregates = {}, .symbols = symbols}, out);
  }
  for (const Datum& datum : values) {
    clew::output::d::append_traced(datum, symbols, {}, out);
    clew::output::d::append_key_text(datum, symbols, {}, out);
  }
  return 0;
}
