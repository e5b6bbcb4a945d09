// SPDX-License-Identifier: Apache-2.0
// Formats of printf(), printa(), system() and freopen(), run over the values that a record or the
// key of an aggregation holds; and the texts that those values have by themselves.
//
// Formats and values fit: the checker saw to it. Where they do not (a record of another version),
// a conversion prints what it can, and one without a value prints nothing.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "aggregate/d_value.h"
#include "output/d/symbols.h"
#include "query/d/record.h"
#include "query/d/script.h"

namespace clew::output::d {

// A value and what it is. Integers are little-endian in the first size_bytes of `bytes`.
struct Datum {
  query::d::FieldKind kind = query::d::FieldKind::Integer;
  query::d::Action action = query::d::Action::None;
  uint32_t size_bytes = 8;
  bool is_signed = false;
  std::span<const uint8_t> bytes;
};

// The value of a field; bytes that the record does not have are missing in `bytes`.
Datum datum_of(const query::d::RecordField& field, std::span<const uint8_t> record);

uint64_t unsigned_of(const Datum& datum);        // Zero-extended.
int64_t signed_of(const Datum& datum);           // Sign-extended from its size.
std::string_view string_of(const Datum& datum);  // Up to the NUL.
// "m`f+0x1" of an address of the kernel or a process, as its action asks for.
std::string address_text(const Datum& datum, const target::Symbolizer& symbols);

// Of a KernelStack or UserStack.
aggregate::Stack stack_of(const Datum& datum, const target::Symbolizer& symbols);

// Frames, each on a line of its own with `indent` blanks in front and padded to `width` (left when
// it is negative); an empty line comes first.
struct StackLook {
  uint32_t indent = 14;
  int32_t width = 0;
};
void append_stack(const Datum& datum, const target::Symbolizer& symbols, const StackLook& look,
                  std::string& out);

struct FormatInput {
  std::span<const Datum> values;
  std::span<const aggregate::DValue>
      aggregates;  // printa: each %@ takes the next, the last repeats.
  const target::Symbolizer& symbols;
  bool zooms = false;  // aggzoom
};

void append_formatted(const query::d::Format& format, const FormatInput& input, std::string& out);

}  // namespace clew::output::d
