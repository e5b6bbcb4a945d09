// SPDX-License-Identifier: Apache-2.0
// Fuzzes what whoever asks does with tables of single events, which a node may have made up: they
// are refused whole, or are rows, and are joined by time. Byte 0 says which query they are of, byte
// 1 whether the others are the table's bytes, but for the size in their header, or changes to those
// of a table that is right.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "aggregate/table_bytes.h"
#include "answer/event_table.h"
#include "answer/row_batch.h"
#include "answer/time_joins.h"
#include "base/assert.h"
#include "plan/joined.h"
#include "plan/spread.h"
#include "query/diagnostic.h"
#include "query/parse.h"

namespace {

using clew::answer::RowBatch;
using Bytes = std::vector<std::byte>;

constexpr size_t kHeaderBytes = 16;

constexpr std::array kTexts = {
    "from e in cluster.Function(\"m!f\") select e.host, e.tid, e.time",
    "from e in cluster.Function(\"m!f\") where e.tid > 1 select e.function, e.time take 3",
    "from a in cluster.Function(\"m!f\") join b in cluster.Function(\"m!g\") on b.tid equals a.tid "
    "within 700ms select a.host, b.host as other, a.tid, a.time, b.time as when",
    "from a in cluster.Function(\"m!f\") join b in cluster.Function(\"m!g\") on b.tid equals a.tid "
    "within 700ms groupby a.host select a.host, count() as n",
};

// The query whose values the rows have, and what is made of them here.
struct Asked {
  explicit Asked(const char* text) : query(parsed(text)) {
    if (!clew::plan::joins_between_hosts(query)) return;
    const clew::query::Text of{.name = "query", .text = text};
    joined = clew::plan::separate(query, {}, clew::query::Reporter(of)).value();
    query = joined->events;
  }
  static clew::query::Query parsed(const char* text) {
    return clew::query::parse_any({.name = "query", .text = text}, {}).value();
  }
  clew::query::Query query;
  std::optional<clew::plan::Joined> joined{};
};

Bytes example(const Asked& asked) {
  clew::answer::EventTable events(asked.query, {.width = asked.query.values.size(), .time = {}}, 0);
  RowBatch rows(asked.query.values.size());
  for (int64_t i = 0; i < 3; ++i) {
    const std::span<clew::aggregate::Value> row = rows.add();
    for (size_t c = 0; c < row.size(); ++c) {
      const bool is_text =
          asked.query.values[c].expression.type.kind == clew::query::TypeKind::String;
      if (is_text) row[c] = std::string("text");
      if (!is_text) row[c] = i;
    }
  }
  events.add(rows);
  return to_bytes(events.take());
}

// As whoever asks joins them (cluster/answered_events.cc).
void join(const clew::plan::Joined& joined, const clew::aggregate::Table& table) {
  clew::answer::TimeJoins joins(joined, {.slack_ns = 1'000'000'000});
  RowBatch rows(joined.stages[0].rest.values.size());
  (void)clew::answer::give_events(table, joined.events, [&](RowBatch& events) {
    for (size_t at = 0; at < events.size(); rows.clear())
      at = joins.take(events, {.begin = at, .end = events.size()}, rows);
  });
  for (bool is_done = false; !is_done; rows.clear())
    is_done = joins.drain(rows);
}

void use(const Asked& asked, const clew::aggregate::Table& table) {
  size_t count = 0;
  const auto given =
      clew::answer::give_events(table, asked.query, [&](RowBatch& rows) { count += rows.size(); });
  CLEW_ASSERT(count == (given ? table.size() : 0));
  if (given && asked.joined) join(*asked.joined, table);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const Asked asked(kTexts[data[0] % kTexts.size()]);
  const std::span input = std::span(data, size).subspan(2);
  Bytes bytes = example(asked);
  if (data[1] % 2 == 0) {
    bytes.resize(kHeaderBytes);
    const auto rest = std::as_bytes(input);
    bytes.insert(bytes.end(), rest.begin(), rest.end());
  } else {
    for (size_t at = 0; at + 3 <= input.size(); at += 3)
      bytes[(input[at] + size_t{256} * input[at + 1]) % bytes.size()] =
          static_cast<std::byte>(input[at + 2]);
  }
  const uint64_t size_bytes = bytes.size();
  std::memcpy(&bytes[kHeaderBytes - sizeof size_bytes], &size_bytes, sizeof size_bytes);
  const auto table = clew::aggregate::table_of(bytes);
  if (table) use(asked, *table);
  return 0;
}
