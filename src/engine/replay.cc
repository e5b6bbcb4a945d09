// SPDX-License-Identifier: Apache-2.0
#include "engine/replay.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "answer/columns.h"
#include "engine/causes.h"
#include "plan/joined.h"
#include "plan/plan.h"
#include "plan/rewrite_join.h"
#include "query/cause.h"
#include "query/parse.h"
#include "query/print.h"
#include "query/vocabulary.h"
#include "query/window.h"
#include "session/recorded_file.h"
#include "session/request_recorder.h"
#include "session/session.h"

namespace clew::engine {
namespace {

Expected<query::Vocabulary> vocabulary_of(const Request& request) {
  query::Vocabulary vocabulary;
  for (const std::string& path : request.vocabulary_paths)
    CLEW_TRY(vocabulary.load(path));
  return vocabulary;
}

Expected<query::Query> parse_for_file(const Request& request, const query::Vocabulary& vocabulary) {
  query::Query query =
      CLEW_TRY(query::parse(request.text, {.vocabulary = &vocabulary, .types = nullptr}));
  if (query.every_ns || request.every_ns) {
    return fail(ErrorCode::InvalidQuery,
                "every needs running processes; 'window tumbling' divides a file by the times of "
                "its events");
  }
  if (query.including_open) {
    return fail(ErrorCode::InvalidQuery,
                "'including open' needs running processes; a file has no open calls");
  }
  // What is in the file counts, however long it took.
  query.for_ns.reset();
  query.for_events.reset();
  return query;
}

Expected<std::unique_ptr<session::RecordedFile>> open_file(const std::string& path) {
  auto file = session::RecordedFile::open(path);
  if (file || !path.ends_with(".snap")) return file;
  return fail(file.error().code, fmt::format("{}; a snap is a source of queries: recording(\"{}\")",
                                             file.error().message, path));
}

// Those of a picture's fields that the file has.
std::vector<query::Field> fields_of_picture(const session::RecordedFile& file) {
  std::vector<query::Field> fields = session::RequestRecorder::fields();
  std::erase_if(fields, [&file](query::Field field) {
    const auto& held = file.recording().held;
    const bool is_held = std::any_of(held.begin(), held.end(), [field](const auto& capture) {
      const query::Expression& meaning = capture.meaning;
      return meaning.kind == query::ExpressionKind::Field && meaning.field == field;
    });
    return field != query::Field::Time && !is_held;
  });
  return fields;
}

// The carriers are those that the file has events of.
Expected<plan::Joined> separate_for_file(const query::Query& query, const Request& request,
                                         const query::Vocabulary& vocabulary,
                                         const session::RecordedFile& file) {
  const query::Reporter report(request.text);
  if (query::joins_by_time(query)) return plan::separate(query, {}, report);
  const auto& sources = file.recording().sources;
  const auto is_there = [&sources](const query::Source& source) {
    return std::find(sources.begin(), sources.end(), query::print(source)) != sources.end();
  };
  std::vector<query::Carrier> carriers =
      CLEW_TRY(query::carriers_of(vocabulary, nullptr, is_there));
  std::erase_if(carriers, [&](const query::Carrier& carrier) { return !is_there(carrier.source); });
  return plan::separate(request.graph ? query : plan::rewrite_join(query), carriers, report,
                        request.graph ? fields_of_picture(file) : std::vector<query::Field>{});
}

// An edge that is lost would make others wrong.
Expected<void> check_whole(const session::RecordedFile& file, const plan::Joined& joined) {
  constexpr std::string_view kWhy = "so what caused what cannot be told";
  if (!file.is_whole()) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("the file is damaged, or has no end, {}", kWhy));
  }
  const uint64_t lost = session::lost_edges(file.recording().losses, joined);
  if (lost == 0) return {};
  return fail(ErrorCode::InvalidQuery, fmt::format("the file lacks {} events, {}", lost, kWhy));
}

// With the names that the file has, whatever its events hold.
void give_graph(const GraphRequest& request, output::RequestGraph graph,
                const session::RecordedFile& file) {
  graph.host = file.recording().host;
  for (output::GraphLane& lane : graph.lanes) {
    for (const session::RecordedProcess& process : file.recording().processes) {
      for (const auto& [number, incarnation] : process.incarnations) {
        if (incarnation.pid == lane.pid && lane.process.empty()) lane.process = incarnation.name;
      }
      const auto thread = process.threads.find(static_cast<uint64_t>(lane.tid));
      if (thread != process.threads.end() && lane.thread.empty()) lane.thread = thread->second;
    }
  }
  request.take(std::move(graph));
}

}  // namespace

Expected<void> replay(const Request& request, int stop_descriptor, output::RowSink& sink) {
  const std::unique_ptr<session::RecordedFile> file = CLEW_TRY(open_file(request.from_path));
  const query::Vocabulary vocabulary = CLEW_TRY(vocabulary_of(request));
  query::Query query = CLEW_TRY(parse_for_file(request, vocabulary));
  query::set_panes(query, file->recording().clock.epoch_ns);
  CLEW_TRY(check_graph(request, query::joins_by_cause(query)));
  std::optional<plan::Joined> joined;
  if (!query.joins.empty()) {
    joined = CLEW_TRY(separate_for_file(query, request, vocabulary, *file));
    if (query::joins_by_cause(joined->stages[0].query)) CLEW_TRY(check_whole(*file, *joined));
    query = joined->events;
  }
  const query::Query& answered = joined ? joined->stages[0].rest : query;
  if (request.accept) CLEW_TRY(request.accept(answer::columns_of(answered)));
  const plan::Plan plan = plan::plain(query);
  plan::Lowered lowered;
  lowered.form = plan::StateForm::Events;
  lowered.clock = file->recording().clock;
  const plan::Grouping grouping;
  session::Numbers numbers;
  const Expected<void> prepared =
      file->prepare(plan, lowered, grouping, query::Reporter(request.text), numbers);
  if (!prepared && joined) {
    return fail(ErrorCode::InvalidQuery,
                fmt::format("{}: the file holds the events of another query; joins need those of "
                            "the same streams, with the same exports",
                            request.from_path));
  }
  if (!prepared) return tl::unexpected(prepared.error());
  std::optional<session::RequestRecorder> recorder;
  if (request.graph) recorder.emplace(*joined, request.graph->choice);
  session::EventFlow flow;
  session::Session session({.plan = plan,
                            .sources = {file.get()},
                            .numbers = numbers,
                            .sink = sink,
                            .flow = flow,
                            .epoch_ns = lowered.clock.epoch_ns,
                            .clock = lowered.clock,
                            .joined = joined ? &*joined : nullptr,
                            .observer = recorder ? &*recorder : nullptr});
  CLEW_TRY(session.begin());
  CLEW_TRY(session.answer(stop_descriptor));
  CLEW_TRY(session.stop());
  Expected<void> finished = session.finish();
  if (recorder) give_graph(*request.graph, recorder->finish(lowered.clock.epoch_ns), *file);
  return finished;
}

}  // namespace clew::engine
