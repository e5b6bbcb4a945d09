// SPDX-License-Identifier: Apache-2.0
#include "aggregate/table_bytes.h"

#include <cstring>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include "base/assert.h"
#include "collect/bytes.h"

namespace clew::aggregate {
namespace {

constexpr uint32_t kMagic = 0x54574C43;  // "CLWT", little endian.

constexpr size_t kSizeOffset = 8;
constexpr uint8_t kStack = 7;
static_assert(std::is_same_v<std::variant_alternative_t<kStack, Value>, Stack>);

// --- what there is to write and read: once for both ----------------------------------------------

constexpr auto last_of(ColumnType) {
  return ColumnType::Stack;
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
    auto& [name, type, unit, is_approximate, role, adds_up, of_kernel] = value;
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
    auto& [probe, process, exhausted] = value;
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
           duties, sites, attach_ms, stopped_ms, processes, window_ms] = value;
    return std::tie(missed, dropped, lost, refused, uprobes, disarmed, left_out, open, left_by_jump,
                    causal, duties, sites, attach_ms, stopped_ms, processes, window_ms);
  }
}

// --- writing -------------------------------------------------------------------------------------

class Writer {
 public:
  template <typename T>
  void put(const T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      put(static_cast<uint8_t>(value));
    } else if constexpr (std::is_arithmetic_v<T> || std::is_enum_v<T>) {
      collect::append(bytes_, value);
    } else {
      std::apply([this](const auto&... member) { (this->put(member), ...); }, members_of(value));
    }
  }
  void put(const std::string& text) {
    put_count(text.size());
    collect::append(bytes_, std::span<const char>(text));
  }
  template <typename T>
  void put(const std::vector<T>& list) {
    put_count(list.size());
    for (const T& one : list)
      put(one);
  }
  void put(const collect::Causes& causes) {
    put_count(causes.size());
    for (const auto& [cause, count] : causes) {
      put(cause);
      put(count);
    }
  }
  void put(const Value& value) {
    put(static_cast<uint8_t>(value.index()));
    if (const auto* text = std::get_if<std::string>(&value)) put(*text);
    if (const auto* number = std::get_if<int64_t>(&value)) put(*number);
    if (const auto* number = std::get_if<uint64_t>(&value)) put(*number);
    if (const auto* number = std::get_if<double>(&value)) put(*number);
    if (const auto* stack = std::get_if<Stack>(&value)) put(stack->frames);
  }
  void put_words(std::span<const uint64_t> words) { collect::append(bytes_, words); }

  std::vector<std::byte> take() {
    const uint64_t size_bytes = bytes_.size();
    std::memcpy(&bytes_[kSizeOffset], &size_bytes, sizeof size_bytes);
    return std::move(bytes_);
  }

 private:
  void put_count(size_t count) {
    CLEW_ASSERT(count <= UINT32_MAX);
    put(static_cast<uint32_t>(count));
  }

  std::vector<std::byte> bytes_;
};

// --- reading -------------------------------------------------------------------------------------

// After a failure nothing is read any more, and what `take` has left is not to be used.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> bytes) : cursor_(bytes) {}

  template <typename T>
  void take(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      const auto byte = cursor_.take<uint8_t>();
      if (byte > 1) cursor_.fail();
      value = byte == 1;
    } else if constexpr (std::is_enum_v<T>) {
      value = cursor_.take<T>();
      if (value > last_of(value)) cursor_.fail();
    } else if constexpr (std::is_arithmetic_v<T>) {
      value = cursor_.take<T>();
    } else {
      std::apply([this](auto&... member) { (this->take(member), ...); }, members_of(value));
    }
  }
  void take(std::string& text) {
    const std::vector<char> characters = cursor_.take_many<char>(take<uint32_t>());
    text.assign(characters.begin(), characters.end());
  }
  // Each element takes bytes, so a count that is not true ends soon.
  template <typename T>
  void take(std::vector<T>& list) {
    const auto count = take<uint32_t>();
    for (uint32_t i = 0; i < count && !failed(); ++i)
      take(list.emplace_back());
  }
  void take(collect::Causes& causes) {
    const auto count = take<uint32_t>();
    for (uint32_t i = 0; i < count && !failed(); ++i) {
      std::string cause;
      take(cause);
      const bool is_next = causes.empty() || causes.rbegin()->first < cause;
      if (!is_next) cursor_.fail();
      take(causes[cause]);
    }
  }
  void take(Value& value) {
    switch (take<uint8_t>()) {
      case 0:
        value = Value();
        return;
      case 1:
        value = take<int64_t>();
        return;
      case 2:
        value = take<uint64_t>();
        return;
      case 3:
        value = take<double>();
        return;
      case 4:
        take(value.emplace<std::string>());
        return;
      case kStack:
        take(value.emplace<Stack>().frames);
        return;
      default:
        cursor_.fail();
    }
  }
  template <typename T>
  T take() {
    T value{};
    take(value);
    return value;
  }
  std::vector<uint64_t> take_words(uint64_t count) { return cursor_.take_many<uint64_t>(count); }

  [[nodiscard]] bool failed() const { return cursor_.failed(); }
  [[nodiscard]] bool at_end() const { return cursor_.rest().empty(); }

 private:
  collect::Cursor cursor_;
};

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
  return writer.take();
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
  if (!reader.at_end()) return damaged("something follows the rows");
  return table;
}

}  // namespace clew::aggregate
