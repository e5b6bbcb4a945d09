// SPDX-License-Identifier: Apache-2.0
#include "answer/join_scene.h"

#include <algorithm>
#include <filesystem>
#include <variant>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "answer/answer.h"
#include "answer/operator.h"
#include "plan/evaluate.h"
#include "query/fake_types.h"
#include "query/fields.h"
#include "query/parse.h"
#include "query/print.h"
#include "query/vocabulary.h"

namespace clew::answer {
namespace {

namespace fs = std::filesystem;
using aggregate::Value;
using causal::EdgeClass;
using query::Act;

const fs::path kPaperVocabulary = fs::path(CLEW_SOURCE_DIR) / "tests/golden/query/vocabulary";

// Functions of every process that hand requests on.
query::Carrier carrier(const std::string& function, Act act, EdgeClass how = EdgeClass::Recipe) {
  query::Carrier made;
  made.cause.act = act;
  made.cause.how = how;
  made.source.module = "app";
  made.source.function = function;
  if (act == Act::Begin || act == Act::End) return made;
  query::Expression key;
  key.kind = query::ExpressionKind::Field;
  key.field = query::Field::Argument;
  made.keys.push_back(std::move(key));
  return made;
}

std::string text_of(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* real = std::get_if<double>(&value)) return fmt::format("{}", *real);
  if (std::holds_alternative<std::monostate>(value)) return "null";
  return fmt::format("{}", static_cast<int64_t>(plan::bits_of(value)));
}

class Lines final : public Operator {
 public:
  void take(RowBatch& rows) override {
    for (size_t i = 0; i < rows.size(); ++i) {
      std::string line;
      for (const Value& value : rows.at(i))
        line += (line.empty() ? "" : " ") + text_of(value);
      lines.push_back(std::move(line));
    }
  }
  void finish() override {}

  std::vector<std::string> lines;
};

// What a probe computes. An address of text is the text's place in `kFileNames`.
const std::vector<std::string> kFileNames = {"", "A.txt", "B.txt"};

class EventBindings final : public plan::Bindings {
 public:
  EventBindings(const query::Source& source, const Exports& exports)
      : source_(source), exports_(exports) {}

  Value field(const query::Expression& expression) override {
    using query::Field;
    std::string name(query::info(expression.field).name);
    if (expression.field == Field::Argument)
      name = query::argument_name(Field::Argument, expression.index);
    const auto found = exports_.find(name);
    // What another stream asks of all events need not be said of this one.
    const bool is_asked = expression.field == Field::Argument;
    if (found == exports_.end() && is_asked) ADD_FAILURE() << "nothing is said of " << name;
    return found == exports_.end() ? Value{} : found->second;
  }
  Value input(uint16_t index) override { return plan::evaluate(source_.inputs[index], *this); }
  Value let(uint16_t) override { return {}; }
  Value value(uint16_t) override { return {}; }
  Value aggregate(uint16_t) override { return {}; }
  Value memory(const query::Expression&, uint64_t address) override {
    return kFileNames.at(address);
  }

 private:
  const query::Source& source_;
  const Exports& exports_;
};

}  // namespace

Scene::Scene(const std::string& text, JoinLimits limits, const Rewrite& rewrite) {
  query::Vocabulary vocabulary;
  EXPECT_TRUE(vocabulary.load(kPaperVocabulary).has_value());
  query::FakeTypes types;
  const query::Text query_text{.name = "query", .text = text};
  auto query = query::parse(query_text, {.vocabulary = &vocabulary, .types = &types});
  EXPECT_TRUE(query.has_value()) << query.error().message;
  printed_ = query::print(*query);
  if (rewrite) *query = rewrite(std::move(*query));
  auto joined = plan::separate(
      *query,
      {carrier("begin", Act::Begin), carrier("end", Act::End), carrier("put", Act::Put),
       carrier("take", Act::Take), carrier("join", Act::Join),
       carrier("guess", Act::Take, EdgeClass::Heuristic)},
      query::Reporter(query_text));
  EXPECT_TRUE(joined.has_value()) << joined.error().message;
  joined_ = std::move(*joined);
  joins_ = std::make_unique<Joins>(joined_, nullptr, limits);
  plan_ = plan::plain(joined_.stages[0].rest);
  rows_.emplace(plan_.query.values.size());
}

JoinTally& Scene::count() {
  JoinTally& tally = tally_.emplace(joined_);
  joins_ = std::make_unique<Joins>(joined_, nullptr, JoinLimits{}, &tally);
  return tally;
}

void Scene::branch(int64_t from, int64_t to) {
  put(from, 1000 + to);
  take(to, 1000 + to);
}

void Scene::hit(int64_t tid, const std::string& name, const Exports& exports) {
  const std::optional<size_t> source = source_of(name);
  if (!source) return;
  std::vector<Value> row = empty_row(*source, tid);
  EventBindings bindings(joined_.events.sources[*source], exports);
  for (size_t i = plan::Joined::kTime; i < row.size(); ++i)
    row[i] = plan::evaluate(joined_.events.values[i].expression, bindings);
  for (const query::Expression& condition : joined_.events.where) {
    if (!plan::is_true(plan::evaluate(condition, bindings))) return;
  }
  give(row);
}

void Scene::hit_at_once(int64_t tid, const std::string& name, size_t count) {
  const size_t source = source_of(name).value();
  const std::vector<Value> row = empty_row(source, tid);
  RowBatch events(row.size());
  for (size_t i = 0; i < count; ++i)
    std::copy(row.begin(), row.end(), events.add().begin());
  size_t at = 0;
  while (at < events.size()) {
    const size_t before = rows_->size();
    RowBatch some(rows_->width());
    at = joins_->take(events, {.begin = at, .end = events.size()}, some);
    EXPECT_LE(some.size(), 1);
    for (size_t i = 0; i < some.size(); ++i)
      std::copy(some.at(i).begin(), some.at(i).end(), rows_->add().begin());
    EXPECT_EQ(rows_->size(), before + some.size());
  }
}

void Scene::lose(size_t events) {
  RowBatch rows(joined_.events.values.size());
  for (size_t i = 0; i < events; ++i)
    (void)rows.add();
  joins_->skip(rows);
}

Strings Scene::lines() {
  Lines lines;
  Answer answer(plan_, 0, lines);
  if (plan_.query.shape == query::Shape::Groups) {
    answer.take(joins_->counted());
  } else {
    answer.take(*rows_);
  }
  std::sort(lines.lines.begin(), lines.lines.end());
  return lines.lines;
}

void Scene::forget() {
  joins_->forget_counted();
  rows_.emplace(plan_.query.values.size());
}

std::optional<size_t> Scene::source_of(const std::string& name) const {
  for (size_t i = 0; i < joined_.events.sources.size(); ++i) {
    const query::Source& source = joined_.events.sources[i];
    if (source.label == name || source.function == name) return i;
  }
  return std::nullopt;
}

std::vector<Value> Scene::empty_row(size_t source, int64_t tid) const {
  std::vector<Value> row(joined_.events.values.size());
  row[plan::Joined::kSource] = static_cast<int64_t>(source);
  row[plan::Joined::kPid] = int64_t{1};
  row[plan::Joined::kTid] = tid;
  return row;
}

void Scene::carry(int64_t tid, const std::string& function, int64_t key) {
  const size_t source = source_of(function).value();
  std::vector<Value> row = empty_row(source, tid);
  for (const plan::JoinRole& role : joined_.roles[source]) {
    if (role.carrier && !role.key_columns.empty()) row[role.key_columns[0]] = key;
  }
  give(row);
}

void Scene::give(const std::vector<Value>& row) {
  RowBatch events(row.size());
  std::copy(row.begin(), row.end(), events.add().begin());
  EXPECT_EQ(joins_->take(events, {.begin = 0, .end = 1}, *rows_), 1);
}

}  // namespace clew::answer
