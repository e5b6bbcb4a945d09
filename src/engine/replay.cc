// SPDX-License-Identifier: Apache-2.0
#include "engine/replay.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "collect/spill.h"
#include "engine/recording.h"
#include "engine/tracee.h"
#include "query/parse.h"
#include "query/print.h"
#include "query/vocabulary.h"

namespace clew::engine {
namespace {

// The functions are called in the order of their declaration.
class Replay {
 public:
  Replay(const Request& request, output::RowSink& sink)
      : request_(request), sink_(sink), report_(request.text) {}

  Expected<void> read_description();
  Expected<void> plan();
  Expected<void> answer();

 private:
  Expected<void> map_sources();
  void push(const collect::Event& event);
  Expected<void> push_groups();
  [[nodiscard]] collect::Losses losses(const collect::SpillReader& reader) const;

  const Request& request_;
  output::RowSink& sink_;
  query::Reporter report_;
  Recording recording_;
  plan::Plan plan_;
  plan::Lowered lowered_;
  plan::Grouping grouping_;
  std::vector<bool> wanted_;  // By shape.
  std::vector<std::unique_ptr<RecordedNames>> names_;
  std::vector<plan::Root> roots_;
  uint64_t rows_left_ = UINT64_MAX;
};

// Reads the whole file once: the last frame has names that the first one could not have.
Expected<void> Replay::read_description() {
  collect::SpillReader reader = CLEW_TRY(collect::SpillReader::open(request_.from_path));
  while (CLEW_TRY(reader.next())) {
  }
  const size_t shapes = reader.start().event_words.size();
  Expected<Recording> first = recording_of(reader.start().note);
  if (!first || first->sources.size() != shapes) {
    return fail(
        ErrorCode::InvalidQuery,
        fmt::format("{}: its description of the events cannot be read", request_.from_path));
  }
  Expected<Recording> last = recording_of(reader.end_note());
  const bool is_usable = last && last->sources.size() == shapes;
  recording_ = std::move(is_usable ? *last : *first);
  return {};
}

Expected<void> Replay::map_sources() {
  wanted_.assign(recording_.sources.size(), false);
  const std::vector<std::string_view> known(recording_.sources.begin(), recording_.sources.end());
  for (const query::Source& source : plan_.query.sources) {
    const std::string text = query::print(source);
    const auto found = std::find(known.begin(), known.end(), text);
    if (found == known.end()) {
      return report_.fail(source.span, fmt::format("the file has no events of {}, only of {}", text,
                                                   fmt::join(known, ", ")));
    }
    wanted_[static_cast<size_t>(found - known.begin())] = true;
  }
  return {};
}

Expected<void> Replay::plan() {
  query::Vocabulary vocabulary;
  for (const std::string& path : request_.vocabulary_paths) {
    CLEW_TRY(vocabulary.load(path));
  }
  query::Query query =
      CLEW_TRY(query::parse(request_.text, {.vocabulary = &vocabulary, .types = nullptr}));
  if (query.every_ns || request_.every_ns) {
    return fail(ErrorCode::InvalidQuery, "every needs running processes; a file has one answer");
  }
  if (query.including_open) {
    return fail(ErrorCode::InvalidQuery,
                "'including open' needs running processes; a file has no open calls");
  }
  if (query.shape == query::Shape::Events && query.take) rows_left_ = *query.take;
  plan_ = plan::plain(std::move(query));
  CLEW_TRY(map_sources());
  lowered_.form = plan::StateForm::Events;
  lowered_.clock = recording_.clock;
  const plan::Captured captured = CLEW_TRY(plan::capture_held(plan_, recording_.held, report_));
  for (size_t i = 0; i < recording_.processes.size(); ++i) {
    names_.push_back(std::make_unique<RecordedNames>(recording_, i));
    roots_.push_back(plan::Root::over(plan_, lowered_, grouping_, *names_.back(), captured));
  }
  if (roots_.empty()) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("{}: it names no process", request_.from_path));
  }
  return {};
}

void Replay::push(const collect::Event& event) {
  const uint32_t tracee = event.process >> kTraceeShift;
  if (!wanted_[event.shape] || tracee >= roots_.size()) return;
  collect::Event own = event;
  own.process &= (1U << kTraceeShift) - 1;
  for (const aggregate::Row& row : roots_[tracee].take(own)) {
    if (rows_left_ == 0) return;
    --rows_left_;
    sink_.row(row);
  }
}

Expected<void> Replay::push_groups() {
  aggregate::Table table = roots_[0].counted();
  for (size_t i = 1; i < roots_.size(); ++i) {
    CLEW_TRY(table.merge(roots_[i].counted()));
  }
  for (const aggregate::Row& row : roots_[0].rows(table)) {
    sink_.row(row);
  }
  return {};
}

collect::Losses Replay::losses(const collect::SpillReader& reader) const {
  collect::Losses losses = recording_.losses;
  collect::count_cause(losses.dropped, collect::kDroppedFrames, reader.damaged_frames());
  losses.lost = reader.problems();
  if (!reader.complete()) {
    losses.lost.push_back(
        fmt::format("{}: it has no end: its writer was killed, or it was cut off "
                    "({} bytes of a frame are left out)",
                    request_.from_path, reader.bytes_left_over()));
  }
  return losses;
}

Expected<void> Replay::answer() {
  const bool groups = plan_.query.shape == query::Shape::Groups;
  sink_.begin(roots_[0].columns(), groups ? output::RowMode::Table : output::RowMode::Stream);
  collect::SpillReader reader = CLEW_TRY(collect::SpillReader::open(request_.from_path));
  while (rows_left_ > 0) {
    const std::optional<collect::SpillRound> round = CLEW_TRY(reader.next());
    if (!round) break;
    for (size_t i = 0; i < round->batch.size(); ++i) {
      push(round->batch.at(i));
    }
  }
  if (groups) CLEW_TRY(push_groups());
  sink_.finish(rows_left_ > 0 ? losses(reader) : recording_.losses);
  return {};
}

}  // namespace

Expected<void> replay(const Request& request, output::RowSink& sink) {
  Replay replay(request, sink);
  CLEW_TRY(replay.read_description());
  CLEW_TRY(replay.plan());
  return replay.answer();
}

}  // namespace clew::engine
