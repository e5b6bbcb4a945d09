// SPDX-License-Identifier: Apache-2.0
#include "cluster/answered_rows.h"

#include <utility>

#include <fmt/format.h>

#include "answer/answer.h"
#include "base/clock_ns.h"
#include "plan/plan.h"
#include "query/parse.h"

namespace clew::cluster {
namespace {

class Rows final : public AnsweredRows {
 public:
  Rows(query::Query query, output::RowSink& sink)
      : plan_(plan::plain(std::move(query))),
        to_sink_(sink),
        answer_(plan_, clock_ns(CLOCK_REALTIME) - clock_ns(CLOCK_MONOTONIC), to_sink_) {}

  [[nodiscard]] std::span<const aggregate::Column> columns() const override {
    return answer_.columns();
  }
  Expected<void> take(const aggregate::Table& table) override {
    const aggregate::TableSchema& schema = table.schema();
    const bool fits = schema.keys.size() == plan_.query.values.size() &&
                      schema.aggregates.size() == plan_.query.aggregates.size();
    if (!fits) return fail(ErrorCode::Refused, "its table is not as the nodes have said");
    answer_.take(table);
    return {};
  }

 private:
  class ToSink final : public answer::Operator {
   public:
    explicit ToSink(output::RowSink& sink) : sink_(sink) {}
    void take(answer::RowBatch& rows) override {
      for (size_t i = 0; i < rows.size(); ++i)
        sink_.row(rows.at(i));
    }
    void finish() override {}

   private:
    output::RowSink& sink_;
  };

  plan::Plan plan_;
  ToSink to_sink_;
  answer::Answer answer_;
};

}  // namespace

Expected<std::unique_ptr<AnsweredRows>> AnsweredRows::of(const std::string& answered,
                                                         output::RowSink& sink) {
  auto query = query::parse_any({.name = "answer", .text = answered}, {});
  if (!query) {
    return fail(ErrorCode::Refused, fmt::format("what the nodes answer cannot be read here: {}",
                                                query.error().message));
  }
  return std::make_unique<Rows>(std::move(*query), sink);
}

}  // namespace clew::cluster
