// SPDX-License-Identifier: Apache-2.0
#include "aggregate/table_bytes.h"

#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "collect/members.h"

namespace clew::aggregate {
namespace {

constexpr uint32_t kMagic = 0x54574C43;  // "CLWT", little endian.

constexpr size_t kSizeOffset = 8;
constexpr uint8_t kStack = 7;
static_assert(std::is_same_v<std::variant_alternative_t<kStack, Value>, Stack>);

// --- what there is to write and read: once for both ----------------------------------------------

constexpr auto last_of(ColumnType) {
  return ColumnType::Record;
}
constexpr auto last_of(ColumnRole) {
  return ColumnRole::Centre;
}
constexpr auto last_of(Unit) {
  return Unit::Nanoseconds;
}
constexpr auto last_of(AggregateFunction) {
  return static_cast<AggregateFunction>(abi::kAggregateFunctions - 1);
}

// All members of a struct: a new one does not compile until it stands here, too.
template <typename T>
auto members_of(T& value) {
  using Plain = std::remove_const_t<T>;
  if constexpr (std::is_same_v<Plain, Column>) {
    // The last two are of answers alone.
    auto& [name, type, unit, is_approximate, role, adds_up, of_kernel, only_grows, sum] = value;
    return std::tie(name, type, unit, is_approximate, role, adds_up, of_kernel);
  } else if constexpr (std::is_same_v<Plain, Frame>) {
    auto& [symbol, offset, module, file, line, inlined, address] = value;
    return std::tie(symbol, offset, module, file, line, inlined, address);
  } else if constexpr (std::is_same_v<Plain, AggregateSpec>) {
    auto& [function, is_signed, is_real, unit, scale, low, high, step, factor, steps, quantile,
           count_max] = value;
    return std::tie(function, is_signed, is_real, unit, scale, low, high, step, factor, steps,
                    quantile, count_max);
  } else if constexpr (std::is_same_v<Plain, AggregateColumn>) {
    auto& [name, spec] = value;
    return std::tie(name, spec);
  } else if constexpr (std::is_same_v<Plain, TableSchema>) {
    auto& [keys, aggregates] = value;
    return std::tie(keys, aggregates);
  } else if constexpr (std::is_same_v<Plain, collect::RefusedSite>) {
    auto& [function, kind, reason] = value;
    return std::tie(function, kind, reason);
  } else if constexpr (std::is_same_v<Plain, collect::DisarmedProbe>) {
    auto& [probe, process, exhausted, bound, share, after_ms] = value;
    return std::tie(probe, process, exhausted);
  } else if constexpr (std::is_same_v<Plain, collect::LeftOut>) {
    auto& [process, reason] = value;
    return std::tie(process, reason);
  } else if constexpr (std::is_same_v<Plain, collect::OpenCalls>) {
    auto& [count, oldest_ns] = value;
    return std::tie(count, oldest_ns);
  } else {
    static_assert(std::is_same_v<Plain, collect::Losses>);
    auto& [missed, dropped, lost, refused, uprobes, disarmed, left_out, open, left_by_jump, causal,
           duties, sites, attach_ms, stopped_ms, processes, window_ms, cost] = value;
    return std::tie(missed, dropped, lost, refused, uprobes, disarmed, left_out, open, left_by_jump,
                    causal, duties, sites, attach_ms, stopped_ms, processes, window_ms);
  }
}

struct Shape {
  template <typename T>
  static auto members(T& value) {
    return members_of(value);
  }
  template <typename T>
  static constexpr T last(T value) {
    return last_of(value);
  }
  static void put(collect::MemberWriter<Shape>& writer, const Value& value);
  static void take(collect::MemberReader<Shape>& reader, Value& value);
};
using Writer = collect::MemberWriter<Shape>;
using Reader = collect::MemberReader<Shape>;

void Shape::put(Writer& writer, const Value& value) {
  writer.put(static_cast<uint8_t>(value.index()));
  if (const auto* text = std::get_if<std::string>(&value)) writer.put(*text);
  if (const auto* number = std::get_if<int64_t>(&value)) writer.put(*number);
  if (const auto* number = std::get_if<uint64_t>(&value)) writer.put(*number);
  if (const auto* number = std::get_if<double>(&value)) writer.put(*number);
  if (const auto* stack = std::get_if<Stack>(&value)) writer.put(stack->frames);
}

void Shape::take(Reader& reader, Value& value) {
  switch (reader.take<uint8_t>()) {
    case 0:
      value = Value();
      return;
    case 1:
      value = reader.take<int64_t>();
      return;
    case 2:
      value = reader.take<uint64_t>();
      return;
    case 3:
      value = reader.take<double>();
      return;
    case 4:
      reader.take(value.emplace<std::string>());
      return;
    case kStack:
      reader.take(value.emplace<Stack>().frames);
      return;
    default:
      reader.fail();
  }
}

tl::unexpected<Error> damaged(std::string_view where) {
  return fail(ErrorCode::Io, fmt::format("the bytes are no table: {}", where));
}

Expected<void> check_header(Reader& reader, size_t size_bytes) {
  const bool is_table = reader.take<uint32_t>() == kMagic && !reader.failed();
  if (!is_table) return damaged("they do not begin as one");
  const auto version = reader.take<uint32_t>();
  if (!reader.failed() && version != kTableVersion) {
    return fail(ErrorCode::Refused,
                fmt::format("the table has version {}; this version of clew reads {}", version,
                            kTableVersion));
  }
  if (reader.take<uint64_t>() == size_bytes) return {};
  return damaged(fmt::format("they are {} bytes and say another number", size_bytes));
}

Expected<TableSchema> take_schema(Reader& reader) {
  const auto schema = reader.take<TableSchema>();
  if (reader.failed()) return damaged("their columns end early or have unknown types");
  if (schema.keys.size() > kTableColumnsMax || schema.aggregates.size() > kTableColumnsMax) {
    return damaged("they have too many columns");
  }
  for (const AggregateColumn& column : schema.aggregates)
    CLEW_TRY(check(column.spec));
  return schema;
}

Expected<void> take_rows(Reader& reader, Table& table) {
  const uint64_t words = table.schema().cell_words();
  const auto count = reader.take<uint64_t>();
  for (uint64_t i = 0; i < count && !reader.failed(); ++i) {
    Key key(table.schema().keys.size());
    for (Value& value : key)
      reader.take(value);
    std::vector<uint64_t> cells = reader.take_words(words);
    if (reader.failed()) break;
    if (!table.append(std::move(key), std::move(cells)))
      return damaged("their rows are not sorted");
  }
  if (reader.failed()) return damaged("their rows end early or have unknown values");
  return {};
}

}  // namespace

std::vector<std::byte> to_bytes(const Table& table) {
  Writer writer;
  writer.put(kMagic);
  writer.put(kTableVersion);
  writer.put(uint64_t{0});  // The size, when it is known.
  writer.put(table.interval);
  writer.put(table.schema());
  writer.put(table.losses);
  writer.put(uint64_t{table.size()});
  for (const auto& [key, cells] : table.cells()) {
    for (const Value& value : key)
      writer.put(value);
    writer.put_words(cells);
  }
  std::vector<std::byte> bytes = writer.take();
  const uint64_t size_bytes = bytes.size();
  std::memcpy(&bytes[kSizeOffset], &size_bytes, sizeof size_bytes);
  return bytes;
}

Expected<Table> table_of(std::span<const std::byte> bytes) {
  Reader reader(bytes);
  CLEW_TRY(check_header(reader, bytes.size()));
  const auto interval = reader.take<uint64_t>();
  Table table(CLEW_TRY(take_schema(reader)));
  table.interval = interval;
  reader.take(table.losses);
  if (reader.failed()) return damaged("their losses end early or are not sorted");
  CLEW_TRY(take_rows(reader, table));
  if (!reader.rest().empty()) return damaged("something follows the rows");
  return table;
}

}  // namespace clew::aggregate
