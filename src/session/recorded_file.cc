// SPDX-License-Identifier: Apache-2.0
#include "session/recorded_file.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "plan/held.h"
#include "query/print.h"

namespace clew::session {

Expected<std::unique_ptr<RecordedFile>> RecordedFile::open(const std::string& path) {
  collect::SpillReader whole = CLEW_TRY(collect::SpillReader::open(path));
  while (CLEW_TRY(whole.next())) {
  }
  const size_t shapes = whole.start().event_words.size();
  Expected<Recording> first = recording_of(whole.start().note);
  if (!first || first->sources.size() != shapes) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("{}: its description of the events cannot be read", path));
  }
  Expected<Recording> last = recording_of(whole.end_note());
  const bool is_usable = last && last->sources.size() == shapes;
  Recording recording = std::move(is_usable ? *last : *first);
  if (recording.processes.empty() || recording.processes.size() > kMembersMax) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("{}: it names {} processes", path, recording.processes.size()));
  }
  auto file = std::make_unique<RecordedFile>(path, std::move(recording),
                                             CLEW_TRY(collect::SpillReader::open(path)));
  file->is_whole_ = is_usable && whole.complete() && whole.damaged_frames() == 0;
  return file;
}

// One place can be several sources: where a request begins, there can be a stream, too. The next
// one of the name is meant then.
Expected<void> RecordedFile::find_wanted(const query::Query& query, const query::Reporter& report) {
  wanted_.assign(recording_.sources.size(), false);
  const std::vector<std::string_view> known(recording_.sources.begin(), recording_.sources.end());
  for (const query::Source& source : query.sources) {
    const std::string text = query::print(source);
    auto found = std::find(known.begin(), known.end(), text);
    if (found == known.end()) {
      return report.fail(source.span, fmt::format("the file has no events of {}, only of {}", text,
                                                  fmt::join(known, ", ")));
    }
    const auto is_taken = [&] { return wanted_[static_cast<size_t>(found - known.begin())]; };
    while (found != known.end() && is_taken())
      found = std::find(std::next(found), known.end(), text);
    if (found != known.end()) wanted_[static_cast<size_t>(found - known.begin())] = true;
  }
  return {};
}

Expected<void> RecordedFile::prepare(const plan::Plan& plan, const plan::Lowered& lowered,
                                     const plan::Grouping& grouping, const query::Reporter& report,
                                     Numbers& numbers) {
  CLEW_TRY(find_wanted(plan.query, report));
  const plan::Captured captured = CLEW_TRY(plan::capture_held(plan, recording_.held, report));
  for (size_t i = 0; i < recording_.processes.size(); ++i) {
    (void)numbers.next(*this);
    names_.push_back(std::make_unique<RecordedNames>(recording_, i));
    intakes_.push_back(
        std::make_unique<answer::Intake>(plan, lowered, grouping, *names_.back(), captured));
  }
  return {};
}

Expected<void> RecordedFile::read_events(collect::EventBatch& round) {
  const std::optional<collect::SpillRound> read = CLEW_TRY(reader_.next());
  is_at_end_ = !read;
  if (!read) return {};
  for (size_t i = 0; i < read->batch.size(); ++i) {
    const collect::Event event = read->batch.at(i);
    if (wanted_[event.shape] && collect::member_of(event) < intakes_.size()) round.push(event);
  }
  return {};
}

void RecordedFile::take_events(const collect::EventBatch& events, collect::EventRange range,
                               answer::RowBatch& rows) {
  intakes_[collect::member_of(events.at(range.begin))]->take(events, range, rows);
}

uint64_t RecordedFile::passed() {
  uint64_t sum = 0;
  for (const auto& intake : intakes_)
    sum += intake->passed();
  return sum;
}

Expected<aggregate::Table> RecordedFile::total() {
  aggregate::Table table = intakes_[0]->counted();
  for (const auto& intake : std::span(intakes_).subspan(1)) {
    CLEW_TRY(table.merge(intake->counted()));
  }
  return table;
}

// By its events' times.
Expected<aggregate::Table> RecordedFile::interval() {
  aggregate::Table table = CLEW_TRY(total());
  for (const auto& intake : intakes_)
    intake->forget_counted();
  return table;
}

collect::Losses RecordedFile::losses() {
  collect::Losses losses = recording_.losses;
  if (!is_at_end_) return losses;  // As many rows as were asked for.
  collect::count_cause(losses.dropped, collect::kDroppedFrames, reader_.damaged_frames());
  losses.lost = reader_.problems();
  if (!reader_.complete()) {
    losses.lost.push_back(
        fmt::format("{}: it has no end: its writer was killed, or it was cut off "
                    "({} bytes of a frame are left out)",
                    path_, reader_.bytes_left_over()));
  }
  return losses;
}

}  // namespace clew::session
