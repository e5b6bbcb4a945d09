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
#include "plan/joined.h"
#include "plan/plan.h"
#include "query/cause.h"
#include "query/parse.h"
#include "query/print.h"
#include "query/vocabulary.h"
#include "session/recorded_file.h"
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
    return fail(ErrorCode::InvalidQuery, "every needs running processes; a file has one answer");
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

// The carriers are those that the file has events of. An edge that is lost would make others wrong.
Expected<plan::Joined> separate_for_file(const query::Query& query, const Request& request,
                                         const query::Vocabulary& vocabulary,
                                         const session::Recording& recording) {
  const query::Reporter report(request.text);
  uint64_t dropped = 0;
  for (const auto& [cause, count] : recording.losses.dropped)
    dropped += count;
  if (dropped != 0) {
    return report.fail(
        query.joins[0].span,
        fmt::format("the file lacks {} events, so what caused what cannot be told", dropped));
  }
  std::vector<query::Carrier> carriers = CLEW_TRY(query::carriers_of(vocabulary, nullptr));
  std::erase_if(carriers, [&recording](const query::Carrier& carrier) {
    const std::string name = query::print(carrier.source);
    const auto& sources = recording.sources;
    return std::find(sources.begin(), sources.end(), name) == sources.end();
  });
  return plan::separate(query, carriers, report);
}

}  // namespace

Expected<void> replay(const Request& request, int stop_descriptor, output::RowSink& sink) {
  const std::unique_ptr<session::RecordedFile> file = CLEW_TRY(open_file(request.from_path));
  const query::Vocabulary vocabulary = CLEW_TRY(vocabulary_of(request));
  query::Query query = CLEW_TRY(parse_for_file(request, vocabulary));
  std::optional<plan::Joined> joined;
  if (!query.joins.empty()) {
    joined = CLEW_TRY(separate_for_file(query, request, vocabulary, file->recording()));
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
  session::EventFlow flow;
  session::Session session({.plan = plan,
                            .sources = {file.get()},
                            .numbers = numbers,
                            .sink = sink,
                            .flow = flow,
                            .epoch_ns = lowered.clock.epoch_ns,
                            .joined = joined ? &*joined : nullptr});
  CLEW_TRY(session.begin());
  CLEW_TRY(session.answer(stop_descriptor));
  CLEW_TRY(session.stop());
  return session.finish();
}

}  // namespace clew::engine
